"""`./run tests` started by root: what an ordinary user inherits, and that tests as root alone do not pass."""

from collections import Counter
from pathlib import Path

import pytest

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli.checks import ordinary_user, whole_suite

pytestmark = pytest.mark.unit


def test_nothing_of_roots_own_reaches_an_ordinary_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", RESULTS_VARIABLE, "XDG_CACHE_HOME", "PYTEST_ADDOPTS"):
        monkeypatch.setenv(name, "/root/of/all")

    assert "/root/of/all" not in ordinary_user.environment(tmp_path).values()


@pytest.mark.parametrize(("reason", "status"), [("", 0), ("Python does not start", 1)])
def test_tests_that_no_ordinary_user_could_run_have_not_passed(
    reason: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(whole_suite, "ordinary_user", lambda _root, _folder: (None, reason))
    monkeypatch.setattr(whole_suite, "checks_and_compilation", lambda _user: [])
    monkeypatch.setattr(whole_suite, "run_tests", lambda _lanes, _user: None)
    monkeypatch.setattr(whole_suite.Outcomes, "counts", lambda _self: Counter(passed=3))

    assert whole_suite.main([]) == status
    assert (f"FAILED as an ordinary user, nothing ran: {reason}" in capsys.readouterr().out) == bool(reason)

"""./run tests on a small checkout: who runs what, and what the last line says."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest

from ctbench.base.paths import LIBRARIES, RESULTS_VARIABLE, ROOT

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

IS_ROOT = os.geteuid() == 0
TESTS = """
import os
import pathlib, time
import pytest

IS_ROOT = os.geteuid() == 0

def test_passes():
    assert os.access(__file__, os.W_OK)  # the checkout is the user's own
    assert "/root/of/all" not in os.environ.values()

@pytest.mark.root_too
def test_needs_root_and_says_so():
    if not IS_ROOT:
        pytest.skip("needs root")
"""
ONLY_ROOT_PASSES = """
def test_only_root_passes():
    assert IS_ROOT
"""
ROOT_FAILS = """
@pytest.mark.root_too
def test_root_fails():
    assert not IS_ROOT
"""
SLOW = """
import pathlib, time

def test_slow():
    try:
        pathlib.Path("{reached}").touch()
        time.sleep(60)
    finally:
        time.sleep(1)
        pathlib.Path("{cleaned}").touch()
"""


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A checkout with a .venv that is ours."""
    if IS_ROOT:
        read = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", sys.executable, "-c", ""]
        if subprocess.run(read, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"An ordinary user cannot use {sys.executable}.")
    with tempfile.TemporaryDirectory(prefix="conntrack-sla-") as name:  # pytest's folders are closed to others
        folder = Path(name) / "checkout"
        folder.parent.chmod(0o755)
        for part in ("base", "cli"):
            shutil.copytree(LIBRARIES / "ctbench" / part, folder / "libraries" / "ctbench" / part)
        for file in ("tests/conftest.py", "pyproject.toml"):
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / file, folder / file)
        (folder / ".venv" / "bin").mkdir(parents=True)
        python = folder / ".venv" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        for room in ("checks", "integration", "unit"):
            (folder / "tests" / room).mkdir()
        (folder / "tests" / "integration" / "test_alone.py").write_text("def test_needs_nothing():\n    pass\n")
        (folder.parent / "tmp").mkdir()
        (folder.parent / "tmp").chmod(0o1777)
        yield folder


def start(checkout: Path, tests: str, *options: str) -> "subprocess.Popen[str]":
    """./run tests; without its plug-ins pytest starts sooner."""
    (checkout / "tests" / "unit" / "test_small.py").write_text(tests)
    more = {"PYTHONPATH": checkout / "libraries", "TMPDIR": checkout.parent / "tmp"}
    if IS_ROOT:  # what is root's own is not passed on
        more[RESULTS_VARIABLE] = Path("/root/of/all")
    program = checkout / "libraries" / "ctbench" / "cli" / "__main__.py"
    inherited = commands.environment(checkout / "results", COLUMNS="100", **more)
    return subprocess.Popen(
        [sys.executable, program, "tests", "-p", "no:hypothesispytest", *options],
        env={name: value for name, value in inherited.items() if not name.startswith("PYTEST")},
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )


def run(checkout: Path, tests: str, *options: str) -> tuple[int, str, str]:
    """Exit status, the last line without its time, and all that was said."""
    with start(checkout, tests, *options) as process:
        said, _ = process.communicate(timeout=120)
    return process.returncode, re.sub(r" in \d.*", "", said.splitlines()[-1].strip("= ")), said


@pytest.mark.parametrize("workers", ["0", "2"])
def test_root_runs_what_is_roots_and_then_an_ordinary_user_all_and_nothing_stays(checkout: Path, workers: str) -> None:
    status, last, said = run(checkout, TESTS, "-n", workers)

    assert (status, last) == (0, "2 passed, 1 skipped"), said
    assert ("== as root" in said) == IS_ROOT
    assert [path.name for path in (checkout.parent / "tmp").glob("conntrack-sla-*")] == []


@pytest.mark.parametrize(
    ("tests", "options", "status", "last"),
    [
        pytest.param(TESTS + ONLY_ROOT_PASSES, (), 1, "1 failed, 2 passed, 1 skipped", id="fails for ordinary user"),
        pytest.param("import nosuchmodule\n", (), 1, "1 error", id="cannot be read"),
        pytest.param(TESTS, ("tests/unit/test_small.py", "-k", "passes"), 0, "1 passed", id="options are pytest's"),
        pytest.param(TESTS, ("-k", "nosuchtest"), 1, "3 deselected", id="no test is chosen"),
        pytest.param(TESTS, ("-k", "needs_root"), 1, "1 skipped", id="nothing passes"),
        pytest.param(TESTS, ("--collect-only", "-q"), 0, "3 tests collected", id="only collects"),
    ],
)
def test_the_last_line_and_the_status_are_those_of_pytest(
    checkout: Path, tests: str, options: tuple[str, ...], status: int, last: str
) -> None:
    found = run(checkout, tests, "-n0", *options)

    assert (found[0], re.sub(r"\d+ deselected, |, \d+ deselected", "", found[1])) == (status, last), found[2]


def test_what_fails_for_root_only_fails_the_whole_and_pytest_has_the_last_line(checkout: Path) -> None:
    status, last, said = run(checkout, TESTS + ROOT_FAILS, "-n0")

    assert (status, last) == (int(IS_ROOT), "3 passed, 1 skipped"), said
    assert ("as root, tests failed: see above" in said) == IS_ROOT


def test_where_no_ordinary_user_can_run_python_the_tests_have_not_passed(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "python").chmod(0o644)

    status, last, said = run(checkout, "def test_passes():\n    pass\n", "-n0")

    assert status == int(IS_ROOT), said
    assert last.startswith("run: as an ordinary user, nothing can run: ") if IS_ROOT else last == "2 passed"


def test_tests_that_run_alone_run_when_all_others_have_ended(checkout: Path) -> None:
    over = checkout.parent / "tmp" / "over"
    for number in range(3):
        test = f"def test_slow(tmp_path):\n    import time\n    time.sleep(0.7)\n    open('{over}{number}', 'w')\n"
        (checkout / "tests" / "unit" / f"test_{number}.py").write_text(test)
    alone = f"from glob import glob\ndef test_alone():\n    assert len(glob('{over}*')) == 3\n"
    (checkout / "tests" / "integration" / "test_alone.py").write_text(alone)

    status, last, said = run(checkout, TESTS, "-n2")

    assert (status, last) == (0, "5 passed, 1 skipped"), said


def test_ctrl_c_lets_the_tests_clean_up_and_is_status_130(checkout: Path) -> None:
    reached, cleaned = (checkout.parent / "tmp" / name for name in ("reached", "cleaned"))
    with start(checkout, SLOW.format(reached=reached, cleaned=cleaned), "-n0") as process:
        while not reached.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does
        process.communicate(timeout=60)

    assert process.returncode == 130
    assert cleaned.exists()

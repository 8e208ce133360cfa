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

from ctbench.base.paths import LIBRARIES, ROOT

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

WHOLE_SUITE = [sys.executable, "-m", "ctbench.cli.checks.whole_suite"]
TESTS = """
import os
import pytest

IS_ROOT = os.geteuid() == 0

def test_passes():
    assert os.access(__file__, os.W_OK)  # the checkout is the user's own

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
    """A checkout with a ./run whose checks pass, and a .venv that is ours."""
    if os.geteuid() == 0:
        read = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", sys.executable, "-c", ""]
        if subprocess.run(read, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"An ordinary user cannot use {sys.executable}.")
    with tempfile.TemporaryDirectory(prefix="conntrack-sla-") as name:  # pytest's folders are closed to others
        folder = Path(name) / "checkout"
        folder.parent.chmod(0o755)
        shutil.copytree(LIBRARIES / "ctbench" / "cli" / "checks", folder / "libraries" / "ctbench" / "cli" / "checks")
        for file in ("tests/conftest.py", "pyproject.toml"):
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / file, folder / file)
        (folder / "run").write_text("exit 0\n")
        (folder / ".venv" / "bin").mkdir(parents=True)
        python = folder / ".venv" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        for room in ("unit", "integration"):
            (folder / "tests" / room).mkdir()
        (folder.parent / "tmp").mkdir()
        (folder.parent / "tmp").chmod(0o1777)
        yield folder


def environment(checkout: Path) -> dict[str, str]:
    """As ./run sets it for the tests."""
    libraries, temporary = checkout / "libraries", checkout.parent / "tmp"
    return commands.environment(checkout / "results", PYTHONPATH=libraries, TMPDIR=temporary, COLUMNS="100")


def run(checkout: Path, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """With -s no workers are started, and without its plug-ins pytest starts sooner."""
    (checkout / "tests" / "unit" / "test_small.py").write_text(tests)
    (checkout / "tests" / "integration" / "test_small.py").write_text("def test_needs_nothing():\n    pass\n")
    return subprocess.run(
        [*WHOLE_SUITE, "-s", "-p", "no:hypothesispytest", *options],
        env={name: value for name, value in environment(checkout).items() if not name.startswith("PYTEST")},
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_ctrl_c_lets_the_tests_clean_up_and_is_status_130(checkout: Path) -> None:
    reached, cleaned = (checkout.parent / "tmp" / name for name in ("reached", "cleaned"))
    (checkout / "tests" / "unit" / "test_small.py").write_text(SLOW.format(reached=reached, cleaned=cleaned))
    with subprocess.Popen(
        [*WHOLE_SUITE, "-s"],
        env=environment(checkout),
        cwd=checkout,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while not reached.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does

        assert process.wait(60) == 130
    assert cleaned.exists()


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    return re.sub(r" in \d.*", "", done.stdout.splitlines()[-1].strip("= "))


def test_what_an_ordinary_user_skips_runs_as_root_and_nothing_stays(checkout: Path) -> None:
    done = run(checkout, TESTS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert last_line(done) == ("3 passed" if os.geteuid() == 0 else "2 passed, 1 skipped")
    assert [path.name for path in (checkout.parent / "tmp").glob("conntrack-sla-*")] == []


def test_a_test_that_fails_for_one_user_is_red_whoever_that_is(checkout: Path) -> None:
    done = run(checkout, TESTS + ONLY_ROOT_PASSES + ROOT_FAILS)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED tests/unit/test_small.py::test_only_root_passes\n" in done.stdout
    if os.geteuid() == 0:
        assert "FAILED tests/unit/test_small.py::test_root_fails (as root)\n" in done.stdout
        assert last_line(done) == "2 failed, 3 passed"
    else:
        assert last_line(done) == "1 failed, 3 passed, 1 skipped"


def test_a_file_that_cannot_be_read_by_pytest_and_a_check_that_fails_are_errors(checkout: Path) -> None:
    (checkout / "run").write_text('[ "$2" != types ]\n')

    done = run(checkout, "import nosuchmodule\n")

    assert done.returncode == 1
    assert "FAILED types\n" in done.stdout
    assert re.fullmatch(r"(\d passed, )?\d errors", last_line(done)), done.stdout


def test_options_are_pytests_and_where_they_choose_no_test_that_is_a_failure(checkout: Path) -> None:
    chosen = run(checkout, TESTS, "tests/unit/test_small.py", "-k", "passes")
    none = run(checkout, TESTS, "-k", "nosuchtest")

    assert (chosen.returncode, last_line(chosen)) == (0, "1 passed")
    assert (none.returncode, last_line(none)) == (1, "no tests ran")

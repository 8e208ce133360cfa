"""`./run tests`: all tests as an ordinary user, the checks among them; for root, some tests as root before that.

Root sees files and namespaces that others do not, so a test that passes for root says little about other users. Started
by root, the tests that are marked `root_too` run as root, and then every test as `nobody` in a copy of the checkout,
as after a clone. Each of the two is one run of pytest on all CPUs (tests/conftest.py).
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.paths import ROOT

#: User and group `nobody` of Debian.
NOBODY = 65534
DROP = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
#: What ./run and the tools that it calls make: a fresh clone has none of it, and none of what runs left.
#: mypy's cache is kept: without it the types take a minute. The history is large, and no test reads it.
MADE = shutil.ignore_patterns(
    ".git", ".venv", ".tox", "__pycache__", ".pytest_cache", ".ruff_cache", ".robocop_cache", ".hypothesis"
)
RESULTS_OF_A_CLONE = ("README.md", "reference")
#: Of root's environment: what tells who and where root is, and that Python is to keep nothing that it compiled: the
#: copy goes away. The PATH is that of Debian's users.
ROOTS_OWN = (
    "CONNTRACK_SLA_", "HOME", "MAIL", "PYENV_", "PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH",
    "SUDO_", "XDG_",
)  # fmt: skip
PATH = "/usr/local/bin:/usr/bin:/bin"
#: Processes that run tests: one more than there are CPUs, as each waits now and then for what it has started.
WORKERS = str(len(os.sched_getaffinity(0)) + 1)
#: pytest's own: all passed, some failed, no test was chosen.
PASSED, FAILED, NONE_CHOSEN = 0, 1, 5


@dataclass(frozen=True)
class User:
    """Who runs tests, and where: as we are, or with `drop` before a command."""

    checkout: Path
    environment: Mapping[str, str]
    python: str
    drop: tuple[str, ...] = ("setpriv",)

    def test(self, *options: str) -> int:
        """pytest's exit status. Whatever ends us interrupts it: it then ends what it has started, which takes time."""
        command = [*self.drop, "--pdeathsig=INT", "--", self.python, "-P", "-m", "pytest", "-n", WORKERS]
        pytest = subprocess.Popen(
            [*command, "--durations=20", "--durations-min=5", *options], env=self.environment, cwd=self.checkout
        )
        try:
            return pytest.wait()
        except KeyboardInterrupt:
            pytest.wait()
            raise


def run(*options: str) -> int:
    """Everything; 0 when all of it passed, otherwise 1."""
    us = User(ROOT, os.environ, sys.executable)
    if os.geteuid() != 0:
        return FAILED if us.test(*options) else PASSED
    with folder_that_goes() as folder:
        try:
            nobody = ordinary_user(folder)
        except subprocess.CalledProcessError as error:  # root alone proves nothing about other users
            reason = (error.stderr.strip().splitlines() or [str(error)])[-1]
            print(f"run: as an ordinary user, nothing can run: {reason}", file=sys.stderr)
            return FAILED
        print("== as root, tests that root may do differently", flush=True)
        as_root = us.test("--root-too", *options)
        if as_root not in (PASSED, FAILED, NONE_CHOSEN) or (as_root == FAILED and {"-x", "--exitfirst"} & {*options}):
            return FAILED
        before = " (as root, tests failed: see above)" if as_root == FAILED else ""
        print(f"== as an ordinary user, all tests{before}", flush=True)
        status = nobody.test(*options)
        return FAILED if status or as_root == FAILED else PASSED


def ordinary_user(folder: Path) -> User:
    """Somebody who is not root and has a copy of this checkout in `folder`. Raises `CalledProcessError` where the
    Python of the .venv is not for such a user."""
    checkout, home = folder / "checkout", folder / "home"
    copy_checkout(checkout)
    copy_venv(ROOT, checkout)
    home.mkdir()
    own = {"HOME": str(home), "PATH": PATH}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ROOTS_OWN)}
    python = str(checkout / ".venv" / "bin" / "python")
    subprocess.run(
        ["chown", "-R", f"{NOBODY}:{NOBODY}", str(checkout), str(home)], check=True, capture_output=True, text=True
    )
    subprocess.run([*DROP, "--", python, "-c", "import numpy"], check=True, capture_output=True, text=True)
    return User(checkout, kept | own | {"USER": "nobody", "LOGNAME": "nobody"}, python, DROP)


def copy_checkout(target: Path) -> None:
    """Copy what a clone would have, changes that are not committed included."""

    def left_out(place: str, names: list[str]) -> set[str]:
        return set(names) - set(RESULTS_OF_A_CLONE) if Path(place) == ROOT / "results" else MADE(place, names)

    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)


def copy_venv(checkout: Path, target: Path) -> None:
    """Give a copy of a checkout the .venv as well: of the same files where they have the same user and disk."""
    venv = target / ".venv"
    same = os.geteuid() != 0 and target.stat().st_dev == checkout.stat().st_dev
    subprocess.run(["cp", "-a" + "l" * same, str(checkout / ".venv"), str(venv)], check=True)
    for compiled in venv.glob("generator-*"):
        shutil.rmtree(compiled)
    # A .venv has its place in its scripts, and in the stamps by which ./run knows whether it is up to date.
    for file in [*venv.glob("bin/*"), *venv.glob("stamp-*")]:
        if file.is_file() and not file.is_symlink():
            text, mode = file.read_bytes().replace(os.fsencode(checkout), os.fsencode(target)), file.stat().st_mode
            file.unlink()
            file.write_bytes(text)
            file.chmod(mode)


@contextlib.contextmanager
def folder_that_goes() -> Iterator[Path]:
    """A temporary folder that everybody may read. It is removed even if we are killed with -9: the end of a pipe tells
    a process that outlives us."""
    folder = Path(tempfile.mkdtemp(prefix="conntrack-sla-"))
    folder.chmod(0o755)
    command = 'trap "" INT TERM HUP; cat; for again in 1 2 3 4 5; do rm -rf -- "$0" && break; sleep 1; done'
    with subprocess.Popen(
        ["sh", "-c", command, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ):
        yield folder


def main(options: argparse.Namespace) -> int:
    return run(*options.rest)

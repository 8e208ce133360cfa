"""`./run tests`: all tests as an ordinary user, the checks among them; for root, some tests as root as well. And
copies of a checkout, which tests use as well.

Root sees files and namespaces that others do not, so a test that passes for root says little about other users. Started
by root, every test runs as `nobody` in a copy of the checkout, as after a clone, on all CPUs, and meanwhile the tests
that are marked `root_too` run as root, one by one. Each of the two is one run of pytest (tests/conftest.py).
"""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ctbench.base.paths import ROOT

#: User and group `nobody` of Debian.
NOBODY = 65534
DROP = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
#: What ./run and the tools that it calls make: a fresh clone has none of it, and none of what runs left.
#: mypy's cache is kept: without it the types take a minute; and what Python has compiled, which each copy would compile
#: once more, but for what it is writing now (*.pyc.*). The history is large, and no test reads it.
MADE = shutil.ignore_patterns(
    ".git", ".venv", ".tox", "*.pyc.*", ".pytest_cache", ".ruff_cache", ".robocop_cache", ".hypothesis"
)
#: Of root's environment: what tells who and where root is, and that Python is to keep nothing that it compiled: the
#: copy goes away. The PATH is that of Debian's users.
ROOTS_OWN = (
    "CONNTRACK_SLA_", "HOME", "MAIL", "PYENV_", "PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH",
    "SUDO_", "XDG_",
)  # fmt: skip
PATH = "/usr/local/bin:/usr/bin:/bin"
#: Processes that run tests: one more than there are CPUs, as each waits now and then for what it has started.
WORKERS = str(len(os.sched_getaffinity(0)) + 1)
#: The variable that names a folder of locks, by which the tests of one run of pytest wait for those of the other.
LOCKS = "CTBENCH_TESTS_LOCKS"
#: pytest's own: all passed, no test was chosen.
PASSED, NONE_CHOSEN = 0, 5


def started(
    checkout: Path,
    environment: Mapping[str, str],
    *options: str,
    drop: Sequence[str] = ("setpriv",),
    said: IO[bytes] | None = None,
) -> "subprocess.Popen[bytes]":
    """pytest in a checkout, as the user that `drop` makes of us. Whatever ends us interrupts it: it then ends what it
    has started, which takes time."""
    python = sys.executable if checkout == ROOT else str(checkout / ".venv" / "bin" / "python")
    command = [*drop, "--pdeathsig=INT", "--", python, "-P", "-m", "pytest", "-n", WORKERS]
    command += ["--durations=20", "--durations-min=5", *options]
    return subprocess.Popen(command, env=environment, cwd=checkout, stdout=said, stderr=said)


def status_of(pytest: "subprocess.Popen[bytes]") -> int:
    """What it ends with."""
    try:
        return pytest.wait()
    except KeyboardInterrupt:
        pytest.wait()
        raise


def as_nobody(folder: Path, *options: str) -> int:
    """Run every test as somebody who is not root and has a copy of this checkout in `folder`."""
    checkout, home = folder / "checkout", folder / "home"
    copy_checkout(checkout)
    copy_venv(ROOT, checkout)
    home.mkdir()
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(checkout), str(home)], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ROOTS_OWN)}
    own = {"HOME": str(home), "PATH": PATH, "USER": "nobody", "LOGNAME": "nobody", "TMPDIR": str(folder.parent)}
    return status_of(started(checkout, kept | own, *options, drop=DROP))


def main() -> int:
    """Everything; 0 when all of it passed, otherwise 1."""
    options = sys.argv[1:]
    if os.geteuid() != 0:
        return 1 if status_of(started(ROOT, os.environ, *options)) else 0
    with folder_that_goes() as folder, (folder / "said").open("wb") as said:
        os.environ[LOCKS] = str(folder)
        for name in ("alone", "hosts"):
            (folder / name).touch()
        root = started(ROOT, os.environ, "-n1", "--root-too", *options, said=said)
        print("== as an ordinary user, all tests", flush=True)
        status = as_nobody(folder, *options)
        print("== as root, tests that root may do differently", flush=True)
        as_root = status_of(root)
        print((folder / "said").read_text(), flush=True)
    if as_root not in (PASSED, NONE_CHOSEN):
        print("run: as root, tests failed: see above.", file=sys.stderr)
        return 1
    return 1 if status else 0


def copy_checkout(target: Path) -> None:
    """Copy what a clone would have, changes that are not committed included."""

    def left_out(place: str, names: list[str]) -> set[str]:
        return set(names) - {"README.md"} if Path(place) == ROOT / "results" else MADE(place, names)

    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)


def copy_venv(checkout: Path, target: Path) -> None:
    """Give a copy of a checkout the .venv as well: of the same files where they have the same user and disk. What root
    has compiled of the traffic generator is there for `nobody`, who would compile it again."""
    venv = target / ".venv"
    same = os.geteuid() != 0 and target.stat().st_dev == checkout.stat().st_dev
    subprocess.run(["cp", "-a" + "l" * same, str(checkout / ".venv"), str(venv)], check=True)
    compiled = venv / "ctgen-0"
    if os.geteuid() == 0 and compiled.is_dir():
        shutil.rmtree(venv / f"ctgen-{NOBODY}", ignore_errors=True)
        compiled.rename(venv / f"ctgen-{NOBODY}")
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
    place = Path(tempfile.gettempdir()).resolve()
    if os.geteuid() == 0 and not all(each.stat().st_mode & stat.S_IXOTH for each in (place, *place.parents)):
        place = Path("/tmp")  # TMPDIR is closed to the user whom root runs tests as
    folder = Path(tempfile.mkdtemp(prefix="conntrack-sla-", dir=place))
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


if __name__ == "__main__":
    raise SystemExit(main())

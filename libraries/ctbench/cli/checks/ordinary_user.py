"""An ordinary user for root's tests: `nobody`, with a copy of the checkout that is its own, as after a clone."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: User and group `nobody` of Debian.
NOBODY = 65534
DROP = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
#: What ./run and the tools that it calls make, and what runs left: a fresh clone has none of it.
MADE = {".venv", ".tox", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".robocop_cache", ".hypothesis"}
RESULTS_OF_A_CLONE = {"README.md", "reference"}
#: Of root's environment: what tells who and where root is, and that Python is to keep nothing that it compiled: this
#: checkout goes away. The PATH is that of Debian's users.
ROOTS_OWN = (
    "CONNTRACK_SLA_", "HOME", "MAIL", "NUMBA_CACHE_DIR", "PYENV_", "PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH",
    "SUDO_", "XDG_",
)  # fmt: skip
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class OrdinaryUser:
    """Whom to become, and where; `drop` goes before a command."""

    checkout: Path
    environment: dict[str, str]
    drop: Sequence[str] = DROP

    @property
    def python(self) -> Path:
        return self.checkout / ".venv" / "bin" / "python"


def ordinary_user(root: Path, folder: Path) -> tuple[OrdinaryUser | None, str]:
    """Somebody who is not root and has a copy of the checkout `root` in `folder`, or the reason why there is nobody
    (none is needed where we are not root)."""
    if os.geteuid() != 0:
        return None, ""
    user = OrdinaryUser(folder / "checkout", environment(folder))
    copy_checkout(root, user.checkout)
    home = folder / "home"
    home.mkdir()
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(user.checkout), str(home)], check=True)
    tried = subprocess.run([*DROP, str(user.python), "-c", "import numba"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return None, (tried.stderr.strip().splitlines() or ["Python does not start"])[-1]
    return user, ""


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


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ROOTS_OWN)}
    own = {"HOME": folder / "home", "NUMBA_CACHE_DIR": folder / "checkout" / ".venv" / "numba-nobody"}
    return (
        kept | {name: str(path) for name, path in own.items()} | {"USER": "nobody", "LOGNAME": "nobody", "PATH": PATH}
    )


def copy_checkout(root: Path, target: Path) -> None:
    """Copy what a clone would have, changes that are not committed included, and the .venv."""

    def left_out(place: str, names: list[str]) -> set[str]:
        if Path(place) == root / "results":
            return set(names) - RESULTS_OF_A_CLONE
        return MADE & set(names)

    shutil.copytree(root, target, symlinks=True, ignore=left_out)
    venv = target / ".venv"
    subprocess.run(["cp", "-a", str(root / ".venv"), str(venv)], check=True)
    for cache in venv.glob("numba-*"):
        shutil.rmtree(cache)
    (venv / "numba-nobody").mkdir()
    # A .venv has its place in its scripts, and in the stamps by which ./run knows whether it is up to date.
    for file in [*venv.glob("bin/*"), *venv.glob("stamp-*")]:
        if file.is_file() and not file.is_symlink():
            file.write_bytes(file.read_bytes().replace(os.fsencode(root), os.fsencode(target)))

"""The folder of a run, which somebody may remove while it runs, and whose disk may be full."""

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.paths import RESULTS, RESULTS_VARIABLE, ROOT, VARIABLES

#: Bytes that a folder takes before a run begins: without them there is no record, and no message about it either.
_LEAST_SPACE = 64 * 1024


def results_root() -> Path:
    """Where runs land: where the environment says, else results/ of the checkout, or, when that is somebody else's, a
    folder of the user's own."""
    if named := os.environ.get(RESULTS_VARIABLE):
        return Path(named).absolute()
    if os.access(RESULTS if RESULTS.exists() else ROOT, os.W_OK):
        return RESULTS
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "conntrack-sla" / "results"


def check_places(command: str, arguments: Sequence[str]) -> None:
    """Raise `ConfigError` where `command` could not keep what it finds: before it installs and compiles, which takes a
    minute. Arguments that may name another folder are understood later."""
    others = ("-d", "--outputdir", "-A", "--argumentfile", "--resume", "--from")
    if command not in ("sla", "calibrate", "compare") or any(each.startswith(others) for each in arguments):
        return
    if command == "calibrate" and not os.access(VARIABLES / "sla", os.W_OK):
        raise ConfigError(
            f"{VARIABLES / 'sla'} cannot be written, where the SLA file goes.\n  Expected a clone of the project that "
            "you may write to: make one for yourself."
        )
    try:
        if "ROBOT_OPTIONS" not in os.environ:
            check_possible(results_root())
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written to {results_root()} ({error.strerror}): choose a folder with --outputdir."
        ) from None


def check_writable(folder: Path) -> None:
    """Raise OSError where nothing of some size can be written to `folder`."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"\0" * _LEAST_SPACE)
        probe.flush()


def check_possible(folder: Path) -> None:
    """Raise OSError where `folder` cannot be made, as far as can be known without making anything."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))


class WatchedFolder:
    """Knows whether a folder is still the one that it was."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where there is none."""
        self.path = path
        # Kept open, so that no other folder gets its number.
        self._known = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    @property
    def is_gone(self) -> bool:
        """Whether it was removed, or moved; another one may have its name now."""
        try:
            return not os.path.samestat(os.fstat(self._known), self.path.stat())
        except OSError:
            return True

    @property
    def fault(self) -> OSError | None:
        """Why nothing can be written to it any more; None where something can."""
        try:
            check_writable(self.path)
        except OSError as error:
            error.filename = str(self.path)
            return error
        return None

"""Where runs land, and whether something can be written there: a disk may be full."""

import os
import tempfile
from pathlib import Path

from ctbench.base.paths import RESULTS, RESULTS_VARIABLE, ROOT

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


def check_writable(folder: Path) -> None:
    """Raise OSError where nothing of some size can be written to `folder`."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"\0" * _LEAST_SPACE)
        probe.flush()

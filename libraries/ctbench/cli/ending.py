"""How a run ended otherwise than by its verdicts: its folder is gone, the disk is full, Robot Framework failed."""

import sys
from pathlib import Path

from ctbench.base.errors import CtbenchError
from ctbench.base.statuses import ExitStatus
from ctbench.cli import boundary
from ctbench.cli.results_folder import WatchedFolder
from ctbench.report import console
from ctbench.results import store
from ctbench.run.exit_status import Stamps


def abnormal_end(watched: WatchedFolder, escaped: Exception | None, before: Stamps) -> ExitStatus | None:
    """Say what happened, and return its exit status; None where nothing did. `escaped` is what ended Robot Framework,
    `before` tells the records of older runs."""
    if escaped is not None and not isinstance(escaped, CtbenchError):
        # It had no occasion to show what was measured.
        _show_new_records(watched.path, before)
    if watched.is_gone:
        print(
            f"run: {watched.path} was removed or moved while the run wrote to it: what was in it is lost, "
            "and what the console shows is all that is left of it.",
            file=sys.stderr,
        )
        return ExitStatus.OUTPUT
    if escaped is not None:
        # What a full disk makes of Robot Framework has many names.
        return ExitStatus(boundary.told("sla", watched.fault or escaped))
    if store.unwritten:
        print(f"run: {store.unwritten[0]}", file=sys.stderr)
        return ExitStatus.OUTPUT
    return None


def _show_new_records(folder: Path, before: Stamps) -> None:
    stored, _ = store.read_stored(folder)
    records = [each.record for each in stored if each.path not in before]
    if records:
        print(f"\n{console.summary(records)}")

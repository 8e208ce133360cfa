"""Robot Framework in this process, and how a run ended otherwise than by its verdicts: the disk is full, its folder is
gone, Robot Framework failed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot.errors import DataError
from robot.run import RobotFramework

from ctbench.base.errors import CtbenchError, ExitStatus, OutputError
from ctbench.base.files import check_writable
from ctbench.cli import error_boundary
from ctbench.report import console
from ctbench.results import store
from ctbench.run.exit_status import ROBOT_CRASHED, ROBOT_INVALID_DATA, Stamps


class RobotRun(RobotFramework):  # type: ignore[misc] # robot has no types
    """Runs once; keeps the error that Robot Framework did not foresee, where there was one, in place of showing it."""

    def __init__(self) -> None:
        super().__init__()
        self.escaped: Exception | None = None

    def run(self, arguments: Sequence[str]) -> int:
        """Robot Framework's return code for a command line."""
        try:
            status: int = self.execute_cli(list(arguments), exit=False)
        except Exception as error:  # of its loggers
            self.escaped = self.escaped or error
            return ROBOT_CRASHED
        return status

    def main(self, datasources: Sequence[str], **options: Any) -> int:
        """As Robot Framework's own, which calls it."""
        try:
            status: int = super().main(datasources, **options)
        except DataError as error:  # after `selected_suite` accepted it all: of what Robot wrote
            self.escaped = OutputError(str(error))
            return ROBOT_INVALID_DATA
        except Exception as error:
            self.escaped = error
            return ROBOT_CRASHED
        return status


def abnormal_exit(folder: Path, escaped: Exception | None, before: Stamps) -> ExitStatus | None:
    """Say what happened, and return its exit status; None where nothing did. `escaped` is what ended Robot Framework,
    `before` tells the records of older runs."""
    if escaped is not None and not isinstance(escaped, CtbenchError):
        # It had no occasion to show what was measured.
        records = [each.record for each in store.read_stored(folder)[0] if each.path not in before]
        if records:
            print(f"\n{console.summary(records)}")
    if escaped is not None:
        try:
            check_writable(folder)  # what a full disk makes of Robot Framework has many names
        except OSError as error:
            escaped = OutputError(f"{folder}: cannot be written ({error.strerror}). What was written before is kept.")
        return ExitStatus(error_boundary.told("sla", escaped))
    if store.unwritten:
        print(f"run: {store.unwritten[0]}", file=sys.stderr)
        return ExitStatus.OUTPUT
    return None

"""Robot Framework in this process, without tracebacks of its own on the console."""

from collections.abc import Sequence
from typing import Any

from robot.errors import DataError
from robot.run import RobotFramework

from ctbench.base.errors import ConfigError
from ctbench.run.exit_status import ROBOT_CRASHED, ROBOT_INVALID_DATA


class RobotRun(RobotFramework):  # type: ignore[misc] # robot has no types
    """Runs once; keeps the error that nobody expected, where there was one, in place of showing it."""

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
            self.escaped = ConfigError(str(error))
            return ROBOT_INVALID_DATA
        except Exception as error:  # whatever it is, it is said by who asks for `escaped`
            self.escaped = error
            return ROBOT_CRASHED
        return status

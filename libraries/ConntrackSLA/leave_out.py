"""A pre-run modifier of Robot Framework: leaves out the tests that have a record when a run goes on."""

from pathlib import Path

from robot.api import SuiteVisitor
from robot.running import TestSuite

from ctbench.run.run_request import RunRequest, left


class LeaveOut(SuiteVisitor):  # type: ignore[misc] # robot has no types for mypy here
    """`--prerunmodifier "ConntrackSLA.leave_out.LeaveOut;NAME;FOLDER"`: the name that the uppermost suite has in the
    records of the run in a folder, which `--name` changes after this."""

    def __init__(self, name: str, *folder: str) -> None:
        # Robot Framework takes a path apart at its semicolons.
        output = Path(";".join(folder))
        self._measured = RunRequest.read(output).measured(output)
        self._name, self._uppermost = name, ""

    def start_suite(self, suite: TestSuite) -> None:
        """Remove tests."""
        if not self._uppermost:
            self._uppermost = suite.full_name
            # Of several files it is made of the names of those that are left: the records have that of all.
            suite.name = suite.name
        name = self._name + suite.full_name[len(self._uppermost) :]
        suite.tests = left(suite.tests, self._measured, lambda test: (name, test.name))

    def end_suite(self, suite: TestSuite) -> None:
        """Remove suites that have become empty."""
        suite.suites = [each for each in suite.suites if each.test_count]

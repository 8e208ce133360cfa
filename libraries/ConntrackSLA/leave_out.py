"""A pre-run modifier of Robot Framework: leaves out the tests that have a record when a run goes on."""

from collections import Counter
from pathlib import Path

from robot.api import SuiteVisitor
from robot.running import TestSuite

from ctbench.run.progress import below, read_list


class LeaveOut(SuiteVisitor):  # type: ignore[misc] # robot has no types for mypy here
    """`--prerunmodifier "ConntrackSLA.leave_out.LeaveOut;FILE"`, with a file of `progress.write_list`."""

    def __init__(self, *path: str) -> None:
        # Robot Framework takes a path apart at its semicolons.
        self._measured = Counter(read_list(Path(";".join(path))))
        self._uppermost: str | None = None

    def start_suite(self, suite: TestSuite) -> None:
        """Remove tests."""
        if self._uppermost is None:
            self._uppermost = suite.full_name
            # Of several files it is made of the names of those that are left: the records have that of all.
            suite.name = suite.name
        kept = []
        for test in suite.tests:
            name = below(suite.full_name, self._uppermost), test.name
            if self._measured[name]:
                self._measured[name] -= 1
            else:
                kept.append(test)
        suite.tests = kept

    def end_suite(self, suite: TestSuite) -> None:
        """Remove suites that have become empty."""
        suite.suites = [each for each in suite.suites if each.test_count]

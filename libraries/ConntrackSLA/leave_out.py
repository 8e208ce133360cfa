"""A pre-run modifier of Robot Framework: leaves out the tests that have a record when a run goes on."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from robot.api import SuiteVisitor
from robot.running import TestSuite


def write_list(tests: Sequence[tuple[str, str]], path: Path) -> None:
    """Write the tests to leave out, each as its suite below the uppermost one, and its name."""
    path.write_text(json.dumps(list(tests)) + "\n", encoding="utf-8")


def below(suite: str, uppermost: str) -> str:
    """A suite's full name without that of the uppermost suite, which `--name` changes."""
    return suite[len(uppermost) :].lstrip(".")


class LeaveOut(SuiteVisitor):  # type: ignore[misc] # robot has no types for mypy here
    """`--prerunmodifier "ConntrackSLA.leave_out.LeaveOut;FILE"`, with a file of `write_list`."""

    def __init__(self, *path: str) -> None:
        # Robot Framework takes a path apart at its semicolons.
        listed = json.loads(Path(";".join(path)).read_text(encoding="utf-8"))
        self._measured = Counter((suite, test) for suite, test in listed)
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

"""Tags for the rows of the suites, made from their arguments before Robot Framework selects tests by them.

`./run sla` adds it by itself; a plain `robot` needs `--prerunmodifier libraries/ConntrackSLA/tags.py`, and with another
SLA than the stock one `"libraries/ConntrackSLA/tags.py;SLA"`.
"""

from robot.api import SuiteVisitor
from robot.running import TestCase

from ConntrackSLA.rows import row_of
from ctbench.base.errors import CtbenchError
from ctbench.base.yaml_files import load
from ctbench.run.tags import tags_of
from ctbench.sla.floors import Floors


class tags(SuiteVisitor):  # type: ignore[misc]  # Robot Framework looks for a class that is called as its module
    """A model modifier: adds to each test of a promise the tags that follow from its row."""

    def __init__(self, sla: str = "local") -> None:
        """`sla`: the SLA whose promises tags tell of. The run says what is wrong with one that cannot be read."""
        try:
            self._floors: Floors | None = load("sla", sla, Floors)
        except CtbenchError:
            self._floors = None

    def visit_test(self, test: TestCase) -> None:
        """A row that says something impossible keeps the tags it has: the test says what is wrong with it."""
        try:
            row = row_of(test)
            if row:
                test.tags.add(tags_of(row.topology, row.profile, self._floors, row.what))
        except (CtbenchError, ValueError):
            return

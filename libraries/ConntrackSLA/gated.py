"""How many rows of a run compare two builds: known before the first one begins, since they share the run's error."""

from collections.abc import Callable, Sequence

from robot.errors import RobotError
from robot.running import TestCase, TestSuite

from ConntrackSLA.rows import Resolve, asked_for, row_of
from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.dut.topology import Topology
from ctbench.run.settings import RunSettings

#: What a suite will be measured by; `CtbenchError` where that is a mistake.
SettingsOf = Callable[[TestSuite | None], RunSettings]


def gated_rows(
    suite: TestSuite,
    settings_of: SettingsOf,
    place: Callable[[Topology], object],
    include: Sequence[str] = (),
    resolve: Resolve | None = None,
) -> int:
    """Of a suite and those in it. `place` raises `MissingResource` for a topology that the testbed has no room for.
    What is not known yet counts: a test that says what it measures only when it runs, a suite whose files are
    wrong."""
    return sum(_rows(test, settings_of, place, include, resolve) for test in suite.all_tests)


def _rows(
    test: TestCase,
    settings_of: SettingsOf,
    place: Callable[[Topology], object],
    include: Sequence[str],
    resolve: Resolve | None,
) -> int:
    try:
        row, settings = row_of(test, resolve), settings_of(test.parent)
    except (CtbenchError, RobotError, ValueError):  # said when it runs
        return 1
    if row is None:
        return max(1, sum(str(getattr(step, "name", "")).lower() == "measure" for step in test.body))
    tags = set(test.tags) - asked_for(tuple(test.tags), include)
    if not settings.compares_builds(row.topology, row.profile, row.promise, row.own, tags):
        return 0
    try:
        place(row.topology)
    except (MissingResource, ConfigError):
        return 0
    return 1

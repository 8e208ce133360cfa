"""`./run check promises`: does every row have a floor, every floor a row, and every title say what its row measures?"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from robot.running import TestSuiteBuilder

from ConntrackSLA.rows import Row, brief, rows
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import YamlModel, load, names
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.measure.campaign import Campaign
from ctbench.sla.floors import Floors


class WithoutARow(YamlModel):
    """suites/without-a-row.yaml: names with the reason why they are kept."""

    profiles: dict[str, str]
    rulesets: dict[str, str]


#: SLA files that promise something of some rows only: each of their floors has a row, and not each row a floor.
OF_SOME_ROWS = ("published-2022", "published-2019", "published-2017")


def problems(suites: Path = SUITES, sla: str = "local") -> list[str]:
    """What does not fit together, one sentence each: `sla` has a floor for every row."""
    found, floors = rows(TestSuiteBuilder().build(suites)), load("sla", sla, Floors)
    others = [each for name in OF_SOME_ROWS for each in _floors(found, load("sla", name, Floors), of_all=False)]
    return [*_said(found, floors), *_floors(found, floors), *others, *_unused(found, suites)]


def _said(found: Sequence[Row], floors: Floors) -> Iterator[str]:
    """Titles and tags that do not follow from the row."""
    for row in found:
        where = f"{brief(row.test.source)}: {row.test.name}"
        yield from (f"{where}: {wrong}" for wrong in row.wrong_title())
        if wrong := row.wrong_tags(floors):
            yield f"{where}: [Tags] {wrong}."


def _floors(found: Sequence[Row], floors: Floors, *, of_all: bool = True) -> Iterator[str]:
    for row in found:
        if row.own:
            continue
        if not of_all and (row.promise.procedure or row.profile.name not in floors.floors.get(row.topology.key, {})):
            continue
        unsuitable = _unsuitable(row, floors)
        yield from unsuitable
        try:
            if not unsuitable:
                floors.find(row.topology, row.profile, row.promise.procedure)
        except NoFloorYet:
            continue
        except (ConfigError, MissingResource) as error:
            yield f"{brief(row.test.source)}: {row.test.name}: has no floor. {error}"
    promised = {(row.topology.key, row.profile.name) for row in found}
    for key, entries in floors.floors.items():
        for profile in entries:
            if (key, profile) not in promised:
                yield f"{floors.file}: {key}.{profile}: no row of the suites measures it."


def _unsuitable(row: Row, floors: Floors) -> list[str]:
    """Promises that the row's kind of profile cannot have."""
    key, profile = row.topology.key, row.profile
    entry = floors.floors.get(key, {}).get(profile.name)
    return [
        f"{floors.file}: {key}.{profile.name}.{name}: cannot be promised of a profile of {profile.kind}."
        for name, threshold in (entry.thresholds if entry else {}).items()
        if profile.kind not in threshold.metric.profiles
    ]


def _unused(found: Sequence[Row], suites: Path) -> Iterator[str]:
    kept = load("suites", suites / "without-a-row.yaml", WithoutARow)
    replaced = {
        name for campaign in names("campaigns") for name in load("campaigns", campaign, Campaign).profiles.values()
    }
    used = {row.profile.name for row in found} | replaced
    yield from _compared("profiles", set(names("profiles")), used, kept.profiles)
    rulesets = {f"{one.family}/{one.name}" for row in found if (one := ruleset_of(row.topology))}
    reachable = {family for kind in KINDS.values() for family in kind.families}
    known = {f"{family}/{name}" for family, name in catalogue() if family in reachable}
    yield from _compared("rulesets", known, rulesets, kept.rulesets)


def _compared(kind: str, known: set[str], used: set[str], kept: dict[str, str]) -> Iterator[str]:
    file = "suites/without-a-row.yaml"
    for name in sorted(known - used - set(kept)):
        yield f"{kind}: {name}: no row uses it. Expected a row, or a reason in {file}."
    for name in sorted(set(kept) & used):
        yield f"{file}: {kind}.{name}: a row uses it now. Expected no reason any more."
    for name in sorted(set(kept) - known):
        yield f"{file}: {kind}.{name}: is not there. Expected no such line."


def main() -> int:
    """Print the problems; 0 where there are none. A mistake in a file is one sentence."""
    try:
        found = problems()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    for problem in found:
        print(problem)
    print(f"{len(found)} problems" if found else "Every promise has its floor, every floor its row.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

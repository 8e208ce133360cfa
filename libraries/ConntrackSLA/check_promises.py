"""`./run check promises`: does every row have a floor, every floor a row, and every title say what its row measures?
Does each suite say where its promises are?

Of the suites that ship, by the SLA `local` or another one (`--sla`); or of a team's own, whose titles and tags are its
own business as far as they say nothing wrong, each by the SLA file that its set-up names.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from robot.errors import DataError
from robot.running import TestCase, TestSuite, TestSuiteBuilder
from robot.variables import Variables

from ConntrackSLA.arguments import known_datapath
from ConntrackSLA.rows import Resolve, Row, brief, given_to_open, read_row, rows, where
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet
from ctbench.base.files import read_yaml
from ctbench.base.paths import SUITES, VARIABLES
from ctbench.base.yaml_files import YamlModel, load, names
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.measure.campaign import Campaign
from ctbench.sla.floors import Floors

#: The SLA of the suites that ship: tags and titles of theirs follow from it too.
STOCK = "local"


class WithoutARow(YamlModel):
    """suites/without-a-row.yaml: names with the reason why they are kept."""

    profiles: dict[str, str]
    rulesets: dict[str, str]


#: SLA files that promise something of some rows only: each of their floors has a row, and not each row a floor.
OF_SOME_ROWS = ("published-2022", "published-2019", "published-2017")


def problems(suites: Path = SUITES, sla: str = STOCK) -> list[str]:
    """What does not fit together in the suites that ship, one sentence each: `sla` has a floor for every row."""
    found, floors = rows(TestSuiteBuilder().build(suites)), load("sla", sla, Floors)
    if sla != STOCK:
        return list(_floors(found, floors))
    published = {name: load("sla", name, Floors) for name in OF_SOME_ROWS}
    others = [each for judged in published.values() for each in _floors(found, judged)]
    return [*_said(found, floors), *_floors(found, floors), *others, *_unused(found, suites),
            *_where_promised(found, floors, published)]  # fmt: skip


def problems_of_own(suites: Sequence[Path], sla: str = "") -> list[str]:
    """What does not fit together in suites of a team's own, judged by `sla`, else each by the SLA file that its set-up
    names."""
    try:
        whole = TestSuiteBuilder().build(*suites)
    except DataError as error:
        raise ConfigError(str(error)) from None
    wrong: list[str] = []
    judged: dict[str, list[Row]] = {}
    #: SLA files of which a test may measure something that is known when it runs.
    unknown: set[str] = set()
    for test in whole.all_tests:
        file = sla or (given_to_open(test.parent) or {}).get("SLA") or STOCK
        try:
            row = read_row(test, _resolver(test))
            wrong += _misleading(row) if row else ()
        except ConfigError as error:
            wrong.append(str(error))
            row = None
        if row:
            judged.setdefault(file, []).append(row)
        else:
            unknown.add(file)
    for file, found in judged.items():
        floors = load("sla", file, Floors)
        own = () if file in unknown else _of_its_own(floors)
        wrong += _floors(found, floors, own)
    return wrong


def _misleading(row: Row) -> list[str]:
    """What a title and tags say that is not so, or that the DUT is none or does not have the ruleset."""
    try:
        if row.topology != CABLE:
            known_datapath(row.topology.datapath)
        said = [*row.misleading_title(), *(f"[Tags] {tags}." for tags in (row.misleading_tags(),) if tags)]
    except (ConfigError, ValueError) as error:
        said = [str(error)]
    return [f"{where(row.test)}: {each}" for each in said]


def _resolver(test: TestCase) -> Resolve:
    """How variables of a test's own file become what they are."""
    suite: TestSuite = test.parent
    variables = Variables()
    variables.set_from_variable_section(suite.resource.variables)

    def resolve(text: str) -> object:
        try:
            return variables.replace_scalar(text)
        except DataError as error:
            raise ConfigError(f"{error} Expected a variable of this file.") from None

    return resolve


def _of_its_own(floors: Floors) -> list[tuple[str, str]]:
    """Topologies and profiles that an SLA file next to the suites names itself, and not the one that it extends; none
    of those in variables/sla, which are of other suites too."""
    if floors.path and floors.path.is_relative_to(VARIABLES):
        return []
    said = read_yaml(floors.path, floors.file) if floors.path else {}
    return [(key, profile) for key, entries in floors.floors.items() for profile in entries
            if profile in (said.get(key) or {})]  # fmt: skip


def _said(found: Sequence[Row], floors: Floors) -> Iterator[str]:
    """Titles and tags that do not follow from the row."""
    for row in found:
        yield from (f"{where(row.test)}: {wrong}" for wrong in row.wrong_title())
        if wrong := row.wrong_tags(floors):
            yield f"{where(row.test)}: [Tags] {wrong}."


def _floors(found: Sequence[Row], floors: Floors, expected: Sequence[tuple[str, str]] | None = None) -> Iterator[str]:
    """Rows without a floor, or with a promise that cannot be, but for those that the file leaves out; and floors
    without a row: all of the file, or the `expected` ones."""
    for row in found:
        there = row.profile.name in floors.floors.get(row.topology.key, {})
        if not row.own and floors.others == "skipped" and (row.promise.procedure or not there):
            continue
        unsuitable = _unsuitable(row, floors)
        yield from unsuitable
        try:
            if not unsuitable:
                judged = floors.promised_by_row(row.topology, row.profile, *row.own) if row.own else floors
                judged.find(row.topology, row.profile, row.promise.procedure)
        except NoFloorYet:
            continue
        except (ConfigError, MissingResource) as error:
            yield f"{where(row.test)}: {'' if row.own else 'has no floor. '}{error}"
    promised = {(row.topology.key, row.profile.name) for row in found if not row.own}
    if expected is None:
        expected = [(key, profile) for key, entries in floors.floors.items() for profile in entries]
    for key, profile in expected:
        if (key, profile) not in promised:
            yield f"{floors.file}: {key}.{profile}: no row of the suites measures it."


#: What the documentation of a suite says of rows that only a candidate can break, and of those that only the emulated
#: testbed counts.
_OF_A_CANDIDATE, _COUNTED = "of_build", "TESTBED:emulated"


def _where_promised(found: Sequence[Row], floors: Floors, published: Mapping[str, Floors]) -> Iterator[str]:
    """Rows of which no file that ships promises anything, and suites whose documentation does not name those files."""
    expected: dict[TestSuite, set[str]] = {}
    for row in found:
        named = expected.setdefault(row.test.parent, {_file(STOCK)})
        named |= {_file(name) for name, judged in published.items() if not row.promise.procedure
                  and row.profile.name in judged.floors.get(row.topology.key, {})}  # fmt: skip
        if row.promise.about == "cost":
            named.add(_COUNTED)
        try:
            floors.find(row.topology, row.profile, row.promise.procedure)
        except NoFloorYet:
            named.add(_OF_A_CANDIDATE)
            if floors.of_build is None or not floors.of_build.is_of(row.topology):
                yield f"{where(row.test)}: nothing that ships promises anything of it. Expected a rate, or no row."
        except (ConfigError, MissingResource):
            continue  # said by `_floors`
    for suite, named in expected.items():
        said = set(re.findall(rf"variables/sla/[\w-]+\.yaml|{_OF_A_CANDIDATE}|{_COUNTED}", suite.doc))
        if said != named:
            yield (f"{brief(suite.source)}: the documentation does not say where the promises are: it names"
                   f" {', '.join(sorted(said)) or 'nothing'}. Expected {', '.join(sorted(named))}.")  # fmt: skip


def _file(sla: str) -> str:
    return f"variables/sla/{sla}.yaml"


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the problems; 0 where there are none. A mistake in a file is one sentence."""
    parser = argparse.ArgumentParser(prog="./run check promises", description=__doc__)
    parser.add_argument("--sla", default="", metavar="NAME", help="judge by this SLA file: a name or a path")
    parser.add_argument("suites", nargs="*", type=Path, metavar="SUITES", help="files or folders of one's own")
    asked = parser.parse_args(arguments)
    try:
        found = problems_of_own(asked.suites, asked.sla) if asked.suites else problems(sla=asked.sla or STOCK)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    for problem in found:
        print(problem)
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    print(count if found else "Every promise has its floor, every floor its row, and every suite says where.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

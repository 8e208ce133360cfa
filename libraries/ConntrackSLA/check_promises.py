"""`./run check promises [--sla NAME] [SUITES]`: does every row have a floor, every floor a row?

One SLA file judges the suites that ship. A team's own suites are each judged by the SLA file that their set-up names.
tools/promises.py checks more in the suites that ship.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from robot.errors import DataError
from robot.running import TestCase, TestSuiteBuilder

from ConntrackSLA.rows import Resolve, Row, given_to_open, own_variables, read_row, rows, where
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet, NoPromise
from ctbench.base.files import read_yaml
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import load, names
from ctbench.measure.campaign import Campaign
from ctbench.run.settings import check_comparisons, check_loads, check_topology, is_own
from ctbench.sla.floors import Floors

#: The SLA of the suites that ship.
STOCK = "local"


def problems_of_own(suites: Sequence[Path], sla: str = "") -> list[str]:
    """Return the mismatches between rows and floors in a team's own suites. They are judged by `sla`, or each by the
    SLA file that its set-up names."""
    try:
        whole = TestSuiteBuilder().build(*suites)
    except DataError as error:
        raise ConfigError(str(error)) from None
    wrong: list[str] = []
    #: Rows by the files that their suites name.
    judged: dict[str, list[Row]] = {}
    measured: dict[str, list[Row]] = {}
    #: SLA and campaign files of which a test may measure something that is known when it runs.
    unknown: set[str] = set()
    for test in whole.all_tests:
        file, campaign, resolve = sla or STOCK, "", _resolver(test)
        try:
            given = given_to_open(test.parent, resolve) or {}
            file, campaign = sla or given.get("SLA") or STOCK, given.get("CAMPAIGN", "")
            row = read_row(test, resolve)
            if row:
                check_topology(where(test), row.topology)
        except ConfigError as error:
            wrong.append(str(error))
            row = None
        if row:
            judged.setdefault(file, []).append(row)
            measured.setdefault(campaign, []).append(row)
        else:
            unknown |= {file, campaign}
    for file, found in judged.items():
        floors = load("sla", file, Floors)
        own = () if file in unknown else _of_its_own(floors)
        wrong += [*without_a_floor(found, floors, own), *_wrong_comparisons(found, floors)]
    for campaign in measured.keys() - {"", *unknown}:
        try:
            known = {*names("profiles"), *(row.profile.name for row in measured[campaign])}
            check_loads(load("campaigns", campaign, Campaign), known)
        except ConfigError as error:
            wrong.append(str(error))
    return wrong


def _wrong_comparisons(found: Sequence[Row], floors: Floors) -> Iterator[str]:
    """Yield what the floors of these rows compare with that is unknown, or has no such figure."""
    for key, profile in sorted({(row.topology.key, row.profile.name) for row in found if not row.own}):
        if entry := floors.floors.get(key, {}).get(profile):
            try:
                check_comparisons(f"{floors.file}: {key}.{profile}", profile, entry)
            except ConfigError as error:
                yield str(error)


def _resolver(test: TestCase) -> Resolve:
    """Return a function that replaces the variables of a test's own file by their values."""
    variables = own_variables(test.parent)

    def resolve(text: str) -> object:
        try:
            return variables.replace_scalar(text)
        except DataError as error:
            raise ConfigError(f"{error} Expected a variable of this file.") from None

    return resolve


def _of_its_own(floors: Floors) -> list[tuple[str, str]]:
    """Return the topologies and profiles that an SLA file next to the suites names itself, without those of the file
    that it extends. Empty for files in variables/sla, which other suites share."""
    if floors.path is None or not is_own(floors):
        return []
    said = read_yaml(floors.path, floors.file)
    return [(key, profile) for key, entries in floors.floors.items() for profile in entries
            if profile in (said.get(key) or {})]  # fmt: skip


def without_a_floor(
    found: Sequence[Row], floors: Floors, expected: Sequence[tuple[str, str]] | None = None
) -> Iterator[str]:
    """Yield the rows without a floor, or with an impossible promise, except those that the file leaves out. Then yield
    the floors without a row: all of the file, or the `expected` ones."""
    for row in found:
        there = row.profile.name in floors.floors.get(row.topology.key, {})
        if not row.own and floors.others == "skipped" and (row.promise.procedure or not there):
            continue
        try:
            judged = floors.promised_by_row(row.topology, row.profile, row.own) if row.own else floors
            judged.find(row.topology, row.profile, row.promise.procedure)
        except NoFloorYet:
            continue
        except (ConfigError, MissingResource) as error:
            lacks = "has no floor. " if isinstance(error, NoPromise | MissingResource) and not row.own else ""
            yield f"{where(row.test)}: {lacks}{error}"
    promised = {(row.topology.key, row.profile.name) for row in found if not row.own}
    if expected is None:
        expected = [(key, profile) for key, entries in floors.floors.items() for profile in entries]
    for key, profile in expected:
        if (key, profile) not in promised:
            yield f"{floors.file}: {key}.{profile}: no row of the suites measures it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the problems and return the exit status, 0 where there are none. A mistake in a file is one sentence."""
    parser = argparse.ArgumentParser(prog="./run check promises", description=__doc__)
    parser.add_argument("--sla", default="", metavar="NAME", help="judge by this SLA file: a name or a path")
    parser.add_argument("suites", nargs="*", type=Path, metavar="SUITES", help="files or folders of one's own")
    asked = parser.parse_args(arguments)
    try:
        if asked.suites:
            found = problems_of_own(asked.suites, asked.sla)
        else:
            stock = rows(TestSuiteBuilder().build(SUITES))
            found = list(without_a_floor(stock, load("sla", asked.sla or STOCK, Floors)))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return report_problems(found)


def report_problems(found: Sequence[str]) -> int:
    """Print the problems; return 0 where there are none, else 1."""
    for problem in found:
        print(problem)
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    print(count if found else "Every promise has its floor, and every floor its row.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

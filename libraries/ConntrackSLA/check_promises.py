"""`./run check promises`: does every row have a floor, every floor a row, and every title say what its row measures?"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from robot.running import TestSuiteBuilder

from ConntrackSLA.rows import OF_A_COST, OF_A_RATE, OF_THE_GENERATOR, Row, rows
from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import YamlModel, load, names
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedures.instruction_count import InstructionCount
from ctbench.measure.table_settings import TableSettings
from ctbench.run.choice import OF_CONTROL, OF_TABLE
from ctbench.run.tags import tags_of
from ctbench.sla.floors import Floors

#: What a title may say, and the tag that has to follow from the row then.
SAID = {
    r"(\d+) CPUs?\b": r"\1cpu",
    r"(\d+) Queues?\b": r"\1rxq",
    r"Short-Lived": "short-lived",
    r"Long-Lived": "long-lived",
    r"\b1 Flow\b": "1flow",
    r"10k Flows": "10kflows",
    r"Both Ways": "both-ways",
    r"\b1518 Bytes": "1518b",
    r"\b9018 Bytes": "jumbo",
    r"IMIX": "imix",
    r"\bIPv6": "ipv6",
    r"VLAN": "vlan",
    r"Bonds?\b": "bond",
    r"iptables": "iptables",
    r"nftables": "nftables",
    r"SNAT, |SNAT With": "nat",
    r"DNAT": "dnat",
    r"Masquerade": "masquerade",
    r"Stateful": "stateful",
    r"Untracked": "notrack",
}
#: Tags that have to be said in the title.
TO_SAY = {
    "both-ways": "Both Ways",
    "vlan": "VLAN",
    "bond": "Bond",
    "nftables": "nftables",
    "iptables": "iptables",
    "dnat": "DNAT",
    "masquerade": "Masquerade",
    "imix": "IMIX",
    "ipv6": "IPv6",
    "jumbo": "9018 Bytes",
    "1518b": "1518 Bytes",
    "long-lived": "Long-Lived",
    "1flow": "1 Flow",
}


class WithoutARow(YamlModel):
    """suites/without-a-row.yaml: names with the reason why they are kept."""

    profiles: dict[str, str]
    rulesets: dict[str, str]


#: SLA files that promise something of some rows only: each of their floors has a row, and not each row a floor.
OF_SOME_ROWS = ("published-2022",)


def problems(suites: Path = SUITES, sla: str = "local") -> list[str]:
    """What does not fit together, one sentence each: `sla` has a floor for every row."""
    found = list(rows(TestSuiteBuilder().build(suites)))
    others = [each for name in OF_SOME_ROWS for each in _floors(found, load("sla", name, Floors), of_all=False)]
    return [*_titles(found), *_floors(found, load("sla", sla, Floors)), *others, *_unused(found, suites)]


def _titles(found: Sequence[Row]) -> Iterator[str]:
    for row in found:
        tags, name = set(tags_of(row.topology, row.profile, what=row.what)), row.test.name
        where = f"{_file(row)}: {name}"
        for pattern, tag in SAID.items():
            match = re.search(pattern, name)
            if match and (expected := match.expand(tag)) not in tags:
                yield f"{where}: the title says {match[0].strip(', ')!r}, and its row does not ({expected})."
        for tag in sorted(tags & set(TO_SAY)):
            if TO_SAY[tag] not in name:
                yield f"{where}: the row is about {tag}, and the title does not say {TO_SAY[tag]!r}."
        for count, word in ((row.topology.cpus, "CPUs"), (row.topology.rx_queues, "Queues")):
            if count > 1 and f"{count} {word}" not in name:
                yield f"{where}: the row has {count} {word}, and the title does not say so."


def _floors(found: Sequence[Row], floors: Floors, *, of_all: bool = True) -> Iterator[str]:
    for row in found:
        others = row.profile.name not in floors.floors.get(row.topology.key, {}) or row.what in (*OF_CONTROL, *OF_TABLE)
        if not of_all and others:
            continue
        unsuitable = _unsuitable(row, floors)
        yield from unsuitable
        try:
            # What another promise looks for is known to its procedure.
            if not unsuitable and row.promise in (*OF_A_RATE, OF_THE_GENERATOR):
                floors.find(row.topology, row.profile)
            elif not unsuitable and row.promise == OF_A_COST:
                counting = InstructionCount()
                floors.find(row.topology, row.profile, counting.metric(row.profile), counting.found_out)
            elif not unsuitable and row.what in OF_CONTROL:
                beside = OF_CONTROL[row.what](load("campaigns", "quick", Campaign), row.profile)
                floors.find(row.topology, row.profile, beside.metric(row.profile), beside.found_out)
            elif not unsuitable and row.what in OF_TABLE:
                table = OF_TABLE[row.what](TableSettings())
                floors.find(row.topology, row.profile, table.metric(row.profile), table.found_out)
        except (ConfigError, MissingResource) as error:
            yield f"{_file(row)}: {row.test.name}: has no floor. {error}"
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


def _file(row: Row) -> str:
    source = row.test.source
    return f"suites/{source.relative_to(SUITES)}" if source and source.is_relative_to(SUITES) else str(source)


def main() -> int:
    """Print the problems; 0 where there are none."""
    found = problems()
    for problem in found:
        print(problem)
    print(f"{len(found)} problems" if found else "Every promise has its floor, every floor its row.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Of the suites that ship: does every row have a floor, every floor a row, does every title and every tag say what its
row measures, and every suite where its promises are? Does every profile and every ruleset have a row? And the table of
tags, docs/tags.md, which `--write` writes. .venv/bin/python -m tools.promises"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from robot.running import TestSuite, TestSuiteBuilder

from ConntrackSLA.check_promises import STOCK, said, without_a_floor
from ConntrackSLA.rows import TO_SAY, Row, brief, differing, rows, where
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet
from ctbench.base.paths import ROOT, SUITES
from ctbench.base.yaml_files import YamlModel, load, names
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.measure.campaign import Campaign
from ctbench.sla.floors import Floors

TABLE = ROOT / "docs" / "tags.md"
#: SLA files that promise something of some rows only: each of their floors has a row, and not each row a floor.
OF_SOME_ROWS = ("published-2022", "published-2019", "published-2017")


class WithoutARow(YamlModel):
    """suites/without-a-row.yaml: names with the reason why they are kept."""

    profiles: dict[str, str]
    rulesets: dict[str, str]


#: Tags that a row may have besides those that follow from it, with what they are for.
FREE_TAGS: Mapping[str, str] = {
    "acceptance": "what a release has to keep: the forty rows of `test_lists/acceptance.args`; the others are for the"
    " laboratory",
    "nightly": "campaigns with little time skip it: `quick`, `gate`, `compare`, `box`",
    "long": "`quick`, `gate` and `box` skip it as well: it is about the control plane, and takes long",
    "scale": "`quick` and `compare` skip it: tables of a million entries take tens of seconds to fill",
    "extended": "a testbed that counts in few emulated machines skips it; `local` skips all that are `emulated`",
    "generator": "the traffic generator itself",
    "ceiling": "the same",
    "pps": "connections whose packets per second are promised too",
    "timeout-policy": "the first timeout policy of a zone, a fault of Open vSwitch since 3.3",
}
#: Tags that follow from a row, by what they are about. N stands for a number.
DERIVED: Mapping[str, Mapping[str, str]] = {
    "the device under test": {
        **{kind.name: kind.title for kind in KINDS.values() if kind.name in kind.tags},
        "ovs": "Open vSwitch, with DPDK or in an emulated machine",
        "userspace": "the userspace datapath of Open vSwitch in an emulated machine",
        "linux": "the Linux kernel forwards, here or in an emulated machine",
        "router": "the kernel as a router",
        "bridge": "a bridge, of the kernel or of Open vSwitch",
        "Ncpu": "N CPUs forward",
        "Nrxq": "each port has N receive queues",
        "bond": "the ports are bonds",
        "vlan": "the ports are trunks of a VLAN",
    },
    "what is done to a packet": {
        "baseline": "nothing is tracked: what the rows with connection tracking are compared with",
        "forward": "the ruleset only forwards",
        "notrack": "rules that keep the traffic out of connection tracking",
        "conntrack": "connections are tracked",
        "stateful": "rules of a firewall: a client may begin a connection, a server may answer",
        "nat": "addresses are translated",
        "snat": "those of the clients",
        "masquerade": "those of the clients, by the address of the port",
        "dnat": "those of the servers",
        "iptables": "rules of iptables",
        "ip6tables": "rules of ip6tables",
        "nftables": "rules of nftables",
        "flowtable": "the flowtable of nftables",
        "rules": "rules beside those that match",
        "match-fields": "rules of Open vSwitch that match more or fewer fields",
        "ratio": "a ratio to another topology is promised; of all tags this one follows from the SLA `local`",
    },
    "what is measured": {
        "cps": "connections per second",
        "pps": "packets per second",
        "established": "instructions for a packet of a known connection",
        "new-connections": "instructions for a new connection",
        "removal": "instructions to remove a connection",
        "table": "the connection table: how much it holds, what a large one costs, how it settles and drains",
        "capacity": "how many connections it holds",
        "steady": "whether it settles",
        "sustained": "the rate that lasts while sweeps remove as many entries as come",
        "drain": "how fast it empties",
        "full": "what happens when it is full",
        "early-drop": "what the kernel forgets when it is full",
        "reaping": "what a load loses while many entries expire",
        "control-plane": "whether the main thread and its helpers keep up under a load",
        "dump": "to print the connection table",
        "churn": "to add and to remove ports",
        "revalidation": "to look at all flows of the datapath again",
        "statistics": "to write the statistics of many ports",
        "contention": "how long threads wait for each other",
        "upcalls": "flows that are new to the datapath",
    },
    "the traffic": {
        "NAME of a profile of connections": "this one, such as `short-lived`, where the row is about a rate",
        "1flow": "packets of one flow",
        "Nflows": "packets of N flows",
        "one-way": "packets from the clients to the servers",
        "both-ways": "packets in both directions",
        "ipv6": "IPv6",
        "Nb": "frames of N bytes; without such a tag they have 64",
        "imix": "frames of several sizes",
        "jumbo": "frames of 9018 bytes",
    },
}  # fmt: skip


def problems(suites: Path = SUITES) -> list[str]:
    """What does not fit together in the suites that ship, one sentence each."""
    found, floors = rows(TestSuiteBuilder().build(suites)), load("sla", STOCK, Floors)
    published = {name: load("sla", name, Floors) for name in OF_SOME_ROWS}
    others = [each for judged in published.values() for each in without_a_floor(found, judged)]
    return [*_said(found, floors), *without_a_floor(found, floors), *others, *_unused(found, suites),
            *where_promised(found, floors, published)]  # fmt: skip


def _said(found: Sequence[Row], floors: Floors) -> Iterator[str]:
    """Titles and tags that do not follow from the row."""
    for row in found:
        yield from (f"{where(row.test)}: {wrong}" for wrong in wrong_title(row))
        if wrong := wrong_tags(row, floors):
            yield f"{where(row.test)}: [Tags] {wrong}."


def wrong_tags(row: Row, floors: Floors) -> str:
    """How the tags of a test differ from those that follow from its row, `ratio` where the SLA promises a ratio to
    another topology among them; empty where they do not."""
    written, expected = set(map(str, row.test.tags)), row.tags()
    if row.promise.about == "rate" and floors.promises_ratio(row.topology, row.profile):
        expected.add("ratio")
    return differing(expected - written, written - expected - set(FREE_TAGS))


def wrong_title(row: Row) -> Iterator[str]:
    """How the title of the test differs from its row, one sentence each."""
    yield from row.misleading_title()
    tags, title = row.tags(), row.test.name
    for tag in sorted(tags & set(TO_SAY)):
        if TO_SAY[tag] not in title:
            yield f"the row is about {tag}, and the title does not say {TO_SAY[tag]!r}."
    for count, word in ((row.topology.cpus, "CPUs"), (row.topology.rx_queues, "Queues")):
        if count > 1 and f"{count} {word}" not in title:
            yield f"the row has {count} {word}, and the title does not say so."


#: What the documentation of a suite says of rows that only a candidate can break, and of those that only the emulated
#: testbed counts.
_OF_A_CANDIDATE, _COUNTED = "of_build", "TESTBED:emulated"


def where_promised(found: Sequence[Row], floors: Floors, published: Mapping[str, Floors]) -> Iterator[str]:
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
            continue  # said by `without_a_floor`
    for suite, named in expected.items():
        told = set(re.findall(rf"variables/sla/[\w-]+\.yaml|{_OF_A_CANDIDATE}|{_COUNTED}", suite.doc))
        if told != named:
            yield (f"{brief(suite.source)}: the documentation does not say where the promises are: it names"
                   f" {', '.join(sorted(told)) or 'nothing'}. Expected {', '.join(sorted(named))}.")  # fmt: skip


def _file(sla: str) -> str:
    return f"variables/sla/{sla}.yaml"


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


def meaning(tag: str) -> str:
    """What a tag of the suites says; empty for a tag that is not known here, as of a ruleset of one's own."""
    found = (says for each, says in _derived().items() if re.fullmatch(_pattern(each), tag))
    return next(found, "") or FREE_TAGS.get(tag, "") or ("a profile" if tag in names("profiles") else "")


def table() -> str:
    """The table of all tags, for docs/tags.md."""
    lines = ["| tag | meaning |", "|---|---|"]
    for about, tags in DERIVED.items():
        lines.append(f"| *{about}* | |")
        lines += [f"| {_shown(tag)} | {says} |" for tag, says in tags.items()]
    lines.append("| *choices* | |")
    lines += [f"| `{tag}` | {says} |" for tag, says in FREE_TAGS.items() if tag not in _derived()]
    return "\n".join(lines)


def rewritten(text: str) -> str:
    """The text of docs/tags.md with the table that belongs there."""
    return re.sub(r"(?m)^\| tag \|.*(\n\|.*)*", lambda _: table(), text, count=1)


def _shown(tag: str) -> str:
    return tag if " " in tag else f"`{tag}`"


def _derived() -> dict[str, str]:
    return {tag: says for tags in DERIVED.values() for tag, says in tags.items()}


def _pattern(tag: str) -> str:
    return re.sub("^N(?=[a-z])", "[0-9]+[km]?", tag)


def main() -> int:
    """Print the problems, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.promises", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/tags.md")
    if parser.parse_args().write:
        TABLE.write_text(rewritten(TABLE.read_text(encoding="utf-8")), encoding="utf-8")
    return said(problems())


if __name__ == "__main__":
    raise SystemExit(main())

"""Of the suites that ship: does every row have a floor, every floor a row, does every title and every tag say what its
row measures, and every suite where its promises are? Does every profile and every ruleset have a row? And the table of
tags, docs/tags.md, which `--write` writes. .venv/bin/python -m tools.promises"""

import argparse
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from robot.running import TestSuite, TestSuiteBuilder

from ConntrackSLA.check_promises import STOCK, report_problems, without_a_floor
from ConntrackSLA.rows import Row, rows, where
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import YamlModel, load, names, shown_path
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.measure.campaign import Campaign
from ctbench.sla.floors import Floors
from tools import ending
from tools.tags import FREE_TAGS, TABLE, rewritten, tags_of

#: SLA files that promise something of some rows only: each of their floors has a row, and not each row a floor.
OF_SOME_ROWS = ("published-2022", "published-2019", "published-2017")


class WithoutARow(YamlModel):
    """suites/without-a-row.yaml: names with the reason why they are kept."""

    profiles: dict[str, str]
    rulesets: dict[str, str]


#: What a title has to say where its row has a tag, and must not say elsewhere.
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
#: What a title may say, and the tag that has to follow from the row then.
SAID = {
    r"(\d+) CPUs?\b": r"\1cpu",
    r"(\d+) Queues?\b": r"\1rxq",
    r"Short-Lived": "short-lived",
    r"10k Flows": "10kflows",
    r"SNAT, |SNAT With": "snat",
    r"Stateful": "stateful",
    r"Untracked": "notrack",
    **{rf"\b{words}s?\b": tag for tag, words in TO_SAY.items()},
}


def problems(suites: Path = SUITES) -> list[str]:
    """What does not fit together in the suites that ship, one sentence each."""
    found, floors = rows(TestSuiteBuilder().build(suites)), load("sla", STOCK, Floors)
    published = {name: load("sla", name, Floors) for name in OF_SOME_ROWS}
    others = [each for judged in published.values() for each in without_a_floor(found, judged)]
    return [*_mislabelled(found, floors), *without_a_floor(found, floors), *others, *_unused(found, suites),
            *where_promised(found, floors, published)]  # fmt: skip


def _mislabelled(found: Sequence[Row], floors: Floors) -> Iterator[str]:
    """Titles and tags that do not follow from the row."""
    for row in found:
        yield from (f"{where(row.test)}: {wrong}" for wrong in wrong_title(row))
        if wrong := wrong_tags(row, floors):
            yield f"{where(row.test)}: [Tags] {wrong}."


def _misleading_title(row: Row) -> Iterator[str]:
    """What the title of the test says and its row does not, one sentence each."""
    tags, title = tags_of(row), row.test.name
    for pattern, tag in SAID.items():
        match = re.search(pattern, title)
        if match and (expected := match.expand(tag)) not in tags:
            yield f"the title says {match[0].strip(', ')!r}, and its row does not ({expected})."


def differing(missing: Collection[str], more: Collection[str]) -> str:
    """What tags a test lacks, and which it has too many, for a sentence; empty where neither."""
    parts = [f"lacks {'    '.join(sorted(missing))}"] if missing else []
    return " and ".join(parts + ([f"has {'    '.join(sorted(more))}, which it is not"] if more else []))


def wrong_tags(row: Row, floors: Floors) -> str:
    """How the tags of a test differ from those that follow from its row, `ratio` where the SLA promises a ratio to
    another topology among them; empty where they do not."""
    written, expected = set(map(str, row.test.tags)), tags_of(row)
    entry = floors.floors.get(row.topology.key, {}).get(row.profile.name)
    if row.promise.about == "rate" and entry and entry.ratio:
        expected.add("ratio")
    return differing(expected - written, written - expected - set(FREE_TAGS))


def wrong_title(row: Row) -> Iterator[str]:
    """How the title of the test differs from its row, one sentence each."""
    yield from _misleading_title(row)
    tags, title = tags_of(row), row.test.name
    for tag in sorted(tags & set(TO_SAY)):
        if TO_SAY[tag] not in title:
            yield f"the row is about {tag}, and the title does not say {TO_SAY[tag]!r}."
    for count, word in ((row.topology.cpus, "CPUs"), (row.topology.rx_queues, "Queues")):
        if count > 1 and f"{count} {word}" not in title:
            yield f"the row has {count} {word}, and the title does not say so."


#: What the documentation of a suite says of rows that only a candidate can break, and the test list that compares them.
_OF_A_CANDIDATE = "of_build"
_COMPARING = "test_lists/{}.args --candidate"
#: Of rows that only the emulated testbed counts.
_COUNTED = "TESTBED:emulated"


def where_promised(found: Sequence[Row], floors: Floors, published: Mapping[str, Floors]) -> Iterator[str]:
    """Rows of which no file that ships promises anything, and suites whose documentation does not name those files."""
    left_to_a_night = set(load("campaigns", "gate", Campaign).skips)
    expected: dict[TestSuite, set[str]] = {}
    for row in found:
        named = expected.setdefault(row.test.parent, {_file(STOCK)})
        named |= {
            _file(name)
            for name, judged in published.items()
            if not row.promise.procedure and row.profile.name in judged.floors.get(row.topology.key, {})
        }
        if row.promise.about == "cost":
            named.add(_COUNTED)
        try:
            floors.find(row.topology, row.profile, row.promise.procedure)
        except NoFloorYet:
            nightly = left_to_a_night & set(map(str, row.test.tags))
            named |= {_OF_A_CANDIDATE, _COMPARING.format("nightly" if nightly else "gate")}
            if floors.of_build is None or not floors.of_build.is_of(row.topology):
                yield f"{where(row.test)}: nothing that ships promises anything of it. Expected a rate, or no row."
        except (ConfigError, MissingResource):
            continue  # said by `without_a_floor`
    said_there = "|".join([r"variables/sla/[\w-]+\.yaml", _OF_A_CANDIDATE, _COMPARING.format(r"\w+"), _COUNTED])
    for suite, named in expected.items():
        told = set(re.findall(said_there, suite.doc))
        if told != named:
            yield (
                f"{shown_path(suite.source or SUITES)}: the documentation does not say where the promises are: it names"
                f" {', '.join(sorted(told)) or 'nothing'}. Expected {', '.join(sorted(named))}."
            )


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


def main() -> int:
    """Print the problems, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.promises", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/tags.md")
    if parser.parse_args().write:
        TABLE.write_text(rewritten(TABLE.read_text(encoding="utf-8")), encoding="utf-8")
    return report_problems(problems())


if __name__ == "__main__":
    ending.run(main)

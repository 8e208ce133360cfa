"""What a row of a suite says, and the tags and the title that follow from it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from robot.running import TestCase, TestSuite

from ConntrackSLA.arguments import beside, ruleset_name
from ConntrackSLA.promising import KEYWORDS, arguments_of, promised_in, topology_of
from ctbench.base.errors import ConfigError
from ctbench.base.network import LARGEST_FRAME, LEAST_FRAME
from ctbench.base.paths import ROOT
from ctbench.base.units import did_you_mean, quoted, write_number
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.topology import OPTIONS, Topology
from ctbench.measure.promises import PROMISES, Promise
from ctbench.run.settings import Named, OwnPromise
from ctbench.sla.floors import Floors
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import PacketProfile, Profile, load_profile

#: The keyword whose one argument is a profile.
OF_THE_GENERATOR = "Generator Ceiling Should Meet SLA"
#: Tags that a row may have besides those that follow from it, with what they are for.
FREE_TAGS = {
    "long": "left out by quick campaigns",
    "nightly": "left out by campaigns with little time",
    "scale": "a table of very many entries; left out by campaigns with little time",
    "extended": "left out by a testbed that counts in few emulated machines",
    "forwarding": "a router that only forwards",
    "generator": "the traffic generator itself",
    "ceiling": "the traffic generator itself",
    "pps": "connections whose packets per second are promised too",
    "timeout-policy": "the first timeout policy of a zone, a fault of Open vSwitch since 3.3",
}

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
    r"SNAT, |SNAT With": "nat",
    r"Stateful": "stateful",
    r"Untracked": "notrack",
    **{rf"\b{words}s?\b": tag for tag, words in TO_SAY.items()},
}

#: Tags where instructions are counted, by what a profile is about, in place of those of a rate.
_COUNTED: dict[LoadUnit, str] = {"packets": "established", "connections": "new-connections"}
#: The same of a profile about connections that are there.
_NOT_OPENED = {"removal": ("removal",), "dump": ("control-plane", "dump")}


@dataclass(frozen=True)
class Row:
    """A promise of one topology with one profile."""

    test: TestCase
    topology: Topology
    profile: Profile
    promise: Promise
    #: What it promises itself; None: the SLA file does.
    own: OwnPromise | None = None

    def tags(self, floors: Floors | None = None) -> set[str]:
        """Tags that follow from the row: of its DUT, ruleset, ports, CPUs and queues, its profile or what is promised,
        and `ratio` where the SLA promises a ratio to another topology. `ConfigError` for a ruleset that its DUT does
        not have."""
        topology, profile, promise = self.topology, self.profile, self.promise
        found = set(promise.tags or (_of_cost(profile) if promise.about == "cost" else _of_profile(profile)))
        if promise.long:
            found.add("long")
        if profile.ip_version == 6:
            found.add("ipv6")
        if topology.datapath in KINDS:
            found |= {f"{topology.cpus}cpu", f"{topology.rx_queues}rxq", *KINDS[topology.datapath].tags}
            found |= set(topology.ports.split("-")) - {"plain"}
        if promise.about == "rate" and floors and floors.promises_ratio(topology, profile):
            found.add("ratio")
        ruleset = ruleset_of(topology)
        return found | set(ruleset.tags if ruleset else ())

    def wrong_tags(self, floors: Floors) -> str:
        """How the tags of the test differ from those that follow from its row; empty where they do not."""
        written, expected = set(map(str, self.test.tags)), self.tags(floors)
        missing, more = expected - written, written - expected - set(FREE_TAGS)
        parts = [f"lacks {'    '.join(sorted(missing))}"] if missing else []
        return " and ".join(parts + ([f"has {'    '.join(sorted(more))}, which it is not"] if more else []))

    def wrong_title(self) -> Iterator[str]:
        """How the title of the test differs from its row, one sentence each."""
        tags, title = self.tags(), self.test.name
        for pattern, tag in SAID.items():
            match = re.search(pattern, title)
            if match and (expected := match.expand(tag)) not in tags:
                yield f"the title says {match[0].strip(', ')!r}, and its row does not ({expected})."
        for tag in sorted(tags & set(TO_SAY)):
            if TO_SAY[tag] not in title:
                yield f"the row is about {tag}, and the title does not say {TO_SAY[tag]!r}."
        for count, word in ((self.topology.cpus, "CPUs"), (self.topology.rx_queues, "Queues")):
            if count > 1 and f"{count} {word}" not in title:
                yield f"the row has {count} {word}, and the title does not say so."


def rows(suite: TestSuite) -> list[Row]:
    """All promises of a suite and those in it."""
    return [row for test in suite.all_tests if (row := row_of(test))]


def named(suite: TestSuite) -> list[Named]:
    """What the rows of a suite name. `ConfigError` for one that names something that there is not."""
    found = []
    for test in suite.all_tests:
        where = f"{brief(test.source)}: {test.name}"
        try:
            row = row_of(test)
        except (ConfigError, ValidationError, ValueError) as error:
            said = no_topology(error) if isinstance(error, ValidationError) else error
            raise ConfigError(f"{where}: {said}") from None
        if row:
            found.append(Named(where, row.topology, row.profile))
    return found


def no_topology(error: ValidationError) -> str:
    """The first thing about a topology that cannot be, as one sentence."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "extra_forbidden":
        return no_option(str(first["loc"][0]))
    return f"{first['loc'][0]} is {quoted(first['input'])}: {first['msg'].lower()}."


def no_option(name: str) -> str:
    """That a name is not one of a topology's options, as a sentence."""
    return (
        f"{name} is not an option of a topology.\n  Expected {', '.join(OPTIONS)}.{did_you_mean(name, list(OPTIONS))}"
    )


def brief(source: Path | None) -> str:
    """A suite's file for messages, below the checkout where it is there."""
    return str(source.relative_to(ROOT) if source and source.is_relative_to(ROOT) else source)


def row_of(test: TestCase, resolve: Callable[[str], object] | None = None) -> Row | None:
    """What a test promises; None where it is not a row of a promise, or has variables and none `resolve`s them.
    `ConfigError` for a profile that is not there, `ValueError` for a topology that cannot be."""
    keyword = next(iter(test.body), None)
    name, arguments = getattr(keyword, "name", ""), [str(argument) for argument in getattr(keyword, "args", ())]
    if any("${" in argument for argument in arguments):
        if resolve is None:
            return None  # known when it runs
        arguments = [str(resolve(argument)) for argument in arguments]
    if name == OF_THE_GENERATOR and len(arguments) == 1:
        profile = load_profile(beside(test.source, arguments[0]))
        return Row(test, CABLE, profile, PROMISES["connection rate"])
    if name.lower() not in KEYWORDS:
        return None
    promise, form = KEYWORDS[name.lower()]
    row = arguments_of(form, promise, arguments)
    if row is None:
        return None
    profile = load_profile(beside(test.source, row["profile"]))
    row["ruleset"] = ruleset_name(test.source, row["ruleset"])
    return Row(test, topology_of(row), profile, promise, promised_in(promise, form, row))


def _of_cost(profile: Profile) -> tuple[str, ...]:
    if isinstance(profile, PacketProfile):
        return _COUNTED[profile.kind], *([] if profile.flows == 1 else [_flows(profile)])
    return _NOT_OPENED.get(profile.counts, (_COUNTED[profile.kind],))


def _flows(profile: PacketProfile) -> str:
    return "1flow" if profile.flows == 1 else f"{write_number(profile.flows).lower()}flows"


def _of_profile(profile: Profile) -> tuple[str, ...]:
    if not isinstance(profile, PacketProfile):
        return "cps", profile.name
    way = "one-way" if profile.directions == "one" else "both-ways"
    return "pps", _flows(profile), way, *_of_size(profile.frame_bytes)


def _of_size(frame_bytes: int | str) -> tuple[str, ...]:
    if not isinstance(frame_bytes, int):
        return (frame_bytes,)
    if frame_bytes > LARGEST_FRAME:
        return ("jumbo",)
    return (f"{frame_bytes}b",) if frame_bytes > LEAST_FRAME else ()

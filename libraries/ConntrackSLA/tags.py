"""The tags of rows that follow from a row: of its DUT, ruleset, CPUs and queues, its profile or what is promised."""

import re

from ctbench.base.network import LARGEST_FRAME, LEAST_FRAME
from ctbench.base.units import write_number
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.topology import Topology
from ctbench.measure.promises import Promise
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

#: Tags where instructions are counted, by what a profile is about, in place of those of a rate.
_COUNTED: dict[LoadUnit, str] = {"packets": "established", "connections": "new-connections"}
#: The same of a profile about connections that are there.
_NOT_OPENED = {"removal": ("removal",), "dump": ("control-plane", "dump")}


def tags_of(topology: Topology, profile: Profile, promise: Promise) -> set[str]:
    """Tags that follow from a row: of its DUT, ruleset, ports, CPUs and queues, its profile or what is promised.
    `ConfigError` for a ruleset that its DUT does not have."""
    found = set(promise.tags or (_of_cost(profile) if promise.about == "cost" else _of_profile(profile)))
    if promise.long:
        found.add("long")
    if profile.ip_version == 6:
        found.add("ipv6")
    ruleset = ruleset_of(topology)
    if ruleset is None:
        return found
    found |= {f"{topology.cpus}cpu", f"{topology.rx_queues}rxq", *KINDS[topology.datapath].tags_of(ruleset)}
    found |= set(topology.ports.split("-")) - {"plain"} | set(ruleset.tags)
    if promise.about in ("rate", "cost") and not ruleset.tracks:
        found.add("baseline")
    if ruleset.tracks and _is_about_many(profile):
        found.add("table")
    return found


def is_a_number(tag: str) -> bool:
    """Whether a tag says how many of something a row has, as `2cpu` does."""
    return re.fullmatch("[0-9]+[km]?(cpu|rxq|flows|b)", tag) is not None


def _of_cost(profile: Profile) -> tuple[str, ...]:
    if isinstance(profile, PacketProfile):
        return _COUNTED[profile.kind], *([] if profile.flows == 1 else [_flows(profile)])
    return _NOT_OPENED.get(profile.counts, (_COUNTED[profile.kind],))


def _is_about_many(profile: Profile) -> bool:
    """Whether the table is full of connections among which the traffic has to be found."""
    return profile.known > 0 if isinstance(profile, ConnectionProfile) else profile.flow_order == "random"


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

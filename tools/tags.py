"""The tags of the rows that ship: those that follow from a row, those that are choices, and what each means: the table
of docs/tags.md."""

import re
from collections.abc import Mapping

from ConntrackSLA.rows import Row
from ctbench.base.network import LEAST_FRAME
from ctbench.base.paths import ROOT
from ctbench.base.units import write_number
from ctbench.base.yaml_files import names
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.measure.promises import PROMISES
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

TABLE = ROOT / "docs" / "tags.md"
#: Tags that a row may have besides those that follow from it, with what they are for.
FREE_TAGS: Mapping[str, str] = {
    "acceptance": "what a release has to keep: the forty rows of `test_lists/acceptance.args`; the others are for the"
    " laboratory",
    "nightly": "campaigns with little time skip it: `quick`, `gate`, `box`",
    "long": "`quick`, `gate` and `box` skip it as well: it is about the control plane, and takes long",
    "not-quick": "`quick` skips it, for a row that resembles it is measured; a gate and the other campaigns have it",
    "scale": "`quick` skips it: tables of a million entries take tens of seconds to fill",
    "extended": "a testbed that counts in few emulated machines skips it; `local` skips all that are `emulated`",
    "generator": "the traffic generator itself",
    "ceiling": "the same",
    "pps": "connections whose packets per second are promised too",
}
#: Those of what is measured. A promise that is not here is said as its procedure says it.
_MEASURED: Mapping[str, str] = {
    "cps": "connections per second",
    "pps": "packets per second",
    "established": "instructions for a packet of a known connection",
    "new-connections": "instructions for a new connection",
    "removal": "to remove connections: instructions for one, or the time of it under a load",
    "table": "the connection table: how much it holds, what a large one costs, how it settles and drains",
    "capacity": "how many connections it holds",
    "steady": "whether it settles",
    "sustained": "the rate that lasts while sweeps remove as many entries as come",
    "drain": "how fast it empties",
    "timeout-policy": "whether entries stay as long as asked for, with the first policy of a zone too",
    "full": "what happens when it is full",
    "early-drop": "what the kernel forgets when it is full",
    "port-exhaustion": "what a NAT does when the ports of its address are used up",
    "restart": "what becomes of connections when the device under test is restarted",
    "reassembly": "what stays of datagrams whose fragments do not all come",
    "reaping": "what a load loses while many entries expire",
    "accounting": "whether table entries count all packets",
    "memory": "what a connection takes of memory, and what stays of it",
    "control-plane": "whether the main thread and its helpers keep up under a load",
    "dump": "to print the connection table",
    "churn": "to add and to remove ports",
    "revalidation": "to look at all flows of the datapath again",
    "statistics": "to write the statistics of many ports",
    "contention": "how long threads wait for each other",
    "upcalls": "flows that are new to the datapath",
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
        "zones": "in several zones of connection tracking",
        "stateful": "rules of a firewall: a client may begin a connection, a server may answer",
        "nat": "addresses are translated",
        "snat": "those of the clients",
        "masquerade": "those of the clients, by the address of the port",
        "dnat": "those of the servers",
        "iptables": "rules of iptables",
        "ip6tables": "rules of ip6tables",
        "nftables": "rules of nftables",
        "flowtable": "the flowtable of nftables",
        "rules": "rules next to those that match",
        "match-fields": "rules of Open vSwitch that match more or fewer fields",
        "ratio": "a ratio to another topology is promised; of all tags this one follows from the SLA `local`",
    },
    "what is measured": {
        **_MEASURED,
        **{each.tag: each.says for each in PROMISES.values() if each.tag and each.tag not in _MEASURED},
    },
    "the traffic": {
        "NAME of a profile of connections": "this one, such as `short-lived`, where the row is about a rate",
        "1flow": "packets of one flow",
        "Nflows": "packets of N flows",
        "one-way": "packets from the clients to the servers",
        "both-ways": "packets in both directions",
        "ipv6": "IPv6",
        "Nb": "frames of N bytes; without such a tag they have 64",
        "fragments": "datagrams of several frames",
        "imix": "frames of several sizes",
        "jumbo": "frames of 9018 bytes",
    },
}

#: The largest frame without a VLAN tag, bytes with FCS.
_LARGEST_FRAME = 1518
#: Tags where instructions are counted, by what a profile is about, in place of those of a rate.
_COUNTED: dict[LoadUnit, str] = {"packets": "established", "connections": "new-connections"}
#: The same of a profile about connections that are there.
_NOT_OPENED = {"removal": ("removal",), "dump": ("control-plane", "dump")}


def tags_of(row: Row) -> set[str]:
    """Tags that follow from a row: of its DUT, ruleset, ports, CPUs and queues, its profile or what is promised.
    `ConfigError` for a ruleset that its DUT does not have."""
    topology, profile, promise = row.topology, row.profile, row.promise
    found = set(promise.tags or (_of_cost(profile) if promise.about == "cost" else _of_profile(profile)))
    if promise.long:
        found.add("long")
    if profile.ip_version == 6:
        found.add("ipv6")
    ruleset = ruleset_of(topology)
    if ruleset is None:
        return found
    kind = KINDS[topology.datapath]
    found |= {f"{topology.cpus}cpu", f"{topology.rx_queues}rxq", *kind.tags}
    if "instructions" in kind.abilities and "ovs" not in ruleset.tags:
        found.add("linux")  # the kernel of the emulated machine forwards by itself
    found |= set(topology.ports.split("-")) - {"plain"} | set(ruleset.tags)
    if promise.about in ("rate", "cost") and not ruleset.tracks:
        found.add("baseline")
    if ruleset.tracks and _is_about_many(profile):
        found.add("table")
    return found


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
    fragments = ("fragments",) if profile.fragments > 1 else ()
    return "pps", _flows(profile), way, *_of_size(profile.frame_bytes), *fragments


def _of_size(frame_bytes: int | str) -> tuple[str, ...]:
    if not isinstance(frame_bytes, int):
        return (frame_bytes,)
    if frame_bytes > _LARGEST_FRAME:
        return ("jumbo",)
    return (f"{frame_bytes}b",) if frame_bytes > LEAST_FRAME else ()


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

"""Tags of a test: they follow from what its row says, so that no row has to say anything twice."""

from ctbench.base.ethernet import LARGEST_FRAME, LEAST_FRAME
from ctbench.base.units import write_number
from ctbench.dut.registry import KINDS, abilities, ruleset_of
from ctbench.dut.topology import Topology
from ctbench.run.choice import CHURN, COLLECT, CONTENTION, DUMP, FORCE, HELD_DUMP, OF_TABLE, RATE, REVALIDATE, UPCALLS
from ctbench.sla.floors import Floors
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import PacketProfile, Profile

#: Tags where instructions are counted, by what a profile is about, in place of those of a rate.
_COUNTED: dict[LoadUnit, str] = {"packets": "established", "connections": "new-connections"}
#: The same of a profile about connections that are there.
_NOT_OPENED = {"removal": ("removal",), "dump": ("control-plane", "dump")}


#: Where the control plane is measured, in place of those of a rate.
_OF_CONTROL = {
    DUMP: "dump",
    CHURN: "churn",
    REVALIDATE: "revalidation",
    FORCE: "revalidation",
    COLLECT: "statistics",
    CONTENTION: "contention",
    UPCALLS: "upcalls",
    HELD_DUMP: "dump",
}


def tags_of(topology: Topology, profile: Profile, floors: Floors | None = None, what: str = RATE) -> tuple[str, ...]:
    """Tags of a test, sorted: of its DUT, its ruleset, its ports, its CPUs and queues, its profile or what is asked for
    of the table or of the control plane, and `ratio` where the SLA promises a ratio to another topology. `what`: see
    `ctbench.run.choice`.

    `ConfigError` for a ruleset that its DUT does not have.
    """
    counted = "instructions" in abilities(topology.datapath)
    found = set(_of_cost(profile)) if counted else set(_of_profile(profile))
    if what in OF_TABLE:
        found = {"table", what}
    if what in _OF_CONTROL:
        found = {"control-plane", _OF_CONTROL[what]}
    if profile.ip_version == 6:
        found.add("ipv6")
    if topology.datapath in KINDS:
        found |= {f"{topology.cpus}cpu", f"{topology.rx_queues}rxq", *KINDS[topology.datapath].tags}
        found |= set(topology.ports.split("-")) - {"plain"}
    if what == RATE and floors and floors.promises_ratio(topology, profile):
        found.add("ratio")
    ruleset = ruleset_of(topology)
    return tuple(sorted(found | set(ruleset.tags if ruleset else ())))


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

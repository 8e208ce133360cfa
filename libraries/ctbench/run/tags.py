"""Tags of a test: they follow from what its row says, so that no row has to say anything twice."""

from ctbench.base.ethernet import LARGEST_FRAME, LEAST_FRAME
from ctbench.base.units import write_number
from ctbench.dut.registry import KINDS, abilities, ruleset_of
from ctbench.dut.topology import Topology
from ctbench.sla.floors import Floors
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import PacketProfile, Profile

#: Tags where instructions are counted, by what a profile is about, in place of those of a rate.
_COUNTED: dict[LoadUnit, str] = {"packets": "established", "connections": "new-connections"}


def tags_of(topology: Topology, profile: Profile, floors: Floors | None = None) -> tuple[str, ...]:
    """Tags of a test, sorted: of its DUT, its ruleset, its ports, its CPUs and queues, its profile, and `ratio` where
    the SLA promises a ratio to another topology.

    `ConfigError` for a ruleset that its DUT does not have.
    """
    counted = "instructions" in abilities(topology.datapath)
    found = {_COUNTED[profile.kind]} if counted else set(_of_profile(profile))
    if topology.datapath in KINDS:
        found |= {f"{topology.cpus}cpu", f"{topology.rx_queues}rxq", *KINDS[topology.datapath].tags}
        found |= set(topology.ports.split("-")) - {"plain"}
    if floors and floors.promises_ratio(topology, profile):
        found.add("ratio")
    ruleset = ruleset_of(topology)
    return tuple(sorted(found | set(ruleset.tags if ruleset else ())))


def _of_profile(profile: Profile) -> tuple[str, ...]:
    if not isinstance(profile, PacketProfile):
        return "cps", profile.name
    flows = "1flow" if profile.flows == 1 else f"{write_number(profile.flows).lower()}flows"
    return "pps", flows, "one-way" if profile.directions == "one" else "both-ways", *_of_size(profile.frame_bytes)


def _of_size(frame_bytes: int | str) -> tuple[str, ...]:
    if not isinstance(frame_bytes, int):
        return (frame_bytes,)
    if frame_bytes > LARGEST_FRAME:
        return ("jumbo",)
    return (f"{frame_bytes}b",) if frame_bytes > LEAST_FRAME else ()

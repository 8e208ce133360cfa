"""Instructions per packet and per new connection: boots of an emulated machine with different seeds, each net of the
wires and the traffic alone. There are no statistics: the range over the seeds is the uncertainty."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.network import VLAN_ID
from ctbench.dut.abilities import Counter, InstructionCounts, Workload
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome, Procedure, Promise
from ctbench.measure.trial import ignore
from ctbench.results.evidence import Evidence
from ctbench.results.floor import Floor
from ctbench.results.metrics import COST_OF, METRICS, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_interval
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

#: Told of a topology, of what was counted of it, and of what each of these is net of the baseline.
OnCounted = Callable[[str, Sequence[InstructionCounts], Sequence[float]], None]
#: What the program in the machine sends: frames of 64 bytes, UDP requests and replies of so many bytes.
_FRAME_BYTES, _UDP_BYTES = 64, 18
#: Of so many flows.
_STREAMS: dict[int, Workload] = {1: "stream", 1_000: "stream-1k", 10_000: "stream-10k"}
_RELATIVE, _ADDED = METRICS["relative_cost"], METRICS["added_cost"]


@dataclass(frozen=True)
class InstructionCount(Procedure):
    """Instruction counts of a topology, of its baseline and of the topology that it is compared with."""

    name = "instruction-count"
    says = (
        "counts the instructions that a packet, a connection, a removal or an entry of a dump costs in an emulated "
        "machine, less those of the wires and the traffic alone"
    )
    abilities = frozenset({"instructions"})
    promised = Promise("instruction cost", "cost")
    found_out = ("instructions_per_packet", "instructions_per_connection", _RELATIVE.name, _ADDED.name)

    def metric(self, profile: Profile) -> Metric:
        return COST_OF[profile.kind]

    def count(self, counter: Counter, tested: Topology, floor: Floor, on_counted: OnCounted = ignore) -> Outcome:
        """Count the instructions of a topology, and of the one that its floor compares it with. Raise `MissingResource`
        for a profile that the machine cannot send."""
        metric, workload = self.metric(floor.profile), workload_of(floor.profile, tested)
        other = Topology.parse(floor.relative_to) if floor.relative_to else None
        wires_alone = counter.baseline(tested, workload)
        baseline = [wires_alone] if wires_alone else []
        try:
            every = counter.count([*baseline, tested, *([other] if other else [])], workload)
        except TestbedError as error:
            return Outcome.nothing(metric, "fault", str(error))
        counts = [one for each in every for one in each]
        evidence = Evidence(trials=[], counts=counts)
        if doubt := next((f"{one.key} (seed {one.seed}): {one.doubt}" for one in counts if one.doubt), ""):
            return _undecided(floor, metric, evidence, f"what was counted was not proved: {doubt}")
        wires = [one.each for one in every[0]] if baseline else [0.0] * len(every[0])
        own = every[len(baseline)]
        net = _less(own, wires)
        on_counted(tested.key, own, net)
        figures = {metric.name: _figure(metric, net)}
        if other:
            to = _less(every[-1], wires)  # of the same profile, so of the same frames
            on_counted(other.key, every[-1], to)
            if min(to) <= 0:
                return _undecided(floor, metric, evidence, f"{other.key} costs nothing to compare with")
            shares = [one / two for one, two in zip(net, to, strict=True)]
            figures[_RELATIVE.name] = _figure(_RELATIVE, shares)
            if _ADDED.name in floor.thresholds:
                figures[_ADDED.name] = _figure(_ADDED, [max(0.0, share - 1) for share in shares])
        reason = f"counted in {len(net)} boots, each with a seed of its own"
        verdicts: dict[str, Verdict] = {}
        for name, figure in figures.items():
            verdicts |= by_interval(METRICS[name], figure, floor.limit(name), f"{len(net)} seeds")
        return Outcome(metric, figures, "dut", reason, True, verdicts=verdicts, evidence=evidence)


def workload_of(profile: Profile, topology: Topology) -> Workload:
    """Return the machine's workload for a profile. Raise `MissingResource` where it cannot send that."""
    if isinstance(profile, ConnectionProfile) and profile.half_open_per_s:
        raise MissingResource(f"An emulated machine sends no half-open connections; profile {profile.name} has them.")
    if isinstance(profile, ConnectionProfile) and profile.at_once > 1:
        raise MissingResource(f"An emulated machine sends one request at a time; profile {profile.name} has more.")
    if isinstance(profile, PacketProfile):
        tag = VLAN_ID if topology.ports.endswith("vlan") else 0
        if (profile.frame_bytes, profile.directions, profile.vlan) == (_FRAME_BYTES, "one", tag) and (
            profile.flows in _STREAMS
        ):
            return _STREAMS[profile.flows]
        flows, tagged = " or ".join(map(str, _STREAMS)), f"VLAN {tag}" if tag else "no VLAN"
        needs = f"{flows} flows of {_FRAME_BYTES}-byte frames, clients to servers, {tagged}"
    elif profile.udp_percent == 100 and (profile.messages, profile.request_bytes, profile.reply_bytes) == (
        1, _UDP_BYTES, _UDP_BYTES,
    ):  # fmt: skip
        return "udp" if profile.counts == "opening" else profile.counts
    elif (profile.udp_percent, profile.messages, profile.counts, profile.ended_by) == (0, 0, "opening", "client"):
        return "tcp"
    else:
        needs = f"UDP with one request and one reply of {_UDP_BYTES} bytes, or TCP without data that is opened"
    raise MissingResource(f"An emulated machine sends {needs}; profile {profile.name} is something else.")


def _less(whole: Sequence[InstructionCounts], baseline: Sequence[float]) -> list[float]:
    return [one.each - two for one, two in zip(whole, baseline, strict=True)]


def _figure(metric: Metric, samples: Sequence[float]) -> Estimate:
    return Estimate(
        value=statistics.median(samples), unit=metric.unit.name, low=min(samples), high=max(samples),
        samples=tuple(samples),
    )  # fmt: skip


def _undecided(floor: Floor, metric: Metric, evidence: Evidence, why: str) -> Outcome:
    """Return an outcome without figures: the counts are not proved."""
    promised = [name for name, each in floor.thresholds.items() if each.is_promise]
    verdicts = dict.fromkeys(promised, Verdict(None, Code.UNPROVED, why))
    return replace(Outcome.nothing(metric, "dut", why, verdicts), evidence=evidence)


INSTRUCTION_COST = InstructionCount()

"""What a packet, or a new connection, costs in instructions: boots of an emulated machine with different seeds, each
net of the wires and the traffic alone. No statistics: the range over the seeds is the uncertainty."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.ethernet import VLAN_ID
from ctbench.dut.counting import NET, Counted, CountingDut, Workload
from ctbench.dut.kind import Ability
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.procedure import Bench, Decision, Outcome
from ctbench.results.figure import Figure
from ctbench.results.metrics import COST_OF, METRICS, Metric
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

#: What the program in the machine sends: frames of 64 bytes, UDP requests and replies of so many bytes.
_FRAME_BYTES, _UDP_BYTES = 64, 18
#: Of so many flows.
_STREAMS: dict[int, Workload] = {1: "stream", 1_000: "stream-1k", 10_000: "stream-10k"}
_RELATIVE = METRICS["relative_cost"]
#: Seconds that a boot takes, where several run side by side.
_BOOT_S = 4.0


@dataclass(frozen=True)
class InstructionCount:
    """Implements `Procedure`."""

    name: str = "instruction-count"
    loads: frozenset[type[Load]] = frozenset()
    abilities: frozenset[Ability] = frozenset({"instructions"})
    headroom: float = 0.0
    found_out: Collection[str] = ("instructions_per_packet", "instructions_per_connection", _RELATIVE.name)

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return COST_OF[profile.kind]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: nothing is known of how many boots were made before."""
        return Expected(0, 2 * _BOOT_S)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`. `MissingResource` for a profile that the machine cannot send."""
        metric, dut, tested = self.metric(bench.profile), bench.dut, bench.topology
        assert isinstance(dut, CountingDut) and tested is not None, "its ability was required"
        workload = workload_of(bench.profile, tested)
        baseline = [] if workload in NET else [dut.baseline(tested)]
        topologies = [*baseline, tested, *([bench.compared_with] if bench.compared_with else [])]
        try:
            every = dut.count(topologies, workload)
        except TestbedError as error:
            return Outcome(metric, {}, "fault", str(error), held=False, steps=())
        counts = tuple(one for each in every for one in each)
        if doubt := next((f"{one.key} (seed {one.seed}): {one.doubt}" for one in counts if one.doubt), ""):
            return _undecided(bench, metric, counts, f"what was counted was not proved: {doubt}")
        wires = [one.each for one in every[0]] if baseline else [0.0] * len(every[0])
        own, *other = every[len(baseline) :]
        net = _less(own, wires)
        bench.on_counted(tested.key, own, net)
        figures = {metric.name: _figure(metric, net)}
        if other:
            to = _less(other[0], wires)  # of the same profile, so of the same frames
            bench.on_counted(topologies[-1].key, other[0], to)
            if min(to) <= 0:
                return _undecided(bench, metric, counts, f"{topologies[-1].key} costs nothing to compare with")
            figures[_RELATIVE.name] = _figure(_RELATIVE, [one / two for one, two in zip(net, to, strict=True)])
        reason = f"counted in {len(net)} boots, each with a seed of its own"
        return Outcome(
            metric, figures, "dut", reason, held=True, steps=(), counts=counts, decisions=_decide(figures, bench.limits)
        )


def workload_of(profile: Profile, topology: Topology) -> Workload:
    """What the machine sends for a profile. `MissingResource` where it cannot send that."""
    if isinstance(profile, ConnectionProfile) and profile.half_open_per_s:
        raise MissingResource(f"An emulated machine sends no half-open connections; profile {profile.name} has them.")
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


def _less(whole: Sequence[Counted], baseline: Sequence[float]) -> list[float]:
    return [one.each - two for one, two in zip(whole, baseline, strict=True)]


def _figure(metric: Metric, samples: Sequence[float]) -> Figure:
    return Figure(
        value=statistics.median(samples), unit=metric.unit.name, low=min(samples), high=max(samples),
        samples=tuple(samples),
    )  # fmt: skip


def _decide(figures: Mapping[str, Figure], limits: Mapping[str, float]) -> dict[str, Decision]:
    """Each promise by the range over the seeds: kept or broken where all of it is on one side."""
    found = {}
    for name, figure in figures.items():
        if name not in limits:
            continue
        metric = METRICS[name]
        kept = {metric.keeps(value, limits[name]) for value in figure.repetitions}
        least, most, limit = (metric.format(value) for value in (figure.low or 0, figure.high or 0, limits[name]))
        seeds = f"{len(figure.samples)} seeds found {least} to {most}"
        reason = seeds if len(kept) == 1 else f"too close to call: {seeds}, {metric.bound} {limit} promised"
        found[name] = Decision(kept.pop() if len(kept) == 1 else None, reason)
    return found


def _undecided(bench: Bench, metric: Metric, counts: tuple[Counted, ...], why: str) -> Outcome:
    """Figures that are not proved are none."""
    decisions = {name: Decision(None, why) for name in bench.limits if METRICS[name].role == "promise"}
    return Outcome(metric, {}, "dut", why, held=False, steps=(), counts=counts, decisions=decisions)

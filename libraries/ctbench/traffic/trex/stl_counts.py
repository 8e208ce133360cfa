"""From what TRex counted to the Trial: who lost a packet, the DUT or TRex itself.

The packets of the sustain phase are counted by group, where they are sent and where they come back, and nothing else is
(no ARP, no packet of the warm-up). The ports' counters tell what TRex itself did not manage:
what it took for sent and its card did not send, what came back and nobody took, or what came back unrecognised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from ctbench.traffic.generator import ATTEMPTED_LIMIT, Direction, Trial
from ctbench.traffic.trex.stl_latency import latency_of
from ctbench.traffic.trex.stl_spec import SIDES, Spec

#: Sent at less than this share of the rate, whatever is sent in the end: the generator did not keep the pace.
RATE_LIMIT = 0.99
#: More than this share came back and was lost, or not recognised, by TRex itself: half of what campaigns let be lost.
MISSED_LIMIT = 0.0001
#: What DPDK calls frames that came back and were not taken.
_NOT_TAKEN = ("rx_missed_errors", "rx_mbuf_allocation_errors", "rx_errors")


@dataclass(frozen=True)
class Reading:
    """All counters, as `stl_stats` of stl_worker.py answered."""

    #: Between which moments those of the groups were read, seconds.
    from_s: float
    to_s: float
    groups: Mapping[str, Mapping[str, Any]]
    ports: Sequence[Mapping[str, int]]
    overall: Mapping[str, float]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """From the worker's answer."""
        return cls(answer["from_s"], answer["to_s"], answer["groups"], answer["ports"], answer["global"])

    def group(self, number: int) -> Mapping[str, Any]:
        """The counters of a group; empty before its first packet."""
        return self.groups.get(str(number), {})

    def sent(self, spec: Spec) -> int:
        """Packets of the sustain phase that were sent so far."""
        return sum(int(self.group(stream.group).get("tx_pkts", 0)) for stream in spec.streams)

    def received(self, spec: Spec) -> int:
        """Those of them that came back so far."""
        return sum(int(self.group(stream.group).get("rx_pkts", 0)) for stream in spec.streams)


@dataclass(frozen=True)
class Readings:
    """What was read of one trial: before anything was sent, shortly before the sustain phase, in it, and at the end."""

    zero: Reading
    begin: Reading
    samples: tuple[Reading, ...]
    end: Reading
    #: Seconds from one sample to the next.
    step_s: float


def trial_of(spec: Spec, readings: Readings, load: float, wall_s: float) -> Trial:
    """What the counters say of a trial."""
    directions = {sender: _direction(spec, readings, sender) for sender in spec.senders}
    intended = sum(way.intended for way in directions.values())
    attempted = sum(way.attempted for way in directions.values())
    received = [sample.received(spec) for sample in (readings.begin, *readings.samples)]
    strangers = _unrecognised(spec, readings)
    return Trial(
        unit="packets",
        load=load,
        duration_s=spec.duration_s,
        ramp_up_s=spec.warm_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        completed=sum(way.received for way in directions.values()),
        tx_packets=_by_side(spec, readings.end, "tx_pkts"),
        rx_packets=_by_side(spec, readings.end, "rx_pkts"),
        tx_bytes=_by_side(spec, readings.end, "tx_pkts", in_bytes=True),
        rx_bytes=_by_side(spec, readings.end, "rx_pkts", in_bytes=True),
        total_tx_packets={side: _grown(readings, side, "tx_good_packets") for side in SIDES},
        total_rx_packets={side: _grown(readings, side, "rx_good_packets") for side in SIDES},
        unexpected={"unrecognised": strangers} if strangers else {},
        timeline_step_s=readings.step_s,
        timeline_active=[max(0, sample.sent(spec) - sample.received(spec)) for sample in readings.samples],
        timeline_completed=[after - before for before, after in pairwise(received)],
        directions=directions,
        generator_limited=limited_by(spec, readings, load, intended, attempted, strangers),
    )


def limited_by(spec: Spec, readings: Readings, load: float, intended: int, attempted: int, unrecognised: int) -> str:
    """Why the generator limited the trial, in words; empty when it did not."""
    dropped = int(readings.end.overall["m_total_queue_drop"] - readings.zero.overall["m_total_queue_drop"])
    if attempted < intended * ATTEMPTED_LIMIT:
        why = f", {dropped} met a full ring of its own" if dropped else ""
        return f"TRex sent only {attempted} of {intended} packets in time{why}"
    fastest = fastest_rate(spec, readings)
    if fastest < RATE_LIMIT * load:
        return f"TRex sent at most {fastest:.0f} of {load:.0f} packets/s"
    missed = sum(_not_taken(readings, side) for side in SIDES)
    if missed > MISSED_LIMIT * intended:
        return f"{missed} frames came back and found TRex' own receive ring full"
    if unrecognised > MISSED_LIMIT * intended and readings.end.received(spec) < attempted:
        return f"{unrecognised} frames came back that TRex did not recognise as those that it had sent"
    return ""


def fastest_rate(spec: Spec, readings: Readings) -> float:
    """Packets per second that were sent between the first and the last sample of the sustain phase, at most: we know
    when a counter was read only between two moments. Infinite when the samples are too close to tell."""
    sent = [(sample, sample.sent(spec)) for sample in readings.samples]
    within = [(sample, count) for sample, count in sent if 0 < count < spec.intended]
    if len(within) < 2:
        return float("inf")
    (first, before), (last, after) = within[0], within[-1]
    seconds = last.from_s - first.to_s
    return (after - before) / seconds if seconds > 0 else float("inf")


def _direction(spec: Spec, readings: Readings, sender: str) -> Direction:
    counted = [readings.end.group(stream.group) for stream in spec.of(sender)]
    latency = next(readings.end.group(stream.group) for stream in spec.of(sender) if stream.is_latency)
    sent = sum(int(group.get("tx_pkts", 0)) for group in counted)
    # Counted as sent before the card had it: what the card did not send was never put to the DUT.
    planned = sum(stream.warm_up_packets for stream in spec.of(sender)) if sent else 0
    unsent = max(0, planned + sent - _grown(readings, sender, "tx_good_packets"))
    attempted = max(0, sent - unsent)
    return Direction(
        intended=sum(stream.packets for stream in spec.of(sender)),
        attempted=attempted,
        received=min(attempted, sum(int(group.get("rx_pkts", 0)) for group in counted)),
        reordered=int(latency.get("err_cntrs", {}).get("out_of_order", 0)),
        latency_us=latency_of(latency),
    )


def _unrecognised(spec: Spec, readings: Readings) -> int:
    """Frames that the ports took beyond all that was sent to them and recognised."""
    found = 0
    for sender in spec.senders:
        known = sum(int(readings.end.group(stream.group).get("rx_pkts", 0)) for stream in spec.of(sender))
        warm_up = sum(stream.warm_up_packets for stream in spec.of(sender))
        found += max(0, _grown(readings, _opposite(sender), "rx_good_packets") - known - warm_up)
    return found


def _not_taken(readings: Readings, side: str) -> int:
    """Frames that came back in the sustain phase and were not taken. While nothing is sent TRex looks at its ports so
    seldom that the first packets of the warm-up overrun them."""
    port = SIDES.index(side)
    begin, end = readings.begin.ports[port], readings.end.ports[port]
    return sum(end.get(name, 0) - begin.get(name, 0) for name in _NOT_TAKEN)


def _grown(readings: Readings, side: str, name: str) -> int:
    """What a counter of a port grew by over the whole trial."""
    port = SIDES.index(side)
    return readings.end.ports[port][name] - readings.zero.ports[port][name]


def _by_side(spec: Spec, reading: Reading, name: str, *, in_bytes: bool = False) -> dict[str, int]:
    """Packets of the sustain phase, or their bytes, by the port that sent (`tx_pkts`) or took them."""
    sums = dict.fromkeys(SIDES, 0)
    for stream in spec.streams:
        side = stream.sender if name == "tx_pkts" else _opposite(stream.sender)
        sums[side] += int(reading.group(stream.group).get(name, 0)) * (stream.frame_bytes if in_bytes else 1)
    return sums


def _opposite(side: str) -> str:
    return SIDES[1 - SIDES.index(side)]

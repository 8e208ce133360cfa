"""Trials with packets by TRex' STL: the streams that TRex is given, the readings of a trial, and what they yield.

Every stream of the load is a chain of two bursts that TRex itself joins: a warm-up, and exactly the packets that the
sustain phase intends. Only the latter are counted, where they are sent and where they come back. So nothing depends on
when this side reads counters, and a packet belongs to the sustain phase or does not, wherever it is when that begins
or ends. Where TRex cannot keep up, it stretches its schedule silently, so what it has not sent when the time is up is
never sent. The ports' counters show TRex' own failures: packets that it counted as sent and its card did not send, and
frames that came back and were not taken, or not recognised.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise, product
from typing import Any

from ctbench.traffic.generator import ATTEMPTED_LIMIT, Direction, PortPair, Trial
from ctbench.traffic.profiles import IMIX, PacketProfile
from ctbench.traffic.trex import stl_flows
from ctbench.traffic.trex.client import TrexWorker
from ctbench.traffic.trex.counters import PAIR_OFFSET, SIDES, cannot_be
from ctbench.traffic.trex.latency import latency_of_stream

#: At the full rate before anything counts, seconds; and long enough for every flow to have been sent once: creating its
#: state in the DUT is another measurement.
SETTLE_S = 0.2
_FLOW_PASS = 1.1
#: Packets of a stream before anything counts, at least, so that each of TRex' threads has some.
_FEWEST = 64
#: Latency packets per second and direction, and the share of the load that they are at most.
LATENCY_PPS = 1000.0
_LATENCY_SHARE = 0.1


@dataclass(frozen=True)
class Stream:
    """The frames of one size that a port sends, or its latency packets."""

    #: Place of the port that sends among those of all pairs, each pair's client side first.
    port: int
    is_latency: bool
    pps: float
    #: Packets of the sustain phase, and those before it (latency: none).
    packets: int
    warm_up_packets: int
    #: Seconds until the first packet.
    delay_s: float
    #: TRex' number ("packet group") under which the packets of the sustain phase are counted.
    group: int
    walk: stl_flows.Walk

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame without FCS, its VLAN tag included."""
        return len(self.walk.frame)

    def as_json(self) -> dict[str, Any]:
        """Return the stream as client_worker.py needs it."""
        return {
            "port": self.port,
            "latency": self.is_latency,
            "pps": self.pps,
            "packets": self.packets,
            "warm_up_packets": self.warm_up_packets,
            "delay_us": 1e6 * self.delay_s,
            "group": self.group,
            "frame": self.walk.frame.hex(),
            "program": self.walk.program,
        }


@dataclass(frozen=True)
class Spec:
    """The streams of a trial and its phases."""

    warm_up_s: float
    duration_s: float
    streams: tuple[Stream, ...]

    def of(self, port: int) -> list[Stream]:
        return [stream for stream in self.streams if stream.port == port]

    @property
    def senders(self) -> list[int]:
        """The ports that send: all clients' sides, or both sides of each pair."""
        return sorted({stream.port for stream in self.streams})

    @property
    def intended(self) -> int:
        """Packets of the sustain phase."""
        return sum(stream.packets for stream in self.streams)


def spec_of(profile: PacketProfile, load: float, duration_s: float, pairs: int = 1) -> Spec:
    """Return the streams that offer `load` packets per second, summed over all directions of all port pairs, latency
    packets included. Each pair has an equal share, and all flows, on addresses of its own.

    The servers begin when the clients have sent every flow once: a stateful DUT passes nothing but answers.
    """
    senders = SIDES[: profile.ways]
    rate = load / (pairs * len(senders))
    latency_pps = min(LATENCY_PPS, _LATENCY_SHARE * rate)
    # Bytes of the frames with FCS, and their shares.
    sizes = IMIX if profile.frame_bytes == "imix" else ((profile.frame_bytes, 1),)
    shares = sum(share for _, share in sizes)
    rarest = (rate - latency_pps) * min(share for _, share in sizes) / shares
    first_pass = _FLOW_PASS * profile.flows / (rate - latency_pps)
    servers_begin = max(first_pass, _FEWEST / rarest) if len(senders) > 1 else 0.0
    warm_up_s = max(servers_begin + max(SETTLE_S, _FEWEST / rarest), first_pass)
    streams: list[Stream] = []

    def add(port: int, pps: float, delay_s: float, walk: stl_flows.Walk, *, is_latency: bool = False) -> None:
        packets, warm_up_packets = (round(pps * seconds) for seconds in (duration_s, warm_up_s - delay_s))
        least, group = int(is_latency), len(streams) + 1
        streams.append(Stream(port, is_latency, pps, max(least, packets), warm_up_packets, delay_s, group, walk))

    for (pair, of_pair), sender in product(enumerate(on_pairs(profile, pairs)), senders):
        port, begun = 2 * pair + SIDES.index(sender), 0
        for size, share in sizes:
            walk = stl_flows.walk(of_pair, sender, size, start=begun / shares)
            add(port, (rate - latency_pps) * share / shares, servers_begin * (sender == "server"), walk)
            begun += share  # where the next size begins among the flows, so that together they soon have sent each
        walk = stl_flows.walk(of_pair, sender, min(size for size, _ in sizes), checksum=False)
        add(port, latency_pps, warm_up_s, walk, is_latency=True)
    return Spec(warm_up_s, duration_s, tuple(streams))


def on_pairs(profile: PacketProfile, pairs: int) -> list[PacketProfile]:
    """Return the profile of each port pair: the same flows, on addresses of its own."""
    first = {name: IPv4Address(getattr(profile, name)) for name in ("client_ip", "server_ip")}
    offsets = (pair * int(IPv4Address(PAIR_OFFSET)) for pair in range(pairs))
    return [
        profile.model_copy(update={name: str(address + offset) for name, address in first.items()})
        for offset in offsets
    ]


def notes(profile: PacketProfile) -> list[str]:
    """Return what TRex does differently from the software generator with this profile, for the record."""
    found = [
        f"latency: from {LATENCY_PPS:g} packets/s per direction besides the load (at most {_LATENCY_SHARE:.0%} of it), "
        "without UDP checksum; in steps of one decimal digit from 10 us",
        "reordered packets: known of the latency packets only",
        "packets that are counted carry a type of service of 1 and IPv4 identifications above 0xfc00, by which TRex "
        "recognises them",
    ]
    if profile.directions == "both":
        found.append("servers send to the clients' own addresses, not to what the DUT translated them to")
    return found


#: Sent at less than this share of the rate, whatever is sent in the end: the generator did not keep the pace.
RATE_LIMIT = 0.99
#: More than this share came back and was lost, or not recognised, by TRex itself: half of what campaigns let be lost.
MISSED_LIMIT = 0.0001
#: What DPDK calls frames that came back and were not taken.
_NOT_TAKEN = ("rx_missed_errors", "rx_mbuf_allocation_errors", "rx_errors")
#: Counters of a port that are read.
_OF_PORT = ("tx_good_packets", "rx_good_packets", *_NOT_TAKEN)


@dataclass(frozen=True)
class StreamReading:
    """A reading of all counters, as `stl_stats` of client_worker.py answers."""

    #: Between which moments those of the groups were read, seconds.
    from_s: float
    to_s: float
    groups: Mapping[str, Mapping[str, Any]]
    ports: Sequence[Mapping[str, int]]
    #: Packets that met a full ring of TRex' own.
    dropped: int

    def group(self, number: int) -> Mapping[str, Any]:
        """Return the counters of a group; empty before its first packet."""
        return self.groups.get(str(number), {})

    @property
    def counters(self) -> dict[str, Any]:
        """Counters of the ports and groups that only grow, by a readable name."""
        of_ports = {
            f"{name} of port {number}": value
            for number, port in enumerate(self.ports)
            for name, value in port.items()
            if name in _OF_PORT
        }
        of_groups = {
            f"{name} of stream {number}": group[name]
            for number, group in self.groups.items()
            for name in ("tx_pkts", "rx_pkts")
            if name in group
        }
        return of_ports | of_groups | {"packets dropped": self.dropped}

    def count(self, streams: Iterable[Stream], name: str) -> int:
        """Return `tx_pkts` or `rx_pkts` of some streams: packets of the sustain phase, sent or back so far."""
        return sum(int(self.group(stream.group).get(name, 0)) for stream in streams)


@dataclass(frozen=True)
class Readings:
    """The readings of one trial: before anything was sent, shortly before the sustain phase, in it, and at the end."""

    zero: StreamReading
    begin: StreamReading
    samples: tuple[StreamReading, ...]
    end: StreamReading
    #: Seconds from one sample to the next.
    step_s: float
    #: When nothing arrived any more; None: no later than at the end.
    late: StreamReading | None = None


def _when_quiet(
    reading: StreamReading, read: Callable[[], StreamReading], sleep: Callable[[float], None]
) -> StreamReading:
    """Read again until nothing has arrived since the reading before, `LOOKS` times at most. Return the last reading."""
    for _ in range(LOOKS):
        sleep(LATE_STEP_S)
        before, reading = reading, read()
        if all(_arrived(reading, port) == _arrived(before, port) for port in range(len(reading.ports))):
            break
    return reading


def trial_of(spec: Spec, readings: Readings, load: float, wall_s: float) -> Trial:
    """Return the trial that the readings yield."""
    every = (readings.zero, readings.begin, *readings.samples, readings.end, readings.late or readings.end)
    if why := cannot_be((reading.to_s, reading.counters) for reading in every):
        return Trial.uncounted(
            f"TRex: {why}", unit="packets", load=load, duration_s=spec.duration_s, ramp_up_s=spec.warm_up_s,
            wall_s=wall_s,
        )  # fmt: skip
    ways = {port: _direction(spec, readings, port) for port in spec.senders}
    strangers = sum(_strangers(spec, readings, port) for port in spec.senders)
    intended, attempted, completed = _sums(ways.values())
    counts = [
        [sample.count(spec.streams, name) for name in ("tx_pkts", "rx_pkts")]
        for sample in (readings.begin, *readings.samples)
    ]
    traffic = {
        f"{way}_{what}": _by_side(spec, readings.end, f"{way}_pkts", in_bytes=what == "bytes")
        for way in ("tx", "rx") for what in ("packets", "bytes")
    }  # fmt: skip
    total = {
        "tx_packets": _of_sides(lambda port: _grown(readings, port, "tx_good_packets"), readings),
        "rx_packets": _of_sides(
            lambda port: _grown(readings, port, "rx_good_packets") + _late(readings, port), readings
        ),
    }
    return Trial.of(
        traffic, total,
        unit="packets",
        load=load,
        duration_s=spec.duration_s,
        ramp_up_s=spec.warm_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        completed=completed,
        unexpected={"unrecognised": strangers} if strangers else {},
        timeline_step_s=readings.step_s,
        timeline_active=[max(0, sent - received) for sent, received in counts[1:]],
        timeline_completed=[after - before for (_, before), (_, after) in pairwise(counts)],
        directions={
            side: _together([way for port, way in ways.items() if port % 2 == place])
            for place, side in enumerate(SIDES) if place in ways
        },
        port_pairs=_of_port_pairs(ways, len(readings.end.ports) // 2),
        generator_limited=limited_by(spec, readings, load, intended, attempted, strangers),
    )  # fmt: skip


def limited_by(spec: Spec, readings: Readings, load: float, intended: int, attempted: int, unrecognised: int) -> str:
    """Return why the generator limited the trial; empty where it did not."""
    dropped = readings.end.dropped - readings.zero.dropped
    if attempted < intended * ATTEMPTED_LIMIT:
        why = f", {dropped} met a full ring of its own" if dropped else ""
        return f"TRex sent only {attempted} of {intended} packets in time{why}"
    fastest = fastest_rate(spec, readings)
    if fastest < RATE_LIMIT * load:
        return f"TRex sent at most {fastest:.0f} of {load:.0f} packets/s"
    missed = sum(_not_taken(readings, port) for port in range(len(readings.end.ports)))
    if missed > MISSED_LIMIT * intended:
        return f"{missed} frames came back and found TRex' own receive ring full"
    if unrecognised > MISSED_LIMIT * intended and readings.end.count(spec.streams, "rx_pkts") < attempted:
        return f"{unrecognised} frames came back that TRex did not recognise as those that it had sent"
    return ""


def fastest_rate(spec: Spec, readings: Readings) -> float:
    """Return the packets per second sent between the first and the last sample of the sustain phase, at most: a counter
    was read at an unknown moment between two. Infinite where the samples are too close to tell."""
    sent = [(sample, sample.count(spec.streams, "tx_pkts")) for sample in readings.samples]
    within = [(sample, count) for sample, count in sent if 0 < count < spec.intended]
    if len(within) < 2:
        return float("inf")
    (first, before), (last, after) = within[0], within[-1]
    seconds = last.from_s - first.to_s
    return (after - before) / seconds if seconds > 0 else float("inf")


def _direction(spec: Spec, readings: Readings, port: int) -> Direction:
    """Return the counts of the packets that a port sent."""
    streams = spec.of(port)
    counted = next(readings.end.group(stream.group) for stream in streams if stream.is_latency)
    sent, recognised = (readings.end.count(streams, name) for name in ("tx_pkts", "rx_pkts"))
    # Counted as sent before the card had it: what the card did not send was never put to the DUT.
    warm_up = sum(stream.warm_up_packets for stream in streams) if sent else 0
    unsent = max(0, warm_up + sent - _grown(readings, port, "tx_good_packets"))
    attempted = max(0, sent - unsent)
    return Direction(
        intended=sum(stream.packets for stream in streams),
        attempted=attempted,
        received=min(attempted, recognised),
        reordered=int(counted.get("err_cntrs", {}).get("out_of_order", 0)),
        latency_us=latency_of_stream(counted),
    )


def _strangers(spec: Spec, readings: Readings, port: int) -> int:
    """Return the frames that the other port of a pair took beyond this port's warm-up and recognised packets."""
    streams = spec.of(port)
    expected = readings.end.count(streams, "rx_pkts") + sum(stream.warm_up_packets for stream in streams)
    return max(0, _grown(readings, _opposite(port), "rx_good_packets") - expected)


def _sums(ways: Iterable[Direction]) -> tuple[int, int, int]:
    """Return the packets intended, attempted and received."""
    counts = [(way.intended, way.attempted, way.received) for way in ways]
    intended, attempted, received = map(sum, zip(*counts, strict=True))
    return intended, attempted, received


def _together(ways: Sequence[Direction]) -> Direction:
    """Return one direction of all port pairs; its latency is that of the slowest."""
    intended, attempted, received = _sums(ways)
    known = [way.latency_us for way in ways if way.latency_us]
    return Direction(
        intended=intended,
        attempted=attempted,
        received=received,
        reordered=sum(way.reordered for way in ways),
        latency_us=max(known, key=lambda each: each.slowest, default=None),
    )


def _of_port_pairs(ways: Mapping[int, Direction], pairs: int) -> list[PortPair]:
    """Return the counts of each of several port pairs; none for one pair."""
    sums = [_sums(way for port, way in ways.items() if port // 2 == pair) for pair in range(pairs)]
    found = [PortPair(unit="packets", attempted=sent, completed=took) for _, sent, took in sums]
    return found if pairs > 1 else []


def _not_taken(readings: Readings, port: int) -> int:
    """Return the frames that came back in the sustain phase and were not taken. The warm-up is left out: while TRex
    sends nothing, it polls its ports so seldom that the first packets overrun them."""
    begin, end = readings.begin.ports[port], readings.end.ports[port]
    return sum(end.get(name, 0) - begin.get(name, 0) for name in _NOT_TAKEN)


def _grown(readings: Readings, port: int, name: str) -> int:
    """Return the growth of a port's counter over the whole trial."""
    return readings.end.ports[port][name] - readings.zero.ports[port][name]


def _late(readings: Readings, port: int) -> int:
    """Return the frames that arrived after the end: they are lost, although the DUT has sent them."""
    end, late = (_arrived(reading, port) for reading in (readings.end, readings.late or readings.end))
    return late - end


def _arrived(reading: StreamReading, port: int) -> int:
    """Return the frames that have reached a port, taken or not."""
    return sum(reading.ports[port].get(name, 0) for name in ("rx_good_packets", *_NOT_TAKEN))


def _of_sides(count: Callable[[int], int], readings: Readings) -> dict[str, int]:
    """Return a count of all ports, by side."""
    ports = range(len(readings.end.ports))
    return {side: sum(count(port) for port in ports[place::2]) for place, side in enumerate(SIDES)}


def _by_side(spec: Spec, reading: StreamReading, name: str, *, in_bytes: bool = False) -> dict[str, int]:
    """Return the packets of the sustain phase, or their bytes, by the side that sent (`tx_pkts`) or took them."""
    sums: dict[str, int] = dict.fromkeys(SIDES, 0)
    for stream in spec.streams:
        port = stream.port if name == "tx_pkts" else _opposite(stream.port)
        sums[SIDES[port % 2]] += int(reading.group(stream.group).get(name, 0)) * (stream.frame_bytes if in_bytes else 1)
    return sums


def _opposite(port: int) -> int:
    """Return the other port of the pair."""
    return port ^ 1


#: Seconds between two samples of the timeline, and at most so many of them, but at least a few.
STEP_S, MOST_SAMPLES, FEWEST_SAMPLES = 0.5, 100, 8
#: The counters are read this long before the sustain phase, seconds: reading takes some milliseconds.
BEFORE_S = 0.05
#: Seconds that TRex may be late at the end, for the start is known no better.
GRACE_S = 0.1
#: After the last packet was sent, at most; the DUT's queues hold some ten milliseconds.
LINGER_S = 0.2
#: What a DUT sends after that is lost. It is waited for, so that it is not taken for a loss of TRex: until nothing has
#: arrived for so many seconds, and so many times at most.
LATE_STEP_S, LOOKS = 0.1, 30

#: Seconds that TRex gets to answer; to take lists of flows.
ANSWER_S, LOAD_S = 10.0, 60.0


def run_trial(
    worker: TrexWorker,
    profile: PacketProfile,
    load: float,
    duration_s: float,
    pairs: int = 1,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Offer `load` packets per second, summed over all directions of `pairs` port pairs, for `duration_s` seconds and
    count.

    Raise `ConfigError` where TRex cannot send the profile's flows, `GeneratorError` where TRex or its client breaks.
    """

    def read() -> StreamReading:
        return StreamReading(**worker.call("stl_stats", ANSWER_S))

    def wait_until(moment_s: float) -> None:
        sleep(max(0.0, moment_s - time.monotonic()))

    started = time.perf_counter()
    spec = spec_of(profile, load, duration_s, pairs)
    worker.call("stl_load", LOAD_S, streams=[stream.as_json() for stream in spec.streams])
    zero = read()
    begun_s = worker.call("stl_start", ANSWER_S)["to_s"]
    sustain_s = begun_s + spec.warm_up_s
    end_s = sustain_s + spec.duration_s
    wait_until(sustain_s - BEFORE_S)
    begin = read()
    step_s = min(max(STEP_S, spec.duration_s / MOST_SAMPLES), spec.duration_s / FEWEST_SAMPLES)
    samples: list[StreamReading] = []
    while sustain_s + step_s * (len(samples) + 1) < end_s:
        wait_until(sustain_s + step_s * (len(samples) + 1))
        samples.append(read())
    wait_until(end_s)
    end = read()
    while end.count(spec.streams, "tx_pkts") < spec.intended and time.monotonic() < end_s + GRACE_S:
        sleep(0.01)
        end = read()
    is_all_here = end.count(spec.streams, "rx_pkts") >= spec.intended
    worker.call("stl_stop", ANSWER_S, linger_s=0.0 if is_all_here else LINGER_S)
    if not is_all_here:
        end = read()
    late = end if is_all_here else _when_quiet(end, read, sleep)
    readings = Readings(zero, begin, (*samples, end), end, step_s, late)
    return trial_of(spec, readings, load, time.perf_counter() - started)

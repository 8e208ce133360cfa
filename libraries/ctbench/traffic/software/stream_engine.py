"""One trial with a packet profile: prepares the tables, runs the kernel function, reads the counts."""

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ctbench.traffic.generator import Direction, Latency, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import PacketProfile
from ctbench.traffic.software import histogram, plan, stream_kernel, stream_plan
from ctbench.traffic.software import stream_layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.drive import Counts, Watcher, drive
from ctbench.traffic.software.engine import Tables
from ctbench.traffic.software.pace import Pace, held_back, limited_by, with_disturbance
from ctbench.traffic.software.wiring import Wiring

_SIDES = ("client", "server")


@dataclass(frozen=True)
class Run:
    """What the kernel function works on: kept by a caller that goes on with it."""

    p: plan.Parameters
    intervals: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    s: Counts
    sizes: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    counts: Counts
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    latencies: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    points: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    #: Both ends' Ethernet addresses, which the parameters point to.
    headers: "np.ndarray[tuple[int], np.dtype[np.uint8]]"
    tables: Tables

    @property
    def arguments(self) -> tuple[object, ...]:
        """The kernel function's arguments."""
        return (self.p, self.intervals, self.s, self.sizes, self.counts, self.marks, self.latencies, self.points)


def prepare(wiring: Wiring, tables: Tables, profile: PacketProfile, load: Load, timing: plan.Timing, salt: int) -> Run:
    """Parameters and empty tables for a trial. Arguments: see `run_trial`."""
    hertz = cycles_per_second()
    size = profile.flows * lay.RECORD_BYTES
    tables.reserve(size)
    ctypes.memset(tables.address, 0, size)
    headers = wiring.headers(profile)
    p = stream_plan.parameters(
        profile, timing, wiring, hertz=hertz, salt=salt, records=tables.address, headers=int(headers.ctypes.data),
        under_way=wiring.bounded(load), most_lost=plan.most_lost_of(load),
    )  # fmt: skip
    return Run(
        p=p,
        intervals=plan.schedule(plan.per_second(load) / profile.ways, hertz),
        s=np.zeros(lay.STATES, np.int64),
        sizes=stream_plan.payloads(profile),
        counts=np.zeros(lay.COUNTERS, np.int64),
        marks=np.zeros((2, lay.COUNTERS), np.int64),
        latencies=np.zeros((2, histogram.BINS), np.int64),
        points=np.zeros((int(timing.sustain_s / timing.timeline_step_s) + 1, 2), np.int64),
        headers=headers,
        tables=tables,
    )


def run_trial(
    wiring: Wiring,
    tables: Tables,
    profile: PacketProfile,
    load: Load,
    duration_s: float,
    *,
    cpus: Sequence[int] = (),
    salt: int = 0,
    watcher: Watcher | None = None,
) -> Trial:
    """Offer a load of packets, all directions added, for `duration_s` seconds and count.

    The other arguments are those of `engine.run_trial`.
    """
    started = time.perf_counter()
    hertz = cycles_per_second()
    timing = stream_plan.timing_of(profile, load, duration_s)
    run = prepare(wiring, tables, profile, load, timing, salt)
    p, s, counts, marks, latencies = run.p, run.s, run.counts, run.marks, run.latencies

    def stop() -> None:
        s[lay.STOP] = 1

    def watch(elapsed: float) -> None:
        if watcher:
            watcher(elapsed, s, counts)

    longest = timing.ramp_up_s + timing.sustain_s + timing.linger_s
    drive(stream_kernel.run, run.arguments, wiring, cpus, stop, longest, watch)
    dropped = wiring.client.dropped() + wiring.server.dropped()

    sustain = marks[1] - marks[0]
    intended, attempted = _both(counts, lay.INTENDED), _both(counts, lay.ATTEMPTED)
    points = run.points[: int(s[lay.POINTS])]
    ended_after_s = int(s[lay.ENDED_AFTER]) / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    pace = Pace(
        intended, attempted, int(s[lay.LATE_COUNT]), 1000 * int(s[lay.LATE_MAX]) / hertz, dropped, timing.sustain_s
    )
    trial = Trial(
        unit="packets",
        load=attempted / counted_s if p[lay.UNDER_WAY] else plan.per_second(load),
        under_way=int(p[lay.UNDER_WAY]),
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s,
        wall_s=time.perf_counter() - started,
        intended=intended,
        attempted=attempted,
        completed=_both(counts, lay.RECEIVED),
        failed={"bad_checksum": int(counts[lay.BAD_CHECKSUM])} if counts[lay.BAD_CHECKSUM] else {},
        tx_packets=_pair(sustain, lay.TX_PACKETS),
        rx_packets=_pair(sustain, lay.RX_PACKETS),
        tx_bytes=_pair(sustain, lay.TX_BYTES),
        rx_bytes=_pair(sustain, lay.RX_BYTES),
        total_tx_packets=_pair(counts, lay.TX_PACKETS),
        total_rx_packets=_pair(counts, lay.RX_PACKETS),
        dut_missed=int(sustain[lay.DUT_MISSED]),
        total_dut_missed=int(counts[lay.DUT_MISSED]),
        unexpected={
            name: int(counts[place])
            for name, place in (("foreign", lay.FOREIGN), ("unknown_packet", lay.UNKNOWN))
            if counts[place]
        },
        timeline_step_s=timing.timeline_step_s,
        timeline_active=[int(n) for n in points[:, stream_kernel.UNDER_WAY]],
        timeline_completed=[
            int(n) for n in np.diff(points[:, stream_kernel.RECEIVED], prepend=marks[0][lay.ALL_RECEIVED])
        ],
        directions={
            side: _direction(port, counts, latencies[port], hertz) for port, side in enumerate(_SIDES[: profile.ways])
        },
        link=wiring.work(int(s[lay.LINK_BUSY]), int(s[lay.LINK_FRAMES]), int(s[lay.LINK_REFUSED]), counted_s, hertz),
        late_max_ms=pace.late_max_ms,
        late_ratio=pace.late_ratio,
        generator_limited=limited_by(pace, "packets") or held_back(int(s[lay.LOOKS_HELD]), int(s[lay.LOOKS])),
    )
    return with_disturbance(trial, pace, wiring.ring_frames)


def _direction(port: int, counts: Counts, latencies: Counts, hertz: float) -> Direction:
    received = int(counts[lay.RECEIVED + port])
    latency = None
    if received > 1:
        latency = Latency(
            p50=histogram.percentile(latencies, 0.5, hertz),
            p99=histogram.percentile(latencies, 0.99, hertz),
            max=histogram.microseconds(int(counts[lay.LATENCY_MAX + port]), hertz),
            jitter=histogram.microseconds(int(counts[lay.JITTER_SUM + port]) / (received - 1), hertz),
        )
    return Direction(
        intended=int(counts[lay.INTENDED + port]),
        attempted=int(counts[lay.ATTEMPTED + port]),
        received=received,
        reordered=int(counts[lay.REORDERED + port]),
        latency_us=latency,
    )


def _pair(source: Counts, place: int) -> dict[str, int]:
    return {side: int(source[place + port]) for port, side in enumerate(_SIDES)}


def _both(source: Counts, place: int) -> int:
    return int(source[place] + source[place + 1])

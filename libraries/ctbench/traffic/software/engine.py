"""One trial: prepares the tables, runs a kernel function, reads the counts."""

import ctypes
import mmap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof

from ctbench.base.errors import GeneratorError
from ctbench.traffic.generator import ATTEMPTED_LIMIT, Direction, Traffic, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import PacketProfile, Profile
from ctbench.traffic.software import clock, connection, kernel, plan, stream_kernel
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.memif import zeroed_memory
from ctbench.traffic.software.packet_port import KernelThread
from ctbench.traffic.software.ring import Counts
from ctbench.traffic.software.wiring import Wiring

#: Seconds that a trial may take longer than it should, on a machine that is kept busy by others.
_PATIENCE_S = 120


@dataclass(frozen=True)
class Run:
    """A kernel function, and what it works on (see `layout`): kept by a caller that goes on with it."""

    function: Any
    p: Counts
    s: Counts
    counts: Counts
    #: Copies of the counters at the begin and the end of the sustain phase.
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    times: clock.Histograms
    points: clock.Points
    arguments: tuple[object, ...]
    #: What the parameters point to: both ends' Ethernet addresses, and the tables.
    kept: tuple[object, ...]

    @classmethod
    def of(
        cls, function: Any, p: Counts, wiring: Wiring, tables: "Tables", profile: Profile,
        timing: plan.Timing, intervals: object, *more: object,
    ) -> "Run":  # fmt: skip
        """Everything that was not counted yet. `more`: arguments of the function behind the state."""
        headers = wiring.join(p, profile)
        s, counts, marks = (np.zeros(size, np.int64) for size in (lay.STATES, lay.COUNTERS, (2, lay.COUNTERS)))
        times = np.zeros((clock.ROWS, clock.BINS), np.int64)
        points = np.zeros((int(timing.sustain_s / timing.timeline_step_s) + 1, clock.POINT_COLUMNS), np.int64)
        arguments = (p, intervals, s, *more, counts, marks, times, points)
        return cls(function, p, s, counts, marks, times, points, arguments, (headers, tables))

    def go_on(self, wiring: Wiring, cpus: Sequence[int], longest_s: float) -> None:
        """Run the kernel function until it is over, with the wiring carrying frames: `longest_s` seconds at most.

        It is made to end soon when anything goes wrong here, Ctrl-C included. Raises `GeneratorError` when it fails or
        takes too long, or when a port's link is gone."""
        # Here, before anybody waits: half a minute the first time, and minutes where others want the interpreter.
        self.function.compile(tuple(typeof(argument) for argument in self.arguments))
        self.s[lay.STOP] = 0
        thread = KernelThread("traffic-generator", lambda: self.function(*self.arguments), cpus)
        started = time.perf_counter()
        wiring.start()
        try:
            thread.start()
            while not thread.ended.wait(0.1):
                wiring.check_ports()  # or a trial of an hour would go on with a DUT that is gone
                elapsed = time.perf_counter() - started
                if elapsed > longest_s + _PATIENCE_S:
                    raise GeneratorError(
                        f"The traffic generator did not end a trial of {longest_s:g} s in {elapsed:.0f} s."
                    )
        finally:
            self.s[lay.STOP] = 1
            # However long it takes: what comes after this frees the memory that the function works on.
            thread.ended.wait()
            wiring.stop()
        thread.check("The traffic generator")
        wiring.check()


class Tables:
    """Memory that outlives a trial: connection records, reused while they are large enough."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._bytes = 0
        self.address = 0

    def reserve(self, size: int) -> int:
        """The address of so many bytes."""
        if size > self._bytes:
            self._memory, self.address = zeroed_memory(size)
            self._bytes = size
        return self.address


def prepare(
    wiring: Wiring, tables: Tables, profile: Profile, load: Load, timing: plan.Timing, salt: int,
    records: int | None = None, times_messages: bool = False,
) -> Run:  # fmt: skip
    """Parameters and empty tables for a trial. `salt`: tells its frames from an earlier trial's (9 bits); `records`:
    connections at once at most, where that does not follow from the load; `times_messages`: whether to measure the
    latency of messages of connections."""
    hertz, per_s = cycles_per_second(), plan.per_second(load)
    p = plan.parameters(profile, load, timing, hertz, salt, wiring.bounded(load))
    p[lay.TIMES_MESSAGES] = int(times_messages)
    if isinstance(profile, PacketProfile):
        size = profile.flows * stream_kernel.RECORD_BYTES
        p[lay.RECORDS] = tables.reserve(size)
        ctypes.memset(tables.address, 0, size)
        intervals, sizes = plan.intervals(per_s / profile.ways, hertz), plan.payloads(profile)
        return Run.of(stream_kernel.run, p, wiring, tables, profile, timing, intervals, sizes)
    p[lay.RECORD_COUNT] = records or plan.records_needed(profile, load)
    p[lay.RECORDS] = tables.reserve(int(p[lay.RECORD_COUNT]) * connection.RECORD_BYTES)
    intervals = plan.intervals(per_s, hertz, profile.half_open_per_s)
    run = Run.of(kernel.run, p, wiring, tables, profile, timing, intervals)
    run.s[lay.WAITING_FIRST] = run.s[lay.WAITING_LAST] = connection.NOBODY
    run.s[lay.TUPLE] = run.s[lay.HALF_TUPLE] = (salt * 7919) % int(p[lay.TUPLES])
    return run


def named(counts: Counts, places: Mapping[str, int]) -> dict[str, int]:
    """What was counted, by name; nothing of what was not."""
    return {name: int(counts[place]) for name, place in places.items() if counts[place]}


def of_both(counts: Counts, place: int) -> int:
    """The sum of a pair of counters."""
    return int(counts[place] + counts[place + 1])


def trial_of(run: Run, wiring: Wiring, profile: Profile, load: Load, timing: plan.Timing, started: float) -> Trial:
    """What a run that is over says, of all directions added. `started`: by `time.perf_counter`."""
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    sustain, late = run.marks[1] - run.marks[0], int(s[lay.LATE_COUNT])
    counted: dict[str, Any] = {place: of_both(counts, at) for place, at in _OFFERED.items()}
    if isinstance(profile, PacketProfile):
        counted |= _of_packets(run, profile)
    else:
        counted |= _of_connections(run, sustain)
    attempted, ended_after_s = counted["attempted"], int(s[lay.ENDED_AFTER]) / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    trial = Trial.of(
        traffic(sustain), traffic(counts),
        load=attempted / counted_s if p[lay.UNDER_WAY] else plan.per_second(load),
        under_way=int(p[lay.UNDER_WAY]),
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s + round(int(s[lay.LAG]) / hertz, 3),
        wall_s=time.perf_counter() - started,
        dut_missed=int(sustain[lay.DUT_MISSED]),
        total_dut_missed=int(counts[lay.DUT_MISSED]),
        timeline_step_s=timing.timeline_step_s,
        link=wiring.work(int(s[lay.LINK_BUSY]), int(s[lay.LINK_FRAMES]), int(s[lay.LINK_REFUSED]), counted_s, hertz),
        late_max_ms=1000 * int(s[lay.LATE_MAX]) / hertz,
        late_ratio=late / attempted if attempted else 0.0,
        **counted,
    )  # fmt: skip
    limited = ""
    if counts[lay.NO_RECORD]:
        limited = (
            f"{counts[lay.NO_RECORD]} connections found no free record: more than {lay.MOST_RECORDS} would be open"
        )
    waited = held_back(int(s[lay.LOOKS_HELD]), int(s[lay.LOOKS]))
    disturbed = disturbed_by(trial, wiring.client.dropped() + wiring.server.dropped(), wiring.ring_frames)
    return trial.model_copy(
        update={"generator_limited": limited or limited_by(trial) or waited, "generator_disturbed": disturbed}
    )


def _timeline(run: Run) -> dict[str, Any]:
    points = run.points[: int(run.s[lay.POINTS])]
    return clock.timeline_of(points, int(run.marks[0][lay.ALL_COMPLETED]), cycles_per_second())


def _of_connections(run: Run, sustain: Counts) -> dict[str, Any]:
    """The fields of a trial that are about connections. `sustain`: what was counted in the sustain phase."""
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    found: dict[str, Any] = {"failed": named(counts, lay.CAUSE_PLACES)}
    if p[lay.UNDER_WAY]:  # those that ended in the sustain phase, well or not
        failed, completed = named(sustain, lay.CAUSE_PLACES), int(sustain[lay.ALL_COMPLETED])
        ended = completed + sum(failed.values())
        found = {"failed": failed, "completed": completed, "intended": ended, "attempted": ended}
    elif p[lay.POPULATION]:  # most of those that began in it live on
        found["completed"] = max(0, of_both(counts, lay.ATTEMPTED) - sum(found["failed"].values()))
    # Some were set up after the last point.
    longest = run.points[: int(s[lay.POINTS]), lay.SETUP_MAX].tolist()
    return found | _timeline(run) | {
        "established": int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]),
        "unexpected": named(counts, lay.STRANGERS),
        "half_open": {name: int(sustain[place]) for name, place in lay.FLOOD.items() if p[lay.HALF_OPEN]},
        "active_mean": float(s[lay.ACTIVE_SUM] / s[lay.ACTIVE_SAMPLES]) if s[lay.ACTIVE_SAMPLES] else 0.0,
        "active_max": int(s[lay.ACTIVE_MAX]),
        "connect_time_us": clock.connect_time(run.times, counts, max([int(counts[lay.SETUP_MAX]), *longest]), hertz),
        "latency_us": clock.latencies_of(run.times, counts, hertz),
    }  # fmt: skip


def _of_packets(run: Run, profile: PacketProfile) -> dict[str, Any]:
    """The fields of a trial that are about packets."""
    counts, latencies = run.counts, clock.latencies_of(run.times, run.counts, cycles_per_second())
    timeline = _timeline(run)
    return {
        "unit": "packets",
        "failed": named(counts, lay.CAUSE_PLACES),
        "unexpected": named(counts, {"foreign": lay.FOREIGN, "unknown_packet": lay.UNKNOWN}),
        "timeline_active": timeline["timeline_active"],
        "timeline_completed": timeline["timeline_completed"],
        "directions": {
            side: Direction(
                intended=int(counts[lay.INTENDED + port]),
                attempted=int(counts[lay.ATTEMPTED + port]),
                received=int(counts[lay.COMPLETED + port]),
                reordered=int(counts[lay.REORDERED + port]),
                latency_us=latencies.get(side),
            )
            for port, side in enumerate(lay.SIDES[: profile.ways])
        },
    }


_OFFERED = {"intended": lay.INTENDED, "attempted": lay.ATTEMPTED, "completed": lay.COMPLETED}
_TRAFFIC = {
    "tx_packets": lay.TX_PACKETS, "rx_packets": lay.RX_PACKETS, "tx_bytes": lay.TX_BYTES, "rx_bytes": lay.RX_BYTES
}  # fmt: skip


def traffic(counts: Counts) -> Traffic:
    return {
        name: {side: int(counts[place + port]) for port, side in enumerate(lay.SIDES)}
        for name, place in _TRAFFIC.items()
    }


#: Begun too late in more than this share of cases, and later than this share of the sustain phase: the generator did
#: not keep the pace, and the load was not the one that was asked for. What was only late is the harder trial, because
#: what is late comes faster; as it comes no more than a tenth faster, a pause of 4 ms makes late what is due in 44 ms.
LATE_RATIO_LIMIT = 0.2
LATEST_SHARE = 0.02
#: What a pause held back comes at once. Where that is more than this share of the DUT's rings, it may overrun them.
RING_SHARE = 0.25
#: What pauses held back, and so at most what came too fast, as a share of what was late: a pause makes eleven times as
#: much late as it holds back. Twice that, because what is late by less than the limit is not counted.
EXCESS = 2 * (1 - 1 / clock.CATCH_UP)


#: In a closed loop: in so many of the looks at its own receive rings they may hold most of what is under way.
HELD_LIMIT = 0.5


def held_back(held: int, looks: int) -> str:
    """Why the generator limited a closed loop, in words; empty when it did not. `held`: looks at its own receive rings
    that found most of what was under way in them."""
    if looks and held > HELD_LIMIT * looks:
        return f"in {100 * held / looks:.0f} % of the time most of what was under way waited for the generator itself"
    return ""


def limited_by(trial: Trial) -> str:
    """Why the generator limited the trial, in words; empty when it did not."""
    late = f"up to {trial.late_max_ms:.1f} ms"
    if trial.attempted < trial.intended * ATTEMPTED_LIMIT:
        return f"{trial.attempted} of {trial.intended} {trial.unit} were begun in time ({late} late)"
    if trial.late_ratio > LATE_RATIO_LIMIT and trial.late_max_ms > LATEST_SHARE * trial.duration_s * 1000:
        return f"{100 * trial.late_ratio:.1f} % of the {trial.unit} began late, {late}"
    return ""


def disturbed_by(trial: Trial, dropped: int, ring_frames: int) -> str:
    """What of the generator may have cost what was lost, or could have cost something, in words; empty where nothing
    did.

    `dropped`: frames that came back and found no room in the generator's receive rings; `ring_frames`: what the rings
    towards the DUT hold at a port. More than came too fast, or twice what the generator's own rings had no room for,
    was lost for other reasons.
    """
    lost = trial.packets_lost
    if dropped and lost <= 2 * dropped:
        return f"{dropped} frames came back and found the generator's own receive rings full"
    late_packets = trial.late_max_ms / 1000 * max(trial.tx_packets.values()) / trial.counted_s
    if late_packets > RING_SHARE * ring_frames and lost <= EXCESS * trial.late_ratio * trial.packets_sent:
        return (
            f"the generator paused for {trial.late_max_ms:.1f} ms: {late_packets:.0f} packets came late and fast, the "
            f"DUT's rings hold {ring_frames}"
        )
    return ""

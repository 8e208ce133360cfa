"""One trial with connections: prepares the tables, runs the kernel function, reads the counts."""

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctbench.traffic.generator import Traffic, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import clock, connection, kernel, plan
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.kernel_thread import Counts, Watcher, run_kernel
from ctbench.traffic.software.lateness import Pace, disturbed_by, held_back, limited_by
from ctbench.traffic.software.memif import zeroed_memory
from ctbench.traffic.software.wiring import Wiring


@dataclass(frozen=True)
class Run:
    """A kernel function, and what it works on: kept by a caller that goes on with it."""

    function: Any
    #: Where things are in the arrays: `layout`, or `stream_layout`.
    at: Any
    p: plan.Parameters
    s: Counts
    counts: Counts
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    #: Histograms (`connection.empty_histograms`, or one per direction), and points of the timeline.
    times: connection.Histograms
    points: clock.Points
    arguments: tuple[object, ...]
    #: What the parameters point to: both ends' Ethernet addresses, and the tables.
    kept: tuple[object, ...]

    def go_on(self, wiring: Wiring, cpus: Sequence[int], longest_s: float, watcher: Watcher | None = None) -> None:
        """Run the kernel function until it is over: `longest_s` seconds at most. See `run_kernel`."""

        def stop() -> None:
            self.s[self.at.STOP] = 1

        def watch(elapsed: float) -> None:
            if watcher:
                watcher(elapsed, self.s, self.counts)

        self.s[self.at.STOP] = 0
        run_kernel(self.function, self.arguments, wiring, cpus, stop, longest_s, watch)


class Tables:
    """Memory that outlives a trial: connection records, reused while they are large enough."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._bytes = 0
        self.address = 0

    def reserve(self, size: int) -> None:
        if size > self._bytes:
            self._memory, self.address = zeroed_memory(size)
            self._bytes = size


def prepare(
    wiring: Wiring, tables: Tables, profile: ConnectionProfile, load: Load, timing: plan.Timing, salt: int,
    records: int | None = None, times_messages: bool = False,
) -> Run:  # fmt: skip
    """Parameters and empty tables for a trial. `salt`: tells its frames from an earlier trial's (9 bits); `records`:
    connections at once at most, where that does not follow from the load; `times_messages`: whether to measure the
    latency of messages."""
    hertz = cycles_per_second()
    count = records or plan.records_needed(profile, load)
    tables.reserve(count * connection.RECORD_BYTES)
    headers = wiring.headers(profile)
    p = plan.parameters(
        profile, timing, hertz=hertz, salt=salt, records=tables.address, count=count,
        under_way=wiring.bounded(load), population=plan.population_of(profile, load), most_lost=plan.most_lost_of(load),
    )  # fmt: skip
    plan.join(lay, p, wiring, int(headers.ctypes.data))
    p[lay.TIMES_MESSAGES] = int(times_messages)
    s = np.zeros(lay.STATES, np.int64)
    s[lay.WAITING_FIRST] = s[lay.WAITING_LAST] = connection.NOBODY
    s[lay.TUPLE] = s[lay.HALF_TUPLE] = (salt * 7919) % int(p[lay.TUPLES])
    counts, marks = np.zeros(lay.COUNTERS, np.int64), np.zeros((2, lay.COUNTERS), np.int64)
    times, points = connection.empty_histograms(), clock.timeline_room(timing)
    intervals = plan.connection_intervals(profile, plan.per_second(load), hertz)
    arguments = (p, intervals, s, counts, marks, times, points)
    return Run(kernel.run, lay, p, s, counts, marks, times, points, arguments, (headers, tables))


def trial_of(run: Run, wiring: Wiring, load: Load, timing: plan.Timing, started: float) -> Trial:
    """What a run that is over says of a load of connections. `started`: by `time.perf_counter`."""
    hertz = cycles_per_second()
    p, s, counts, times = run.p, run.s, run.counts, run.times
    sustain, points = run.marks[1] - run.marks[0], run.points[: int(s[lay.POINTS])]
    intended, attempted, completed = int(s[lay.INTENDED]), int(counts[lay.ATTEMPTED]), int(counts[lay.COMPLETED])
    failures = counts[lay.FAILED :]
    if p[lay.UNDER_WAY]:  # those that ended in the sustain phase, well or not
        failures, completed = sustain[lay.FAILED :], int(sustain[lay.ALL_COMPLETED])
        intended = attempted = completed + int(failures.sum())
    elif p[lay.POPULATION]:  # most of those that began in it live on
        completed = max(0, attempted - int(failures.sum()))
    limited = ""
    if counts[lay.NO_RECORD]:
        limited = (
            f"{counts[lay.NO_RECORD]} connections found no free record: more than {lay.MOST_RECORDS} would be open"
        )
    strangers = {
        "foreign": lay.FOREIGN, "unknown_connection": lay.UNKNOWN,
        "misdirected": lay.MISDIRECTED, "out_of_order": lay.OUT_OF_ORDER,
    }  # fmt: skip
    flood = {
        "sent": lay.HALF_SENT, "missed": lay.HALF_MISSED, "passed": lay.HALF_PASSED, "answered": lay.HALF_ANSWERED
    }  # fmt: skip
    # Some were set up after the last point.
    slowest = max([int(counts[lay.SETUP_MAX]), *points[:, clock.POINT_SETUP_MAX].tolist()])
    return common_trial_of(
        run, wiring, load, timing, started,
        limited=limited,
        intended=intended,
        attempted=attempted,
        established=int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]),
        completed=completed,
        failed={cause: int(number) for cause, number in zip(lay.CAUSES, failures, strict=True) if number},
        unexpected={name: int(counts[place]) for name, place in strangers.items() if counts[place]},
        half_open={name: int(sustain[place]) for name, place in flood.items() if p[lay.HALF_OPEN]},
        active_mean=float(s[lay.ACTIVE_SUM] / s[lay.ACTIVE_SAMPLES]) if s[lay.ACTIVE_SAMPLES] else 0.0,
        active_max=int(s[lay.ACTIVE_MAX]),
        **clock.timeline_of(points, int(run.marks[0][lay.ALL_COMPLETED]), hertz),
        connect_time_us=connection.connect_time(times, counts, slowest, hertz),
        latency_us=connection.latencies_of(times, counts, hertz),
    )  # fmt: skip


def common_trial_of(
    run: Run, wiring: Wiring, load: Load, timing: plan.Timing, started: float,
    *, intended: int, attempted: int, limited: str, **counted: Any,
) -> Trial:  # fmt: skip
    """What a kernel function's run that is over says, of connections or of packets alike; `counted` has the rest of the
    trial's fields. `started`: by `time.perf_counter`; `limited`: why the generator limited it for a reason of its
    own."""
    at, p, s, hertz = run.at, run.p, run.s, cycles_per_second()
    dropped = wiring.client.dropped() + wiring.server.dropped()
    sustain = run.marks[1] - run.marks[0]
    ended_after_s = int(s[at.ENDED_AFTER]) / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    pace = Pace(
        intended, attempted, int(s[at.LATE_COUNT]), 1000 * int(s[at.LATE_MAX]) / hertz, dropped, timing.sustain_s
    )
    unit = counted.get("unit", "connections")
    trial = Trial.of(
        traffic(sustain, at), traffic(run.counts, at),
        load=attempted / counted_s if p[at.UNDER_WAY] else plan.per_second(load),
        under_way=int(p[at.UNDER_WAY]),
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s,
        wall_s=time.perf_counter() - started,
        intended=intended,
        attempted=attempted,
        dut_missed=int(sustain[at.DUT_MISSED]),
        total_dut_missed=int(run.counts[at.DUT_MISSED]),
        timeline_step_s=timing.timeline_step_s,
        link=wiring.work(int(s[at.LINK_BUSY]), int(s[at.LINK_FRAMES]), int(s[at.LINK_REFUSED]), counted_s, hertz),
        late_max_ms=pace.late_max_ms,
        late_ratio=pace.late_ratio,
        generator_limited=limited or limited_by(pace, unit) or held_back(int(s[at.LOOKS_HELD]), int(s[at.LOOKS])),
        **counted,
    )  # fmt: skip
    sent_per_s = max(trial.tx_packets.values()) / trial.counted_s
    why = disturbed_by(pace, trial.packets_sent, trial.packets_lost, sent_per_s, wiring.ring_frames)
    return trial.model_copy(update={"generator_disturbed": why})


def traffic(counts: Counts, at: Any) -> Traffic:
    places = {
        "tx_packets": at.TX_PACKETS, "rx_packets": at.RX_PACKETS, "tx_bytes": at.TX_BYTES, "rx_bytes": at.RX_BYTES
    }  # fmt: skip
    return {
        name: {side: int(counts[place + port]) for port, side in enumerate(("client", "server"))}
        for name, place in places.items()
    }

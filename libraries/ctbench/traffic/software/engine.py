"""One trial with connections: prepares the tables, runs the kernel function, reads the counts."""

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ctbench.traffic.generator import ConnectTime, Trial
from ctbench.traffic.loads import Load, Saturation
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import connection, histogram, kernel, latency, plan, timeline
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.drive import Counts, Watcher, drive
from ctbench.traffic.software.pace import Pace, held_back, limited_by, with_disturbance
from ctbench.traffic.software.shared_memory import zeroed_memory
from ctbench.traffic.software.wiring import Wiring


@dataclass(frozen=True)
class Run:
    """What the kernel function works on: kept by a caller that goes on with it."""

    p: plan.Parameters
    intervals: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    s: Counts
    counts: Counts
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    #: See `latency`.
    times: latency.Histograms
    points: timeline.Points
    #: Both ends' Ethernet addresses, which the parameters point to.
    headers: "np.ndarray[tuple[int], np.dtype[np.uint8]]"
    tables: "Tables"

    @property
    def arguments(self) -> tuple[object, ...]:
        """The kernel function's arguments."""
        return (self.p, self.intervals, self.s, self.counts, self.marks, self.times, self.points)


class Tables:
    """Memory that outlives a trial: connection records, reused while they are large enough."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._bytes = 0
        self.address = 0

    def reserve(self, size: int) -> None:
        """Make room for `size` bytes."""
        if size > self._bytes:
            self._memory, self.address = zeroed_memory(size)
            self._bytes = size


def prepare(
    wiring: Wiring,
    tables: Tables,
    profile: ConnectionProfile,
    load: Load,
    timing: plan.Timing,
    salt: int,
    records: int | None = None,
) -> Run:
    """Parameters and empty tables for a trial. Arguments: see `run_trial`; `records`: connections at once at most,
    where that does not follow from the load."""
    hertz = cycles_per_second()
    count = records or plan.records_needed(profile, load)
    tables.reserve(count * connection.RECORD_BYTES)
    headers = wiring.headers(profile)
    p = plan.parameters(
        profile, timing, hertz=hertz, salt=salt, records=tables.address, count=count,
        under_way=wiring.bounded(load), population=plan.population_of(profile, load), most_lost=plan.most_lost_of(load),
    )  # fmt: skip
    plan.join(p, wiring, int(headers.ctypes.data))
    s = np.zeros(lay.STATES, np.int64)
    s[lay.WAITING_FIRST] = s[lay.WAITING_LAST] = connection.NOBODY
    s[lay.TUPLE] = s[lay.HALF_TUPLE] = (salt * 7919) % int(p[lay.TUPLES])
    return Run(
        p=p,
        intervals=plan.schedules(profile, plan.per_second(load), hertz),
        s=s,
        counts=np.zeros(lay.COUNTERS, np.int64),
        marks=np.zeros((2, lay.COUNTERS), np.int64),
        times=latency.room(),
        points=timeline.room(timing),
        headers=headers,
        tables=tables,
    )


def run_trial(
    wiring: Wiring,
    tables: Tables,
    profile: ConnectionProfile,
    load: Load,
    duration_s: float,
    *,
    cpus: Sequence[int] = (),
    salt: int = 0,
    watcher: Watcher | None = None,
) -> Trial:
    """Offer a load of connections for `duration_s` seconds and count.

    `cpus`: where the generator's thread may run; `salt`: tells this trial's frames from an earlier one's (9 bits);
    `watcher(elapsed, state, counters)`: called about ten times a second. Ctrl-C ends the trial.
    """
    started = time.perf_counter()
    timing = plan.timing_of(profile, load, duration_s)
    run = prepare(wiring, tables, profile, load, timing, salt)
    run.p[lay.TIMES_MESSAGES] = 1
    s, counts = run.s, run.counts

    def stop() -> None:
        s[lay.STOP] = 1

    def watch(elapsed: float) -> None:
        if watcher:
            watcher(elapsed, s, counts)

    drive(kernel.run, run.arguments, wiring, cpus, stop, timing.ramp_up_s + duration_s + timing.linger_s, watch)
    dropped = wiring.client.dropped() + wiring.server.dropped()
    return _trial(wiring, load, timing, run, dropped, time.perf_counter() - started)


def _trial(wiring: Wiring, load: Load, timing: plan.Timing, run: Run, dropped: int, wall_s: float) -> Trial:
    hertz = cycles_per_second()
    p, s, counts, marks, times, points = run.p, run.s, run.counts, run.marks, run.times, run.points
    sustain = marks[1] - marks[0]

    def pair(source: Counts, place: int) -> dict[str, int]:
        return {"client": int(source[place]), "server": int(source[place + 1])}

    intended, attempted, completed = int(s[lay.INTENDED]), int(counts[lay.ATTEMPTED]), int(counts[lay.COMPLETED])
    failures = counts[lay.FAILED :]
    if p[lay.UNDER_WAY]:  # those that ended in the sustain phase, well or not
        failures, completed = sustain[lay.FAILED :], int(sustain[lay.ALL_COMPLETED])
        intended = attempted = completed + int(failures.sum())
    elif p[lay.POPULATION]:  # most of those that began in it live on
        completed = max(0, attempted - int(failures.sum()))
    points = points[: int(s[lay.POINTS])]
    ended_after_s = int(s[lay.ENDED_AFTER]) / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    pace = Pace(
        intended, attempted, int(s[lay.LATE_COUNT]), 1000 * int(s[lay.LATE_MAX]) / hertz, dropped, timing.sustain_s
    )
    setup = None
    if counts[lay.TCP_ESTABLISHED]:
        p50, p90, p99 = (histogram.percentile(times[latency.CONNECT], share, hertz) for share in (0.5, 0.9, 0.99))
        # Some were set up after the last point.
        slowest = max([int(counts[lay.SETUP_MAX]), *points[:, timeline.SETUP_MAX].tolist()])
        setup = ConnectTime(p50=p50, p90=p90, p99=p99, max=histogram.microseconds(slowest, hertz))
    course = timeline.read(points, int(marks[0][lay.ALL_COMPLETED]), hertz)
    limited = limited_by(pace, "connections") or held_back(int(s[lay.LOOKS_HELD]), int(s[lay.LOOKS]))
    if counts[lay.NO_RECORD]:
        limited = (
            f"{counts[lay.NO_RECORD]} connections found no free record: more than {lay.MOST_RECORDS} would be open"
        )
    trial = Trial(
        load=attempted / counted_s if isinstance(load, Saturation) else plan.per_second(load),
        under_way=int(p[lay.UNDER_WAY]),
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        established=int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]),
        completed=completed,
        failed={cause: int(number) for cause, number in zip(lay.CAUSES, failures, strict=True) if number},
        tx_packets=pair(sustain, lay.TX_PACKETS),
        rx_packets=pair(sustain, lay.RX_PACKETS),
        tx_bytes=pair(sustain, lay.TX_BYTES),
        rx_bytes=pair(sustain, lay.RX_BYTES),
        total_tx_packets=pair(counts, lay.TX_PACKETS),
        total_rx_packets=pair(counts, lay.RX_PACKETS),
        dut_missed=int(sustain[lay.DUT_MISSED]),
        total_dut_missed=int(counts[lay.DUT_MISSED]),
        unexpected={
            name: int(counts[place])
            for name, place in (
                ("foreign", lay.FOREIGN), ("unknown_connection", lay.UNKNOWN),
                ("misdirected", lay.MISDIRECTED), ("out_of_order", lay.OUT_OF_ORDER),
            )
            if counts[place]
        },
        half_open=(
            {
                name: int(sustain[place])
                for name, place in (
                    ("sent", lay.HALF_SENT), ("missed", lay.HALF_MISSED),
                    ("passed", lay.HALF_PASSED), ("answered", lay.HALF_ANSWERED),
                )
            }
            if p[lay.HALF_OPEN]
            else {}
        ),
        active_mean=float(s[lay.ACTIVE_SUM] / s[lay.ACTIVE_SAMPLES]) if s[lay.ACTIVE_SAMPLES] else 0.0,
        active_max=int(s[lay.ACTIVE_MAX]),
        timeline_step_s=timing.timeline_step_s,
        timeline_active=course.active,
        timeline_completed=course.completed,
        timeline_connect_mean_us=course.setup_mean_us,
        timeline_connect_max_us=course.setup_max_us,
        connect_time_us=setup,
        latency_us=latency.read(times, counts, hertz),
        link=wiring.work(
            int(s[lay.LINK_BUSY]), int(s[lay.LINK_FRAMES]), int(s[lay.LINK_REFUSED]), counted_s, hertz
        ),
        late_max_ms=pace.late_max_ms,
        late_ratio=pace.late_ratio,
        generator_limited=limited,
    )  # fmt: skip
    return with_disturbance(trial, pace, wiring.ring_frames)

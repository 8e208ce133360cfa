"""One trial with connections: prepares the tables, runs the kernel function, reads the counts."""

import mmap
import time
from collections.abc import Sequence

import numpy as np

from ctbench.traffic.generator import ConnectTime, Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import connection, histogram, kernel, plan, timeline
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.drive import Counts, Watcher, drive
from ctbench.traffic.software.pace import Pace, limited_by
from ctbench.traffic.software.shared_memory import zeroed_memory
from ctbench.traffic.software.wiring import Wiring


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


def run_trial(
    wiring: Wiring,
    tables: Tables,
    profile: ConnectionProfile,
    load: float,
    duration_s: float,
    *,
    cpus: Sequence[int] = (),
    salt: int = 0,
    watcher: Watcher | None = None,
) -> Trial:
    """Offer `load` connections per second for `duration_s` seconds and count; 0: offer nothing.

    `cpus`: where the generator's thread may run; `salt`: tells this trial's frames from an earlier one's (10 bits);
    `watcher(elapsed, state, counters)`: called about ten times a second. Ctrl-C ends the trial.
    """
    started = time.perf_counter()
    hertz = cycles_per_second()
    timing = plan.timing_of(profile, load, duration_s)
    count = plan.records_needed(profile, load)
    tables.reserve(count * connection.RECORD_BYTES)
    headers = wiring.headers()
    p = plan.parameters(profile, timing, hertz=hertz, salt=salt, records=tables.address, count=count)
    plan.join(p, wiring, int(headers.ctypes.data))
    s = np.zeros(lay.STATES, np.int64)
    s[lay.WAITING_FIRST] = s[lay.WAITING_LAST] = connection.NOBODY
    s[lay.TUPLE] = (salt * 7919) % int(p[lay.TUPLES])
    counts = np.zeros(lay.COUNTERS, np.int64)
    marks = np.zeros((2, lay.COUNTERS), np.int64)
    times = np.zeros(histogram.BINS, np.int64)
    points = timeline.room(timing)

    def stop() -> None:
        s[lay.STOP] = 1

    def watch(elapsed: float) -> None:
        if watcher:
            watcher(elapsed, s, counts)

    arguments = (p, plan.schedule(load, hertz), s, counts, marks, times, points)
    drive(kernel.run, arguments, wiring, cpus, stop, timing.ramp_up_s + duration_s + timing.linger_s, watch)
    dropped = wiring.client.dropped() + wiring.server.dropped()
    wall_s = time.perf_counter() - started
    return _trial(wiring, load, timing, hertz, s, counts, marks, times, points, dropped, wall_s)


def _trial(
    wiring: Wiring, load: float, timing: plan.Timing, hertz: float, s: Counts, counts: Counts,
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", times: Counts,
    points: timeline.Points, dropped: int, wall_s: float,
) -> Trial:  # fmt: skip
    sustain = marks[1] - marks[0]

    def pair(source: Counts, place: int) -> dict[str, int]:
        return {"client": int(source[place]), "server": int(source[place + 1])}

    intended, attempted = int(s[lay.INTENDED]), int(counts[lay.ATTEMPTED])
    pace = Pace(intended, attempted, int(s[lay.LATE_COUNT]), 1000 * int(s[lay.LATE_MAX]) / hertz, dropped)
    points = points[: int(s[lay.POINTS])]
    setup = None
    if counts[lay.TCP_ESTABLISHED]:
        p50, p90, p99 = (histogram.percentile(times, share, hertz) for share in (0.5, 0.9, 0.99))
        # Some were set up after the last point.
        slowest = max([int(counts[lay.SETUP_MAX]), *points[:, timeline.SETUP_MAX].tolist()])
        setup = ConnectTime(p50=p50, p90=p90, p99=p99, max=histogram.microseconds(slowest, hertz))
    course = timeline.read(points, int(marks[0][lay.ALL_COMPLETED]), hertz)
    limited = limited_by(pace, "connections")
    if counts[lay.NO_RECORD]:
        limited = (
            f"{counts[lay.NO_RECORD]} connections found no free record: more than {lay.MOST_RECORDS} would be open"
        )
    return Trial(
        load=load,
        duration_s=timing.sustain_s,
        ramp_up_s=timing.ramp_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        established=int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]),
        completed=int(counts[lay.COMPLETED]),
        failed={cause: int(counts[lay.FAILED + i]) for i, cause in enumerate(lay.CAUSES) if counts[lay.FAILED + i]},
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
        active_mean=float(s[lay.ACTIVE_SUM] / s[lay.ACTIVE_SAMPLES]) if s[lay.ACTIVE_SAMPLES] else 0.0,
        active_max=int(s[lay.ACTIVE_MAX]),
        timeline_step_s=timing.timeline_step_s,
        timeline_active=course.active,
        timeline_completed=course.completed,
        timeline_connect_mean_us=course.setup_mean_us,
        timeline_connect_max_us=course.setup_max_us,
        connect_time_us=setup,
        link=wiring.work(
            int(s[lay.LINK_BUSY]), int(s[lay.LINK_FRAMES]), int(s[lay.LINK_REFUSED]), timing.sustain_s, hertz
        ),
        late_max_ms=pace.late_max_ms,
        late_ratio=pace.late_ratio,
        generator_limited=limited,
    )  # fmt: skip

"""One trial of the software generator: prepares the tables, runs the kernel function in a thread, reads the counts."""

import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from ctbench.errors import ConfigError, GeneratorError
from ctbench.traffic.generator import SetupTime, Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import connection, kernel, plan
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.memif import MemifPort, zeroed_memory

#: Locally administered addresses: towards the server, towards the client.
CLIENT_MAC, SERVER_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")

#: Begun too late in more than this share of cases: the generator did not keep the pace.
LATE_RATIO_LIMIT = 0.02
#: Fewer begun than this share of what was due: likewise.
ATTEMPTED_LIMIT = 0.9998

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]


class Tables:
    """Memory that outlives a trial: connection records, reused while they are large enough."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._count = 0
        self.address = 0

    def reserve(self, count: int) -> None:
        """Make room for `count` connection records."""
        if count > self._count:
            self._memory, self.address = zeroed_memory(count * connection.RECORD_BYTES)
            self._count = count


def run_trial(
    client: MemifPort,
    server: MemifPort,
    tables: Tables,
    profile: ConnectionProfile,
    load_cps: float,
    duration_s: float,
    *,
    cpus: Sequence[int] = (),
    salt: int = 0,
    while_running: Callable[[float, Counts, Counts], None] | None = None,
) -> Trial:
    """Offer `load_cps` connections per second for `duration_s` seconds and count.

    `cpus`: where the generator's thread may run; `salt`: tells this trial's frames from an earlier one's (10 bits);
    `while_running(elapsed, state, counters)`: called about ten times a second. Ctrl-C ends the trial.
    """
    started = time.perf_counter()
    if load_cps <= 0:
        raise ConfigError(f"An offered load of {load_cps:g} connections/s is none. Expected more than 0.")
    hertz = cycles_per_second()
    timing = plan.Timing.of(profile, duration_s)
    count = plan.records_needed(profile, load_cps)
    tables.reserve(count)
    macs = np.frombuffer((SERVER_MAC + CLIENT_MAC).ljust(16) + (CLIENT_MAC + SERVER_MAC).ljust(16), np.uint8)
    p = plan.parameters(
        profile, timing, hertz=hertz, queues=len(client.tx), salt=salt, records=tables.address, count=count,
        macs=int(macs.ctypes.data),
    )  # fmt: skip
    for place, rings in (
        (lay.CLIENT_TX, client.tx), (lay.CLIENT_RX, client.rx), (lay.SERVER_TX, server.tx), (lay.SERVER_RX, server.rx)
    ):  # fmt: skip
        p[place] = rings.ctypes.data
    p[lay.CLIENT_RX_RINGS], p[lay.SERVER_RX_RINGS] = len(client.rx), len(server.rx)
    s = np.zeros(lay.STATES, np.int64)
    s[lay.WAITING_FIRST] = s[lay.WAITING_LAST] = connection.NOBODY
    s[lay.TUPLE] = (salt * 7919) % int(p[lay.TUPLES])
    counts = np.zeros(lay.COUNTERS, np.int64)
    marks = np.zeros((2, lay.COUNTERS), np.int64)
    histogram = np.zeros(lay.HISTOGRAM_BINS, np.int64)
    timeline = np.zeros((int(duration_s / timing.timeline_step_s) + 1, 2), np.int64)
    arguments = (
        p, np.array([hertz / load_cps]), s, counts, marks, histogram, timeline
    )  # fmt: skip
    failure: list[BaseException] = []
    # Not Thread.join: interrupted by a signal, it takes the thread for ended (CPython, _wait_for_tstate_lock), and
    # the rings would be unmapped under the kernel function.
    ended = threading.Event()

    def work() -> None:
        try:
            if cpus:
                os.sched_setaffinity(0, cpus)  # of this thread only
            kernel.run(*arguments)
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    longest = timing.ramp_up_s + timing.sustain_s + timing.linger_s + 120  # compiling takes time, once
    try:
        threading.Thread(target=work, name="traffic-generator", daemon=True).start()
        while not ended.wait(0.1):
            elapsed = time.perf_counter() - started
            if while_running:
                while_running(elapsed, s, counts)
            if elapsed > longest:
                raise GeneratorError(
                    f"The traffic generator did not end a trial of {duration_s:g} s in {longest:.0f} s."
                )
    finally:
        s[lay.STOP] = 1
        ended.wait(5)
    if failure:
        raise GeneratorError(f"The traffic generator failed: {failure[0]}") from failure[0]
    client.check_link()
    server.check_link()
    return _trial(
        profile, load_cps, timing, hertz, s, counts, marks, histogram, timeline, time.perf_counter() - started
    )


def _percentile(histogram: Counts, share: float, unit_us: float) -> float:
    """Microseconds that `share` of the set-ups took at most: the upper edge of the bin, 3 % wide."""
    total = np.cumsum(histogram)
    place = int(np.searchsorted(total, share * total[-1]))
    exponent, rest = (0, place) if place < 64 else (place // 32 - 1, place % 32 + 32)
    return float((rest + 1) * 2.0**exponent * unit_us)


def _trial(
    profile: ConnectionProfile, load_cps: float, timing: plan.Timing, hertz: float, s: Counts, counts: Counts,
    marks: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", histogram: Counts,
    timeline: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", wall_s: float,
) -> Trial:  # fmt: skip
    sustain = marks[1] - marks[0]

    def pair(source: Counts, place: int) -> dict[str, int]:
        return {"client": int(source[place]), "server": int(source[place + 1])}

    intended, attempted = int(s[lay.INTENDED]), int(counts[lay.ATTEMPTED])
    late_ratio = s[lay.LATE_COUNT] / attempted if attempted else 0.0
    late_ms = 1000 * int(s[lay.LATE_MAX]) / hertz
    unit_us = 64e6 / hertz
    setup = None
    if counts[lay.ESTABLISHED]:
        p50, p90, p99 = (_percentile(histogram, share, unit_us) for share in (0.5, 0.9, 0.99))
        setup = SetupTime(p50=p50, p90=p90, p99=p99, max=float(counts[lay.SETUP_MAX] * unit_us))
    points = timeline[: int(s[lay.POINTS])]
    limited = ""
    if counts[lay.NO_RECORD]:
        limited = (
            f"{counts[lay.NO_RECORD]} connections found no free record: more than {lay.MOST_RECORDS} would be open"
        )
    elif attempted < intended * ATTEMPTED_LIMIT:
        limited = f"{attempted} of {intended} connections were begun in time (up to {late_ms:.1f} ms late)"
    elif late_ratio > LATE_RATIO_LIMIT:
        limited = f"{100 * late_ratio:.1f} % of the connections began late, up to {late_ms:.1f} ms"
    return Trial(
        load_cps=load_cps,
        duration_s=timing.sustain_s,
        ramp_up_s=timing.ramp_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        established=int(counts[lay.ESTABLISHED]),
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
        timeline_active=[int(n) for n in points[:, 0]],
        timeline_completed=[int(n) for n in np.diff(points[:, 1], prepend=marks[0][lay.ALL_COMPLETED])],
        setup_time_us=setup,
        late_max_ms=late_ms,
        late_ratio=float(late_ratio),
        generator_limited=limited,
    )  # fmt: skip

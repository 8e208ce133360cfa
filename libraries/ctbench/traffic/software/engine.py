"""One trial: prepares the tables, runs the kernel, reads the counts."""

import ctypes
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctbench.base.errors import GeneratorError
from ctbench.traffic.generator import ATTEMPTED_LIMIT, Direction, Traffic, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import PacketProfile, Profile
from ctbench.traffic.software import clock, plan
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.layout import Counters
from ctbench.traffic.software.library import kernel
from ctbench.traffic.software.memif import zeroed_memory
from ctbench.traffic.software.packet_port import KernelThread
from ctbench.traffic.software.wiring import Wiring

#: Seconds that a trial may take longer than it should, on a machine that is kept busy by others.
_PATIENCE_S = 120


@dataclass(frozen=True)
class Run:
    """What the kernel is to do, and what it works on: kept by a caller that goes on with it."""

    work: Callable[[], None]
    of: lay.Run
    #: What `of` points to.
    points: "ctypes.Array[lay.Point]"
    kept: tuple[object, ...]

    # Views of `of`.

    @property
    def p(self) -> lay.Parameters:
        return self.of.parameters  # type: ignore[no-any-return]

    @property
    def s(self) -> lay.State:
        return self.of.state  # type: ignore[no-any-return]

    @property
    def counts(self) -> Counters:
        return self.of.counts  # type: ignore[no-any-return]

    @property
    def marks(self) -> "ctypes.Array[Counters]":
        """Copies of the counters at the begin and the end of the sustain phase."""
        return self.of.marks  # type: ignore[no-any-return]

    @property
    def times(self) -> clock.Histograms:
        return np.ctypeslib.as_array(self.of.histograms)

    def noted(self) -> "ctypes.Array[lay.Point]":
        """The points so far."""
        count: int = self.s.points
        return (lay.Point * count).from_buffer(self.points)

    def go_on(self, wiring: Wiring, cpus: Sequence[int], longest_s: float) -> None:
        """Run the kernel until it is over, with the wiring carrying frames: `longest_s` seconds at most.

        It is made to end soon when anything goes wrong here, Ctrl-C included. Raises `GeneratorError` when it fails or
        takes too long, or when a port's link is gone."""
        self.s.stop = 0
        thread = KernelThread("traffic-generator", self.work, cpus)
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
            self.s.stop = 1
            # However long it takes: what comes after this frees the memory that the kernel works on.
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
    of = lay.Run(parameters=plan.parameters(profile, load, timing, hertz, salt, wiring.bounded(load)))
    p, s, points = of.parameters, of.state, (lay.Point * (int(timing.sustain_s / timing.timeline_step_s) + 1))()
    of.points, of.point_count = ctypes.addressof(points), len(points)
    p.times_messages = int(times_messages)
    wiring.join(p, profile)
    if isinstance(profile, PacketProfile):
        size, payloads = profile.flows * ctypes.sizeof(lay.Flow), plan.payloads(profile)
        p.records = tables.reserve(size)
        ctypes.memset(tables.address, 0, size)
        p.interval, p.first, p.half_open_interval = plan.intervals(per_s / profile.ways, hertz)
        p.payloads, p.payload_count = ctypes.addressof(payloads), len(payloads)
        return Run(lambda: kernel().run_packets(of), of, points, (tables, payloads))
    p.record_count = records or plan.records_needed(profile, load)
    p.records = tables.reserve(p.record_count * ctypes.sizeof(lay.Connection))
    p.interval, p.first, p.half_open_interval = plan.intervals(per_s, hertz, profile.half_open_per_s)
    s.waiting_first = s.waiting_last = lay.NOBODY
    s.tuple = s.half_tuple = (salt * 7919) % p.tuples
    return Run(lambda: kernel().run_connections(of), of, points, (tables,))


def failed_of(counts: Counters) -> dict[str, int]:
    """Failures by cause; nothing of what did not happen."""
    return {name: count for name, count in zip(lay.CAUSES, counts.failed, strict=True) if count}


def trial_of(run: Run, wiring: Wiring, profile: Profile, load: Load, timing: plan.Timing, started: float) -> Trial:
    """What a run that is over says, of all directions added. `started`: by `time.perf_counter`."""
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    sustain = run.marks[1] - run.marks[0]
    counted: dict[str, Any] = {name: sum(getattr(counts, name)) for name in ("intended", "attempted", "completed")}
    if isinstance(profile, PacketProfile):
        counted |= _of_packets(run, profile)
    else:
        counted |= _of_connections(run, sustain)
    attempted, ended_after_s = counted["attempted"], s.ended_after / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    trial = Trial.of(
        traffic(sustain), traffic(counts),
        load=attempted / counted_s if p.under_way else plan.per_second(load),
        under_way=p.under_way,
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s + round(s.lag / hertz, 3),
        wall_s=time.perf_counter() - started,
        dut_missed=sustain.dut_missed,
        total_dut_missed=counts.dut_missed,
        timeline_step_s=timing.timeline_step_s,
        link=wiring.work(s.link_busy, s.link_frames, s.link_refused, counted_s, hertz),
        late_max_ms=1000 * s.late_max / hertz,
        late_ratio=s.late_count / attempted if attempted else 0.0,
        **counted,
    )  # fmt: skip
    limited = ""
    if counts.no_record:
        limited = f"{counts.no_record} connections found no free record: more than {lay.MOST_RECORDS} would be open"
    waited = held_back(s.looks_held, s.looks)
    disturbed = disturbed_by(trial, wiring.client.dropped() + wiring.server.dropped(), wiring.ring_frames)
    return trial.model_copy(
        update={"generator_limited": limited or limited_by(trial) or waited, "generator_disturbed": disturbed}
    )


def _timeline(run: Run) -> dict[str, Any]:
    return clock.timeline_of(run.noted(), run.marks[0].all_completed, cycles_per_second())


def _of_connections(run: Run, sustain: Counters) -> dict[str, Any]:
    """The fields of a trial that are about connections. `sustain`: what was counted in the sustain phase."""
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    found: dict[str, Any] = {"failed": failed_of(counts)}
    if p.under_way:  # those that ended in the sustain phase, well or not
        failed, completed = failed_of(sustain), sustain.all_completed
        ended = completed + sum(failed.values())
        found = {"failed": failed, "completed": completed, "intended": ended, "attempted": ended}
    elif p.population:  # most of those that began in it live on
        found["completed"] = max(0, sum(counts.attempted) - sum(found["failed"].values()))
    # Some were set up after the last point.
    longest = [point.counts.setup_max for point in run.noted()]
    return found | _timeline(run) | {
        "established": int(counts.tcp_established + counts.udp_established),
        "unexpected": _named(counts, _STRANGERS),
        "half_open": {name: getattr(sustain, f"half_{name}") for name in _HALF_OPEN if p.half_open},
        "active_mean": s.active_sum / s.active_samples if s.active_samples else 0.0,
        "active_max": s.active_max,
        "connect_time_us": clock.connect_time(run.times, counts, max([counts.setup_max, *longest]), hertz),
        "latency_us": clock.latencies_of(run.times, counts, hertz),
    }  # fmt: skip


def _of_packets(run: Run, profile: PacketProfile) -> dict[str, Any]:
    """The fields of a trial that are about packets."""
    counts, latencies = run.counts, clock.latencies_of(run.times, run.counts, cycles_per_second())
    timeline = _timeline(run)
    return {
        "unit": "packets",
        "failed": failed_of(counts),
        "unexpected": _named(counts, {"foreign": "foreign", "unknown_packet": "unknown"}),
        "timeline_active": timeline["timeline_active"],
        "timeline_completed": timeline["timeline_completed"],
        "directions": {
            side: Direction(
                intended=counts.intended[port],
                attempted=counts.attempted[port],
                received=counts.completed[port],
                reordered=counts.reordered[port],
                latency_us=latencies.get(side),
            )
            for port, side in enumerate(lay.SIDES[: profile.ways])
        },
    }


#: Frames without a use, as `Trial` names them and as the counters do.
_STRANGERS = {
    "foreign": "foreign", "unknown_connection": "unknown", "misdirected": "misdirected", "out_of_order": "out_of_order"
}  # fmt: skip
_HALF_OPEN = ("sent", "missed", "passed", "answered")


def _named(counts: Counters, names: Mapping[str, str]) -> dict[str, int]:
    """What was counted, by name; nothing of what was not."""
    return {name: getattr(counts, field) for name, field in names.items() if getattr(counts, field)}


def traffic(counts: Counters) -> Traffic:
    return {
        name: dict(zip(lay.SIDES, getattr(counts, name), strict=True))
        for name in ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes")
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
EXCESS = 2 * (1 - 1 / lay.constants()["CATCH_UP"])


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

"""One trial: prepare the kernel's tables, run the kernel, read its counters."""

import ctypes
import math
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ctgen import clock, plan
from ctgen import layout as lay
from ctgen.clock import cycles_per_second
from ctgen.errors import GeneratorError
from ctgen.library import KernelThread, kernel
from ctgen.loads import Load
from ctgen.memif import zeroed_memory
from ctgen.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen.ring import LINE
from ctgen.trial import ATTEMPTED_LIMIT, Direction, PortPair, Traffic, Trial
from ctgen.wiring import Wiring

#: Seconds that a trial may take longer than it should, on a machine that is kept busy by others.
_PATIENCE_S = 120


#: Of several threads together: of counters and of states what is the largest of theirs, and of states what is added.
#: All other counters are added; all else of a state is that of the first.
_LARGEST_COUNTERS = ("setup_max", "longest", "latency_last", "highest_sequence")
_LARGEST_OF_STATE = ("late_max", "sustain_pause", "ended_after", "lag")
_ADDED_OF_STATE = (
    "active", "active_sum", "active_max", "begun", "late_count", "looks", "looks_held", "untaken", "link_busy",
    "link_frames", "link_refused",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run of the kernel: its function and the memory that it works on. A caller that continues the run keeps it."""

    work: Callable[[ctypes.Structure], None]
    #: One a thread.
    parts: tuple[ctypes.Structure, ...]
    #: What the parts point to: the points of each, and the rest.
    points: tuple["ctypes.Array[ctypes.Structure]", ...]
    kept: tuple[object, ...]

    # Views of the first part, which of one thread is all.

    @property
    def of(self) -> ctypes.Structure:
        return self.parts[0]

    @property
    def p(self) -> ctypes.Structure:
        return self.of.parameters  # type: ignore[no-any-return]

    @property
    def s(self) -> ctypes.Structure:
        return self.of.state  # type: ignore[no-any-return]

    @property
    def counts(self) -> ctypes.Structure:
        return self.of.counts  # type: ignore[no-any-return]

    @property
    def marks(self) -> "ctypes.Array[ctypes.Structure]":
        """Copies of the counters at the beginning and the end of the sustain phase."""
        return self.of.marks  # type: ignore[no-any-return]

    def counted(self) -> ctypes.Structure:
        """Return the counters of the sustain phase."""
        found = lay.Counters()
        _numbers(found)[:] = _numbers(self.marks[1]) - _numbers(self.marks[0])
        return found

    @property
    def times(self) -> clock.Histograms:
        return np.ctypeslib.as_array(self.of.histograms)

    def noted(self) -> "ctypes.Array[ctypes.Structure]":
        """Return the points of the timeline so far."""
        count: int = self.s.points
        return (lay.Point * count).from_buffer(self.points[0])

    def summed(self) -> "Run":
        """Return the parts of all threads as one, once they have ended."""
        if len(self.parts) == 1:
            return self
        of = lay.Run.from_buffer_copy(self.of)
        of.counts = _summed([part.counts for part in self.parts])
        for number, mark in enumerate(zip(*(part.marks for part in self.parts), strict=True)):
            of.marks[number] = _summed(mark)
        np.ctypeslib.as_array(of.histograms)[:] = sum(np.ctypeslib.as_array(part.histograms) for part in self.parts)
        of.parameters.under_way = sum(part.parameters.under_way for part in self.parts)
        for names, of_all in ((_LARGEST_OF_STATE, max), (_ADDED_OF_STATE, sum)):
            for name in names:
                setattr(of.state, name, of_all(getattr(part.state, name) for part in self.parts))
        of.state.points = min(part.state.points for part in self.parts)
        points = (lay.Point * max(1, of.state.points))()
        for point, *each in zip(points, *self.points, strict=False):
            point.counts, point.active = _summed([one.counts for one in each]), sum(one.active for one in each)
        return Run(self.work, (of,), (points,), self.kept)

    def go_on(self, wiring: Wiring, cpus: Sequence[int], longest_s: float) -> None:
        """Run the kernel until it ends, while the wiring carries frames. It should take `longest_s` seconds at most.

        Any error here, Ctrl-C included, makes the kernel end soon. Raise `GeneratorError` where the kernel fails or
        takes much longer, or where a port's link is gone."""
        self._stop(0)
        alone = len(self.parts) == 1
        threads = [
            KernelThread("traffic-generator", partial(self.work, part), cpus if alone else cpus[number : number + 1])
            for number, part in enumerate(self.parts)
        ]
        started = time.perf_counter()
        wiring.start()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while not thread.ended.wait(0.1):
                    if any(each.failure for each in threads):
                        break
                    wiring.check_ports()  # or a trial of an hour would go on with a DUT that is gone
                    elapsed = time.perf_counter() - started
                    if elapsed > longest_s + _PATIENCE_S:
                        raise GeneratorError(
                            f"The traffic generator did not end a trial of {longest_s:g} s in {elapsed:.0f} s."
                        )
        finally:
            self._stop(1)
            # However long it takes: what comes after this frees the memory that the kernel works on.
            for thread in threads:
                if thread.ident is not None:
                    thread.ended.wait()
            wiring.stop()
        for thread in threads:
            thread.check("The traffic generator")
        wiring.check()

    def _stop(self, stop: int) -> None:
        for part in self.parts:
            part.state.stop = stop


def _numbers(counters: ctypes.Structure) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return a view of counters as an array; all are integers of 64 bits."""
    return np.frombuffer(memoryview(counters).cast("B"), np.int64)


def _summed(counters: Sequence[ctypes.Structure]) -> ctypes.Structure:
    """Return the counters of several threads as one's."""
    found = lay.Counters()
    _numbers(found)[:] = np.sum([_numbers(each) for each in counters], axis=0)
    for name in _LARGEST_COUNTERS:
        each = [getattr(one, name) for one in counters]
        setattr(found, name, max(each) if isinstance(each[0], int) else type(each[0])(*map(max, *each)))
    return found


class Tables:
    """Memory of connection or flow records that outlives a trial, and is reused while it is large enough."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._bytes = 0
        self.address = 0

    def reserve(self, size: int) -> int:
        """Return the address of `size` bytes."""
        if size > self._bytes:
            self._memory, self.address = zeroed_memory(size)
            self._bytes = size
        return self.address


def prepare(
    wiring: Wiring, tables: Tables, profile: Profile, load: Load, timing: plan.Timing, salt: int,
    records: int | None = None, times_messages: bool = False, most_threads: int = 1,
) -> Run:  # fmt: skip
    """Return a run with the parameters and empty tables of a trial. `salt`: 8 bits that tell its frames from an earlier
    trial's; `records`: connections at once at most, where the load does not say; `times_messages`: whether to measure
    the latency of connections' messages; `most_threads`: threads that may share the trial."""
    whole = plan.parameters(profile, load, timing, cycles_per_second(), salt, wiring.bounded(load))
    wiring.join(whole, profile)
    threads = plan.threads_for(whole, min(most_threads, wiring.most_threads))
    crew = lay.Crew() if threads > 1 else None
    if crew:
        wiring.poll_with(threads)
        whole.crew = ctypes.addressof(crew)
        for port, pollers in zip(whole.ports, wiring.pollers, strict=True):
            port.pollers = ctypes.addressof(pollers)
    whole.times_messages = int(times_messages)
    points_each = int(timing.sustain_s / timing.timeline_step_s) + 1
    parts, points = [], []
    for thread in range(threads):
        part = lay.Run(parameters=whole, point_count=points_each)
        plan.share_out(part.parameters, thread, threads)
        if thread:  # one of them looks at what others did
            part.parameters.link_count = 0
        points.append((lay.Point * points_each)())
        part.points = ctypes.addressof(points[-1])
        parts.append(part)
    payloads = plan.payloads(profile) if isinstance(profile, PacketProfile) else None
    if isinstance(profile, PacketProfile):
        work = _prepare_packets(parts, tables, profile, load.per_s, payloads)
    else:
        work = _prepare_connections(
            parts, tables, profile, load.per_s, records or plan.records_needed(profile, load, threads)
        )
    return Run(work, tuple(parts), tuple(points), (tables, payloads, crew))


def prepare_backlogs(wiring: Wiring, profile: PacketProfile, load: Load, timing: plan.Timing, salt: int) -> Run:
    """Return a run of one backlog after the other, in one thread, as only the DUT's time counts. `load`: the closed
    loop that the backlogs replace."""
    run = prepare(wiring, Tables(), profile, load, timing, salt)
    run.p.under_way = wiring.backlog
    return replace(run, work=kernel().run_backlogs)


def _pace(p: ctypes.Structure, thread: int, threads: int, per_s: float, half_open_per_s: float = 0.0) -> None:
    """Set a thread's pace: all threads together make `per_s`, evenly in turn."""
    hertz = cycles_per_second()
    p.interval = hertz / (per_s / threads) if per_s else math.inf
    p.half_open_interval = hertz / (half_open_per_s / threads) if half_open_per_s else math.inf
    p.first = p.interval * thread / threads if per_s else math.inf


def _prepare_packets(
    parts: Sequence[ctypes.Structure], tables: Tables, profile: PacketProfile, per_s: float, payloads: Any
) -> Callable[[ctypes.Structure], None]:
    sizes = [_whole_lines(part.parameters.tuples * ctypes.sizeof(lay.Flow)) for part in parts]
    at = tables.reserve(sum(sizes))
    ctypes.memset(at, 0, sum(sizes))
    for thread, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        p = part.parameters
        p.records, p.payloads, p.payload_count = at, ctypes.addressof(payloads), len(payloads)
        at += size
        _pace(p, thread, len(parts), per_s / profile.ways)
    return kernel().run_packets


def _prepare_connections(
    parts: Sequence[ctypes.Structure], tables: Tables, profile: ConnectionProfile, per_s: float, records: int
) -> Callable[[ctypes.Structure], None]:
    """Prepare the connection records. `records`: of each thread."""
    size = records * ctypes.sizeof(lay.Connection)
    at = tables.reserve(len(parts) * size)
    for thread, part in enumerate(parts):
        p, s = part.parameters, part.state
        p.records, p.record_count = at + thread * size, records
        _pace(p, thread, len(parts), per_s, profile.half_open_per_s)
        s.waiting_first = s.waiting_last = lay.NOBODY
        s.tuple = s.half_tuple = ((p.salt >> lay.SLOT_BITS) * 7919) % p.tuples
    return kernel().run_connections


def _whole_lines(size: int) -> int:
    """Round a size up to whole cache lines: no two threads write to one line."""
    return -(-size // LINE) * LINE


def failed_of(counts: ctypes.Structure) -> dict[str, int]:
    """Return the failures by cause, without causes that did not occur."""
    return {name: count for name, count in zip(lay.CAUSES, counts.failed, strict=True) if count}


def trial_of(run: Run, wiring: Wiring, profile: Profile, load: Load, timing: plan.Timing, started: float) -> Trial:
    """Return the trial of a run that has ended, all directions added. `started`: by `time.perf_counter`."""
    run = run.summed()
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    sustain = run.counted()
    counted: dict[str, Any] = {name: sum(getattr(counts, name)) for name in ("intended", "attempted", "completed")}
    if isinstance(profile, PacketProfile):
        counted |= _of_packets(run, profile)
    else:
        counted |= _of_connections(run, sustain)
    attempted, ended_after_s = counted["attempted"], s.ended_after / hertz or None
    counted_s = ended_after_s or timing.sustain_s
    trial = Trial.of(
        traffic(sustain), traffic(counts),
        load=attempted / counted_s if p.under_way else load.per_s,
        under_way=p.under_way,
        duration_s=timing.sustain_s,
        ended_after_s=ended_after_s,
        ramp_up_s=timing.ramp_up_s + round(s.lag / hertz, 3),
        wall_s=time.perf_counter() - started,
        dut_missed=sustain.dut_missed,
        total_dut_missed=counts.dut_missed,
        total_untaken=s.untaken,
        timeline_step_s=timing.timeline_step_s,
        port_pairs=_of_pairs(profile, counts, p.pairs) if p.pairs > 1 and not p.under_way else [],
        link=wiring.work(s.link_busy, s.link_frames, s.link_refused, counted_s, hertz),
        late_max_ms=1000 * s.late_max / hertz,
        late_ratio=s.late_count / attempted if attempted else 0.0,
        **counted,
    )  # fmt: skip
    limited = ""
    if counts.no_record:
        limited = f"{counts.no_record} connections found no free record: more than {lay.MOST_RECORDS} would be open"
    waited = held_back(s.looks_held, s.looks)
    disturbed = ""
    if wiring.of.has_dut:  # over a cable the generator's own pauses are a part of what is measured
        disturbed = disturbed_by(trial, wiring.client.dropped() + wiring.server.dropped(), wiring.ring_frames)
    return trial.model_copy(
        update={"generator_limited": limited or limited_by(trial) or waited, "generator_disturbed": disturbed}
    )


def _of_pairs(profile: Profile, counts: ctypes.Structure, pairs: int) -> list[PortPair]:
    """Return the counts of each pair of ports. Failed connections of a warm start may have begun before counting."""
    each = zip(counts.pair_begun[:pairs], counts.pair_lost[:pairs], strict=True)
    return [
        PortPair(unit=profile.kind, attempted=begun, completed=min(begun, max(0, begun - lost))) for begun, lost in each
    ]


def _timeline(run: Run) -> dict[str, Any]:
    return clock.timeline_of(run.noted(), run.marks[0].all_completed, cycles_per_second())


def _of_connections(run: Run, sustain: ctypes.Structure) -> dict[str, Any]:
    """Return the fields of a trial that concern connections. `sustain`: the counters of the sustain phase."""
    p, s, counts, hertz = run.p, run.s, run.counts, cycles_per_second()
    found: dict[str, Any] = {"failed": failed_of(counts)}
    if p.under_way:  # those that ended in the sustain phase, well or not
        failed, completed = failed_of(sustain), sustain.all_completed
        ended = completed + sum(failed.values())
        found = {"failed": failed, "completed": completed, "intended": ended, "attempted": ended}
    elif p.population:  # most of those that began in it live on
        # Where it ended early, those that met a full ring had no time to fail.
        lost = max(sum(found["failed"].values()), counts.counted_missed if s.ended_after else 0)
        found["completed"] = max(0, sum(counts.attempted) - lost)
    return found | _timeline(run) | {
        "established": int(counts.tcp_established + counts.udp_established),
        "unexpected": _named(counts, _STRANGERS),
        "half_open": {name: getattr(sustain, f"half_{name}") for name in _HALF_OPEN if p.half_open},
        "active_mean": s.active_sum / s.active_samples if s.active_samples else 0.0,
        "active_max": s.active_max,
        **clock.times_of(run.times, counts, hertz),
        "latency_us": clock.latencies_of(run.times, counts, hertz),
    }  # fmt: skip


def _of_packets(run: Run, profile: PacketProfile) -> dict[str, Any]:
    """Return the fields of a trial that concern packets."""
    counts, latencies = run.counts, clock.latencies_of(run.times, run.counts, cycles_per_second())
    timeline = _timeline(run)
    return {
        "unit": "packets",
        "fragments": profile.fragments,
        "failed": failed_of(counts),
        "unexpected": _named(counts, {"foreign": "foreign", "unknown_packet": "unknown", "doubled": "doubled"}),
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


def _named(counts: ctypes.Structure, names: Mapping[str, str]) -> dict[str, int]:
    """Return the counters by name, without those that are 0."""
    return {name: getattr(counts, field) for name, field in names.items() if getattr(counts, field)}


def traffic(counts: ctypes.Structure) -> Traffic:
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
    """Return why the generator limited a closed loop; empty where it did not. `held`: how many of the `looks` at the
    generator's own receive rings found most of what was under way there."""
    if looks and held > HELD_LIMIT * looks:
        return f"in {100 * held / looks:.0f} % of the time most of what was under way waited for the generator itself"
    return ""


def limited_by(trial: Trial) -> str:
    """Return why the generator limited the trial; empty where it did not."""
    late = f"up to {trial.late_max_ms:.1f} ms"
    if trial.attempted < trial.intended * ATTEMPTED_LIMIT:
        return f"{trial.attempted} of {trial.intended} {trial.unit} were begun in time ({late} late)"
    if trial.late_ratio > LATE_RATIO_LIMIT and trial.late_max_ms > LATEST_SHARE * trial.duration_s * 1000:
        return f"{100 * trial.late_ratio:.1f} % of the {trial.unit} began late, {late}"
    return ""


def disturbed_by(trial: Trial, dropped: int, ring_frames: int) -> str:
    """Return how the generator may have caused the losses, or could have caused some; empty where it did nothing of the
    kind.

    `dropped`: frames that came back and found the generator's receive rings full; `ring_frames`: frames that a port's
    rings towards the DUT hold. Losses above twice `dropped`, or above what came too fast, have other causes.
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

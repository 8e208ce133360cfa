"""One trial with a packet profile: prepares the tables, runs the kernel function, reads the counts."""

import ctypes

import numpy as np

from ctbench.base.network import FCS_BYTES
from ctbench.traffic.generator import Direction, Trial
from ctbench.traffic.loads import Idle, Load, Saturation
from ctbench.traffic.profiles import IMIX, PROBE_HEADERS, PacketProfile
from ctbench.traffic.software import clock, plan, stream_kernel
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.engine import Run, Tables, common_trial_of, named
from ctbench.traffic.software.plan import Timing, common_parameters, pattern_sum
from ctbench.traffic.software.wiring import Wiring

#: The rate climbs to the offered load in this time.
RAMP_S = 0.1
#: At the full rate, before counting; and long enough for every flow to have been sent once.
SETTLE_S = 0.1
_FLOW_PASS = 1.1
#: A closed loop counts after this long, and longer where the flows take longer at a speed that is usual: how fast it
#: will go is not known before. But for no more than so long: the first packets of the last of a million flows count.
LOOP_SETTLE_S = 0.2
LOOP_PPS = 500_000.0
LONGEST_LOOP_SETTLE_S = 1.0
#: A closed loop takes packets for lost that do not come within one to two times this; where none comes at all, after
#: the longer time. What is under way fits the rings, which take some ten milliseconds to empty.
LOST_AFTER_S = 0.02
SILENCE_S = 0.2
#: After the last packet was sent, at most. The DUT's queues hold some ten milliseconds.
LINGER_S = 0.2


def timing_of(profile: PacketProfile, load: Load, duration_s: float) -> Timing:
    """Every flow is known to the DUT before anything counts: creating its state is another measurement."""
    if isinstance(load, Idle):
        return Timing(0.0, 0.0, duration_s, 0.0)
    packets = profile.flows * profile.ways
    if isinstance(load, Saturation):
        settle_s = min(LONGEST_LOOP_SETTLE_S, max(LOOP_SETTLE_S, _FLOW_PASS * packets / LOOP_PPS))
        return Timing(0.0, settle_s, duration_s, LINGER_S)
    settle_s = max(SETTLE_S, _FLOW_PASS * packets / plan.per_second(load))
    return Timing(RAMP_S, settle_s, duration_s, LINGER_S)


def frame_sizes(profile: PacketProfile) -> tuple[int, ...]:
    """Bytes of the frames with FCS, in the order in which they are sent; those of a mix are spread evenly."""
    if profile.frame_bytes != "imix":
        return (profile.frame_bytes,)
    return tuple(size for _, size in sorted((place / share, size) for size, share in IMIX for place in range(share)))


def payloads(profile: PacketProfile) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Payload bytes, and the sum of the pattern in it, of each frame in turn."""
    sizes = [size - FCS_BYTES - PROBE_HEADERS[profile.ip_version] for size in frame_sizes(profile)]
    return np.array(
        [(size, pattern_sum(stream_kernel.PATTERN, size - stream_kernel.FILLER)) for size in sizes], np.int64
    )


def prepare(wiring: Wiring, tables: Tables, profile: PacketProfile, load: Load, timing: plan.Timing, salt: int) -> Run:
    """Parameters and empty tables for a trial. Arguments: see `engine.prepare`."""
    hertz = cycles_per_second()
    size = profile.flows * stream_kernel.RECORD_BYTES
    tables.reserve(size)
    ctypes.memset(tables.address, 0, size)
    p = common_parameters(profile, timing, hertz, profile.flows, profile.flow_order == "random")
    sizes = payloads(profile)
    for place, value in {
        lay.RECORDS: tables.address,
        lay.SIZE_COUNT: len(sizes),
        lay.VLAN: profile.vlan or -1,
        lay.DIRECTIONS: profile.ways,
        lay.SALT: (salt << stream_kernel.FLOW_BITS) & 0xFFFFFFFF,
        lay.UNDER_WAY: wiring.bounded(load),
        lay.LOST_AFTER: LOST_AFTER_S * hertz,
        lay.SILENCE: SILENCE_S * hertz,
        lay.MOST_LOST: plan.most_lost_of(load),
    }.items():
        p[place] = value
    intervals = plan.intervals(plan.per_second(load) / profile.ways, hertz)
    return Run.of(stream_kernel.run, p, wiring, tables, profile, timing, intervals, sizes)


def trial_of(
    run: Run, wiring: Wiring, profile: PacketProfile, load: Load, timing: plan.Timing, started: float
) -> Trial:
    """What a run that is over says of a load of packets, all directions added. `started`: by `time.perf_counter`."""
    hertz, counts, points = cycles_per_second(), run.counts, run.points[: int(run.s[lay.POINTS])]
    timeline = clock.timeline_of(points, int(run.marks[0][lay.ALL_COMPLETED]), hertz)
    latencies = clock.latencies_of(run.times, counts, hertz)
    return common_trial_of(
        run, wiring, load, timing, started,
        unit="packets",
        failed=named(counts, lay.CAUSE_PLACES),
        unexpected=named(counts, {"foreign": lay.FOREIGN, "unknown_packet": lay.UNKNOWN}),
        timeline_active=timeline["timeline_active"],
        timeline_completed=timeline["timeline_completed"],
        directions={
            side: Direction(
                intended=int(counts[lay.INTENDED + port]),
                attempted=int(counts[lay.ATTEMPTED + port]),
                received=int(counts[lay.COMPLETED + port]),
                reordered=int(counts[lay.REORDERED + port]),
                latency_us=latencies.get(side),
            )
            for port, side in enumerate(lay.SIDES[: profile.ways])
        },
    )  # fmt: skip

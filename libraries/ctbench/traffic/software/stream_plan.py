"""From a packet profile and an offered load to the parameters of the kernel function."""

import numpy as np

from ctbench.base.ethernet import FCS_BYTES
from ctbench.traffic.addresses import last_word
from ctbench.traffic.loads import Idle, Load, Saturation
from ctbench.traffic.profiles import IMIX, PacketProfile, probe_headers
from ctbench.traffic.software import early_end, pacing
from ctbench.traffic.software import stream_frames as sf
from ctbench.traffic.software import stream_layout as lay
from ctbench.traffic.software.ipv6_header import HEADER_BYTES, SHIFT
from ctbench.traffic.software.order import mask_and_shift
from ctbench.traffic.software.plan import LATE_LIMIT_S, Parameters, Timing, pattern_sum, per_second, timeline_step_s
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
        return Timing.idle(duration_s)
    packets = profile.flows * profile.ways
    if isinstance(load, Saturation):
        settle_s = min(LONGEST_LOOP_SETTLE_S, max(LOOP_SETTLE_S, _FLOW_PASS * packets / LOOP_PPS))
        return Timing(0.0, settle_s, duration_s, LINGER_S, timeline_step_s(duration_s))
    first_pass = packets / per_second(load)
    return Timing(
        ramp_s=RAMP_S,
        settle_s=max(SETTLE_S, _FLOW_PASS * first_pass),
        sustain_s=duration_s,
        linger_s=LINGER_S,
        timeline_step_s=timeline_step_s(duration_s),
    )


def frame_sizes(profile: PacketProfile) -> tuple[int, ...]:
    """Bytes of the frames with FCS, in the order in which they are sent; those of a mix are spread evenly."""
    if profile.frame_bytes != "imix":
        return (profile.frame_bytes,)
    length = sum(share for _, share in IMIX)
    slots = [(place / share, size) for size, share in IMIX for place in range(share)]
    order = tuple(size for _, size in sorted(slots))
    assert len(order) == length
    return order


def payloads(profile: PacketProfile) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Payload bytes, and the sum of the pattern in it, of each frame in turn."""
    sizes = [size - FCS_BYTES - probe_headers(profile.ip_version) for size in frame_sizes(profile)]
    return np.array([(size, pattern_sum(sf.PATTERN, size - sf.FILLER)) for size in sizes], np.int64)


def parameters(
    profile: PacketProfile, timing: Timing, wiring: Wiring, *, hertz: float, salt: int, records: int, headers: int,
    under_way: int = 0, most_lost: int = 0,
) -> Parameters:  # fmt: skip
    """The kernel function's parameters. `hertz`: of the cycle counter; `records`: address of zeroed memory for the
    flows; `headers`: address of both ends' Ethernet addresses; `under_way`: packets at once in a closed loop;
    `most_lost`: as `plan.most_lost_of` says."""
    p = np.zeros(lay.PARAMETERS, dtype=np.int64)
    mask, shift = mask_and_shift(profile.flows)
    for place, value in {
        lay.MACS: headers,
        lay.MACS + 1: headers + HEADER_BYTES,
        lay.TX: wiring.client.tx.ctypes.data,
        lay.TX + 1: wiring.server.tx.ctypes.data,
        lay.RX: wiring.client.rx.ctypes.data,
        lay.RX + 1: wiring.server.rx.ctypes.data,
        lay.RX_RINGS: len(wiring.client.rx),
        lay.RX_RINGS + 1: len(wiring.server.rx),
        lay.QUEUES: len(wiring.client.tx),
        lay.IP_SHIFT: SHIFT if profile.ip_version == 6 else 0,
        lay.CLIENT_IP: last_word(profile.client_ip),
        lay.CLIENT_IPS: profile.client_ips,
        lay.SERVER_IP: last_word(profile.server_ip),
        lay.SERVER_IPS: profile.server_ips,
        lay.PORT_MIN: profile.client_port_min,
        lay.UDP_PORT: profile.udp_port,
        lay.FLOWS: profile.flows,
        lay.RANDOM: int(profile.flow_order == "random"),
        lay.MASK: mask,
        lay.SHIFT: shift,
        lay.RECORDS: records,
        lay.SIZE_COUNT: len(frame_sizes(profile)),
        lay.VLAN: profile.vlan or -1,
        lay.DIRECTIONS: profile.ways,
        lay.SALT: (salt << lay.FLOW_BITS) & 0xFFFFFFFF,
        lay.RAMP: timing.ramp_s * hertz,
        lay.SETTLE: timing.settle_s * hertz,
        lay.SUSTAIN: timing.sustain_s * hertz,
        lay.LINGER: timing.linger_s * hertz,
        lay.UNDER_WAY: under_way,
        lay.LOST_AFTER: LOST_AFTER_S * hertz,
        lay.SILENCE: SILENCE_S * hertz,
        lay.TIMELINE_STEP: timing.timeline_step_s * hertz,
        lay.LATE_LIMIT: LATE_LIMIT_S * hertz,
        lay.SLACK: pacing.SLACK_S * hertz,
        lay.LATEST: pacing.LATEST_S * hertz,
        lay.MOST_LOST: most_lost,
        lay.EARLIEST: early_end.EARLIEST_S * hertz,
        lay.LEAST_SAVED: early_end.LEAST_SAVED_S * hertz,
    }.items():
        p[place] = value
    p[lay.NEXT_HOP], p[lay.NEXT_HOP + 1] = wiring.next_hops()
    if wiring.link:
        p[lay.LINK], p[lay.LINK_THREADS] = wiring.link.counters.ctypes.data, len(wiring.link.counters)
    return p

"""From a packet profile and an offered load to the parameters of the kernel function."""

import ipaddress

import numpy as np

from ctbench.base.ethernet import FCS_BYTES
from ctbench.traffic.profiles import IMIX, PacketProfile
from ctbench.traffic.software import stream_frames as sf
from ctbench.traffic.software import stream_layout as lay
from ctbench.traffic.software.order import mask_and_shift
from ctbench.traffic.software.plan import LATE_LIMIT_S, Parameters, Timing, pattern_sum, timeline_step_s
from ctbench.traffic.software.wiring import Wiring

#: The rate climbs to the offered load in this time.
RAMP_S = 0.1
#: At the full rate, before counting; and long enough for every flow to have been sent once.
SETTLE_S = 0.1
_FLOW_PASS = 1.1
#: After the last packet was sent, at most. The DUT's queues hold some ten milliseconds.
LINGER_S = 0.2
#: Ethernet, IPv4 and UDP headers.
_HEADERS = 42


def timing_of(profile: PacketProfile, load: float, duration_s: float) -> Timing:
    """Every flow is known to the DUT before anything counts: creating its state is another measurement."""
    if not load:
        return Timing.idle(duration_s)
    first_pass = profile.flows * directions(profile) / load
    return Timing(
        ramp_s=RAMP_S,
        settle_s=max(SETTLE_S, _FLOW_PASS * first_pass),
        sustain_s=duration_s,
        linger_s=LINGER_S,
        timeline_step_s=timeline_step_s(duration_s),
    )


def directions(profile: PacketProfile) -> int:
    """How many ways packets go."""
    return 2 if profile.directions == "both" else 1


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
    sizes = [size - FCS_BYTES - _HEADERS for size in frame_sizes(profile)]
    return np.array([(size, pattern_sum(sf.PATTERN, size - sf.FILLER)) for size in sizes], np.int64)


def parameters(
    profile: PacketProfile, timing: Timing, wiring: Wiring, *, hertz: float, salt: int, records: int, headers: int
) -> Parameters:
    """The kernel function's parameters. `hertz`: of the cycle counter; `records`: address of zeroed memory for the
    flows; `headers`: address of both ends' Ethernet addresses."""
    p = np.zeros(lay.PARAMETERS, dtype=np.int64)
    mask, shift = mask_and_shift(profile.flows)
    for place, value in {
        lay.MACS: headers,
        lay.MACS + 1: headers + 16,
        lay.TX: wiring.client.tx.ctypes.data,
        lay.TX + 1: wiring.server.tx.ctypes.data,
        lay.RX: wiring.client.rx.ctypes.data,
        lay.RX + 1: wiring.server.rx.ctypes.data,
        lay.RX_RINGS: len(wiring.client.rx),
        lay.RX_RINGS + 1: len(wiring.server.rx),
        lay.QUEUES: len(wiring.client.tx),
        lay.CLIENT_IP: int(ipaddress.IPv4Address(profile.client_ip)),
        lay.CLIENT_IPS: profile.client_ips,
        lay.SERVER_IP: int(ipaddress.IPv4Address(profile.server_ip)),
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
        lay.DIRECTIONS: directions(profile),
        lay.SALT: (salt << lay.FLOW_BITS) & 0xFFFFFFFF,
        lay.RAMP: timing.ramp_s * hertz,
        lay.SETTLE: timing.settle_s * hertz,
        lay.SUSTAIN: timing.sustain_s * hertz,
        lay.LINGER: timing.linger_s * hertz,
        lay.TIMELINE_STEP: timing.timeline_step_s * hertz,
        lay.LATE_LIMIT: LATE_LIMIT_S * hertz,
    }.items():
        p[place] = value
    p[lay.NEXT_HOP], p[lay.NEXT_HOP + 1] = wiring.next_hops()
    if wiring.link:
        p[lay.LINK], p[lay.LINK_THREADS] = wiring.link.counters.ctypes.data, len(wiring.link.counters)
    return p

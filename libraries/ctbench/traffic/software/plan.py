"""From a profile and an offered load to the parameters of a kernel function."""

import math
import struct
from dataclasses import dataclass

import numpy as np

from ctbench.base.network import FCS_BYTES
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import IMIX, PROBE_HEADERS, ConnectionProfile, PacketProfile, Profile, last_word
from ctbench.traffic.software import clock, stream_kernel
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import mask_and_shift
from ctbench.traffic.software.frames import IPV6_SHIFT, REPLY_PATTERN, REQUEST_PATTERN
from ctbench.traffic.software.ring import Counts

#: A shorter UDP payload would need padding behind the datagram: Ethernet's least is 60 bytes without FCS.
_LEAST_UDP_PAYLOAD = 18
#: The rate climbs to the offered load in this time; then it is held for a connection's lifetime before it counts.
RAMP_S = 0.2
#: At the full rate, before counting: caches, flow tables and queues settle.
SETTLE_S = 0.3
#: A connection without progress for this long has failed. The DUT's queues hold a few milliseconds.
REPLY_TIMEOUT_S = 0.5
#: A connection that begins later than this after its time began late.
LATE_LIMIT_S = 0.001
#: A closed loop counts after this long: as many connections were served several times by then, or many messages.
LOOP_SETTLE_S = 0.3
#: A closed loop takes a connection for lost when it makes no progress for this long. What is under way fits the rings,
#: so nothing waits longer than they take to empty, some ten milliseconds; a DUT that the machine kept off its CPU does.
LOOP_TIMEOUT_S = 0.1
#: When a closed loop has ended, what is under way gets this long to come back: then it is not a frame of the next
#: trial.
LOOP_LINGER_S = 0.05
#: After that, and at the end of a warm start's trial, connections are open that would go on for ever: nothing more is
#: sent for this long, and what was under way comes back and is counted.
HUSH_S = 0.05
#: Connections that live longer than this start warm: the population of the steady state is opened at once instead of
#: waiting for one lifetime until it has come together.
WARM_ABOVE_S = 1.0
#: The time in which that population is opened at least, but for no more than so many per second in the mean, as the DUT
#: must set them up; and at least so many waits of a server, if they live for so long.
OPENING_S = 0.3
OPENED_PER_S = 100_000.0
OPENING_WAITS = 3
#: After it, before counting.
WARM_SETTLE_S = 0.2

#: The same of packets: how long the rate climbs, and at the full rate before counting; and long enough for every flow
#: to have been sent once.
STREAM_RAMP_S = 0.1
STREAM_SETTLE_S = 0.1
_FLOW_PASS = 1.1
#: A closed loop counts after this long, and longer where the flows take longer at a speed that is usual: how fast it
#: will go is not known before. But for no more than so long: the first packets of the last of a million flows count.
STREAM_LOOP_SETTLE_S = 0.2
LOOP_PPS = 500_000.0
LONGEST_LOOP_SETTLE_S = 1.0
#: A closed loop takes packets for lost that do not come within one to two times this; where none comes at all, after
#: the longer time. What is under way fits the rings, which take some ten milliseconds to empty.
LOST_AFTER_S = 0.02
SILENCE_S = 0.2
#: After the last packet was sent, at most. The DUT's queues hold some ten milliseconds.
STREAM_LINGER_S = 0.2


@dataclass(frozen=True)
class Timing:
    """The phases of a trial, in seconds."""

    ramp_s: float
    settle_s: float
    sustain_s: float
    linger_s: float

    @property
    def timeline_step_s(self) -> float:
        """From one point of the timeline to the next: at most a hundred points."""
        return max(0.05, self.sustain_s / 100)

    @property
    def ramp_up_s(self) -> float:
        return self.ramp_s + self.settle_s

    @property
    def longest_s(self) -> float:
        return (1 + clock.MORE_RAMP_UPS) * self.ramp_up_s + self.sustain_s + self.linger_s


def timing_of(profile: Profile, load: Load, duration_s: float) -> Timing:
    """What lives long needs a ramp-up of one lifetime before the load is the one asked for, or a warm start; and a
    drain of one lifetime where connections are followed to their end, which neither a warm start nor a closed loop
    does. Every flow of packets is known to the DUT before anything counts: creating its state is another
    measurement."""
    if isinstance(profile, PacketProfile):
        packets = _FLOW_PASS * profile.flows * profile.ways
        if isinstance(load, Saturation):
            settle_s = min(LONGEST_LOOP_SETTLE_S, max(STREAM_LOOP_SETTLE_S, packets / LOOP_PPS))
            return Timing(0.0, settle_s, duration_s, STREAM_LINGER_S)
        settle_s = max(STREAM_SETTLE_S, packets / per_second(load))
        return Timing(STREAM_RAMP_S, settle_s, duration_s, STREAM_LINGER_S)
    if isinstance(load, Saturation):
        return Timing(0.0, LOOP_SETTLE_S, duration_s, LOOP_LINGER_S)
    if population := population_of(profile, load):
        wait_s = profile.server_wait_ms / 1000
        settle_s = opening_waits(profile, population) * wait_s + WARM_SETTLE_S
        # What made its last progress at the end of the sustain phase fails by then, and is looked at.
        linger_s = REPLY_TIMEOUT_S + wait_s + LOOP_LINGER_S
        return Timing(0.0, settle_s, duration_s, linger_s)
    linger_s = profile.lifetime_s * 1.1 + 3 * REPLY_TIMEOUT_S
    return Timing(RAMP_S, SETTLE_S + profile.lifetime_s, duration_s, linger_s)


def population_of(profile: ConnectionProfile, load: Load) -> int:
    """Connections that are open in the steady state, where a trial starts in it (see `WARM_ABOVE_S`); else 0."""
    return round(per_second(load) * profile.mean_lifetime_s) if profile.lifetime_s > WARM_ABOVE_S else 0


def opening_waits(profile: ConnectionProfile, population: int) -> int:
    """Waits of a server in which so many connections are opened (see `kernel.open_population`); 0: none is."""
    if not population:
        return 0
    opening_s = max(OPENING_S, population / OPENED_PER_S)
    waits = math.ceil(opening_s * 1000 / profile.server_wait_ms)
    return min(max(OPENING_WAITS, waits), profile.messages)


def pattern_sum(pattern: int, length: int) -> int:
    """The sum of the little-endian 32-bit words of `length` bytes of the pattern, padded with zeros."""
    data = struct.pack("<Q", pattern) * (length // 8 + 1)
    data = data[:length] + bytes(-length % 4)
    return sum(struct.unpack(f"<{len(data) // 4}I", data))


def payloads(profile: PacketProfile) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Payload bytes, and the sum of the pattern in it, of each frame in turn; those of a mix are spread evenly."""
    frames = [profile.frame_bytes]
    if profile.frame_bytes == "imix":
        frames = [size for _, size in sorted((place / share, size) for size, share in IMIX for place in range(share))]
    sizes = [int(size) - FCS_BYTES - PROBE_HEADERS[profile.ip_version] for size in frames]
    sums = [pattern_sum(stream_kernel.PATTERN, size - stream_kernel.FILLER) for size in sizes]
    return np.array([sizes, sums], np.int64).T.copy()


def records_needed(profile: ConnectionProfile, load: Load) -> int:
    """Connection records for the trial: those that live, and those of a DUT that answers none until the timeout.

    At most eight million; a trial that needs more is limited by the generator, and says so.
    """
    most = lay.MOST_RECORDS - (profile.half_open_per_s > 0)  # whose tag has the last number
    if isinstance(load, Saturation):
        return max(4096, min(most, 2 * load.under_way))
    open_at_once = per_second(load) * (profile.mean_lifetime_s + 3 * REPLY_TIMEOUT_S)
    return max(4096, min(most, int(open_at_once * 1.1)))


def per_second(load: Load) -> float:
    """What a load offers on a schedule; 0 without a schedule."""
    return load.per_s if isinstance(load, Rate) else 0.0


def most_lost_of(load: Load) -> int:
    """What may be lost for certain before the trial ends; 0: any number."""
    most = load.most_lost if isinstance(load, Rate) else math.inf
    return max(1, int(most)) if most < math.inf else 0


def intervals(
    per_s: float, hertz: float, half_open_per_s: float = 0.0
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Cycles from one connection (or packet of a direction) to the next, from the start to the first, and from one
    half-open connection to the next; a rate of 0 has no first one. `hertz`: of the cycle counter."""
    first = [hertz / per_s, 0.0] if per_s else [np.inf, np.inf]
    return np.array([*first, hertz / half_open_per_s if half_open_per_s else np.inf])


def parameters(profile: Profile, load: Load, timing: Timing, hertz: float, salt: int, under_way: int = 0) -> Counts:
    """The kernel function's parameters but for the wiring (`Wiring.join`) and the records. `hertz`: of the cycle
    counter; `salt`: tells its frames from an earlier trial's; `under_way`: connections open (packets on their way) at
    once in a closed loop."""
    if isinstance(profile, PacketProfile):
        flows, order, tag_bits = profile.flows, profile.flow_order, stream_kernel.FLOW_BITS
        of_its_kind = {lay.VLAN: profile.vlan or -1, lay.DIRECTIONS: profile.ways}
        of_its_kind[lay.BOTH_OPEN] = int(profile.directions == "each")
    else:
        flows, order, tag_bits = profile.client_endpoints, profile.port_order, lay.SLOT_BITS
        of_its_kind = _of_connections(profile, load, timing, hertz, under_way)
    mask, shift = mask_and_shift(flows)
    seconds = {
        lay.RAMP: timing.ramp_s, lay.SETTLE: timing.settle_s, lay.SUSTAIN: timing.sustain_s,
        lay.LINGER: timing.linger_s, lay.TIMELINE_STEP: timing.timeline_step_s, lay.LATE_LIMIT: LATE_LIMIT_S,
        lay.SLACK: clock.SLACK_S, lay.LATEST: clock.LATEST_S, lay.EARLIEST: clock.EARLIEST_S,
        lay.LEAST_SAVED: clock.LEAST_SAVED_S, lay.LOST_AFTER: LOST_AFTER_S, lay.SILENCE: SILENCE_S,
    }  # fmt: skip
    values = {
        lay.CLIENT_IP: last_word(profile.client_ip), lay.CLIENT_IPS: profile.client_ips,
        lay.SERVER_IP: last_word(profile.server_ip), lay.SERVER_IPS: profile.server_ips,
        lay.PORT_MIN: profile.client_port_min, lay.UDP_PORT: profile.udp_port,
        lay.SHIFT: IPV6_SHIFT if profile.ip_version == 6 else 0, lay.TUPLES: flows, lay.TUPLE_MASK: mask,
        lay.TUPLE_SHIFT: shift, lay.PORT_ORDER_RANDOM: int(order == "random"),
        lay.SALT: (salt << tag_bits) & 0xFFFFFFFF, lay.MOST_LOST: most_lost_of(load), lay.UNDER_WAY: under_way,
    }  # fmt: skip
    p = np.zeros(lay.PARAMETERS, dtype=np.int64)
    for place, value in (values | {at: int(each * hertz) for at, each in seconds.items()} | of_its_kind).items():
        p[place] = value
    return p


def _of_connections(
    profile: ConnectionProfile, load: Load, timing: Timing, hertz: float, under_way: int
) -> dict[int, int]:
    """Those that only connections have. In a closed loop servers do not wait: what is measured is the DUT."""
    population = population_of(profile, load)
    tick_shift = int(hertz / 1000).bit_length() - 1
    timeout_s = LOOP_TIMEOUT_S if under_way else REPLY_TIMEOUT_S + profile.server_wait_ms / 1000
    udp_request = max(profile.request_bytes, _LEAST_UDP_PAYLOAD)
    udp_reply = max(profile.reply_bytes, _LEAST_UDP_PAYLOAD)
    seconds = {
        lay.SERVER_WAIT: 0.0 if under_way else profile.server_wait_ms / 1000,
        lay.SHORT_LINGER: min(timing.linger_s, profile.lifetime_s * 1.1 + clock.EARLY_LINGER_S),
        lay.HUSH: HUSH_S if timing.linger_s else 0.0,
    }
    return {at: int(each * hertz) for at, each in seconds.items()} | {
        lay.REQUEST_BYTES: profile.request_bytes,
        lay.REQUEST_SUM: pattern_sum(REQUEST_PATTERN, profile.request_bytes),
        lay.REPLY_BYTES: profile.reply_bytes,
        lay.REPLY_SUM: pattern_sum(REPLY_PATTERN, profile.reply_bytes),
        lay.UDP_REQUEST_BYTES: udp_request,
        lay.UDP_REQUEST_SUM: pattern_sum(REQUEST_PATTERN, udp_request - 4),
        lay.UDP_REPLY_BYTES: udp_reply,
        lay.UDP_REPLY_SUM: pattern_sum(REPLY_PATTERN, udp_reply - 4),
        lay.MESSAGES: profile.messages,
        lay.SHORT_PER_MILLION: round(profile.short_percent * 10_000),
        lay.SHORT_MESSAGES: profile.short_messages,
        # A server that never waits has nothing to acknowledge before; in a closed loop the packets stay the same.
        lay.ACK_BEFORE_REPLY: int(profile.ack_before_reply and profile.server_wait_ms > 0),
        lay.ENDED_BY: ("client", "server", "reset").index(profile.ended_by),
        lay.HALF_OPEN: int(profile.half_open_per_s > 0),
        lay.UDP_PER_MILLION: round(profile.udp_percent * 10_000),
        lay.PORTS: profile.client_port_max - profile.client_port_min + 1,
        lay.TCP_PORT: profile.tcp_port,
        lay.POPULATION: population,
        lay.OPENING_WAITS: opening_waits(profile, population),
        lay.TICK_SHIFT: tick_shift,
        lay.TIMEOUT_TICKS: int(timeout_s * hertz / (1 << tick_shift)),
    }

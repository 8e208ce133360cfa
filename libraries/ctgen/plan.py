"""The plan of a trial: from a profile and an offered load to the kernel's parameters."""

import ctypes
import math
import struct
from dataclasses import dataclass

from ctgen import clock
from ctgen import layout as lay
from ctgen.clock import mask_and_shift
from ctgen.layout import Parameters, Payload
from ctgen.loads import Load, Rate, Saturation
from ctgen.profiles import FCS_BYTES, IMIX, PROBE_HEADERS, ConnectionProfile, PacketProfile, Profile, last_word

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

_MORE_RAMP_UPS, _FILLER, _REQUEST_FILLER, _REPLY_FILLER, _PACKET_HEADER_BYTES = (
    lay.constants()[name]
    for name in ("MORE_RAMP_UPS", "FILLER", "REQUEST_FILLER", "REPLY_FILLER", "PACKET_HEADER_BYTES")
)


@dataclass(frozen=True)
class Timing:
    """The phases of a trial, in seconds."""

    ramp_s: float
    settle_s: float
    sustain_s: float
    linger_s: float

    @property
    def timeline_step_s(self) -> float:
        """Seconds from one point of the timeline to the next; there are at most a hundred points."""
        return max(0.05, self.sustain_s / 100)

    @property
    def ramp_up_s(self) -> float:
        return self.ramp_s + self.settle_s

    @property
    def longest_s(self) -> float:
        longest_ramp_up_s: float = (1 + _MORE_RAMP_UPS) * self.ramp_up_s
        return longest_ramp_up_s + self.sustain_s + self.linger_s


def timing_of(profile: Profile, load: Load, duration_s: float) -> Timing:
    """Return the phases of a trial. Long-lived connections need a ramp-up of one lifetime until the load is the one
    asked for, or a warm start; and a drain of one lifetime where they are followed to their end, which neither a warm
    start nor a closed loop does. Every flow of packets is known to the DUT before anything counts: creating its state
    is another measurement."""
    if isinstance(profile, PacketProfile):
        packets = _FLOW_PASS * profile.flows * profile.ways
        if isinstance(load, Saturation):
            settle_s = min(LONGEST_LOOP_SETTLE_S, max(STREAM_LOOP_SETTLE_S, packets / LOOP_PPS))
            return Timing(0.0, settle_s, duration_s, STREAM_LINGER_S)
        settle_s = max(STREAM_SETTLE_S, packets / load.per_s)
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


def on_pairs(profile: Profile, pairs: int) -> Profile:
    """Return the profile that is offered to `pairs` pairs of ports together: each pair has all flows of packets."""
    if isinstance(profile, ConnectionProfile) or pairs == 1:
        return profile
    return profile.model_copy(update={"flows": pairs * profile.flows})


def population_of(profile: ConnectionProfile, load: Load) -> int:
    """Return the connections open in the steady state, where a trial starts in it (see `WARM_ABOVE_S`); else 0."""
    return round(load.per_s * profile.mean_lifetime_s) if profile.lifetime_s > WARM_ABOVE_S else 0


def opening_waits(profile: ConnectionProfile, population: int) -> int:
    """Return how many server waits the opening of a population takes (see kernel/population.h); 0 without one."""
    if not population:
        return 0
    opening_s = max(OPENING_S, population / OPENED_PER_S)
    waits = math.ceil(opening_s * 1000 / profile.server_wait_ms)
    return min(max(OPENING_WAITS, waits), profile.messages)


def filler_sum(filler: int, length: int) -> int:
    """Return the sum of the little-endian 32-bit words of `length` bytes with this value, padded with zeros."""
    data = bytes([filler]) * length + bytes(-length % 4)
    return sum(struct.unpack(f"<{len(data) // 4}I", data))


def payloads(profile: PacketProfile) -> "ctypes.Array[ctypes.Structure]":
    """Return the payloads of successive frames; the sizes of a mix are spread evenly."""
    frames = [profile.frame_bytes]
    if profile.frame_bytes == "imix":
        frames = [size for _, size in sorted((place / share, size) for size, share in IMIX for place in range(share))]
    sizes = [int(size) - FCS_BYTES - PROBE_HEADERS[profile.ip_version] for size in frames]
    sums = [filler_sum(_FILLER, size - _PACKET_HEADER_BYTES) for size in sizes]
    return (Payload * len(sizes))(*(Payload(*each) for each in zip(sizes, sums, strict=True)))


def records_needed(profile: ConnectionProfile, load: Load, threads: int = 1) -> int:
    """Return the connection records of each thread: for live connections, and for those that wait for the timeout where
    the DUT answers none.

    All threads have sixteen million at most. A trial that needs more is limited by the generator, and marked so.
    """
    most = lay.MOST_RECORDS // threads - (profile.half_open_per_s > 0)  # whose tag has the last number
    if isinstance(load, Saturation):
        return max(4096, min(most, 2 * load.under_way // threads))
    open_at_once = load.per_s * (profile.mean_lifetime_s + 3 * REPLY_TIMEOUT_S)
    return max(4096, min(most, int(open_at_once * 1.1 / threads)))


def threads_for(p: ctypes.Structure, most: int) -> int:
    """Return the number of threads of a trial: a power of two, `most` at most. Each thread has a part of all that is
    shared out (see `share_out`), and as many rings as any other."""
    threads = 1
    while 2 * threads <= min(most, lay.MOST_THREADS) and p.queues % (2 * threads) == 0:
        threads *= 2
    least = min(count for count in (p.tuples, p.under_way, p.population, lay.MOST_THREADS) if count)
    while threads > least:
        threads //= 2
    return threads


def share_out(p: ctypes.Structure, thread: int, threads: int) -> None:
    """Leave one thread its part of what is numbered: clients (flows), what is under way, connections of a warm start,
    rings. The caller sets the pace."""
    p.thread, p.thread_shift = thread, threads.bit_length() - 1
    for name in ("tuples", "under_way", "population"):
        setattr(p, name, part_of(getattr(p, name), thread, threads))
    p.tuple_mask, p.tuple_shift = mask_and_shift(p.tuples)
    p.queues, p.stride = p.queues // threads, threads
    for port in p.ports:
        port.tx += thread * ctypes.sizeof(lay.Ring)


def part_of(count: int, thread: int, threads: int) -> int:
    """Return how many of `count` are a thread's: every `threads`th, from the thread's own number on."""
    return (count - thread + threads - 1) // threads


def most_lost_of(load: Load) -> int:
    """Return how many may be lost for certain before the trial ends early; 0: any number."""
    most = load.most_lost if isinstance(load, Rate) else math.inf
    return max(1, int(most)) if most < math.inf else 0


def parameters(
    profile: Profile, load: Load, timing: Timing, hertz: float, salt: int, under_way: int = 0
) -> ctypes.Structure:
    """Return the kernel's parameters without the wiring (`Wiring.join`), the pace and the records. `hertz`: the cycle
    counter's rate; `salt`: tells the trial's frames from an earlier trial's; `under_way`: connections open (packets
    under way) at once in a closed loop."""
    p = Parameters(
        port_min=profile.client_port_min, udp_port=profile.udp_port, ipv6=int(profile.ip_version == 6),
        most_lost=most_lost_of(load), under_way=under_way, pairs=1,
    )  # fmt: skip
    for port, address, count in zip(
        p.ports, (profile.client_ip, profile.server_ip), (profile.client_ips, profile.server_ips), strict=True
    ):
        port.address, port.addresses = last_word(address), count
    seconds = {
        "ramp": timing.ramp_s, "settle": timing.settle_s, "sustain": timing.sustain_s, "linger": timing.linger_s,
        "timeline_step": timing.timeline_step_s, "late_limit": LATE_LIMIT_S, "slack": clock.SLACK_S,
        "latest": clock.LATEST_S, "earliest": clock.EARLIEST_S, "least_saved": clock.LEAST_SAVED_S,
        "lost_after": LOST_AFTER_S, "silence": SILENCE_S,
    }  # fmt: skip
    if isinstance(profile, PacketProfile):
        p.tuples, order, tag_bits = profile.flows, profile.flow_order, lay.FLOW_BITS
        p.vlan, p.directions, p.both_open = profile.vlan or -1, profile.ways, int(profile.directions == "each")
        p.fragments, p.under_way = profile.fragments, -(-under_way // profile.fragments)
    else:
        p.tuples, order, tag_bits = profile.client_endpoints, profile.port_order, lay.SLOT_BITS
        seconds |= _of_connections(p, profile, load, timing, hertz)
    p.tuple_mask, p.tuple_shift = mask_and_shift(p.tuples)
    p.stride = 1
    p.random_order, p.salt = int(order == "random"), (salt << tag_bits) & 0xFFFFFFFF
    for name, each in seconds.items():
        setattr(p, name, int(each * hertz))
    return p


def _of_connections(
    p: ctypes.Structure, profile: ConnectionProfile, load: Load, timing: Timing, hertz: float
) -> dict[str, float]:
    """Set the parameters of connections, and return those in seconds. Servers do not wait in a closed loop, which
    measures the DUT."""
    in_loop = p.under_way > 0
    p.request_bytes, p.reply_bytes = profile.request_bytes, profile.reply_bytes
    p.request_sum, p.reply_sum = filler_sum(_REQUEST_FILLER, p.request_bytes), filler_sum(_REPLY_FILLER, p.reply_bytes)
    p.udp_request_bytes = max(profile.request_bytes, _LEAST_UDP_PAYLOAD)
    p.udp_reply_bytes = max(profile.reply_bytes, _LEAST_UDP_PAYLOAD)
    p.udp_request_sum = filler_sum(_REQUEST_FILLER, p.udp_request_bytes - 4)
    p.udp_reply_sum = filler_sum(_REPLY_FILLER, p.udp_reply_bytes - 4)
    p.messages, p.short_messages = profile.messages, profile.short_messages
    p.short_per_million, p.udp_per_million = (
        round(percent * 10_000) for percent in (profile.short_percent, profile.udp_percent)
    )
    # A server that never waits has nothing to acknowledge before; in a closed loop the packets stay the same.
    p.ack_before_reply = int(profile.ack_before_reply and profile.server_wait_ms > 0)
    p.at_once = profile.at_once
    p.ended_by = lay.ENDED_BY[profile.ended_by]
    p.half_open = int(profile.half_open_per_s > 0)
    p.port_count = profile.client_port_max - profile.client_port_min + 1
    p.tcp_port = profile.tcp_port
    p.population = population_of(profile, load)
    p.opening_waits = opening_waits(profile, p.population)
    p.tick_shift = int(hertz / 1000).bit_length() - 1
    timeout_s = LOOP_TIMEOUT_S if in_loop else REPLY_TIMEOUT_S + profile.server_wait_ms / 1000
    p.timeout_ticks = int(timeout_s * hertz / (1 << p.tick_shift))
    return {
        "server_wait": 0.0 if in_loop else profile.server_wait_ms / 1000,
        "short_linger": min(timing.linger_s, profile.lifetime_s * 1.1 + clock.EARLY_LINGER_S),
        "hush": HUSH_S if timing.linger_s else 0.0,
    }

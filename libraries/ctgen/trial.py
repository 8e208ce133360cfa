"""The results of an offered load: counts, never opinions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ctgen.profiles import Profile

#: No count, rate or time of a trial is larger: it would take a terabit link a year.
MOST = 10**18
Count = Annotated[int, Field(ge=0, le=MOST)]
#: A difference of counters, which two readings may make negative.
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
#: A rate, a time, a ratio.
Amount = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Real = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]

#: What a profile's load counts per second.
LoadUnit = Literal["connections", "packets"]
#: Fewer sent, or begun, than this share of what was due: the generator did not keep the pace.
ATTEMPTED_LIMIT = 0.9998


class FrozenCounts(BaseModel):
    """Counts, which do not change afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Times(FrozenCounts):
    """Times in the sustain phase, in microseconds: percentiles, and the longest. Those of the software generator are
    never below the time itself, and at most 1/32 above it."""

    p50: Amount
    #: None: the generator does not tell, or the record is of before December 2026.
    p90: Amount | None = None
    #: None: of too few, one of which would decide.
    p99: Amount | None = None
    p999: Amount | None = None
    max: Amount

    @property
    def slowest(self) -> float:
        """The figure that tells the slower of two directions: p99, or the longest time where there are few."""
        return self.max if self.p99 is None else self.p99


class Latency(Times):
    """One-way latency through the DUT (RFC 1242 section 3.8), from the moment a frame is written to the moment it is
    taken, the generator's own polling included. It is measured on a packet profile's packets, or on the segments and
    datagrams that carry the messages of connections."""

    #: Mean difference between successive packets of the direction (RFC 4689 section 3.2.5, its stream being the
    #: direction; RFC 3393 calls the single difference IPDV).
    jitter: Amount


class UdpLatency(FrozenCounts):
    """Mean latency through the DUT of UDP messages among connections, microseconds: from the client to the server, and
    there and back; None where none came back."""

    one_way_us: Amount
    round_trip_us: Amount | None


class Transport(FrozenCounts):
    """Counts of the generator's own TCP, where that retransmits lost packets: from the beginning of the sustain phase
    until nothing was under way."""

    #: Packets that both ends sent, and those of them that they sent again.
    sent: Count
    sent_again: Count
    #: Connections that it told of one by one, a few per second, as they came. Packets that one of them sent again, at
    #: most. Their smoothed round-trip time (RFC 6298), microseconds, in the median and at most; None without any.
    sampled: Count = 0
    most_sent_again: Count = 0
    rtt_p50_us: Amount | None = None
    rtt_max_us: Amount | None = None


class Direction(FrozenCounts):
    """The packets of one direction that were due in the sustain phase, followed to their arrival or the trial's end."""

    #: Packets that the offered load asked for, that were written, that came out.
    intended: Count
    attempted: Count
    received: Count
    #: Packets that came out after one that was sent later (RFC 4737).
    reordered: Count
    latency_us: Latency | None

    @property
    def loss_ratio(self) -> float:
        """1 - received/intended. 1.0 when nothing was intended."""
        return (self.intended - self.received) / self.intended if self.intended else 1.0


class PortPair(FrozenCounts):
    """The connections (packets) of one pair of ports: those begun (written) in the sustain phase, and those of them
    that ended well (came out)."""

    #: What is counted: of a generator that does not tell connections by their ports, packets of the whole trial.
    unit: LoadUnit = "connections"
    attempted: Count
    completed: Count

    @property
    def lost(self) -> int:
        return self.attempted - self.completed

    @property
    def loss_ratio(self) -> float:
        return self.lost / self.attempted if self.attempted else 1.0


class LinkWork(FrozenCounts):
    """The work in the sustain phase of the link threads, which hand frames to the DUT's interfaces (local testbed,
    Linux as DUT). The kernel receives, forwards and delivers in their time, so this is the DUT's work."""

    #: CPUs' worth of work: 1.0 is one CPU that never waits.
    busy_cpus: Real
    #: Frames handed over, and those of them that the interface refused.
    packets: Whole
    refused: Whole
    #: Time for one frame, with the hand-over itself.
    ns_per_packet: Real
    #: Share of the trial in which a thread waited for its CPU, which others had; the most of any thread.
    waiting: Real = 0.0


#: `tx_packets`, `rx_packets`, `tx_bytes` and `rx_bytes`, each by the generator's port, `client` and `server`.
Traffic = Mapping[str, dict[str, int]]


class Trial(FrozenCounts):
    """One offered load held for one duration. Counts are of connections begun (packets due) in the sustain phase,
    followed to their end or their timeout; packet counts are of the sustain phase itself.

    A generator may start long-lived connections in their steady state and not follow them to their end. Then `failed`
    are those of all open connections whose last progress fell into the sustain phase, and `completed` is `attempted`
    less them."""

    #: What `load`, `intended`, `attempted` and `completed` count.
    unit: LoadUnit = "connections"
    #: Offered rate asked for, connections (or packets, all directions added) per second.
    load: Amount
    #: Connections open (packets under way) at once in a closed loop, whose `load` is what ended, well or not, and whose
    #: counts of connections are of those that ended in the sustain phase; 0: an open loop.
    under_way: Count = 0
    #: Length of the sustain phase asked for, seconds.
    duration_s: Annotated[float, Field(ge=1e-6, le=MOST)]
    #: Seconds of the sustain phase after which the trial was ended because it was lost by then; None: it was not. All
    #: counts are of that part.
    ended_after_s: Annotated[float, Field(ge=1e-6, le=MOST)] | None = None
    #: Length of the ramp-up before it, seconds.
    ramp_up_s: Amount
    #: Length of the whole trial by the wall clock, flushes and waiting included, seconds.
    wall_s: Amount
    #: Connections (packets) that the offered load asked for in the sustain phase.
    intended: Count
    #: Connections whose first packet was made (handed to the DUT's ring or lost at it); packets that were written.
    attempted: Count
    #: Connections whose handshake ended (UDP: first reply seen). 0 for packets.
    established: Count = 0
    #: Connections that did everything the profile says and closed; packets that came out.
    completed: Count
    #: Connections that did not, by cause: `no_syn_ack`, `no_reply`, `no_fin`, `no_last_ack`, `reset`, `bad_checksum`.
    failed: dict[str, Whole] = Field(default_factory=dict)
    #: Packets and bytes (Ethernet frame without FCS) handed to the DUT and received from it in the sustain
    #: phase; keys `client` and `server` name the generator's port.
    tx_packets: dict[str, Count]
    rx_packets: dict[str, Count]
    tx_bytes: dict[str, Count]
    rx_bytes: dict[str, Count]
    #: The same over the whole trial, ramps included, to compare with the DUT's own counters.
    total_tx_packets: dict[str, Count]
    total_rx_packets: dict[str, Count]
    #: Frames of each packet.
    fragments: Annotated[int, Field(ge=1, le=MOST)] = 1
    #: Packets that met a full ring of the DUT (what a NIC calls imissed), in the sustain phase and in all.
    dut_missed: Whole = 0
    total_dut_missed: Whole = 0
    #: Packets that were handed to the DUT and stood on its rings, not taken, when the trial was over: it may send them
    #: later, when the generator takes none any more.
    total_untaken: Whole = 0
    #: Frames that came back and belong to no connection, or are broken, by name.
    unexpected: dict[str, Whole] = Field(default_factory=dict)
    #: Half-open connections begun next to the load in the sustain phase, of which nothing else here tells: SYNs `sent`,
    #: `missed` by the DUT's full ring, `passed` to the server, and `answered`: its SYN-ACK came back.
    half_open: dict[str, Whole] = Field(default_factory=dict)
    #: Connections open at the same time, in the mean and at most, over the sustain phase.
    active_mean: Real = 0
    active_max: Whole = 0
    #: A point of the trial each `timeline_step_s`: connections open (packets on their way), and completed (received)
    #: since the last point.
    timeline_step_s: Amount = 0
    timeline_active: list[Whole] = Field(default_factory=list)
    timeline_completed: list[Whole] = Field(default_factory=list)
    #: TCP connect time in the step up to each point, microseconds, in the mean and at most, of the connections that
    #: `connect_time_us` is about; None where none was set up. Empty where the generator does not tell.
    timeline_connect_mean_us: list[Amount | None] = Field(default_factory=list)
    timeline_connect_max_us: list[Amount | None] = Field(default_factory=list)
    #: Of TCP connections begun in the sustain phase, from the SYN on, as the client sees them. To the SYN-ACK: the
    #: connection establishment time of RFC 2647 section 3.9. To the first reply and to the last one, with what the
    #: server waits: RFC 9411's times to first and last byte, of the connections whose messages are not timed.
    connect_time_us: Times | None = None
    first_byte_us: Times | None = None
    last_byte_us: Times | None = None
    #: Connections: of messages that arrived in the sustain phase, whenever their connection began (the generator may
    #: choose some evenly), by the port of the generator that sends. Empty where the generator does not tell.
    latency_us: Mapping[str, Latency] = Field(default_factory=dict)
    #: Of messages that the generator sends next to the connections, for their latency alone; None where it sends none.
    udp_latency: UdpLatency | None = None
    #: As `latency_us`, of ICMP packets of one flow that it sends next to them.
    icmp_latency_us: Mapping[str, Latency] = Field(default_factory=dict)
    #: Connections over TCP, where the generator sends again what gets lost; None where it does not.
    transport: Transport | None = None
    #: Packet profiles: each direction by the generator's port that sends, `client` or `server`.
    directions: Mapping[str, Direction] = Field(default_factory=dict)
    #: Of several pairs of ports, each in the order of the testbed file; of loads on a schedule only.
    port_pairs: list[PortPair] = Field(default_factory=list)
    #: Where threads of the testbed carry frames into a DUT in the kernel.
    link: LinkWork | None = None
    #: How late the generator ran against its schedule at worst, ms, and share of time it was late by more than 1 ms.
    late_max_ms: Real = 0
    late_ratio: Real = 0
    #: Why the generator, not the DUT, limited this trial; empty when it did not.
    generator_limited: str = ""
    #: What of the generator may have cost the packets that were lost: a pause, its own rings. Empty where nothing did.
    #: Where nothing was lost, it says nothing.
    generator_disturbed: str = ""

    @classmethod
    def of(cls, traffic: Traffic, total: Traffic | None = None, **counted: Any) -> Self:
        """Return a trial. `traffic`: packets and bytes in the sustain phase; `total`: in the whole trial (None: the
        same); `counted`: all other fields."""
        whole = total or traffic
        ends = {"total_tx_packets": whole["tx_packets"], "total_rx_packets": whole["rx_packets"]}
        return cls(**traffic, **ends, **counted)

    @classmethod
    def uncounted(cls, why: str, *, load: float, duration_s: float, **known: Any) -> Self:
        """Return a trial without counts, where those that the generator reports are impossible. `why`: the reason."""
        nothing = dict.fromkeys(("client", "server"), 0)
        traffic = {f"{way}_{what}": nothing for way in ("tx", "rx") for what in ("packets", "bytes")}
        intended = round(load * duration_s)
        return cls.of(
            traffic, load=load, duration_s=duration_s, intended=intended, attempted=0, completed=0,
            generator_limited=why, **known,
        )  # fmt: skip

    @property
    def counted_s(self) -> float:
        """Actual length of the sustain phase, seconds."""
        return self.ended_after_s or self.duration_s

    @property
    def loss_ratio(self) -> float:
        """1 - completed/intended. What was never sent is lost too. 1.0 when nothing was intended."""
        return (self.intended - self.completed) / self.intended if self.intended else 1.0

    @property
    def rate(self) -> float:
        """Completed connections (received packets) per second."""
        return self.completed / self.counted_s

    @property
    def packets_sent(self) -> int:
        """Packets sent. Of a packet profile, the packets intended; of connections, the packets that either end sent in
        the whole trial, ramps included, with those that met a full ring of the DUT."""
        if self.unit == "packets":
            return self.intended
        return sum(self.total_tx_packets.values()) + self.total_dut_missed

    @property
    def packets_lost(self) -> int:
        """Packets sent that never came out. Of connections, this is known of the whole trial only, at whose end nothing
        is under way. Frames that neither end sent do not count as received."""
        if self.unit == "packets":
            return self.intended - self.completed
        received = sum(self.total_rx_packets.values()) - self.unexpected.get("foreign", 0)
        return max(0, self.packets_sent - received)

    @property
    def forwarded_rate(self) -> float:
        """Connections that ended well (packets that came out) per second of the sustain phase, without later ones and
        without failed ones."""
        if self.under_way:
            return self.service_rate
        if self.unit == "packets":
            return min(self.rate, self.pps / self.fragments)
        return min(self.rate, self.service_rate) if self.timeline_completed else self.rate

    @property
    def service_rate(self) -> float:
        """Completed connections (received packets) per second of the sustain phase, whenever they began."""
        return sum(self.timeline_completed) / (len(self.timeline_completed) * self.timeline_step_s or 1.0)

    @property
    def pps(self) -> float:
        """Packets per second that came through the DUT, both directions, without the DUT's duplicates."""
        return sum(self.rx_packets.values()) * self._once / self.counted_s

    @property
    def bps(self) -> float:
        """Bits per second that came through the DUT, both directions, frames without FCS, without the DUT's
        duplicates."""
        return sum(self.rx_bytes.values()) * 8 * self._once / self.counted_s

    @property
    def _once(self) -> float:
        """The share of the received packets that are not duplicates."""
        received = sum(self.total_rx_packets.values())
        return 1 - self.unexpected.get("doubled", 0) / received if received else 1.0


#: Of a pair: what is tested, and what it is compared with.
Side = Literal["tested", "other"]


class Slice(FrozenCounts):
    """A part of a pair's trial in which one side is served, in a closed loop or from backlogs. Counts, never
    opinions."""

    side: Side
    #: Length of what was counted, after the settling that follows each turn, seconds; of backlogs the time in which
    #: they were worked off.
    seconds: Annotated[float, Field(ge=1e-6, le=MOST)]
    #: Connections that ended well (packets that came out) in it, and those that failed (were written off).
    completed: Count
    lost: Count = 0
    #: How long the generator itself stood still at worst, ms.
    pause_ms: Real = 0
    #: Share of the time in which most of what was under way waited for the generator, and not for the DUT.
    waited: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def rate(self) -> float:
        """Connections (packets) per second."""
        return self.completed / self.seconds


#: What is offered to the tested side of a pair, and to the other one.
Profiles = tuple[Profile, Profile]


class Opened(FrozenCounts):
    """The result of opening connections. Counts, never opinions."""

    #: Connections begun: fewer than asked for where many in a row were refused; those that are open now.
    begun: Count
    established: Count
    #: Seconds from the first SYN to the first that was answered, and to the last; None where none was.
    first_s: Amount | None
    last_s: Amount | None
    #: Seconds from the call to the first SYN, of a generator that needs a while to begin.
    waited_s: Amount = 0.0
    #: Whether no more were begun because so many in a row were not answered.
    gave_up: bool = False

    @property
    def refused(self) -> int:
        """Connections begun that did not open."""
        return self.begun - self.established


class Answered(FrozenCounts):
    """The result of one message on each open connection."""

    asked: Count
    answered: Count

    @property
    def lost(self) -> int:
        """Connections that were asked and did not answer."""
        return self.asked - self.answered

"""The metrics: name, unit and better direction of a figure, and how it is written and read.

Verdict, calibration, comparison, history, console and page look the direction up here; no other file states it. To add
a metric, see docs/adding.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ctbench.base import units
from ctbench.base.quantities import MOST
from ctbench.traffic.generator import LoadUnit

Better = Literal["higher", "lower"]
Operator = Literal[">=", "<="]
#: `promise`: what a test finds out and is judged by; `condition`: what every trial has to keep, so that a search goes
#: up to it and its margin is near zero by construction; `detail`: shown, and no SLA can promise it.
Role = Literal["promise", "condition", "detail"]


@dataclass(frozen=True)
class Unit:
    """The unit of a metric: how its values are read and written."""

    #: As records have it: `connections/s`, `bit/s`, `ratio`, `s`.
    name: str
    #: From the text of an SLA file, which `write` gives back exactly; `ValueError` says what was expected.
    parse: Callable[[object], float]
    write: Callable[[float], str]
    #: For people.
    format: Callable[[float], str]
    #: The range that an SLA may promise, and an example, as an SLA file has them.
    least: str
    most: str
    example: str


#: How they are read and written.
_NUMBER = units.parse_number, units.write_number
_SHARE = units.parse_share, units.write_ratio
_DURATION = units.parse_duration, units.write_duration

CONNECTION_RATE = Unit("connections/s", *_NUMBER, units.format_rate, "1", "1G", "48.2k")
PACKET_RATE = Unit("packets/s", *_NUMBER, lambda value: f"{units.format_count(value)} pps", "1", "1G", "334.9k")
BIT_RATE = Unit("bit/s", *_NUMBER, units.format_bits, "1", "10000G", "2G")
LOST = Unit("ratio", units.parse_ratio, units.write_ratio, units.format_ratio, "0%", "50%", "0.02%")
SHARE = Unit("ratio", *_SHARE, units.format_share, "1%", "10000%", "60%")
LONG_SECONDS = Unit("s", *_DURATION, units.format_duration, "1ms", "1440min", "35s")
SECONDS = Unit("s", *_DURATION, units.format_duration, "1us", "60s", "5ms")
#: Of memory, for one entry of a table.
BYTES = Unit("bytes", *_NUMBER, lambda value: f"{value:,.0f} bytes", "1", "1G", "500")
COUNT = Unit("connections", *_NUMBER, units.format_count, "1", "1G", "1M")
INSTRUCTIONS = Unit("instructions", *_NUMBER, lambda value: f"{value:,.1f} instructions", "1", "1G", "4300")
CYCLES = Unit("cycles", *_NUMBER, lambda value: f"{value:,.0f} cycles", "1", "1G", "2000")
#: What comes into a datapath.
FLOW_RATE = Unit("flows/s", *_NUMBER, lambda value: f"{units.format_count(value)} flows/s", "1", "1G", "20k")
#: Of a thread's time.
TIME_SHARE = Unit("ratio", *_SHARE, units.format_share, "0.1%", "100%", "10%")
CPUS = Unit("CPUs", *_NUMBER, lambda value: f"{value:.2f}", "0.01", "1k", "1")

#: Kinds of profiles.
ANY: frozenset[LoadUnit] = frozenset(("connections", "packets"))
CONNECTIONS: frozenset[LoadUnit] = frozenset(("connections",))
PACKETS: frozenset[LoadUnit] = frozenset(("packets",))


@dataclass(frozen=True)
class Metric:
    """A kind of figure."""

    name: str
    #: For people, in the middle of a sentence: `new connections`.
    title: str
    unit: Unit
    better: Better
    role: Role
    #: Kinds of profiles with which it can be promised.
    profiles: frozenset[LoadUnit] = ANY
    #: Whether it is about the DUT's connection table.
    of_table: bool = False

    @property
    def operator(self) -> Operator:
        """The operator of a promise; a better value keeps it too."""
        return ">=" if self.better == "higher" else "<="

    @property
    def bound(self) -> str:
        """The operator in words."""
        return "at least" if self.better == "higher" else "at most"

    def keeps(self, value: float, limit: float) -> bool:
        """Return True where a value keeps a limit; a value at the limit keeps it."""
        return value >= limit if self.better == "higher" else value <= limit

    def margin_pct(self, value: float, limit: float) -> float | None:
        """Return how much better a value is than a limit, in percent: +100 is twice as good, -50 is half as good.

        The scale is the same in both directions: `value/limit - 1` where higher is better, `limit/value - 1` where
        lower is. None where the divisor is 0: a limit of 0 where higher is better, a value of 0 where lower is. At most
        `MOST`.
        """
        of, by = (value, limit) if self.better == "higher" else (limit, value)
        return min((of / by - 1) * 100, MOST) if by > 0 else None

    def format(self, value: float) -> str:
        """Return a value for people, with its unit."""
        return self.unit.format(value)


_SETUP, _AT_HALF = "TCP connect time", "at half of what is held (p99)"

#: A promise about the DUT's connection table.
_table = partial(Metric, role="promise", profiles=CONNECTIONS, of_table=True)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("cps", "new connections", CONNECTION_RATE, "higher", "promise", CONNECTIONS),
        Metric("pps", "packets", PACKET_RATE, "higher", "promise"),
        #: Frames without FCS, both directions.
        Metric("bps", "throughput", BIT_RATE, "higher", "promise", PACKETS),
        #: What the DUT serves: what it completes in a closed loop, with so much under way that it never waits. It says
        #: nothing of the load at which something is lost.
        Metric("saturation_cps", "new connections served", CONNECTION_RATE, "higher", "promise", CONNECTIONS),
        Metric("saturation_pps", "packets served", PACKET_RATE, "higher", "promise", PACKETS),
        #: Of another topology's rate with the same profile.
        Metric("ratio", "rate relative to another topology", SHARE, "higher", "promise"),
        #: Of the same topology's rate in another build, with the same profile.
        Metric("of_build", "rate relative to another build", SHARE, "higher", "promise"),
        #: What the DUT adds to the wires and the traffic alone, in a machine whose clock counts its instructions.
        Metric("instructions_per_packet", "instructions per packet", INSTRUCTIONS, "lower", "promise", PACKETS),
        Metric(
            "instructions_per_connection", "instructions per connection", INSTRUCTIONS, "lower", "promise", CONNECTIONS
        ),
        #: Of another topology's instructions with the same profile, in the same machine.
        Metric("relative_cost", "instructions relative to another topology", SHARE, "lower", "promise"),
        #: What it costs more than that, as a share of that: a part that is small against the whole is not lost in it.
        Metric("added_cost", "instructions added to another topology", SHARE, "lower", "promise"),
        #: Of the control plane, under a load: the median of the times that something took.
        Metric("dump_time", "dump of the connection table", SECONDS, "lower", "promise"),
        Metric("entry_removal_time", "removal of one entry", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("zone_removal_time", "removal of the entries of a zone", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("table_removal_time", "removal of all entries", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("port_add_time", "adding a port", SECONDS, "lower", "promise"),
        Metric("port_delete_time", "deleting a port", SECONDS, "lower", "promise"),
        #: CPU time of the main thread, each 5 s.
        Metric("statistics_time", "collecting the interfaces' statistics", SECONDS, "lower", "promise"),
        #: Of all flows of the datapath; by itself, and forced ten times a second.
        Metric("revalidation_time", "revalidation of the datapath flows", SECONDS, "lower", "promise", PACKETS),
        Metric("sweep_time", "forced revalidation of the datapath flows", SECONDS, "lower", "promise", PACKETS),
        #: In which it did not wait for an event and did not answer; seen from outside, each 3 ms.
        Metric("main_thread_longest", "longest main-thread stall", SECONDS, "lower", "promise"),
        #: Of the samples of a PMD thread at the highest load, those in functions that acquire, release or await a lock.
        Metric("mutex_share", "time in mutexes and other locks", TIME_SHARE, "lower", "promise"),
        #: That the DUT makes flows of its datapath for, with nothing lost.
        Metric("new_flow_rate", "new datapath flows", FLOW_RATE, "higher", "promise", CONNECTIONS),
        #: What that load lost meanwhile, of what was intended; and how long it waited.
        Metric("loss_meanwhile", "lost meanwhile", LOST, "lower", "promise"),
        #: The same as time: what was lost, by the offered rate (the frame-loss method of RFC 6201).
        Metric("blocked_meanwhile", "blocked meanwhile", SECONDS, "lower", "promise"),
        Metric("connect_time_meanwhile", f"{_SETUP} meanwhile (p99)", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("latency_meanwhile", "latency meanwhile (p99)", SECONDS, "lower", "promise", PACKETS),
        #: Open at the same time, known to the DUT's own table, and each answered a message in the end: RFC 9411, 7.5.
        _table("held_connections", "connections held at once", COUNT, "higher"),
        #: Where the table has settled: entries that a sweep finds, of rate x (lifetime + timeout + time between two
        #: sweeps); those that it leaves, of rate x (lifetime + timeout); and how long it takes for a million.
        _table("table_most", "entries before a sweep, of those expected", SHARE, "lower"),
        _table("table_least", "entries after a sweep, of those expected", SHARE, "higher"),
        _table("sweep_per_million", "sweep of a million entries", SECONDS, "lower"),
        #: That the DUT holds over two sweeps of its table or more, filled before to what the rate leaves in it.
        _table("sustained_cps", "sustained new connections", CONNECTION_RATE, "higher"),
        #: From the last packet until the DUT counts none.
        _table("drain_time", "time until the table is empty", LONG_SECONDS, "lower"),
        #: That the DUT tells of an entry right after its last packet.
        _table("longest_timeout", "longest time that an entry still stays", LONG_SECONDS, "lower"),
        #: From the moment that there is room in a full table to the first connection that opens; from the command to
        #: restart until a thousand have opened.
        _table("recovery_time", "time until connections open again", SECONDS, "lower"),
        #: How fast connections open behind one address of a NAT whose ports are in use, relative to free ones; and
        #: how many of the ports it finds for more connections than there are.
        _table("opening_at_half", "opening rate with half of the ports in use", SHARE, "higher"),
        _table("opening_at_90", "opening rate with nine tenths of the ports in use", SHARE, "higher"),
        _table("ports_used", "ports of an address that a NAT uses", SHARE, "higher"),
        #: Of the DUT, while no port is free: how long it looks for one.
        _table("refusal_time", "CPU time of a connection that is refused", SECONDS, "lower"),
        #: Of connections that had opened, those that did not answer while the table was full.
        _table("forgotten_when_full", "open connections forgotten in a full table", LOST, "lower"),
        #: The same after a restart of the DUT.
        _table("forgotten_by_restart", "open connections forgotten by a restart", LOST, "lower"),
        #: Of packets, or of bytes, that passed on open connections: those that the DUT's entries do not count, or count
        #: without having been sent. The share of open connections that took the short cut of a flowtable; and of those
        #: that did not answer after they had left it, because they were idle.
        _table("uncounted", "packets or bytes counted wrongly", LOST, "lower"),
        _table("offloaded", "connections in the flowtable", SHARE, "higher"),
        _table("forgotten_when_idle", "open connections forgotten when idle", LOST, "lower"),
        #: From a load that cuts datagrams short until the DUT keeps no fragment.
        _table("reassembly_time", "time until no fragment is kept", LONG_SECONDS, "lower", profiles=PACKETS),
        _table("fragment_memory_kept", "memory kept per fragment given up", BYTES, "lower", profiles=PACKETS),
        #: Of the DUT, for each connection that is open; and what stays of it, for each that was opened and is gone.
        _table("memory_per_connection", "memory per connection", BYTES, "lower"),
        _table("memory_kept", "memory kept per connection that is gone", BYTES, "lower"),
        #: In the base of a candidate, under the same fills; promised of a candidate only.
        _table("memory_of_build", "memory per connection relative to the base", SHARE, "lower"),
        #: What a load loses, and how long it waits, while entries of other connections expire.
        _table("loss_while_reaping", "lost while entries expire", LOST, "lower"),
        _table("connect_time_while_reaping", f"{_SETUP} while entries expire (p99)", SECONDS, "lower"),
        #: Where no queue is full: at half of what is held. The bytes are those of RFC 9411, from the SYN on, with what
        #: the server waits.
        Metric("latency_p99_at_half", f"latency {_AT_HALF}", SECONDS, "lower", "promise", PACKETS),
        Metric("connect_time_p99_at_half", f"{_SETUP} {_AT_HALF}", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("first_byte_p99_at_half", f"time to first byte {_AT_HALF}", SECONDS, "lower", "promise", CONNECTIONS),
        Metric("last_byte_p99_at_half", f"time to last byte {_AT_HALF}", SECONDS, "lower", "promise", CONNECTIONS),
        #: Of the connections or packets that were intended, whether they were sent or not.
        Metric("loss_ratio", "lost", LOST, "lower", "condition"),
        #: Of the packets that were sent; of a packet profile the same as `loss_ratio`.
        Metric("packet_loss_ratio", "lost packets", LOST, "lower", "condition"),
        #: SYN to SYN-ACK as the client sees it: RFC 9411, section 7.1.
        Metric("connect_time_p99", f"{_SETUP} (p99)", SECONDS, "lower", "condition", CONNECTIONS),
        #: One way: RFC 1242, section 3.8. Of connections, that of their messages, which is not a promise.
        Metric("latency_p99", "latency (p99)", SECONDS, "lower", "condition", PACKETS),
        #: Held where the campaign's `partial_drop` may be lost (CSIT's PDR); what is held without that is the NDR.
        Metric("pdr_cps", "new connections (PDR)", CONNECTION_RATE, "higher", "detail", CONNECTIONS),
        Metric("pdr_pps", "packets (PDR)", PACKET_RATE, "higher", "detail", PACKETS),
        #: In the mean over the sustain phase.
        Metric("active_connections", "connections open at once", COUNT, "higher", "detail", CONNECTIONS),
        Metric("connect_time_p50", f"{_SETUP} (median)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("connect_time_max", f"{_SETUP} (longest)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("latency_p50", "latency (median)", SECONDS, "lower", "detail"),
        Metric("latency_max", "latency (longest)", SECONDS, "lower", "detail"),
        #: Mean difference between successive packets: RFC 4689, section 3.2.5.
        Metric("latency_jitter", "jitter", SECONDS, "lower", "detail"),
        #: Of messages next to connections, from the client to the server, and there and back.
        Metric("udp_latency_mean", "UDP latency (mean)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("udp_rtt_mean", "UDP round-trip time (mean)", SECONDS, "lower", "detail", CONNECTIONS),
        #: Of ICMP packets of one flow next to connections.
        Metric("icmp_latency_p50", "ICMP latency (median)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("icmp_latency_p99", "ICMP latency (p99)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("icmp_latency_max", "ICMP latency (longest)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("icmp_latency_jitter", "ICMP jitter", SECONDS, "lower", "detail", CONNECTIONS),
        #: Of the packets of a generator whose TCP sends again what got lost; such a connection has failed.
        Metric("retransmission_ratio", "TCP retransmissions", LOST, "lower", "detail", CONNECTIONS),
        #: Smoothed (RFC 6298), of single connections that such a generator tells of.
        Metric("tcp_rtt_p50", "TCP round-trip time (median)", SECONDS, "lower", "detail", CONNECTIONS),
        Metric("tcp_rtt_max", "TCP round-trip time (longest)", SECONDS, "lower", "detail", CONNECTIONS),
        #: Entries in the mean where they have settled, and how fast they grow there.
        Metric("table_level", "entries in the table", COUNT, "lower", "detail", CONNECTIONS),
        Metric("table_slope", "growth of the table", CONNECTION_RATE, "lower", "detail", CONNECTIONS),
        #: Of entries, between the first and the last twentieth that went.
        Metric("reaped_rate", "entries reaped per second", CONNECTION_RATE, "higher", "detail", CONNECTIONS),
        #: How long after its timeout the last entry was gone.
        Metric("drain_lag", "time beyond the timeout", LONG_SECONDS, "lower", "detail", CONNECTIONS),
        #: While connections were opened that stay open.
        Metric("opening_rate", "connections opened per second", CONNECTION_RATE, "higher", "detail", CONNECTIONS),
        #: CPUs' worth of work of the DUT, softirq included, and that for one packet.
        Metric("busy_cpus", "CPUs of the DUT in use", CPUS, "lower", "detail"),
        #: As the conference of 2017 defines it (slide 7), at a load that the CPUs are full with: the clock rate by the
        #: packets per second, by the number of CPUs.
        Metric("cycles_per_packet", "cycles per packet", CYCLES, "lower", "detail"),
        Metric("cpu_time_per_packet", "CPU time per packet", SECONDS, "lower", "detail"),
    )
}

#: What a test of a rate finds out: what the DUT holds and serves, both relative to something, and at half of what is
#: held how long something takes, by the name of that in evidence (`TimesBelow`).
HELD, SERVED = frozenset(("cps", "pps", "bps")), frozenset(("saturation_cps", "saturation_pps"))
AT_HALF = {
    "latency_p99_at_half": "latency",
    "connect_time_p99_at_half": "connect time",
    "first_byte_p99_at_half": "first byte",
    "last_byte_p99_at_half": "last byte",
}
RATES = (*HELD, *SERVED, "ratio", "of_build", *AT_HALF)
#: How long something took in the trial at the rate that is held: with full queues.
AT_EDGE = frozenset((
    "connect_time_p50", "connect_time_p99", "connect_time_max", "latency_p50", "latency_p99", "latency_max",
    "latency_jitter", "udp_latency_mean", "udp_rtt_mean", "icmp_latency_p50", "icmp_latency_p99", "icmp_latency_max",
    "icmp_latency_jitter",
))  # fmt: skip
#: Rates at which a load is offered for a while, and seconds from which on such a trial tells what lasts: two sweeps of
#: Open vSwitch's connection table. What held for less began with an empty table and ended before an entry had gone.
OFFERED, LASTS_S = HELD | {"sustained_cps"}, 40.0
#: What a miss that is accepted is about, unless its entry says more: what is forwarded, alone or relative to another
#: topology.
FORWARDED = OFFERED | SERVED | {"ratio"}
#: The rate that a profile's load counts.
RATE_OF: dict[LoadUnit, Metric] = {"connections": METRICS["cps"], "packets": METRICS["pps"]}
#: The partial drop rate that goes with a rate.
PDR_OF = {"cps": METRICS["pdr_cps"], "pps": METRICS["pdr_pps"]}
#: The rate of a closed loop, by what a profile's load counts.
SATURATION_OF: dict[LoadUnit, Metric] = {"connections": METRICS["saturation_cps"], "packets": METRICS["saturation_pps"]}
#: Kinds of promises: a ratio to another topology, or to another build of the same one, which hold on any machine; and
#: everything else, whose limit is a figure of its own.
Kind = Literal["absolute", "ratio", "of_build"]
#: Metrics that are promised relative to something else that is measured with them, by the kind of promise.
RELATIVE: dict[str, Kind] = {"ratio": "ratio", "relative_cost": "ratio", "added_cost": "ratio", "of_build": "of_build"}


def kind_of(metric: str) -> Kind:
    """Return the kind of promise that a metric makes."""
    return RELATIVE.get(metric, "absolute")


#: What one packet or connection costs, by what a profile's load counts.
COST_OF: dict[LoadUnit, Metric] = {
    "connections": METRICS["instructions_per_connection"],
    "packets": METRICS["instructions_per_packet"],
}
COSTS = frozenset(metric.name for metric in COST_OF.values())
#: What does not follow from how fast a machine is: counts.
COUNTED = COSTS | {
    "relative_cost", "added_cost", "held_connections", "forgotten_when_full", "forgotten_by_restart",
    "memory_per_connection", "memory_kept", "fragment_memory_kept", "ports_used", "memory_of_build", "uncounted",
    "offloaded", "forgotten_when_idle",
}  # fmt: skip
#: The longest stall of its main thread meanwhile.
MAIN_THREAD = "main_thread_longest"
#: What that load lost meanwhile, as time.
BLOCKED = "blocked_meanwhile"
#: What becomes of that load: the metric of a trial that each takes its figure from.
MEANWHILE = {
    "loss_meanwhile": "loss_ratio",
    BLOCKED: "loss_ratio",
    "connect_time_meanwhile": "connect_time_p99",
    "latency_meanwhile": "latency_p99",
}
#: What is lost, by what is counted for it.
LOSS_OF: dict[LoadUnit, Metric] = {"connections": METRICS["loss_ratio"], "packets": METRICS["packet_loss_ratio"]}

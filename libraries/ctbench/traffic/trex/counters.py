"""TRex' counters: readings, their differences, and what these show of failed connections and of TRex' own faults.

Only counters that TRex keeps exactly are used: its rates (`tx_cps`, `tx_pps`, `active_flows` …) are low-pass filtered
and need ten seconds to follow. A traffic counter that is zero is absent. Names are those of `get_stats()`
(src/stt_cp.cpp of TRex); TRex' own flag "error" leaves some of them out.

TRex retransmits a lost packet, as TCP does; the software generator does not. So that both mean the same, a connection
that needed a retransmission has failed. Losses are counted from the start of the sustain phase to the end of the
drain: a packet that is lost at the end of the sustain phase shows only half a second later.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import Any, Literal

from ctbench.traffic.generator import PortPair, Traffic, Transport

Side = Literal["client", "server"]
SIDES: tuple[Side, ...] = ("client", "server")
#: What each pair of ports adds to the addresses of the one before.
PAIR_OFFSET = "0.1.0.0"


def of_side(ports: Sequence[int], side: Side) -> Sequence[int]:
    """Return TRex' numbers of the ports of one side, of all pairs; each pair's client side comes first."""
    return ports[SIDES.index(side) :: 2]


@dataclass(frozen=True)
class Reading:
    """A reading of TRex' counters, as `stats` of client_worker.py answers, or the difference of two readings."""

    #: When the counters of the traffic were read, seconds, and how uncertain that is, seconds either way. Of a
    #: difference: how long it took.
    at_s: float
    within_s: float
    #: `get_stats()` of TRex' client; the ports go by their numbers as text.
    stats: Mapping[str, Any]

    def __sub__(self, earlier: "Reading") -> "Reading":
        grown = _difference(self.stats, earlier.stats)
        return Reading(self.at_s - earlier.at_s, self.within_s + earlier.within_s, grown)

    def traffic(self, side: Side, *names: str) -> int:
        """Return the sum of some counters of one side's traffic: `tcps_…`, `udps_…`, `err_…`."""
        return sum(int(self.stats["traffic"][side].get(name, 0)) for name in names)

    def port(self, number: int, name: str) -> int:
        """Return a counter of a port: `opackets`, `ibytes`, `ierrors` …"""
        return int(self.stats[str(number)].get(name, 0))

    def latency(self, port: int) -> Mapping[str, Any]:
        """Return the counters of the latency packets that reached a port; empty where none are sent."""
        found: Mapping[str, Any] = self.stats.get("latency", {}).get(str(port), {})
        return found

    @property
    def timed(self) -> Mapping[str, Any]:
        """Counters of the timed messages, by the side that took them; empty where none are sent."""
        found: Mapping[str, Any] = self.stats.get("timed", {})
        return found

    def by_port(self, ports: Sequence[int]) -> Traffic:
        """Return the packets and bytes of the ports, by their side."""
        names = {"tx_packets": "opackets", "rx_packets": "ipackets", "tx_bytes": "obytes", "rx_bytes": "ibytes"}
        return {
            name: {side: sum(self.port(port, counter) for port in of_side(ports, side)) for side in SIDES}
            for name, counter in names.items()
        }

    @property
    def begun(self) -> int:
        """Connections begun since the start of the traffic."""
        return self.traffic("client", "tcps_connattempt", "udps_connects")

    def closed(self, side: Side) -> int:
        """Return the connections that one side has forgotten, completed or not."""
        return self.traffic(side, "tcps_closed", "udps_closed")

    def open(self, side: Side) -> int:
        """Return the connections that one side still remembers. TRex remembers a TCP connection for half a second after
        its end."""
        accepted = self.traffic("server", "tcps_accepts", "udps_accepts")
        return max(0, (self.begun if side == "client" else accepted) - self.closed(side))


def _difference(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the growth of all counters, at any depth; an absent counter is 0."""
    return {
        name: _difference(value, before.get(name, {})) if isinstance(value, dict) else value - before.get(name, 0)
        for name, value in after.items()
        if isinstance(value, dict | int | float)
    }


#: TRex itself could not keep up, or was given too little: such a trial says nothing about the DUT. `err_rx_throttled`
#: is none of them: TRex found more frames than it takes in one go, and takes the rest in the next.
GENERATOR_FAULTS = {
    # of a port
    "ierrors": "its card threw frames away that came back: they were not taken in time",
    "oerrors": "its card could not send frames",
    # of TRex as a whole
    "queue_full": "the queue to its card was full",
    "total_alloc_error": "it ran out of packet buffers",
    # of the traffic, client or server side
    "tcps_nombuf": "it ran out of packet buffers for TCP",
    "udps_nombuf": "it ran out of packet buffers for UDP",
    "err_no_memory": "it had no memory for another connection",
    "err_flow_overflow": "it had too many connections open (memory: dp_flows of the testbed file)",
    "err_c_nf_throttled": "it held back new connections, too many were open",
    "err_s_nf_throttled": "its server side refused new connections, too many were open",
    "err_c_tuple_err": "it had no client port free: the profile needs more client_ips",
    "err_dct": "it wanted client ports that were still taken: the profile needs more client_ips",
}

#: Frames that came back and belong to no connection, or are broken: the DUT's doing, or of another machine on the link.
UNEXPECTED = {
    "err_cwf": "for a client that has no such connection (any more): duplicated, or late",
    "err_no_syn": "for the server, of a connection that it has not seen begin, or has forgotten",
    "err_no_template": "for the server, to a port that the profile does not have: translated wrongly",
    "err_no_tcp_udp": "neither TCP nor UDP: chatter on the link",
    "err_len_err": "shorter or longer than its header says",
    "err_fragments_ipv4_drop": "a fragment, which TRex does not put together",
    "err_l3_cs": "wrong IP checksum",
    "err_l4_cs": "wrong TCP or UDP checksum",
    "tcps_rcvbadsum": "wrong TCP checksum",
    "tcps_rcvbadoff": "wrong length of the TCP header",
    "tcps_rcvshort": "shorter than a TCP header",
    "tcps_rcvafterclose": "of a connection that was closed",
    "tcps_rcvduppack": "data that had come before: duplicated, or sent again for an acknowledgement that was lost",
    "tcps_rcvoopack": "data that came before what was sent earlier: reordered, or that got lost",
    "tcps_rcvdupack": "an acknowledgement that had come before",
    "tcps_badsyn": "a handshake out of order",
}


def generator_fault(grown: Reading, ports: Sequence[int]) -> str:
    """Return what went wrong in the generator between two readings; empty where nothing did."""
    for name, meaning in GENERATOR_FAULTS.items():
        count = int(grown.stats["global"].get(name, 0)) + sum(grown.port(port, name) for port in ports)
        count += sum(grown.traffic(side, name) for side in SIDES)
        if count > 0:
            return f"{meaning} ({name} {count})"
    if count := sum(not_taken(grown, ports).values()):
        return f"{count} packets reached its cards and were not taken by its own stack: the DUT has forwarded them"
    return ""


#: What no link carries in a second: 64-byte frames at 1 Tbit/s, and its bytes.
MOST_PACKETS_PER_S, MOST_BYTES_PER_S = 1.5e9, 1.25e11
#: How much later than a reading's time a counter may have been read, seconds.
_READ_S = 1.0


def cannot_be(readings: Iterable[tuple[float, Mapping[str, Any]]]) -> str:
    """Return the first impossible value that TRex reports, in words; empty where there is none: one below 0, one that
    has fallen (TRex decreases no counter; one that wrapped falls too), or one that grew faster than any link.
    `readings`: in order, the time in seconds and the counters by a readable name."""
    known = list(readings)
    for _, counters in known:
        for name, value in counters.items():
            if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                return f"it reports {value} {name}"
    for (then_s, before), (now_s, now) in pairwise(known):
        for name, earlier in before.items():
            value, per_s = now.get(name, 0), MOST_BYTES_PER_S if "byte" in name else MOST_PACKETS_PER_S
            if value < earlier:
                return f"it reports {value} {name} after {earlier}"
            if value - earlier > per_s * (now_s - then_s + _READ_S):
                return f"it reports {value - earlier} {name} more within {now_s - then_s:.1f} s, which no link carries"
    return ""


#: Counters of a port that are read.
_OF_PORT = ("opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors")


def readings_cannot_be(readings: Sequence[Reading], ports: Sequence[int]) -> str:
    """Apply `cannot_be` to readings: to the counters of the ports, and to those of the traffic that only grow."""

    def counters(reading: Reading) -> dict[str, Any]:
        of_ports = {
            f"{name} of port {port}": reading.stats[str(port)].get(name, 0) for port in ports for name in _OF_PORT
        }
        of_traffic = {
            f"{name} of the {side} side": value
            for side in SIDES
            for name, value in reading.stats["traffic"][side].items()
            if name.startswith(("tcps_", "udps_", "err_"))
        }
        return of_ports | of_traffic

    return cannot_be((reading.at_s, counters(reading)) for reading in readings)


def without_latency(grown: Reading, last: Reading, ports: Sequence[int]) -> Reading:
    """Return `grown` without TRex' own latency packets among the frames that are neither TCP nor UDP, where cards
    without filters put them (flow_table.cpp, parse_packet). `last`: a reading no earlier than the end of `grown`, whose
    latency counters count from the start."""
    traffic = {}
    for number, side in enumerate(SIDES):
        counters = grown.stats["traffic"][side]
        told = [last.latency(port).get("stats", {}) for port in ports[number::2]]
        own = sum(each.get(name, 0) for each in told for name in ("m_pkt_ok", "m_seq_error"))
        traffic[side] = {**counters, _NO_TCP_UDP: max(0, counters.get(_NO_TCP_UDP, 0) - own)}
    return replace(grown, stats={**grown.stats, "traffic": traffic})


_NO_TCP_UDP = "err_no_tcp_udp"
#: Frames that reached a side and are not of its connections, whole or in part: its stack does not count them.
_STRANGERS = ("err_no_template", "err_no_tcp_udp", "err_len_err", "err_fragments_ipv4_drop", "err_l3_cs", "err_l4_cs")
#: As many more frames than the stacks took may have reached the cards: ARP and such, and what was under way.
_CHATTER = 10


def not_taken(grown: Reading, ports: Sequence[int]) -> dict[Side, int]:
    """Return the packets of connections that reached TRex' cards but not its own stack, by side, where these are most
    of the packets lost between its stacks; empty otherwise. The DUT has forwarded them. Exact once nothing is under
    way."""
    total, lost, astray = grown.by_port(ports), 0, dict.fromkeys(SIDES, 0)
    for sender, receiver in _WAYS:
        missing = _lost_packets(grown, sender, receiver)
        arrived = total["rx_packets"][receiver] - grown.traffic(receiver, *_STRANGERS)
        lost += missing
        astray[receiver] = max(0, missing - max(0, total["tx_packets"][sender] - arrived))
    return astray if sum(astray.values()) > max(_CHATTER, lost / 2) else {}


def of_port_pairs(grown: Reading, ports: Sequence[int]) -> list[PortPair]:
    """Return what each of several port pairs sent and took, in packets: TRex does not count connections by port."""
    pairs = list(zip(ports[::2], ports[1::2], strict=True))
    counted = [[sum(grown.port(port, name) for port in pair) for name in ("opackets", "ipackets")] for pair in pairs]
    found = [PortPair(unit="packets", attempted=sent, completed=min(sent, took)) for sent, took in counted]
    return found if len(pairs) > 1 else []


def unexpected(grown: Reading) -> dict[str, int]:
    """Return the unexpected frames that came back, by TRex' names."""
    found = {name: sum(grown.traffic(side, name) for side in SIDES) for name in UNEXPECTED}
    return {name: count for name, count in found.items() if count > 0}


#: Packets that reached a side which has forgotten their connection.
LATE: dict[Side, str] = {"client": "err_cwf", "server": "err_no_syn"}

#: What a client counts that ends with a reset, at the end of its program.
OWN_RESETS = "user_counter_A"


def losses_of(zero: Reading, begin: Reading, drained: Reading, attempted: int) -> tuple[dict[str, int], int]:
    """Return the failed connections by cause, together at most `attempted`, and those that the server never accepted
    for whatever reason. Where TRex' counters are ambiguous, the larger number counts. The readings are from before the
    first connection, from the start of the sustain phase, and from the end of the drain."""
    counted, whole = drained - begin, drained - zero
    lost, unfinished = lost_packets(whole), max(drained.open(side) for side in SIDES)
    timed_out = _most(counted, *_TIMED_OUT)
    # A reply that gets lost takes the acknowledgement of the request with it, so both sides send again: as many
    # connections as packets got lost, where that is between the one count and the other.
    client, server = (_sent_again(counted, side) for side in SIDES)
    sent_again = _most(counted, _SYN_AGAIN) + max(client, server, min(client + server, lost))
    all_sent_again = _most(whole, _SYN_AGAIN) + sum(_sent_again(whole, side) for side in SIDES)
    explained = unfinished + _most(whole, *_TIMED_OUT) + _reset(whole) + whole.traffic("client", "udps_keepdrops")
    causes = {
        "reset": _reset(counted),  # that neither side sent
        "no_reply": counted.traffic("client", "udps_keepdrops"),  # of UDP
        "timed_out": timed_out,
        "unfinished": unfinished,  # when the drain's time was up
        "retransmitted": sent_again - unfinished - timed_out,  # packets
        # Acknowledgements that a later packet stood in for. Over the whole trial: what was under way when the sustain
        # phase began cannot be told from what was lost.
        "lost_ack": lost - all_sent_again - explained,
        "not_accepted": _not_accepted(whole) - explained,
    }
    failed, left = {}, attempted
    for cause, count in causes.items():
        if min(count, left) > 0:
            failed[cause] = min(count, left)
            left -= failed[cause]
    return failed, max(0, _not_accepted(counted))


def transport_of(counted: Reading, flows: Sequence[Mapping[str, Any]]) -> Transport | None:
    """Return TCP's retransmissions in all, and those of single connections, `flows` of get_flow_info(); None without
    TCP. Round-trip times are in whole milliseconds, rounded down."""
    sent = sum(counted.traffic(side, "tcps_sndtotal") for side in SIDES)
    if not sent:
        return None
    again = sum(counted.traffic(side, _SYN_AGAIN) + _sent_again(counted, side) for side in SIDES)
    known = [flow for flow in flows if flow["state"] >= _ESTABLISHED]
    times = sorted(1000 * flow["rtt"] for flow in known)
    return Transport(
        sent=sent,
        sent_again=again,
        sampled=len(known),
        most_sent_again=max((flow["snd_rexmitpack"] for flow in known), default=0),
        rtt_p50_us=median_low(times) if times else None,
        rtt_max_us=max(times, default=None),
    )


def lost_packets(grown: Reading) -> int:
    """Return the packets of connections that one side sent and the other never received; exact once nothing is under
    way."""
    return sum(_lost_packets(grown, *way) for way in _WAYS)


_WAYS: tuple[tuple[Side, Side], ...] = (("client", "server"), ("server", "client"))


def _lost_packets(grown: Reading, sender: Side, receiver: Side) -> int:
    sent, received = ("tcps_sndtotal", "udps_sndpkt"), ("tcps_rcvtotal", "udps_rcvpkt")
    return max(0, grown.traffic(sender, *sent) - grown.traffic(receiver, *received, LATE[receiver]))


def _not_accepted(grown: Reading) -> int:
    return grown.begun - grown.traffic("server", "tcps_accepts", "udps_accepts")


def _most(grown: Reading, *names: str) -> int:
    """Return the larger of the two sides' sums of these counters, as both sides may count the same connection."""
    return max(grown.traffic(side, *names) for side in SIDES)


#: From this state of TCP on (tcp_fsm.h) there is a round-trip time.
_ESTABLISHED = 4
#: SYNs and SYN-ACKs sent again: when a SYN-ACK gets lost, both sides send again. Connections given up.
_SYN_AGAIN, _TIMED_OUT = "tcps_rexmttimeo_syn", ("tcps_timeoutdrop", "tcps_keepdrops", "tcps_persistdrop")


def _sent_again(grown: Reading, side: Side) -> int:
    """Return the data segments and FINs that one side retransmitted. Both counters have data that a timer sends
    again."""
    return max(grown.traffic(side, "tcps_rexmttimeo"), grown.traffic(side, "tcps_sndrexmitpack"))


def _reset(grown: Reading) -> int:
    """Return the connections that ended with a reset, without TRex' own resets: those of a profile that ends so, which
    the client counts, and the server a moment later; and TRex' answers to packets of connections that it has forgotten,
    as when the very last acknowledgement was lost."""
    own = grown.traffic("client", OWN_RESETS)
    sides: tuple[Side, ...] = ("client",) if own else SIDES
    ended = max(grown.traffic(side, "tcps_drops", "tcps_conndrops") for side in sides) - own
    return max(0, ended - _most(grown, *_TIMED_OUT) - sum(grown.traffic(side, LATE[side]) for side in SIDES))

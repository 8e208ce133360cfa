"""Which of TRex' counters mean that something went wrong, and whose fault it is: the generator's or the DUT's.

Names as `get_stats()` has them (src/stt_cp.cpp of TRex); TRex' own flag "error" leaves some of them out.
"""

from collections.abc import Sequence

from ctbench.traffic.trex.counters import SIDES, Span

#: TRex itself could not keep up, or was given too little: such a trial says nothing about the DUT. `err_rx_throttled`
#: is none of them: TRex found more frames than it takes in one go, and takes the rest in the next.
GENERATOR_FAULTS = {
    # of a port
    "ierrors": "its card threw frames away that came back: nobody took them in time",
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

#: Frames that came back and belong to no connection, or are broken: the DUT's doing, or of somebody else on the link.
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


def generator_fault(span: Span, ports: Sequence[int]) -> str:
    """What went wrong in the generator during the span, in words; empty when nothing did."""
    for name, meaning in GENERATOR_FAULTS.items():
        grown = _growth(span, ports, name)
        if grown > 0:
            return f"{meaning} ({name} {grown})"
    return ""


def unexpected(span: Span) -> dict[str, int]:
    """Frames that came back and should not have, by TRex' names."""
    found = {name: sum(span.traffic(side, name) for side in SIDES) for name in UNEXPECTED}
    return {name: count for name, count in found.items() if count > 0}


def _growth(span: Span, ports: Sequence[int], name: str) -> int:
    if name in ("ierrors", "oerrors"):
        return sum(span.port(port, name) for port in ports)
    if name in ("queue_full", "total_alloc_error"):
        return span.overall(name)
    return sum(span.traffic(side, name) for side in SIDES)

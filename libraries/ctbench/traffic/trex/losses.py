"""How many connections did not do everything the profile says without a lost packet, by cause, from TRex' counters.

TRex sends a lost packet again, as TCP does; the software generator does not. So that both mean the same, a connection
that needed a retransmission has failed. Counted from the start of the sustain phase to the end of the drain: a packet
that is lost at the end of the sustain phase shows only half a second later.
"""

from dataclasses import dataclass
from typing import Self

from ctbench.traffic.trex.counters import SIDES, Side, Span

#: Packets that reached a side which has forgotten their connection.
LATE: dict[Side, str] = {"client": "err_cwf", "server": "err_no_syn"}


@dataclass(frozen=True)
class Losses:
    """Connections by what happened to them. Where TRex' counters leave it open, the larger number."""

    #: Still open when the drain's time was up; given up by a timer.
    unfinished: int
    timed_out: int
    #: Ended by a reset that neither side sent.
    reset: int
    #: UDP: no reply came.
    no_reply: int
    #: Packets sent again, less those of connections above.
    retransmitted: int
    #: Packets that got lost and that nobody missed: acknowledgements that a later packet stood in for.
    lost_ack: int
    #: Never accepted by the server, for none of the reasons above.
    not_accepted: int
    #: Never accepted by the server, for whatever reason.
    not_established: int

    @classmethod
    def of(cls, counted: Span, whole: Span) -> Self:
        """`counted`: from the start of the sustain phase to the end of the drain; `whole`: from the first connection
        to the same end."""
        lost, unfinished = lost_packets(whole), max(counted.last.open(side) for side in SIDES)
        timed_out, no_reply = _timed_out(counted), counted.traffic("client", "udps_keepdrops")
        # A reply that gets lost takes the acknowledgement of the request with it, so both sides send again: as many
        # connections as packets got lost, where that is between the one count and the other.
        client, server = (_sent_again(counted, side) for side in SIDES)
        sent_again = _handshakes_again(counted) + max(client, server, min(client + server, lost))
        all_sent_again = _handshakes_again(whole) + sum(_sent_again(whole, side) for side in SIDES)
        explained = unfinished + _timed_out(whole) + _reset(whole) + whole.traffic("client", "udps_keepdrops")
        return cls(
            unfinished=unfinished,
            timed_out=timed_out,
            reset=_reset(counted),
            no_reply=no_reply,
            retransmitted=max(0, sent_again - unfinished - timed_out),
            # Over the whole trial: what was under way when the sustain phase began cannot be told from what was lost.
            lost_ack=max(0, lost - all_sent_again - explained),
            not_accepted=max(0, _not_accepted(whole) - explained),
            not_established=max(0, _not_accepted(counted)),
        )

    def among(self, attempted: int) -> dict[str, int]:
        """Failed connections by cause, together no more than were begun."""
        causes = {
            "reset": self.reset,
            "no_reply": self.no_reply,
            "timed_out": self.timed_out,
            "unfinished": self.unfinished,
            "retransmitted": self.retransmitted,
            "lost_ack": self.lost_ack,
            "not_accepted": self.not_accepted,
        }
        failed, left = {}, attempted
        for cause, count in causes.items():
            if min(count, left) > 0:
                failed[cause] = min(count, left)
                left -= failed[cause]
        return failed


def lost_packets(span: Span) -> int:
    """Packets of connections that one side sent and that never reached the other; exact once nothing is under way."""
    sent, received = ("tcps_sndtotal", "udps_sndpkt"), ("tcps_rcvtotal", "udps_rcvpkt")
    to_server = (
        span.traffic("client", *sent) - span.traffic("server", *received) - span.traffic("server", LATE["server"])
    )
    to_client = (
        span.traffic("server", *sent) - span.traffic("client", *received) - span.traffic("client", LATE["client"])
    )
    return max(0, to_server) + max(0, to_client)


def _not_accepted(span: Span) -> int:
    return span.begun - span.traffic("server", "tcps_accepts", "udps_accepts")


def _handshakes_again(span: Span) -> int:
    """SYNs and SYN-ACKs sent again. When a SYN-ACK gets lost, both sides send again."""
    return max(span.traffic(side, "tcps_rexmttimeo_syn") for side in SIDES)


def _sent_again(span: Span, side: Side) -> int:
    """Data and FINs that one side sent again. Data that a timer sends again is in both counters."""
    return max(span.traffic(side, "tcps_rexmttimeo"), span.traffic(side, "tcps_sndrexmitpack"))


def _timed_out(span: Span) -> int:
    return max(span.traffic(side, "tcps_timeoutdrop", "tcps_keepdrops", "tcps_persistdrop") for side in SIDES)


def _reset(span: Span) -> int:
    """Connections that ended with a reset, but for those with TRex' own: it answers so to a packet of a connection that
    it has forgotten, as when the very last acknowledgement was lost."""
    ended = max(span.traffic(side, "tcps_drops", "tcps_conndrops") for side in SIDES)
    return max(0, ended - _timed_out(span) - sum(span.traffic(side, LATE[side]) for side in SIDES))

"""Places in the arrays that the kernel functions work on: parameters, state and counters, all int64.

The same for connections and for packets, of which each leaves out what it has no use for. Values that come in pairs are
indexed by the port that sends (or takes): `CLIENT`, then `SERVER`.
"""

from itertools import count, islice

#: The two ports, and as `Trial` names them.
CLIENT, SERVER = 0, 1
SIDES = ("client", "server")

_places = count()
#: Parameters: addresses of the MAC headers and of the connection records, and how many of these there are.
MACS, _, RECORDS, RECORD_COUNT = islice(_places, 4)
#: Addresses of the rings' rows, and how many rings there are to take frames from (to put: QUEUES).
TX, _, RX, _, RX_RINGS, _ = islice(_places, 6)
#: Bytes and checksums of the messages.
REQUEST_BYTES, REQUEST_SUM, REPLY_BYTES, REPLY_SUM = islice(_places, 4)
UDP_REQUEST_BYTES, UDP_REQUEST_SUM, UDP_REPLY_BYTES, UDP_REPLY_SUM = islice(_places, 4)
#: What a connection does; the wait is in cycles.
MESSAGES, SERVER_WAIT, ACK_BEFORE_REPLY, UDP_PER_MILLION = islice(_places, 4)
#: Who ends a TCP connection first, and how: see `BY_CLIENT` and the others.
ENDED_BY = next(_places)
#: Whether connections that stay half open are begun beside the load (see `ends.send_due_syns`).
HALF_OPEN = next(_places)
#: Who talks to whom; addresses as numbers.
CLIENT_IP, SERVER_IP, SERVER_IPS, PORT_MIN, PORTS, TCP_PORT, UDP_PORT = islice(_places, 7)
#: Client addresses times ports (flows), and the generator of random ones.
TUPLES, TUPLE_MASK, TUPLE_SHIFT, PORT_ORDER_RANDOM = islice(_places, 4)
#: High bits of the tag: frames of an earlier trial do not belong to this one.
QUEUES, SALT = islice(_places, 2)
#: 0, or `frames.IPV6_SHIFT` where the profile is of IPv6: addresses are the last 32 bits then.
SHIFT = next(_places)
#: For whom the ports answer ARP: their next hops (0: none).
CLIENT_IPS, NEXT_HOP, _ = islice(_places, 3)
#: Address of the link threads' counters, and how many threads there are.
LINK, LINK_THREADS = islice(_places, 2)
#: Lengths in cycles: ramp, full load before counting, sustain phase, at most after it.
RAMP, SETTLE, SUSTAIN, LINGER, TIMELINE_STEP, LATE_LIMIT = islice(_places, 6)
#: See `clock`: what may go out at once, and how long after its time. In cycles.
SLACK, LATEST = islice(_places, 2)
#: See `clock.ends_early`: connections (packets) that may be lost for certain, 0: any number; in cycles, the earliest
#: end, how much it has to save, and how long is lingered then.
MOST_LOST, EARLIEST, LEAST_SAVED, SHORT_LINGER = islice(_places, 4)
#: Connections open (packets under way) at once in a closed loop; 0: they begin on a schedule.
UNDER_WAY = next(_places)
#: A warm start: connections that live when the trial begins, and in how many waits of their servers they are opened;
#: 0: none do. With it failures count by when they happen, not by when their connection began.
POPULATION, OPENING_WAITS = islice(_places, 2)
#: How long frames are still taken, and nothing is sent, at the end of a trial that leaves connections open, cycles.
HUSH = next(_places)
#: Short connections, of a million, and their messages: the others have MESSAGES.
SHORT_PER_MILLION, SHORT_MESSAGES = islice(_places, 2)
#: A tick is 2**TICK_SHIFT cycles, about a millisecond; a connection fails after TIMEOUT_TICKS without progress.
TICK_SHIFT, TIMEOUT_TICKS = islice(_places, 2)
#: Whether the latency of messages is measured (see `connection.message_sent`).
TIMES_MESSAGES = next(_places)
#: Packets: the VLAN (-1: none), 1 or 2 directions, whether servers open flows of their own.
VLAN, DIRECTIONS, BOTH_OPEN = islice(_places, 3)
#: Packets of a closed loop: the length of a stretch (see STRETCH), and how long none may come before all are taken for
#: lost, cycles.
LOST_AFTER, SILENCE = islice(_places, 2)
PARAMETERS = next(_places)

#: Values of ENDED_BY, those of profiles first: the client closes, the server does, the client resets; the connection is
#: held open.
BY_CLIENT, BY_SERVER, BY_RESET, NEVER = range(4)

_places = count()
#: State: STOP is set from outside. Lists of records by number.
STOP, FREE_HEAD, HIGHEST, WAITING_FIRST, WAITING_LAST, SWEEP = islice(_places, 6)
#: Connections open, and begun since the start; error feedback for the share of UDP; the next client.
ACTIVE, BEGUN, UDP_DEBT, TUPLE = islice(_places, 4)
#: As UDP_DEBT, of short connections.
SHORT_DEBT = next(_places)
#: Half-open connections begun since the start, and the next one's client.
HALF_BEGUN, HALF_TUPLE = islice(_places, 2)
#: How late at worst (cycles), how many were later than the limit.
LATE_MAX, LATE_COUNT, LONGEST_PAUSE, SUSTAIN_PAUSE = islice(_places, 4)
#: Cycles of the sustain phase after which it was ended early; 0: it was not.
ENDED_AFTER = next(_places)
ACTIVE_SUM, ACTIVE_SAMPLES, ACTIVE_MAX, POINTS = islice(_places, 4)
#: Cycles at the begin and the end of what was counted; by how many it began later than planned.
COUNTED_FROM, COUNTED_UNTIL, LAG = islice(_places, 3)
#: The tick from which failures count, and for how many (see POPULATION).
FAILURES_FROM, FAILURES_FOR = islice(_places, 2)
#: Connections of the population that were opened, or whose time was over before that.
OPENED = next(_places)
#: Looks in the sustain phase at the generator's own receive rings, and how often they held most of what was under way.
LOOKS, LOOKS_HELD = islice(_places, 2)
#: When the kernel function was left last (0: never entered), and cycles between leaving and entering it again.
LEFT_AT, AWAY = islice(_places, 2)
#: What the link threads did in the sustain phase: cycles, frames, frames refused.
LINK_BUSY, LINK_FRAMES, LINK_REFUSED = islice(_places, 3)
#: Whether messages that arrive now are to be timed: in the sustain phase, where TIMES_MESSAGES says so.
TIMING = next(_places)
#: The flow of packets that is next in each direction (see `clock.next_tuple`); the next size, and number.
FLOW, _, SIZE, _, SEQUENCE, _ = islice(_places, 6)
#: Packets that were put on a ring, counted or not; those that count and were lost for certain when they were due.
SENT, LOST = islice(_places, 2)
#: A closed loop writes off packets that are lost: cycles at which the present stretch of time began and the one before
#: it, what was sent in the latter and has not come yet, and what had come in all when the present one began.
STRETCH, STRETCH_BEFORE, NOT_COME, COME_BEFORE = islice(_places, 4)
STATES = next(_places)

_places = count()
#: Counters.
TX_PACKETS, _, TX_BYTES, _, RX_PACKETS, _, RX_BYTES, _ = islice(_places, 8)
DUT_MISSED, NO_RECORD = islice(_places, 2)
#: Of those that count and of others: connections that ended well, and that failed; packets that came out, and that a
#: closed loop took for lost.
ALL_COMPLETED, ALL_FAILED = islice(_places, 2)
#: Packets of connections that count that met a full ring of the DUT.
COUNTED_MISSED = next(_places)
#: Connections (packets of a direction) that count: due, begun (written, or lost at the DUT's full ring), ended well
#: (come out).
INTENDED, _, ATTEMPTED, _, COMPLETED, _ = islice(_places, 6)
#: Connections that count.
TCP_ESTABLISHED, UDP_ESTABLISHED = islice(_places, 2)
#: Packets that came out behind one that was sent later, and the highest sequence number that came out.
REORDERED, _, HIGHEST_SEQUENCE, _ = islice(_places, 4)
#: TCP connect time of those over TCP, in the units of `clock.bin_of`: of all, and the longest since the timeline's
#: last point.
SETUP_SUM, SETUP_MAX = islice(_places, 2)
#: Messages (packets that count) that were timed, by the port that sends; the longest and the last latency, and what one
#: took longer or shorter than the one before, all added. In the units of `clock.bin_of`.
TIMED, _, LATENCY_MAX, _, LATENCY_LAST, _, JITTER_SUM, _ = islice(_places, 8)
#: Received frames without a use: not ours, of no connection, of another one, at the wrong time.
FOREIGN, UNKNOWN, MISDIRECTED, OUT_OF_ORDER = islice(_places, 4)
#: Half-open connections: SYNs sent, those that met a full ring of the DUT, that reached the server, and whose answer
#: came back. None of their packets are among those above.
HALF_SENT, HALF_MISSED, HALF_PASSED, HALF_ANSWERED = islice(_places, 4)
#: Failed connections that count (and damaged packets), by cause.
FAILED = next(_places)
CAUSES = ("no_syn_ack", "no_reply", "no_fin", "no_last_ack", "reset", "bad_checksum")
CAUSE_NO_SYN_ACK, CAUSE_NO_REPLY, CAUSE_NO_FIN, CAUSE_NO_LAST_ACK, CAUSE_RESET, CAUSE_BAD_CHECKSUM = range(6)
COUNTERS = FAILED + len(CAUSES)
#: Counters as `Trial` names them.
CAUSE_PLACES = {name: FAILED + cause for cause, name in enumerate(CAUSES)}
STRANGERS = {
    "foreign": FOREIGN, "unknown_connection": UNKNOWN, "misdirected": MISDIRECTED, "out_of_order": OUT_OF_ORDER
}  # fmt: skip
FLOOD = {"sent": HALF_SENT, "missed": HALF_MISSED, "passed": HALF_PASSED, "answered": HALF_ANSWERED}

#: The record's number in a tag: at most eight million connections. What is left of its 32 bits tells trials apart.
SLOT_BITS = 23
SLOT_MASK = (1 << SLOT_BITS) - 1
MOST_RECORDS = 1 << SLOT_BITS

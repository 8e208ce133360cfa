"""Places in the arrays that the kernel function for packet profiles works on, all int64; as `layout` for connections.

Values that come in pairs are indexed by the port that sends (or takes): `CLIENT`, then `SERVER`.
"""

CLIENT, SERVER = 0, 1

_names = iter(range(1000))


def _next() -> int:
    return next(_names)


#: Parameters: addresses of the Ethernet addresses, of the rings' rows, and how many rings there are.
MACS, _, TX, _, RX, _, RX_RINGS, _, QUEUES = (_next() for _ in range(9))
#: Who talks to whom, and how many flows; the random order of them (see `order`).
CLIENT_IP, CLIENT_IPS, SERVER_IP, SERVER_IPS, PORT_MIN, UDP_PORT, FLOWS, RANDOM, MASK, SHIFT = (
    _next() for _ in range(10)
)
#: As in `layout`; the order of the flows has one of its own.
IP_SHIFT = _next()
#: Address of the flows' records; for whom the ports answer ARP.
RECORDS, NEXT_HOP, _ = (_next() for _ in range(3))
#: How many frame sizes are sent in turn (see `stream_engine.payloads`), the VLAN (-1: none).
SIZE_COUNT, VLAN = (_next() for _ in range(2))
#: 1 or 2 directions; high bits of the tag: frames of an earlier trial do not belong to this one.
DIRECTIONS, SALT = (_next() for _ in range(2))
#: Lengths in cycles, as in `layout`.
RAMP, SETTLE, SUSTAIN, LINGER, TIMELINE_STEP, LATE_LIMIT = (_next() for _ in range(6))
SLACK, LATEST, MOST_LOST, EARLIEST, LEAST_SAVED = (_next() for _ in range(5))
LINK, LINK_THREADS = (_next() for _ in range(2))
#: Packets under way at once in a closed loop (0: they are sent on a schedule); the length of a stretch (see STRETCH),
#: and how long none may come before all are taken for lost, cycles.
UNDER_WAY, LOST_AFTER, SILENCE = (_next() for _ in range(3))
PARAMETERS = _next()

_names = iter(range(1000))
#: State: STOP is set from outside. The flow that is next in each direction, and its place in the random order.
STOP, FLOW, _, ORDER, _, SIZE, _, SEQUENCE, _ = (_next() for _ in range(9))
#: How late at worst (cycles), how many were later than the limit.
LATE_MAX, LATE_COUNT, POINTS = (_next() for _ in range(3))
LINK_BUSY, LINK_FRAMES, LINK_REFUSED = (_next() for _ in range(3))
#: Packets that were put on a ring, counted or not.
SENT = _next()
#: A closed loop writes off what is lost: cycles at which the present stretch of time began and the one before it, what
#: was sent in the latter and has not come yet, and what had come in all when the present one began.
STRETCH, STRETCH_BEFORE, NOT_COME, COME_BEFORE = (_next() for _ in range(4))
#: As in `layout`.
COUNTED_FROM, COUNTED_UNTIL, LONGEST_PAUSE, SUSTAIN_PAUSE = (_next() for _ in range(4))
LOOKS, LOOKS_HELD, LEFT_AT, AWAY = (_next() for _ in range(4))
#: Packets that count and were lost for certain when they were due; cycles after which the trial was ended early.
LOST, ENDED_AFTER = (_next() for _ in range(2))
STATES = _next()

_names = iter(range(1000))
#: Counters.
TX_PACKETS, _, TX_BYTES, _, RX_PACKETS, _, RX_BYTES, _ = (_next() for _ in range(8))
DUT_MISSED, ALL_RECEIVED = (_next() for _ in range(2))
#: Packets that a closed loop took for lost.
WRITTEN_OFF = _next()
#: Packets that count: due, written (or lost at the DUT's full ring), come out.
INTENDED, _, ATTEMPTED, _, RECEIVED, _, REORDERED, _ = (_next() for _ in range(8))
#: Latency of those: the longest, the last, and the sum of differences between successive ones, in the units of
#: `clock.bin_of`.
LATENCY_MAX, _, LATENCY_LAST, _, JITTER_SUM, _ = (_next() for _ in range(6))
#: Highest sequence number that came out.
HIGHEST, _ = (_next() for _ in range(2))
#: Received frames that are no use: not ours, of an earlier trial, damaged.
FOREIGN, UNKNOWN, BAD_CHECKSUM = (_next() for _ in range(3))
COUNTERS = _next()

#: A flow's record: what the server has seen of it, as it stands in the packets that the server sends; and whether.
RECORD_BYTES = 16
SERVER_ADDRESS, PEER_ADDRESS, FLOW_PORTS, SEEN = 0, 4, 8, 12
#: The flow's number in a tag.
FLOW_BITS = 22
FLOW_MASK = (1 << FLOW_BITS) - 1
#: The bit of the sequence number that says that the packet counts.
COUNTED = 1 << 31

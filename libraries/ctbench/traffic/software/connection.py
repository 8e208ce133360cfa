"""The record of one connection: 64 bytes, one cache line, both ends in it, and where its fields are.

The client end and the server end keep apart: neither reads the other's fields. What a server knows of its peer is
what it saw in the packet, so address translation in between makes no difference.
"""

from typing import Any

from numba import njit

from ctbench.traffic.software import clock
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import load8, load16, load32, store8, store16, store32, swap16, swap32

RECORD_BYTES = 64

#: Offsets of 32-bit words. Addresses and ports as they stand in the packets that this end sends.
CLIENT_IP, CLIENT_PEER_IP, CLIENT_PORTS, CLIENT_SEQ, CLIENT_ACK = 0, 4, 8, 12, 16
SERVER_IP, SERVER_PEER_IP, SERVER_PORTS, SERVER_SEQ, SERVER_ACK = 20, 24, 28, 32, 36
#: The same from the first of them on, at either end.
_OF_AN_END = range(0, 20, 4)
#: Messages that the client has yet to ask (low 16 bits) and that the server has yet to answer (high 16 bits).
CLIENT_LEFT, SERVER_LEFT = 40, 42
#: Bytes: state of either end, flags, queue.
CLIENT_STATE, SERVER_STATE, FLAGS, QUEUE = 44, 45, 46, 47
#: Cycles / 64 of the first packet, later of the message under way (see `message_sent`); milliseconds (roughly) of
#: the last progress. Both wrap around.
STARTED, PROGRESS = 48, 52
#: The next record in the queue of waiting replies, or in the list of free records; when the reply is due (cycles / 64).
NEXT, REPLY_DUE = 56, 60

#: States of the client end. FREE: the record is not in use. DEAD: the connection has failed, but its server's reply
#: still waits in the queue and the record is free only when that is over.
FREE, SYN_SENT, AWAITS_REPLY, FIN_SENT, CLIENT_DONE, DEAD = 0, 1, 2, 3, 4, 5
#: Of a client whose server closes first: it has all replies. Of one that holds: nothing is under way.
AWAITS_FIN, HELD = 6, 7
#: States of the server end.
LISTENING, SYN_RECEIVED, SERVING, LAST_ACK, FIN_WAIT, SERVER_DONE = 0, 1, 2, 3, 4, 5

#: Flags: begun in the sustain phase (and so counted), UDP, waits in the queue of replies, established.
COUNTED, UDP, REPLY_WAITS, ESTABLISHED = 1, 2, 4, 8

#: The end of a list of records.
NOBODY = 0xFFFFFFFF


@njit(nogil=True, forceinline=True)
def set_flag(record, flag):  # type: ignore[no-untyped-def]
    store8(record + FLAGS, load8(record + FLAGS) | flag)


@njit(nogil=True, forceinline=True)
def link_free(records, count):  # type: ignore[no-untyped-def]
    """Chain `count` records into the list of free ones, lowest first; returns the first."""
    for slot in range(count):
        record = records + slot * RECORD_BYTES
        store8(record + CLIENT_STATE, FREE)
        store32(record + NEXT, slot + 1 if slot + 1 < count else NOBODY)
    return 0


@njit(nogil=True, forceinline=True)
def is_from_peer(frame, end):  # type: ignore[no-untyped-def]
    """Whether a frame is from the peer of an end, to this end. `end`: address of the end's part of the record."""
    return (
        load32(frame + f.IP_SOURCE) == load32(end + CLIENT_PEER_IP)
        and load32(frame + f.IP_DESTINATION) == load32(end + CLIENT_IP)
        and load32(frame + f.L4) == f.swap_ports(load32(end + CLIENT_PORTS))
    )


@njit(nogil=True, forceinline=True)
def has_room(ring, record, counts):  # type: ignore[no-untyped-def]
    """Whether there is room for a frame of a connection; where not, the DUT has missed one."""
    if r.room(ring):
        return True
    counts[lay.DUT_MISSED] += 1
    if load8(record + FLAGS) & COUNTED:
        counts[lay.COUNTED_MISSED] += 1
    return False


def _tcp_sender(port: int, end: int, pattern: int, pattern_sum: int) -> Any:
    """A function of numba's that sends a TCP segment from one end and advances its sequence number. `end`: where the
    record has what is that end's; `pattern`, `pattern_sum`: of its messages, and the place of their sum."""
    ip, peer_ip, ports, own_seq, own_ack = (end + offset for offset in _OF_AN_END)

    @njit(nogil=True, forceinline=True)
    def send(ring, record, tag, flags, payload, p, counts):  # type: ignore[no-untyped-def]
        seq = load32(record + own_seq)
        if has_room(ring, record, counts):
            length = f.write_tcp(
                r.next_buffer(ring), p[lay.SHIFT], p[lay.MACS + port], load32(record + ip), load32(record + peer_ip),
                load32(record + ports), seq, load32(record + own_ack), flags, tag,
                0 if flags == f.SYN else tag, payload, pattern, p[pattern_sum] if payload else 0,
            )  # fmt: skip
            clock.put(ring, length, port, counts)
        store32(record + own_seq, seq + payload + (1 if flags & (f.SYN | f.FIN) else 0))

    return send


def _udp_sender(port: int, end: int, pattern: int, payload: int, pattern_sum: int) -> Any:
    """The same of a UDP datagram, whose payload begins with the tag; `payload`, `pattern_sum`: the places of its length
    (at least 18 bytes), and of the sum of what is behind the tag."""
    ip, peer_ip, ports, _, _ = (end + offset for offset in _OF_AN_END)

    @njit(nogil=True, forceinline=True)
    def send(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
        if has_room(ring, record, counts):
            frame = r.next_buffer(ring)
            start = f.write_udp(
                frame, p[lay.SHIFT], p[lay.MACS + port], load32(record + ip), load32(record + peer_ip),
                load32(record + ports), p[payload], tag + p[pattern_sum],
            )  # fmt: skip
            store32(start, tag)
            f.write_pattern(start + 4, p[payload] - 4, pattern)
            clock.put(ring, start - frame + p[payload], port, counts)

    return send


client_tcp = _tcp_sender(lay.CLIENT, CLIENT_IP, f.REQUEST_PATTERN, lay.REQUEST_SUM)
server_tcp = _tcp_sender(lay.SERVER, SERVER_IP, f.REPLY_PATTERN, lay.REPLY_SUM)
client_udp = _udp_sender(lay.CLIENT, CLIENT_IP, f.REQUEST_PATTERN, lay.UDP_REQUEST_BYTES, lay.UDP_REQUEST_SUM)
server_udp = _udp_sender(lay.SERVER, SERVER_IP, f.REPLY_PATTERN, lay.UDP_REPLY_BYTES, lay.UDP_REPLY_SUM)


@njit(nogil=True)
def server_closes(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    store8(record + SERVER_STATE, FIN_WAIT)
    server_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)


@njit(nogil=True, forceinline=True)
def hold(record, opens, counts):  # type: ignore[no-untyped-def]
    """The connection stays open. `opens`: it was not before; else what was asked is answered."""
    store8(record + CLIENT_STATE, HELD)
    if not opens:
        counts[lay.ALL_COMPLETED] += 1


@njit(nogil=True)
def client_ends(ring, record, tag, opens, p, counts):  # type: ignore[no-untyped-def]
    """The client end has all that it asked for: it closes, resets, waits for the server to close, or holds. `opens`:
    the last segment was the SYN-ACK, and nothing else of the client's says that it came."""
    if p[lay.ENDED_BY] == lay.BY_SERVER:
        store8(record + CLIENT_STATE, AWAITS_FIN)
        if opens:
            client_tcp(ring, record, tag, f.ACK, 0, p, counts)
    elif p[lay.ENDED_BY] == lay.BY_RESET:
        store8(record + CLIENT_STATE, CLIENT_DONE)
        client_tcp(ring, record, tag, f.RST | f.ACK, 0, p, counts)
    elif p[lay.ENDED_BY] == lay.NEVER:
        hold(record, opens, counts)
        client_tcp(ring, record, tag, f.ACK, 0, p, counts)
    else:
        store8(record + CLIENT_STATE, FIN_SENT)
        client_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)


@njit(nogil=True, forceinline=True)
def reply(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    """The server end answers a request."""
    if load8(record + FLAGS) & UDP:
        server_udp(ring, record, tag, p, counts)
    else:
        server_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REPLY_BYTES], p, counts)
        if p[lay.ENDED_BY] == lay.BY_SERVER and load16(record + SERVER_LEFT) == 0:
            server_closes(ring, record, tag, p, counts)


#: Messages of one connection of so many are timed, by the number of its record: a power of two.
EVERY = 8


@njit(nogil=True, forceinline=True)
def message_sent(record, slot, now, p):  # type: ignore[no-untyped-def]
    """A message goes out now. Where its latency is not wanted, the record keeps when the connection was begun."""
    if p[lay.TIMES_MESSAGES] and slot & (EVERY - 1) == 0:
        store32(record + STARTED, now >> clock.UNIT_SHIFT)


@njit(nogil=True, forceinline=True, error_model="numpy")
def message_taken(record, slot, port, now, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """A message has come that `port` message_sent."""
    store32(record + PROGRESS, now >> p[lay.TICK_SHIFT])
    if slot & (EVERY - 1) or not s[lay.TIMING]:
        return
    clock.note_latency(((now >> clock.UNIT_SHIFT) - load32(record + STARTED)) & 0xFFFFFFFF, port, counts, histograms)


@njit(nogil=True, forceinline=True, error_model="numpy")
def release(record, slot, s):  # type: ignore[no-untyped-def]
    """The record is free again. Last in, first out: few records stay in the caches."""
    store8(record + CLIENT_STATE, FREE)
    store32(record + NEXT, s[lay.FREE_HEAD])
    s[lay.FREE_HEAD] = slot
    s[lay.ACTIVE] -= 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def complete(record, slot, s, counts):  # type: ignore[no-untyped-def]
    counts[lay.ALL_COMPLETED] += 1
    if load8(record + FLAGS) & COUNTED:
        counts[lay.COMPLETED] += 1
    release(record, slot, s)


@njit(nogil=True, error_model="numpy")
def fail(record, slot, cause, s, counts):  # type: ignore[no-untyped-def]
    """A connection has failed. It counts when it began in the sustain phase, or where failures count by their time:
    when it made its last progress in it."""
    counts[lay.ALL_FAILED] += 1
    if s[lay.FAILURES_FOR]:
        counted = (load32(record + PROGRESS) - s[lay.FAILURES_FROM]) & 0xFFFFFFFF < s[lay.FAILURES_FOR]
    else:
        counted = load8(record + FLAGS) & COUNTED != 0
    if counted:
        counts[lay.FAILED + cause] += 1
    if load8(record + FLAGS) & REPLY_WAITS:
        store8(record + CLIENT_STATE, DEAD)  # still a link of the queue of replies
    else:
        release(record, slot, s)


@njit(nogil=True, forceinline=True, error_model="numpy")
def established(record, now, p, counts, histograms):  # type: ignore[no-untyped-def]
    """The SYN-ACK came: the connect time is known. (UDP has none: its first reply may have waited.)"""
    store32(record + PROGRESS, now >> p[lay.TICK_SHIFT])
    if not load8(record + FLAGS) & COUNTED:
        return
    counts[lay.TCP_ESTABLISHED] += 1
    took = ((now >> 6) - load32(record + STARTED)) & 0xFFFFFFFF
    counts[lay.SETUP_SUM] += took
    counts[lay.SETUP_MAX] = max(counts[lay.SETUP_MAX], took)
    histograms[clock.CONNECT, clock.bin_of(took)] += 1


@njit(nogil=True, error_model="numpy")
def begin(tx, now, counted, messages, p, s, counts):  # type: ignore[no-untyped-def]
    """Begin one connection of so many messages: its first packet goes out, or is lost at the DUT's full ring."""
    slot = s[lay.FREE_HEAD]
    if slot == NOBODY:
        counts[lay.NO_RECORD] += 1
        return
    record = p[lay.RECORDS] + slot * RECORD_BYTES
    s[lay.FREE_HEAD] = load32(record + NEXT)
    s[lay.HIGHEST] = max(s[lay.HIGHEST], slot + 1)
    s[lay.ACTIVE] += 1
    number = s[lay.BEGUN]
    s[lay.BEGUN] += 1
    # Error feedback spreads the UDP share evenly.
    s[lay.UDP_DEBT] += p[lay.UDP_PER_MILLION]
    is_udp = s[lay.UDP_DEBT] >= 1000000
    flags = 0
    if is_udp:
        s[lay.UDP_DEBT] -= 1000000
        flags |= UDP
    if counted:
        flags |= COUNTED
        counts[lay.ATTEMPTED] += 1
    who = clock.next_tuple(lay.TUPLE, p, s)
    client = p[lay.CLIENT_IP] + who // p[lay.PORTS]
    port = p[lay.PORT_MIN] + who % p[lay.PORTS]
    server = p[lay.SERVER_IP] + number % p[lay.SERVER_IPS]
    queue = number % p[lay.QUEUES]
    store32(record + CLIENT_IP, swap32(client))
    store32(record + CLIENT_PEER_IP, swap32(server))
    store32(record + CLIENT_PORTS, swap16(port) | (swap16(p[lay.UDP_PORT] if is_udp else p[lay.TCP_PORT]) << 16))
    store32(record + CLIENT_SEQ, number * 2654435761)
    store32(record + CLIENT_ACK, 0)
    store16(record + CLIENT_LEFT, messages)
    store16(record + SERVER_LEFT, messages)
    store8(record + CLIENT_STATE, AWAITS_REPLY if is_udp else SYN_SENT)
    store8(record + SERVER_STATE, LISTENING)
    store8(record + FLAGS, flags)
    store8(record + QUEUE, queue)
    store32(record + STARTED, now >> 6)
    store32(record + PROGRESS, now >> p[lay.TICK_SHIFT])
    tag = slot | p[lay.SALT]
    if is_udp:
        client_udp(tx + queue * r.ROW_BYTES, record, tag, p, counts)
    else:
        client_tcp(tx + queue * r.ROW_BYTES, record, tag, f.SYN, 0, p, counts)


@njit(nogil=True, forceinline=True, error_model="numpy")
def find(frame, echoed, p, s):  # type: ignore[no-untyped-def]
    """The number of the record that the frame names, -1 when it names none in use."""
    tag = f.tag_of(frame, load8(frame + f.IP_PROTOCOL), echoed)
    slot = tag & lay.SLOT_MASK
    if tag - slot != p[lay.SALT] or slot >= s[lay.HIGHEST]:
        return -1
    state = load8(p[lay.RECORDS] + slot * RECORD_BYTES + CLIENT_STATE)
    return slot if state != FREE and state != DEAD else -1


@njit(nogil=True, forceinline=True, error_model="numpy")
def sweep(now, p, s, counts):  # type: ignore[no-untyped-def]
    """Look at some records: a connection without progress for too long has failed."""
    tick = now >> p[lay.TICK_SHIFT]
    for _ in range(min(max(64, s[lay.HIGHEST] >> 9), s[lay.HIGHEST])):
        slot = s[lay.SWEEP]
        s[lay.SWEEP] = slot + 1 if slot + 1 < s[lay.HIGHEST] else 0
        record = p[lay.RECORDS] + slot * RECORD_BYTES
        state = load8(record + CLIENT_STATE)
        if state == FREE or load8(record + FLAGS) & REPLY_WAITS:
            continue
        idle = (tick - load32(record + PROGRESS)) & 0xFFFFFFFF
        if idle <= p[lay.TIMEOUT_TICKS] or idle > 0x7FFFFFFF:  # the latter: its last frame was read after `now`
            continue
        if state == SYN_SENT:
            cause = lay.CAUSE_NO_SYN_ACK
        elif state == AWAITS_REPLY:
            cause = lay.CAUSE_NO_REPLY
        elif state == FIN_SENT or state == AWAITS_FIN:  # noqa: SIM109  # as numba compiles it best
            cause = lay.CAUSE_NO_FIN
        else:
            cause = lay.CAUSE_NO_LAST_ACK
        fail(record, slot, cause, s, counts)

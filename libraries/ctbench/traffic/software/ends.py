"""Both ends of a connection: what each does about a frame that it takes, and the replies that wait.

The client opens, asks, and ends as the profile says; the server answers whom it sees.
"""

from numba import njit

from ctbench.traffic.software import clock
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import (
    cycles,
    load8,
    load16,
    load32,
    prefetch,
    store8,
    store16,
    store32,
    swap16,
    swap32,
)


@njit(nogil=True, forceinline=True)
def _at_client(frame, kind, slot, now, tx, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """The client end takes a frame from its peer. Whether it is one that may come now."""
    record = p[lay.RECORDS] + slot * c.RECORD_BYTES
    state = load8(record + c.CLIENT_STATE)
    ring = tx + load8(record + c.QUEUE) * r.ROW_BYTES
    tag = slot | p[lay.SALT]
    if kind == f.IS_UDP:
        if not load8(record + c.FLAGS) & c.UDP or state != c.AWAITS_REPLY:
            return False
        c.message_taken(record, slot, lay.SERVER, now, p, s, counts, histograms)
        opens = not load8(record + c.FLAGS) & c.ESTABLISHED
        if opens:
            c.set_flag(record, c.ESTABLISHED)
            if load8(record + c.FLAGS) & c.COUNTED:
                counts[lay.UDP_ESTABLISHED] += 1
        left = load16(record + c.CLIENT_LEFT) - 1
        store16(record + c.CLIENT_LEFT, left)
        if left:
            c.message_sent(record, slot, now, p)
            c.client_udp(ring, record, tag, p, counts)
        elif p[lay.ENDED_BY] == lay.NEVER:
            c.hold(record, opens, counts)
        else:
            c.complete(record, slot, s, counts)
        return True
    flags = load8(frame + f.TCP_FLAGS)
    if flags & f.RST:
        c.fail(record, slot, lay.CAUSE_RESET, s, counts)
        return True
    if swap32(load32(frame + f.TCP_ACK)) != load32(record + c.CLIENT_SEQ):
        return False
    seq = swap32(load32(frame + f.TCP_SEQ))
    if state == c.SYN_SENT:
        if flags != f.SYN | f.ACK:
            return False
        store32(record + c.CLIENT_ACK, seq + 1)
        c.established(record, now, p, counts, histograms)
        if load16(record + c.CLIENT_LEFT):
            store8(record + c.CLIENT_STATE, c.AWAITS_REPLY)
            c.message_sent(record, slot, now, p)
            c.client_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REQUEST_BYTES], p, counts)
        else:
            c.client_ends(ring, record, tag, True, p, counts)
        return True
    if seq != load32(record + c.CLIENT_ACK):
        return False
    payload = f.tcp_payload_bytes(frame)
    if state == c.AWAITS_REPLY:
        if payload == 0:
            return True  # the server's own acknowledgment, before it waits
        if payload != p[lay.REPLY_BYTES]:
            return False
        store32(record + c.CLIENT_ACK, seq + payload)
        c.message_taken(record, slot, lay.SERVER, now, p, s, counts, histograms)
        left = load16(record + c.CLIENT_LEFT) - 1
        store16(record + c.CLIENT_LEFT, left)
        if left:
            c.message_sent(record, slot, now, p)
            c.client_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REQUEST_BYTES], p, counts)
        else:
            c.client_ends(ring, record, tag, False, p, counts)
        return True
    if flags & f.FIN and (state == c.FIN_SENT or state == c.AWAITS_FIN):
        store32(record + c.CLIENT_ACK, seq + 1)
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        store8(record + c.CLIENT_STATE, c.CLIENT_DONE)
        c.client_tcp(ring, record, tag, f.ACK if state == c.FIN_SENT else f.FIN | f.ACK, 0, p, counts)
        return True
    if state == c.CLIENT_DONE and p[lay.ENDED_BY] == lay.BY_SERVER and flags == f.ACK:
        c.complete(record, slot, s, counts)
        return True
    return False


#: Replies sent before the rings are polled again.
_BURST = 32


@njit(nogil=True, forceinline=True)
def _request(ring, record, slot, tag, now, p, s, counts):  # type: ignore[no-untyped-def]
    """The server end has a request: it answers now, or waits first."""
    left = load16(record + c.SERVER_LEFT) - 1
    store16(record + c.SERVER_LEFT, left)
    if p[lay.ACK_BEFORE_REPLY] and not load8(record + c.FLAGS) & c.UDP:
        c.server_tcp(ring, record, tag, f.ACK, 0, p, counts)
    if p[lay.SERVER_WAIT] == 0:
        c.message_sent(record, slot, now, p)
        c.reply(ring, record, tag, p, counts)
        return
    # Every reply waits equally long, so the one that was queued first is due first: a queue does for a timer wheel.
    c.set_flag(record, c.REPLY_WAITS)
    store32(record + c.REPLY_DUE, (now + p[lay.SERVER_WAIT]) >> 6)
    store32(record + c.NEXT, c.NOBODY)
    if s[lay.WAITING_LAST] == c.NOBODY:
        s[lay.WAITING_FIRST] = slot
    else:
        store32(p[lay.RECORDS] + s[lay.WAITING_LAST] * c.RECORD_BYTES + c.NEXT, slot)
    s[lay.WAITING_LAST] = slot


@njit(nogil=True, forceinline=True)
def _at_server(frame, kind, slot, now, tx, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """The server end takes a frame. It answers whom it sees, whatever was translated on the way. Whether the frame is
    one that may come now."""
    record = p[lay.RECORDS] + slot * c.RECORD_BYTES
    state = load8(record + c.SERVER_STATE)
    tag = slot | p[lay.SALT]
    ring = tx + load8(record + c.QUEUE) * r.ROW_BYTES
    flags = load8(frame + f.TCP_FLAGS)
    opens = (kind == f.IS_UDP) or flags == f.SYN
    if state == c.LISTENING and opens:
        store32(record + c.SERVER_IP, load32(frame + f.IP_DESTINATION))
        store32(record + c.SERVER_PEER_IP, load32(frame + f.IP_SOURCE))
        store32(record + c.SERVER_PORTS, f.swap_ports(load32(frame + f.L4)))
        if kind == f.IS_UDP:
            store8(record + c.SERVER_STATE, c.SERVING)
        else:
            client_seq = swap32(load32(frame + f.TCP_SEQ))
            store32(record + c.SERVER_SEQ, (client_seq * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF)
            store32(record + c.SERVER_ACK, client_seq + 1)
            store8(record + c.SERVER_STATE, c.SYN_RECEIVED)
            c.server_tcp(ring, record, tag, f.SYN | f.ACK, 0, p, counts)
            return True
    elif not c.is_from_peer(frame, record + c.SERVER_IP):
        counts[lay.MISDIRECTED] += 1
        return True
    if kind == f.IS_UDP:
        if not load16(record + c.SERVER_LEFT):
            return False
        c.message_taken(record, slot, lay.CLIENT, now, p, s, counts, histograms)
        _request(ring, record, slot, tag, now, p, s, counts)
        return True
    seq = swap32(load32(frame + f.TCP_SEQ))
    if flags & f.RST:
        if (
            p[lay.ENDED_BY] == lay.BY_RESET
            and load8(record + c.CLIENT_STATE) == c.CLIENT_DONE
            and seq == load32(record + c.SERVER_ACK)
        ):
            c.complete(record, slot, s, counts)
        else:
            c.fail(record, slot, lay.CAUSE_RESET, s, counts)
        return True
    ack = swap32(load32(frame + f.TCP_ACK))
    if seq != load32(record + c.SERVER_ACK) or ack != load32(record + c.SERVER_SEQ) or flags & f.SYN:
        return False
    payload = f.tcp_payload_bytes(frame)
    if state == c.SYN_RECEIVED or state == c.SERVING:
        store8(record + c.SERVER_STATE, c.SERVING)
        if payload == p[lay.REQUEST_BYTES] and load16(record + c.SERVER_LEFT):
            store32(record + c.SERVER_ACK, seq + payload)
            c.message_taken(record, slot, lay.CLIENT, now, p, s, counts, histograms)
            _request(ring, record, slot, tag, now, p, s, counts)
        elif payload == 0 and flags & f.FIN:
            store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
            store32(record + c.SERVER_ACK, seq + 1)
            store8(record + c.SERVER_STATE, c.LAST_ACK)
            c.server_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)
        elif payload or flags != f.ACK:
            return False
        elif p[lay.ENDED_BY] == lay.BY_SERVER and load16(record + c.SERVER_LEFT) == 0:
            c.server_closes(ring, record, tag, p, counts)  # without data
        return True
    if state == c.FIN_WAIT and flags & f.FIN:
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        store32(record + c.SERVER_ACK, seq + 1)
        store8(record + c.SERVER_STATE, c.SERVER_DONE)
        c.server_tcp(ring, record, tag, f.ACK, 0, p, counts)
        return True
    if state == c.LAST_ACK and load8(record + c.CLIENT_STATE) == c.CLIENT_DONE:
        c.complete(record, slot, s, counts)
        return True
    return False


@njit(nogil=True, forceinline=True)
def send_due_replies(now, tx, p, s, counts):  # type: ignore[no-untyped-def]
    """Some of the replies whose wait is over: after a pause there are many, and a ring holds only so many."""
    for _ in range(_BURST):
        if s[lay.WAITING_FIRST] == c.NOBODY:
            return
        slot = s[lay.WAITING_FIRST]
        record = p[lay.RECORDS] + slot * c.RECORD_BYTES
        if ((now >> 6) - load32(record + c.REPLY_DUE)) & 0x80000000:
            return
        s[lay.WAITING_FIRST] = load32(record + c.NEXT)
        if s[lay.WAITING_FIRST] == c.NOBODY:
            s[lay.WAITING_LAST] = c.NOBODY
        else:
            prefetch(p[lay.RECORDS] + s[lay.WAITING_FIRST] * c.RECORD_BYTES)
        store8(record + c.FLAGS, load8(record + c.FLAGS) & ~c.REPLY_WAITS)
        if load8(record + c.CLIENT_STATE) == c.DEAD:
            c.release(record, slot, s)
            continue
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        c.message_sent(record, slot, now, p)
        c.reply(tx + load8(record + c.QUEUE) * r.ROW_BYTES, record, slot | p[lay.SALT], p, counts)


#: What stands in the place of a record's number; `plan.records_needed` leaves it out.
NOBODYS = lay.SLOT_MASK
#: SYNs sent before the rings are polled again.
_SYN_BURST = 16


@njit(nogil=True, error_model="numpy")
def send_due_syns(due, now, interval, tx, p, s, counts):  # type: ignore[no-untyped-def]
    """Send the SYNs that are due, a burst of them at most; returns when the next one is. `interval`: cycles from one to
    the next. What was held back for longer than `layout.SLACK` is not made good."""
    due = max(due, now - float(p[lay.SLACK]))
    for _ in range(_SYN_BURST):
        if due > now:
            break
        due += interval
        number = s[lay.HALF_BEGUN]
        s[lay.HALF_BEGUN] += 1
        ring = tx + number % p[lay.QUEUES] * r.ROW_BYTES
        who = clock.next_tuple(lay.HALF_TUPLE, p, s)
        counts[lay.HALF_SENT] += 1
        if not r.room(ring):
            counts[lay.HALF_MISSED] += 1
            continue
        client = p[lay.CLIENT_IP] + p[lay.CLIENT_IPS] + who // p[lay.PORTS]
        server = p[lay.SERVER_IP] + number % p[lay.SERVER_IPS]
        ports = swap16(p[lay.PORT_MIN] + who % p[lay.PORTS]) | (swap16(p[lay.TCP_PORT]) << 16)
        length = f.write_tcp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.MACS + lay.CLIENT], swap32(client), swap32(server), ports,
            (number * 2654435761) & 0xFFFFFFFF, 0, f.SYN, NOBODYS | p[lay.SALT], 0, 0, f.REQUEST_PATTERN, 0,
        )  # fmt: skip
        r.put(ring, length)
    return due


@njit(nogil=True, error_model="numpy")
def take_half_open(frame, length, kind, port, ring, p, counts):  # type: ignore[no-untyped-def]
    """Whether a frame that names no record is of one of these; then it is counted, and at the server answered on
    `ring`."""
    if kind != f.IS_TCP or f.tag_of(frame, f.PROTOCOL_TCP, port == lay.CLIENT) != NOBODYS | p[lay.SALT]:
        return False
    flags = load8(frame + f.TCP_FLAGS)
    if flags != (f.SYN | f.ACK if port == lay.CLIENT else f.SYN):
        return False
    counts[lay.RX_PACKETS + port] -= 1
    counts[lay.RX_BYTES + port] -= length
    if port == lay.CLIENT:
        counts[lay.HALF_ANSWERED] += 1
        return True
    counts[lay.HALF_PASSED] += 1
    if r.room(ring):
        seq, tag = load32(frame + f.TCP_SEQ), NOBODYS | p[lay.SALT]
        answer = f.write_tcp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.MACS + lay.SERVER], load32(frame + f.IP_DESTINATION),
            load32(frame + f.IP_SOURCE), f.swap_ports(load32(frame + f.L4)), seq, (swap32(seq) + 1) & 0xFFFFFFFF,
            f.SYN | f.ACK, tag, tag, 0, f.REPLY_PATTERN, 0,
        )  # fmt: skip
        r.put(ring, answer)
    return True


#: Frames taken from one ring before the others have their turn.
_TAKEN = 32
#: Connection records are fetched this many frames ahead.
_AHEAD = 3


@njit(nogil=True, forceinline=True, error_model="numpy")
def poll(port, away, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """Take a burst of frames from each ring of a port, and show the other side what was answered. `away`: see
    `clock.enter`."""
    now = cycles() - away
    tx, shift, headers = p[lay.TX + port], p[lay.SHIFT], p[lay.MACS + port]
    protocol_at = f.IPV6_NEXT_HEADER if shift else f.IP_PROTOCOL
    for queue in range(p[lay.RX_RINGS + port]):
        ring = p[lay.RX + port] + queue * r.ROW_BYTES
        waiting = min(r.frames_waiting(ring), _TAKEN)
        if waiting == 0:
            continue
        for ahead in range(waiting):
            r.prefetch_frame(ring, ahead)
        for ahead in range(waiting):
            if ahead + _AHEAD < waiting:
                later, _ = r.frame_at(ring, ahead + _AHEAD)
                slot = f.tag_of(later + shift, load8(later + protocol_at), port == lay.CLIENT) & lay.SLOT_MASK
                if slot < s[lay.HIGHEST]:
                    prefetch(p[lay.RECORDS] + slot * c.RECORD_BYTES)
            frame, length = r.frame_at(ring, ahead)
            counts[lay.RX_PACKETS + port] += 1
            counts[lay.RX_BYTES + port] += length
            kind = f.classify(frame, length, shift, headers)
            if kind == f.IS_OTHER:
                f.answer(port, tx, frame, length, p, counts)
                continue
            frame += shift
            slot = c.find(frame, port == lay.CLIENT, p, s)
            record = p[lay.RECORDS] + slot * c.RECORD_BYTES
            if kind == f.IS_BAD_CHECKSUM:
                if slot < 0:
                    counts[lay.FOREIGN] += 1
                else:
                    c.fail(record, slot, lay.CAUSE_BAD_CHECKSUM, s, counts)
            elif slot < 0:
                answers = tx + queue % p[lay.QUEUES] * r.ROW_BYTES
                if not p[lay.HALF_OPEN] or not take_half_open(frame, length, kind, port, answers, p, counts):
                    counts[lay.UNKNOWN] += 1
            elif port == lay.SERVER:
                if not _at_server(frame, kind, slot, now, tx, p, s, counts, histograms):
                    counts[lay.OUT_OF_ORDER] += 1
            elif not c.is_from_peer(frame, record + c.CLIENT_IP):
                counts[lay.MISDIRECTED] += 1
            elif not _at_client(frame, kind, slot, now, tx, p, s, counts, histograms):
                counts[lay.OUT_OF_ORDER] += 1
        r.give_back(ring, waiting)
    r.publish_all(tx, p[lay.QUEUES])

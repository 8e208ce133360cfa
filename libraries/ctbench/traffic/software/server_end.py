"""The server end: what it does about a frame that it takes, and the replies that wait. It answers whom it sees."""

from numba import njit

from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import latency
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.lifecycle import complete, fail, release
from ctbench.traffic.software.machine_code import load8, load16, load32, prefetch, store8, store16, store32, swap32
from ctbench.traffic.software.sending import reply, server_closes, server_tcp

#: Replies sent before the rings are polled again.
_BURST = 32


@njit(nogil=True, forceinline=True)
def _request(ring, record, slot, tag, now, p, s, counts):  # type: ignore[no-untyped-def]
    """The server end has a request: it answers now, or waits first."""
    left = load16(record + c.SERVER_LEFT) - 1
    store16(record + c.SERVER_LEFT, left)
    if p[lay.ACK_BEFORE_REPLY] and not load8(record + c.FLAGS) & c.UDP:
        server_tcp(ring, record, tag, f.ACK, 0, p, counts)
    if p[lay.SERVER_WAIT] == 0:
        latency.sent(record, slot, now, p)
        reply(ring, record, tag, p, counts)
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
def at_server(frame, kind, slot, now, tx, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """The server end takes a frame. It answers whom it sees, whatever was translated on the way."""
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
            state = c.SERVING
        else:
            client_seq = swap32(load32(frame + f.TCP_SEQ))
            store32(record + c.SERVER_SEQ, (client_seq * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF)
            store32(record + c.SERVER_ACK, client_seq + 1)
            store8(record + c.SERVER_STATE, c.SYN_RECEIVED)
            server_tcp(ring, record, tag, f.SYN | f.ACK, 0, p, counts)
            return
    elif (
        load32(frame + f.IP_SOURCE) != load32(record + c.SERVER_PEER_IP)
        or load32(frame + f.IP_DESTINATION) != load32(record + c.SERVER_IP)
        or load32(frame + f.L4) != f.swap_ports(load32(record + c.SERVER_PORTS))
    ):
        counts[lay.MISDIRECTED] += 1
        return
    if kind == f.IS_UDP:
        if load16(record + c.SERVER_LEFT):
            store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
            latency.taken(record, slot, lay.CLIENT, now, s, counts, histograms)
            _request(ring, record, slot, tag, now, p, s, counts)
        else:
            counts[lay.OUT_OF_ORDER] += 1
        return
    seq = swap32(load32(frame + f.TCP_SEQ))
    if flags & f.RST:
        if (
            p[lay.ENDED_BY] == lay.BY_RESET
            and load8(record + c.CLIENT_STATE) == c.CLIENT_DONE
            and seq == load32(record + c.SERVER_ACK)
        ):
            complete(record, slot, s, counts)
        else:
            fail(record, slot, lay.CAUSE_RESET, s, counts)
        return
    ack = swap32(load32(frame + f.TCP_ACK))
    if seq != load32(record + c.SERVER_ACK) or ack != load32(record + c.SERVER_SEQ) or flags & f.SYN:
        counts[lay.OUT_OF_ORDER] += 1
        return
    payload = f.tcp_payload_bytes(frame)
    if state == c.SYN_RECEIVED or state == c.SERVING:
        store8(record + c.SERVER_STATE, c.SERVING)
        if payload == p[lay.REQUEST_BYTES] and load16(record + c.SERVER_LEFT):
            store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
            store32(record + c.SERVER_ACK, seq + payload)
            latency.taken(record, slot, lay.CLIENT, now, s, counts, histograms)
            _request(ring, record, slot, tag, now, p, s, counts)
        elif payload == 0 and flags & f.FIN:
            store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
            store32(record + c.SERVER_ACK, seq + 1)
            store8(record + c.SERVER_STATE, c.LAST_ACK)
            server_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)
        elif payload or flags != f.ACK:
            counts[lay.OUT_OF_ORDER] += 1
        elif p[lay.ENDED_BY] == lay.BY_SERVER and load16(record + c.SERVER_LEFT) == 0:
            server_closes(ring, record, tag, p, counts)  # without data
    elif state == c.FIN_WAIT and flags & f.FIN:
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        store32(record + c.SERVER_ACK, seq + 1)
        store8(record + c.SERVER_STATE, c.SERVER_DONE)
        server_tcp(ring, record, tag, f.ACK, 0, p, counts)
    elif state == c.LAST_ACK and load8(record + c.CLIENT_STATE) == c.CLIENT_DONE:
        complete(record, slot, s, counts)
    else:
        counts[lay.OUT_OF_ORDER] += 1


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
        c.clear_flag(record, c.REPLY_WAITS)
        if load8(record + c.CLIENT_STATE) == c.DEAD:
            release(record, slot, s)
            continue
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        latency.sent(record, slot, now, p)
        reply(tx + load8(record + c.QUEUE) * r.ROW_BYTES, record, slot | p[lay.SALT], p, counts)

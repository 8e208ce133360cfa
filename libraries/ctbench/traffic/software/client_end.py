"""The client end: what it does about a frame that it takes. It opens, asks, and ends as the profile says."""

from numba import njit

from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import latency
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.lifecycle import complete, established, fail
from ctbench.traffic.software.machine_code import load8, load16, load32, store8, store16, store32, swap32
from ctbench.traffic.software.sending import client_ends, client_tcp, client_udp


@njit(nogil=True, forceinline=True)
def at_client(frame, kind, slot, now, tx, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """The client end takes a frame."""
    record = p[lay.RECORDS] + slot * c.RECORD_BYTES
    state = load8(record + c.CLIENT_STATE)
    if (
        load32(frame + f.IP_SOURCE) != load32(record + c.CLIENT_PEER_IP)
        or load32(frame + f.IP_DESTINATION) != load32(record + c.CLIENT_IP)
        or load32(frame + f.L4) != f.swap_ports(load32(record + c.CLIENT_PORTS))
    ):
        counts[lay.MISDIRECTED] += 1
        return
    ring = tx + load8(record + c.QUEUE) * r.ROW_BYTES
    tag = slot | p[lay.SALT]
    if kind == f.IS_UDP:
        if not load8(record + c.FLAGS) & c.UDP or state != c.AWAITS_REPLY:
            counts[lay.OUT_OF_ORDER] += 1
            return
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        latency.taken(record, slot, lay.SERVER, now, s, counts, histograms)
        if not load8(record + c.FLAGS) & c.ESTABLISHED:
            c.set_flag(record, c.ESTABLISHED)
            if load8(record + c.FLAGS) & c.COUNTED:
                counts[lay.UDP_ESTABLISHED] += 1
        left = load16(record + c.CLIENT_LEFT) - 1
        store16(record + c.CLIENT_LEFT, left)
        if left:
            latency.sent(record, slot, now, p)
            client_udp(ring, record, tag, p, counts)
        else:
            complete(record, slot, s, counts)
        return
    flags = load8(frame + f.TCP_FLAGS)
    if flags & f.RST:
        fail(record, slot, lay.CAUSE_RESET, s, counts)
        return
    if swap32(load32(frame + f.TCP_ACK)) != load32(record + c.CLIENT_SEQ):
        counts[lay.OUT_OF_ORDER] += 1
        return
    seq = swap32(load32(frame + f.TCP_SEQ))
    if state == c.SYN_SENT:
        if flags != f.SYN | f.ACK:
            counts[lay.OUT_OF_ORDER] += 1
            return
        store32(record + c.CLIENT_ACK, seq + 1)
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        established(record, now, p, counts, histograms)
        if load16(record + c.CLIENT_LEFT):
            store8(record + c.CLIENT_STATE, c.AWAITS_REPLY)
            latency.sent(record, slot, now, p)
            client_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REQUEST_BYTES], p, counts)
        else:
            client_ends(ring, record, tag, True, p, counts)
        return
    if seq != load32(record + c.CLIENT_ACK):
        counts[lay.OUT_OF_ORDER] += 1
        return
    payload = f.tcp_payload_bytes(frame)
    if state == c.AWAITS_REPLY:
        if payload == 0:
            return  # the server's own acknowledgment, before it waits
        if payload != p[lay.REPLY_BYTES]:
            counts[lay.OUT_OF_ORDER] += 1
            return
        store32(record + c.CLIENT_ACK, seq + payload)
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        latency.taken(record, slot, lay.SERVER, now, s, counts, histograms)
        left = load16(record + c.CLIENT_LEFT) - 1
        store16(record + c.CLIENT_LEFT, left)
        if left:
            latency.sent(record, slot, now, p)
            client_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REQUEST_BYTES], p, counts)
        else:
            client_ends(ring, record, tag, False, p, counts)
    elif state == c.AWAITS_FIN and flags & f.FIN:
        store32(record + c.CLIENT_ACK, seq + 1)
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        store8(record + c.CLIENT_STATE, c.CLIENT_DONE)
        client_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)
    elif state == c.CLIENT_DONE and p[lay.ENDED_BY] == lay.BY_SERVER and flags == f.ACK:
        complete(record, slot, s, counts)
    elif state == c.FIN_SENT and flags & f.FIN:
        store32(record + c.CLIENT_ACK, seq + 1)
        store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
        store8(record + c.CLIENT_STATE, c.CLIENT_DONE)
        client_tcp(ring, record, tag, f.ACK, 0, p, counts)
    else:
        counts[lay.OUT_OF_ORDER] += 1

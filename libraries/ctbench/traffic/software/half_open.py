"""Connections that stay half open: SYNs beside the load at a rate of their own, as in a flood (RFC 4987).

They come from as many client addresses as the load has, those behind them, so that none is a connection of the load.
The server end answers every one, and nobody answers it: the DUT has to remember both for as long as its timeouts say.
Nothing is remembered of them here. Their packets are counted apart from those of the load.
"""

from numba import njit

from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.lifecycle import next_tuple
from ctbench.traffic.software.machine_code import load8, load32, swap16, swap32

#: What stands in the place of a record's number; `plan.records_needed` leaves it out.
NOBODYS = lay.SLOT_MASK
#: SYNs sent before the rings are polled again.
_BURST = 16


@njit(nogil=True, error_model="numpy")
def send_due(due, now, interval, tx, p, s, counts):  # type: ignore[no-untyped-def]
    """Send the SYNs that are due, a burst of them at most; returns when the next one is. `interval`: cycles from one to
    the next. What was held back for longer than `layout.SLACK` is not made good."""
    due = max(due, now - float(p[lay.SLACK]))
    for _ in range(_BURST):
        if due > now:
            break
        due += interval
        number = s[lay.HALF_BEGUN]
        s[lay.HALF_BEGUN] += 1
        ring = tx + number % p[lay.QUEUES] * r.ROW_BYTES
        who = next_tuple(lay.HALF_TUPLE, p, s)
        counts[lay.HALF_SENT] += 1
        if not r.room(ring):
            counts[lay.HALF_MISSED] += 1
            continue
        client = p[lay.CLIENT_IP] + p[lay.CLIENT_IPS] + who // p[lay.PORTS]
        server = p[lay.SERVER_IP] + number % p[lay.SERVER_IPS]
        ports = swap16(p[lay.PORT_MIN] + who % p[lay.PORTS]) | (swap16(p[lay.TCP_PORT]) << 16)
        length = f.write_tcp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.CLIENT_MACS], swap32(client), swap32(server), ports,
            (number * 2654435761) & 0xFFFFFFFF, 0, f.SYN, NOBODYS | p[lay.SALT], 0, 0, f.REQUEST_PATTERN, 0,
        )  # fmt: skip
        r.put(ring, length)
    return due


@njit(nogil=True, error_model="numpy")
def take(frame, length, kind, port, ring, p, counts):  # type: ignore[no-untyped-def]
    """Whether a frame that names no record is of one of these; then it is counted, and at the server answered on
    `ring`."""
    if kind != f.IS_TCP or f.tag_of(frame, port == lay.CLIENT) != NOBODYS | p[lay.SALT]:
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
            r.next_buffer(ring), p[lay.SHIFT], p[lay.SERVER_MACS], load32(frame + f.IP_DESTINATION),
            load32(frame + f.IP_SOURCE), f.swap_ports(load32(frame + f.L4)), seq, (swap32(seq) + 1) & 0xFFFFFFFF,
            f.SYN | f.ACK, tag, tag, 0, f.REPLY_PATTERN, 0,
        )  # fmt: skip
        r.put(ring, answer)
    return True

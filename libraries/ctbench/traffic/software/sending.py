"""Sending: a frame of either end goes on the ring, or is lost there because the DUT has left no room."""

from numba import njit

from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import load8, load16, load32, store8, store32


@njit(nogil=True, forceinline=True)
def has_room(ring, record, counts):  # type: ignore[no-untyped-def]
    """Whether there is room for a frame of a connection; where not, the DUT has missed one."""
    if r.room(ring):
        return True
    counts[lay.DUT_MISSED] += 1
    if load8(record + c.FLAGS) & c.COUNTED:
        counts[lay.COUNTED_MISSED] += 1
    return False


@njit(nogil=True, forceinline=True)
def _sent(ring, length, counts, port):  # type: ignore[no-untyped-def]
    r.put(ring, length)
    counts[lay.TX_PACKETS + port] += 1
    counts[lay.TX_BYTES + port] += length


@njit(nogil=True, forceinline=True)
def client_tcp(ring, record, tag, flags, payload, p, counts):  # type: ignore[no-untyped-def]
    """Send a TCP segment from the client end; advances its sequence number."""
    seq = load32(record + c.CLIENT_SEQ)
    if has_room(ring, record, counts):
        length = f.write_tcp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.CLIENT_MACS],
            load32(record + c.CLIENT_IP), load32(record + c.CLIENT_PEER_IP),
            load32(record + c.CLIENT_PORTS), seq, load32(record + c.CLIENT_ACK), flags, tag,
            0 if flags == f.SYN else tag, payload, f.REQUEST_PATTERN, p[lay.REQUEST_SUM] if payload else 0,
        )  # fmt: skip
        _sent(ring, length, counts, lay.CLIENT)
    store32(record + c.CLIENT_SEQ, seq + payload + (1 if flags & (f.SYN | f.FIN) else 0))


@njit(nogil=True, forceinline=True)
def server_tcp(ring, record, tag, flags, payload, p, counts):  # type: ignore[no-untyped-def]
    """Send a TCP segment from the server end; advances its sequence number."""
    seq = load32(record + c.SERVER_SEQ)
    if has_room(ring, record, counts):
        length = f.write_tcp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.SERVER_MACS],
            load32(record + c.SERVER_IP), load32(record + c.SERVER_PEER_IP),
            load32(record + c.SERVER_PORTS), seq, load32(record + c.SERVER_ACK), flags, tag,
            tag, payload, f.REPLY_PATTERN, p[lay.REPLY_SUM] if payload else 0,
        )  # fmt: skip
        _sent(ring, length, counts, lay.SERVER)
    store32(record + c.SERVER_SEQ, seq + payload + (1 if flags & (f.SYN | f.FIN) else 0))


@njit(nogil=True, forceinline=True)
def client_udp(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    if has_room(ring, record, counts):
        length = f.write_udp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.CLIENT_MACS],
            load32(record + c.CLIENT_IP), load32(record + c.CLIENT_PEER_IP),
            load32(record + c.CLIENT_PORTS), tag, p[lay.UDP_REQUEST_BYTES], f.REQUEST_PATTERN, p[lay.UDP_REQUEST_SUM],
        )  # fmt: skip
        _sent(ring, length, counts, lay.CLIENT)


@njit(nogil=True, forceinline=True)
def server_udp(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    if has_room(ring, record, counts):
        length = f.write_udp(
            r.next_buffer(ring), p[lay.SHIFT], p[lay.SERVER_MACS],
            load32(record + c.SERVER_IP), load32(record + c.SERVER_PEER_IP),
            load32(record + c.SERVER_PORTS), tag, p[lay.UDP_REPLY_BYTES], f.REPLY_PATTERN, p[lay.UDP_REPLY_SUM],
        )  # fmt: skip
        _sent(ring, length, counts, lay.SERVER)


@njit(nogil=True)
def server_closes(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    """The server end closes first."""
    store8(record + c.SERVER_STATE, c.FIN_WAIT)
    server_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)


@njit(nogil=True)
def client_ends(ring, record, tag, acknowledges, p, counts):  # type: ignore[no-untyped-def]
    """The client end has all that it asked for: it closes, resets, or waits for the server to close. `acknowledges`:
    nothing else of the client's says that the last segment came."""
    if p[lay.ENDED_BY] == lay.BY_SERVER:
        store8(record + c.CLIENT_STATE, c.AWAITS_FIN)
        if acknowledges:
            client_tcp(ring, record, tag, f.ACK, 0, p, counts)
    elif p[lay.ENDED_BY] == lay.BY_RESET:
        store8(record + c.CLIENT_STATE, c.CLIENT_DONE)
        client_tcp(ring, record, tag, f.RST | f.ACK, 0, p, counts)
    else:
        store8(record + c.CLIENT_STATE, c.FIN_SENT)
        client_tcp(ring, record, tag, f.FIN | f.ACK, 0, p, counts)


@njit(nogil=True, forceinline=True)
def reply(ring, record, tag, p, counts):  # type: ignore[no-untyped-def]
    """The server end answers a request."""
    if load8(record + c.FLAGS) & c.UDP:
        server_udp(ring, record, tag, p, counts)
    else:
        server_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REPLY_BYTES], p, counts)
        if p[lay.ENDED_BY] == lay.BY_SERVER and load16(record + c.SERVER_LEFT) == 0:
            server_closes(ring, record, tag, p, counts)

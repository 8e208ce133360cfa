"""The life of a connection: it begins on schedule, is found by its frames, completes or fails, and is forgotten."""

from numba import njit

from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.histogram import bin_of
from ctbench.traffic.software.latency import CONNECT
from ctbench.traffic.software.machine_code import load8, load32, store8, store16, store32, swap16, swap32
from ctbench.traffic.software.order import next_state, scrambled
from ctbench.traffic.software.sending import client_tcp, client_udp


@njit(nogil=True, forceinline=True, error_model="numpy")
def release(record, slot, s):  # type: ignore[no-untyped-def]
    """The record is free again. Last in, first out: few records stay in the caches."""
    store8(record + c.CLIENT_STATE, c.FREE)
    store32(record + c.NEXT, s[lay.FREE_HEAD])
    s[lay.FREE_HEAD] = slot
    s[lay.ACTIVE] -= 1
    if load8(record + c.FLAGS) & c.COUNTED:
        s[lay.COUNTED_ACTIVE] -= 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def complete(record, slot, s, counts):  # type: ignore[no-untyped-def]
    counts[lay.ALL_COMPLETED] += 1
    if load8(record + c.FLAGS) & c.COUNTED:
        counts[lay.COMPLETED] += 1
    release(record, slot, s)


@njit(nogil=True, error_model="numpy")
def fail(record, slot, cause, s, counts):  # type: ignore[no-untyped-def]
    """A connection has failed. It counts when it began in the sustain phase, or where failures count by their time:
    when it made its last progress in it."""
    counts[lay.ALL_FAILED] += 1
    if s[lay.FAILURES_FOR]:
        counted = (load32(record + c.PROGRESS) - s[lay.FAILURES_FROM]) & 0xFFFFFFFF < s[lay.FAILURES_FOR]
    else:
        counted = load8(record + c.FLAGS) & c.COUNTED != 0
    if counted:
        counts[lay.FAILED + cause] += 1
    if load8(record + c.FLAGS) & c.REPLY_WAITS:
        store8(record + c.CLIENT_STATE, c.DEAD)  # still a link of the queue of replies
    else:
        release(record, slot, s)


@njit(nogil=True, forceinline=True, error_model="numpy")
def established(record, now, p, counts, histograms):  # type: ignore[no-untyped-def]
    """The SYN-ACK came: the connect time is known. (UDP has none: its first reply may have waited.)"""
    if not load8(record + c.FLAGS) & c.COUNTED:
        return
    counts[lay.TCP_ESTABLISHED] += 1
    took = ((now >> 6) - load32(record + c.STARTED)) & 0xFFFFFFFF
    counts[lay.SETUP_SUM] += took
    if took > counts[lay.SETUP_MAX]:
        counts[lay.SETUP_MAX] = took
    histograms[CONNECT, bin_of(took)] += 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def next_tuple(at, p, s):  # type: ignore[no-untyped-def]
    """Number of the next client address and port: all of them once before any comes again. `at`: where the state has
    the last one."""
    if p[lay.PORT_ORDER_RANDOM] == 0:
        s[at] = s[at] + 1 if s[at] + 1 < p[lay.TUPLES] else 0
        return s[at]
    while True:
        s[at] = next_state(s[at], p[lay.TUPLE_MASK])
        number = scrambled(s[at], p[lay.TUPLE_MASK], p[lay.TUPLE_SHIFT])
        if number < p[lay.TUPLES]:
            return number


@njit(nogil=True, error_model="numpy")
def begin(tx, now, counted, messages, p, s, counts):  # type: ignore[no-untyped-def]
    """Begin one connection of so many messages: its first packet goes out, or is lost at the DUT's full ring."""
    slot = s[lay.FREE_HEAD]
    if slot == c.NOBODY:
        counts[lay.NO_RECORD] += 1
        return
    record = p[lay.RECORDS] + slot * c.RECORD_BYTES
    s[lay.FREE_HEAD] = c.take_free(p[lay.RECORDS], slot)
    if slot >= s[lay.HIGHEST]:
        s[lay.HIGHEST] = slot + 1
    s[lay.ACTIVE] += 1
    number = s[lay.BEGUN]
    s[lay.BEGUN] += 1
    # Error feedback spreads the UDP share evenly.
    s[lay.UDP_DEBT] += p[lay.UDP_PER_MILLION]
    is_udp = s[lay.UDP_DEBT] >= 1000000
    flags = 0
    if is_udp:
        s[lay.UDP_DEBT] -= 1000000
        flags |= c.UDP
    if counted:
        flags |= c.COUNTED
        s[lay.COUNTED_ACTIVE] += 1
        counts[lay.ATTEMPTED] += 1
    who = next_tuple(lay.TUPLE, p, s)
    client = p[lay.CLIENT_IP] + who // p[lay.PORTS]
    port = p[lay.PORT_MIN] + who % p[lay.PORTS]
    server = p[lay.SERVER_IP] + number % p[lay.SERVER_IPS]
    queue = number % p[lay.QUEUES]
    store32(record + c.CLIENT_IP, swap32(client))
    store32(record + c.CLIENT_PEER_IP, swap32(server))
    store32(record + c.CLIENT_PORTS, swap16(port) | (swap16(p[lay.UDP_PORT] if is_udp else p[lay.TCP_PORT]) << 16))
    store32(record + c.CLIENT_SEQ, number * 2654435761)
    store32(record + c.CLIENT_ACK, 0)
    store16(record + c.CLIENT_LEFT, messages)
    store16(record + c.SERVER_LEFT, messages)
    store8(record + c.CLIENT_STATE, c.AWAITS_REPLY if is_udp else c.SYN_SENT)
    store8(record + c.SERVER_STATE, c.LISTENING)
    store8(record + c.FLAGS, flags)
    store8(record + c.QUEUE, queue)
    store32(record + c.STARTED, now >> 6)
    store32(record + c.PROGRESS, now >> p[lay.TICK_SHIFT])
    tag = slot | p[lay.SALT]
    if is_udp:
        client_udp(tx + queue * r.ROW_BYTES, record, tag, p, counts)
    else:
        client_tcp(tx + queue * r.ROW_BYTES, record, tag, f.SYN, 0, p, counts)


@njit(nogil=True, forceinline=True, error_model="numpy")
def find(frame, echoed, p, s):  # type: ignore[no-untyped-def]
    """The number of the record that the frame names, -1 when it names none in use."""
    tag = f.tag_of(frame, echoed)
    slot = tag & lay.SLOT_MASK
    if tag - slot != p[lay.SALT] or slot >= s[lay.HIGHEST]:
        return -1
    state = load8(p[lay.RECORDS] + slot * c.RECORD_BYTES + c.CLIENT_STATE)
    return slot if state != c.FREE and state != c.DEAD else -1


@njit(nogil=True, forceinline=True, error_model="numpy")
def sweep(now, p, s, counts):  # type: ignore[no-untyped-def]
    """Look at some records: a connection without progress for too long has failed."""
    tick = now >> p[lay.TICK_SHIFT]
    chunk = max(64, s[lay.HIGHEST] >> 9)
    if chunk > s[lay.HIGHEST]:
        chunk = s[lay.HIGHEST]
    for _ in range(chunk):
        slot = s[lay.SWEEP]
        s[lay.SWEEP] = slot + 1 if slot + 1 < s[lay.HIGHEST] else 0
        record = p[lay.RECORDS] + slot * c.RECORD_BYTES
        state = load8(record + c.CLIENT_STATE)
        if state == c.FREE or load8(record + c.FLAGS) & c.REPLY_WAITS:
            continue
        idle = (tick - load32(record + c.PROGRESS)) & 0xFFFFFFFF
        if idle <= p[lay.TIMEOUT_TICKS] or idle > 0x7FFFFFFF:  # the latter: its last frame was read after `now`
            continue
        if state == c.SYN_SENT:
            cause = lay.CAUSE_NO_SYN_ACK
        elif state == c.AWAITS_REPLY:
            cause = lay.CAUSE_NO_REPLY
        elif state == c.FIN_SENT or state == c.AWAITS_FIN:
            cause = lay.CAUSE_NO_FIN
        else:
            cause = lay.CAUSE_NO_LAST_ACK
        fail(record, slot, cause, s, counts)

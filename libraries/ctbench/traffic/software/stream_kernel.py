"""The kernel function for packet profiles: one thread offers both directions and takes what comes out.

An open loop on a schedule, or a closed one, like that for connections (`kernel`), on the same rings, and like that one
it may be left and entered again: all times are of a clock that stands meanwhile. The server end
sends to whom it has seen, from the address that it was reached at: what was translated on the way needs no
configuration here, and nothing is ever sent to a DUT that would have to refuse it.
"""

import numpy as np
from numba import njit

from ctbench.base.network import VLAN_TAG_BYTES
from ctbench.traffic.software import clock
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import (
    cycles,
    load16,
    load32,
    load64,
    store16,
    store32,
    store64,
    swap16,
    swap32,
)

#: In the UDP payload: the tag (trial and flow), the sequence number with the bit that counts it, the cycle counter.
TAG, SEQUENCE, TIME, FILLER = 0, 4, 8, 16
#: What is left of the payload is this byte.
PATTERN = 0x7A7A7A7A7A7A7A7A

_ETHERTYPE_VLAN = 0x0081


@njit(nogil=True, forceinline=True)
def write(at, shift, macs, vlan, source, destination, ports, tag, sequence, now, payload, pattern_sum):  # type: ignore[no-untyped-def]
    """Write a frame; returns its length without FCS. Addresses, ports and words as they stand in the packet.

    `shift`, `macs`: as for `frames.write_tcp`; `payload`: bytes of UDP payload, at least 16; `pattern_sum`:
    `frames.words_sum` of what is left of it.
    """
    low, high = now & 0xFFFFFFFF, (now >> 32) & 0xFFFFFFFF
    frame = at if vlan < 0 else at + VLAN_TAG_BYTES
    start = f.write_udp(
        frame, shift, macs, source, destination, ports, payload, tag + sequence + low + high + pattern_sum
    )
    if vlan >= 0:
        f.write_macs(at, macs)
        store16(at + 12, _ETHERTYPE_VLAN)
        store16(at + 14, swap16(vlan))
    store32(start + TAG, tag)
    store32(start + SEQUENCE, sequence)
    store64(start + TIME, now)
    f.write_pattern(start + FILLER, payload - FILLER, PATTERN)
    return start - at + payload


#: A flow's record: what the server has seen of it, as it stands in the packets that the server sends; and whether.
RECORD_BYTES = 16
SERVER_ADDRESS, PEER_ADDRESS, FLOW_PORTS, SEEN = 0, 4, 8, 12
#: The flow's number in a tag.
FLOW_BITS = 22
FLOW_MASK = (1 << FLOW_BITS) - 1
#: The bit of the sequence number that says that the packet counts.
COUNTED = 1 << 31

#: Frames taken from one ring, and sent in one direction, before the others have their turn.
_BURST = 32


@njit(nogil=True, forceinline=True, error_model="numpy")
def _send(port, counted, now, p, s, sizes, counts):  # type: ignore[no-untyped-def]
    """Send the next packet of a direction; it is lost at the DUT's full ring where there is no room."""
    flow = clock.next_tuple(lay.FLOW + port, p, s)
    record = p[lay.RECORDS] + flow * RECORD_BYTES
    if port == lay.CLIENT or p[lay.BOTH_OPEN]:
        source = swap32(p[lay.CLIENT_IP] + flow % p[lay.CLIENT_IPS])
        destination = swap32(p[lay.SERVER_IP] + flow % p[lay.SERVER_IPS])
        ports = swap16(p[lay.PORT_MIN] + flow // p[lay.CLIENT_IPS]) | (swap16(p[lay.UDP_PORT]) << 16)
        if port == lay.SERVER:
            source, destination = destination, source
    elif load32(record + SEEN) == 0:
        s[lay.LOST] += counted
        return  # what the DUT never delivered has no answer: lost, and counted so
    else:
        source = load32(record + SERVER_ADDRESS)
        destination = load32(record + PEER_ADDRESS)
        ports = load32(record + FLOW_PORTS)
    sequence = s[lay.SEQUENCE + port]
    s[lay.SEQUENCE + port] = (sequence + 1) & (COUNTED - 1)
    size = s[lay.SIZE + port]
    s[lay.SIZE + port] = size + 1 if size + 1 < sizes.shape[0] else 0
    ring = p[lay.TX + port] + flow % p[lay.QUEUES] * r.ROW_BYTES
    if not r.room(ring):
        counts[lay.DUT_MISSED] += 1
        s[lay.LOST] += counted
        return
    s[lay.SENT] += 1
    length = write(
        r.next_buffer(ring), p[lay.SHIFT], p[lay.MACS + port], p[lay.VLAN], source, destination, ports,
        flow | p[lay.SALT], sequence | COUNTED if counted else sequence, now, sizes[size, 0], sizes[size, 1],
    )  # fmt: skip
    clock.put(ring, length, port, counts)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _waits_for_client(p, s):  # type: ignore[no-untyped-def]
    """Whether the server's next flow has only just been sent to it, or is about to be: a loop waits for it. A server
    that went ahead would come again a whole pass later, when a DUT has forgotten what was not answered. What has not
    come by two windows is lost. Few flows come again soon enough."""
    flow, soon = s[lay.FLOW + lay.SERVER], 2 * p[lay.UNDER_WAY]
    if p[lay.PORT_ORDER_RANDOM] or p[lay.TUPLES] <= soon or load32(p[lay.RECORDS] + flow * RECORD_BYTES + SEEN):
        return False
    return (s[lay.FLOW + lay.CLIENT] - flow) % p[lay.TUPLES] <= soon


@njit(nogil=True, forceinline=True, error_model="numpy")
def _count(frame, port, now, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """Count a frame that came out at `port`; it belongs to the direction of the other one."""
    start = frame + f.UDP_PAYLOAD
    flow = load32(start + TAG) & FLOW_MASK
    if load32(start + TAG) - flow != p[lay.SALT] or flow >= p[lay.TUPLES]:
        counts[lay.UNKNOWN] += 1
        return
    if port == lay.SERVER:
        record = p[lay.RECORDS] + flow * RECORD_BYTES
        store32(record + SERVER_ADDRESS, load32(frame + f.IP_DESTINATION))
        store32(record + PEER_ADDRESS, load32(frame + f.IP_SOURCE))
        store32(record + FLOW_PORTS, f.swap_ports(load32(frame + f.L4)))
        store32(record + SEEN, 1)
    counts[lay.ALL_COMPLETED] += 1
    if p[lay.UNDER_WAY]:
        sent = load64(start + TIME)
        if sent < s[lay.STRETCH_BEFORE]:  # late, but not lost
            counts[lay.ALL_FAILED] -= 1
        elif sent < s[lay.STRETCH]:
            s[lay.NOT_COME] -= 1
    sequence = load32(start + SEQUENCE)
    if not sequence & COUNTED:
        return
    direction = lay.SERVER if port == lay.CLIENT else lay.CLIENT
    counts[lay.COMPLETED + direction] += 1
    if sequence < counts[lay.HIGHEST_SEQUENCE + direction]:
        counts[lay.REORDERED + direction] += 1
    else:
        counts[lay.HIGHEST_SEQUENCE + direction] = sequence
    clock.note_latency(max(0, now - load64(start + TIME)) >> clock.UNIT_SHIFT, direction, counts, histograms)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _poll(port, away, p, s, counts, histograms):  # type: ignore[no-untyped-def]
    """Take a burst of frames from each ring of a port."""
    shift, headers = p[lay.SHIFT], p[lay.MACS + port]
    for queue in range(p[lay.RX_RINGS + port]):
        ring = p[lay.RX + port] + queue * r.ROW_BYTES
        waiting = min(r.frames_waiting(ring), _BURST)
        if waiting == 0:
            continue
        for ahead in range(waiting):
            r.prefetch_frame(ring, ahead)
        now = cycles() - away
        for ahead in range(waiting):
            frame, length = r.frame_at(ring, ahead)
            counts[lay.RX_PACKETS + port] += 1
            counts[lay.RX_BYTES + port] += length
            vlan, tag_bytes = r.vlan_at(ring, ahead, frame)
            inner = frame + tag_bytes
            kind = f.classify(inner, length - tag_bytes, shift, headers)
            if kind == f.IS_UDP and vlan == p[lay.VLAN] and swap16(load16(inner + shift + f.UDP_LENGTH)) >= 8 + FILLER:
                _count(inner + shift, port, now, p, s, counts, histograms)
            elif kind == f.IS_BAD_CHECKSUM:
                counts[lay.FAILED + lay.CAUSE_BAD_CHECKSUM] += 1
            elif f.answer(port, p[lay.TX + port], frame, length, p, counts):
                r.publish(p[lay.TX + port])
        r.give_back(ring, waiting)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _under_way(s, counts):  # type: ignore[no-untyped-def]
    return s[lay.SENT] - counts[lay.ALL_COMPLETED] - counts[lay.ALL_FAILED]


@njit(nogil=True, error_model="numpy")
def _write_off(now, p, s, counts):  # type: ignore[no-untyped-def]
    """What was sent a whole stretch of time ago and has not come by now is lost: a loop would run out of packets. But
    a DUT that delivers nothing at all stands still, and has them all: it gets longer."""
    if now - s[lay.STRETCH] < p[lay.LOST_AFTER]:
        return
    if counts[lay.ALL_COMPLETED] == s[lay.COME_BEFORE] and now - s[lay.STRETCH] < p[lay.SILENCE]:
        return
    counts[lay.ALL_FAILED] += max(0, s[lay.NOT_COME])
    s[lay.STRETCH_BEFORE] = s[lay.STRETCH]
    s[lay.STRETCH] = now
    s[lay.NOT_COME] = _under_way(s, counts)
    s[lay.COME_BEFORE] = counts[lay.ALL_COMPLETED]


@njit(nogil=True, error_model="numpy")
def _fill(now, counted, p, s, sizes, counts):  # type: ignore[no-untyped-def]
    """Send what a closed loop has room for, half of it in each direction."""
    ways = p[lay.DIRECTIONS]
    free = p[lay.UNDER_WAY] - _under_way(s, counts)
    odd = s[lay.SENT] & 1  # whose turn it is where the halves are not equal
    for port in range(ways):
        share = free if ways == 1 else (free + (odd ^ port)) // 2
        for _ in range(min(_BURST, share)):
            if port == lay.SERVER and not p[lay.BOTH_OPEN] and _waits_for_client(p, s):
                break
            before = s[lay.SENT]
            _send(port, counted, now, p, s, sizes, counts)
            if s[lay.SENT] == before:  # a full ring, or a flow that the server has not seen
                break
            if counted:
                counts[lay.INTENDED + port] += 1
                counts[lay.ATTEMPTED + port] += 1
        r.publish_all(p[lay.TX + port], p[lay.QUEUES])


@njit(nogil=True, cache=True, error_model="numpy")
def run(p, intervals, s, sizes, counts, marks, histograms, points):  # type: ignore[no-untyped-def]
    """Run a trial: ramp up, sustain, wait for the last packets. Arguments: see `layout`.

    p: parameters · intervals: `plan.intervals` of one direction · s: state · sizes: payload bytes
    and pattern sum of each frame in turn · counts: counters, and marks[0], marks[1]: copies of them at the begin and
    the end of the sustain phase · histograms: see `clock.ROWS` · points: see `clock.note_points`.
    """
    interval = intervals[0]
    away, start, ramp_end, sustain = clock.enter(p, s)
    end = latest = give_up = next_point = 1 << 62  # until the sustain phase has begun
    ways = p[lay.DIRECTIONS]
    due = np.zeros(2)
    not_before = np.zeros(2)
    due[0] = not_before[0] = float(start) + intervals[1]
    # Servers begin when the ramp is half over: they answer each flow when it has come, and not a whole pass later.
    # Half an interval apart, so that two directions are not a burst of two.
    due[1] = not_before[1] = due[0] + p[lay.RAMP] // 2 + interval / 2
    slack = max(interval * _BURST, float(p[lay.SLACK]))
    phase = 0
    next_look = start
    previous = start
    while True:
        now = cycles() - away
        s[lay.LONGEST_PAUSE] = max(s[lay.LONGEST_PAUSE], now - previous)
        previous = now
        if phase == 0 and clock.ramp_up_is_over(now, min(due[0], due[ways - 1]), sustain, p):
            phase = 1
            due += clock.begin_counting(now, sustain, p, s, counts, marks)
            sustain, end, next_point = now, now + p[lay.SUSTAIN], now + p[lay.TIMELINE_STEP]
            latest, give_up = end + p[lay.LATEST], end + p[lay.LINGER]
        if phase == 1:
            if next_point <= now:
                s[lay.ACTIVE] = max(0, _under_way(s, counts))
                next_point = clock.note_points(points, min(now, end), next_point, p[lay.TIMELINE_STEP], s, counts)
            if clock.ends_early(s[lay.LOST], now, sustain, end, p):
                end = latest = now
                give_up = now + p[lay.LINGER]
                s[lay.ENDED_AFTER] = now - sustain
        if phase == 1 and now >= end:
            phase = 2
            clock.end_counting(now, p, s, counts, marks)
        if p[lay.UNDER_WAY]:
            _write_off(now, p, s, counts)
            if now < end:
                _fill(now, phase == 1, p, s, sizes, counts)
            if phase == 1 and now >= next_look:
                next_look = now + p[lay.LATE_LIMIT]
                clock.look_at_own_rings(_under_way(s, counts), p, s)
        until = end if phase else sustain
        for port in range(ways):
            sent = 0
            while (
                due[port] <= now and sent < _BURST and not_before[port] <= now and due[port] < until
                and now < latest
            ):  # fmt: skip
                counted = due[port] >= sustain
                if counted:
                    clock.note_late(now - due[port], p, s)
                    counts[lay.INTENDED + port] += 1
                    counts[lay.ATTEMPTED + port] += 1
                _send(port, counted, now, p, s, sizes, counts)
                due[port] += clock.step(interval, due[port], start, ramp_end)
                not_before[port] = clock.next_allowed(not_before[port], now, slack, interval)
                sent += 1
            if sent:
                r.publish_all(p[lay.TX + port], p[lay.QUEUES])
        _poll(lay.SERVER, away, p, s, counts, histograms)
        _poll(lay.CLIENT, away, p, s, counts, histograms)
        if s[lay.STOP]:
            break
        if phase == 2:
            missing = counts[lay.ATTEMPTED] + counts[lay.ATTEMPTED + 1]
            missing -= counts[lay.COMPLETED] + counts[lay.COMPLETED + 1]
            if (missing == 0 and due[0] >= end and due[ways - 1] >= end) or now >= give_up:
                break
    clock.leave(phase, s, counts, marks)
    for port in range(ways):
        counts[lay.INTENDED + port] += clock.never_sent(interval, due[port], sustain, end, s)

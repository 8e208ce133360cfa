"""The kernel function for packet profiles: one thread offers both directions and takes what comes out.

An open loop on a schedule, or a closed one, like that for connections (`kernel`), on the same rings, and like that one
it may be left and entered again: all times are of a clock that stands meanwhile. The server end
sends to whom it has seen, from the address that it was reached at: what was translated on the way needs no
configuration here, and nothing is ever sent to a DUT that would have to refuse it.
"""

import numpy as np
from numba import njit

from ctbench.base.network import VLAN_TAG_BYTES
from ctbench.traffic.software import clock, neighbours, schedule
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import ring as r
from ctbench.traffic.software import stream_layout as lay
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
from ctbench.traffic.software.packet_port import BUSY, FRAMES, REFUSED, total
from ctbench.traffic.software.schedule import next_state, scrambled

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
    frame = at if vlan < 0 else at + VLAN_TAG_BYTES
    total = source + destination + (f.PROTOCOL_UDP << 8)
    if shift:
        total += f.write_ipv6(frame, macs, source, destination, 8 + payload, f.PROTOCOL_UDP)
    else:
        f.write_ip(frame, macs, source, destination, 28 + payload, f.TTL_64_UDP)
    if vlan >= 0:
        store32(at, load32(macs))
        store32(at + 4, load32(macs + 4))
        store32(at + 8, load32(macs + 8))
        store16(at + 12, _ETHERTYPE_VLAN)
        store16(at + 14, swap16(vlan))
    frame += shift
    length = swap16(8 + payload)
    store32(frame + f.L4, ports)
    low, high = now & 0xFFFFFFFF, (now >> 32) & 0xFFFFFFFF
    total += length + ports + length + tag + sequence + low + high + pattern_sum
    checksum = ~f.fold(total) & 0xFFFF
    if checksum == 0:
        checksum = 0xFFFF  # 0 means "no checksum" (RFC 768)
    store32(frame + f.UDP_LENGTH, length | (checksum << 16))
    start = frame + f.UDP_PAYLOAD
    store32(start + TAG, tag)
    store32(start + SEQUENCE, sequence)
    store64(start + TIME, now)
    f.write_pattern(start + FILLER, payload - FILLER, PATTERN)
    return frame - at + f.UDP_PAYLOAD + payload


@njit(nogil=True, forceinline=True)
def is_probe(frame):  # type: ignore[no-untyped-def]
    """Whether a UDP frame is long enough to be one of these."""
    return swap16(load16(frame + f.UDP_LENGTH)) >= 8 + FILLER


#: Columns of a point of the timeline: packets received so far, packets on their way now.
RECEIVED, UNDER_WAY = range(2)
#: Frames taken from one ring, and sent in one direction, before the others have their turn.
_BURST = 32


@njit(nogil=True, forceinline=True, error_model="numpy")
def _next_flow(port, p, s):  # type: ignore[no-untyped-def]
    """The flow that is next in a direction."""
    if p[lay.RANDOM] == 0:
        flow = s[lay.FLOW + port]
        s[lay.FLOW + port] = flow + 1 if flow + 1 < p[lay.FLOWS] else 0
        return flow
    while True:
        s[lay.ORDER + port] = next_state(s[lay.ORDER + port], p[lay.MASK])
        flow = scrambled(s[lay.ORDER + port], p[lay.MASK], p[lay.SHIFT])
        if flow < p[lay.FLOWS]:
            return flow


@njit(nogil=True, forceinline=True, error_model="numpy")
def _send(port, counted, now, p, s, sizes, counts):  # type: ignore[no-untyped-def]
    """Send the next packet of a direction; it is lost at the DUT's full ring where there is no room."""
    flow = _next_flow(port, p, s)
    record = p[lay.RECORDS] + flow * lay.RECORD_BYTES
    if port == lay.CLIENT:
        source = swap32(p[lay.CLIENT_IP] + flow % p[lay.CLIENT_IPS])
        destination = swap32(p[lay.SERVER_IP] + flow % p[lay.SERVER_IPS])
        ports = swap16(p[lay.PORT_MIN] + flow // p[lay.CLIENT_IPS]) | (swap16(p[lay.UDP_PORT]) << 16)
    elif load32(record + lay.SEEN) == 0:
        s[lay.LOST] += counted
        return  # what the DUT never delivered has no answer: lost, and counted so
    else:
        source = load32(record + lay.SERVER_ADDRESS)
        destination = load32(record + lay.PEER_ADDRESS)
        ports = load32(record + lay.FLOW_PORTS)
    sequence = s[lay.SEQUENCE + port]
    s[lay.SEQUENCE + port] = (sequence + 1) & (lay.COUNTED - 1)
    size = s[lay.SIZE + port]
    s[lay.SIZE + port] = size + 1 if size + 1 < p[lay.SIZE_COUNT] else 0
    ring = p[lay.TX + port] + flow % p[lay.QUEUES] * r.ROW_BYTES
    if not r.room(ring):
        counts[lay.DUT_MISSED] += 1
        s[lay.LOST] += counted
        return
    s[lay.SENT] += 1
    length = write(
        r.next_buffer(ring), p[lay.IP_SHIFT], p[lay.MACS + port], p[lay.VLAN], source, destination, ports,
        flow | p[lay.SALT], sequence | lay.COUNTED if counted else sequence, now, sizes[size, 0], sizes[size, 1],
    )  # fmt: skip
    r.put(ring, length)
    counts[lay.TX_PACKETS + port] += 1
    counts[lay.TX_BYTES + port] += length


@njit(nogil=True, forceinline=True, error_model="numpy")
def _waits_for_client(p, s):  # type: ignore[no-untyped-def]
    """Whether the server's next flow has only just been sent to it, or is about to be: a loop waits for it. A server
    that went ahead would come again a whole pass later, when a DUT has forgotten what was not answered. What has not
    come by two windows is lost. Few flows come again soon enough."""
    flow, soon = s[lay.FLOW + lay.SERVER], 2 * p[lay.UNDER_WAY]
    if p[lay.RANDOM] or p[lay.FLOWS] <= soon or load32(p[lay.RECORDS] + flow * lay.RECORD_BYTES + lay.SEEN):
        return False
    return (s[lay.FLOW + lay.CLIENT] - flow) % p[lay.FLOWS] <= soon


@njit(nogil=True, forceinline=True, error_model="numpy")
def _count(frame, port, now, p, s, counts, latencies):  # type: ignore[no-untyped-def]
    """Count a frame that came out at `port`; it belongs to the direction of the other one."""
    start = frame + f.UDP_PAYLOAD
    flow = load32(start + TAG) & lay.FLOW_MASK
    if load32(start + TAG) - flow != p[lay.SALT] or flow >= p[lay.FLOWS]:
        counts[lay.UNKNOWN] += 1
        return
    if port == lay.SERVER:
        record = p[lay.RECORDS] + flow * lay.RECORD_BYTES
        store32(record + lay.SERVER_ADDRESS, load32(frame + f.IP_DESTINATION))
        store32(record + lay.PEER_ADDRESS, load32(frame + f.IP_SOURCE))
        store32(record + lay.FLOW_PORTS, f.swap_ports(load32(frame + f.L4)))
        store32(record + lay.SEEN, 1)
    counts[lay.ALL_RECEIVED] += 1
    if p[lay.UNDER_WAY]:
        sent = load64(start + TIME)
        if sent < s[lay.STRETCH_BEFORE]:  # late, but not lost
            counts[lay.WRITTEN_OFF] -= 1
        elif sent < s[lay.STRETCH]:
            s[lay.NOT_COME] -= 1
    sequence = load32(start + SEQUENCE)
    if not sequence & lay.COUNTED:
        return
    direction = lay.SERVER if port == lay.CLIENT else lay.CLIENT
    counts[lay.RECEIVED + direction] += 1
    if sequence < counts[lay.HIGHEST + direction]:
        counts[lay.REORDERED + direction] += 1
    else:
        counts[lay.HIGHEST + direction] = sequence
    took = max(0, now - load64(start + TIME)) >> clock.UNIT_SHIFT
    latencies[direction, clock.bin_of(took)] += 1
    if took > counts[lay.LATENCY_MAX + direction]:
        counts[lay.LATENCY_MAX + direction] = took
    if counts[lay.RECEIVED + direction] > 1:
        counts[lay.JITTER_SUM + direction] += abs(took - counts[lay.LATENCY_LAST + direction])
    counts[lay.LATENCY_LAST + direction] = took


@njit(nogil=True, forceinline=True, error_model="numpy")
def _poll(port, away, p, s, counts, latencies):  # type: ignore[no-untyped-def]
    """Take a burst of frames from each ring of a port."""
    shift, headers = p[lay.IP_SHIFT], p[lay.MACS + port]
    for queue in range(p[lay.RX_RINGS + port]):
        ring = p[lay.RX + port] + queue * r.ROW_BYTES
        waiting = r.frames_waiting(ring)
        if waiting == 0:
            continue
        if waiting > _BURST:
            waiting = _BURST
        for ahead in range(waiting):
            r.prefetch_frame(ring, ahead)
        now = cycles() - away
        for ahead in range(waiting):
            frame, length = r.frame_at(ring, ahead)
            counts[lay.RX_PACKETS + port] += 1
            counts[lay.RX_BYTES + port] += length
            vlan, tag_bytes = r.vlan_at(ring, ahead, frame)
            inner = frame + tag_bytes
            if shift:
                kind = f.classify_ipv6(inner, length - tag_bytes, headers, tag_bytes > 0)
            else:
                kind = f.classify(inner, length - tag_bytes, tag_bytes > 0)
            if kind == f.IS_UDP and vlan == p[lay.VLAN] and is_probe(inner + shift):
                _count(inner + shift, port, now, p, s, counts, latencies)
            elif kind == f.IS_BAD_CHECKSUM:
                counts[lay.BAD_CHECKSUM] += 1
            else:
                first, many = p[lay.CLIENT_IP], p[lay.CLIENT_IPS]
                if port == lay.SERVER:
                    first, many = p[lay.SERVER_IP], p[lay.SERVER_IPS]
                if shift:
                    done = neighbours.answer_ndp(p[lay.TX + port], frame, length, headers, first, many)
                else:
                    done = neighbours.answer_arp(
                        p[lay.TX + port], frame, length, headers, first, many, p[lay.NEXT_HOP + port]
                    )
                if done == neighbours.ANSWERED:
                    r.publish(p[lay.TX + port])
                    counts[lay.TX_PACKETS + port] += 1
                    counts[lay.TX_BYTES + port] += neighbours.NDP_REPLY_BYTES if shift else neighbours.ARP_REPLY_BYTES
                elif done == neighbours.NOT_ARP:
                    counts[lay.FOREIGN] += 1
        r.give_back(ring, waiting)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _under_way(s, counts):  # type: ignore[no-untyped-def]
    return s[lay.SENT] - counts[lay.ALL_RECEIVED] - counts[lay.WRITTEN_OFF]


@njit(nogil=True, error_model="numpy")
def _write_off(now, p, s, counts):  # type: ignore[no-untyped-def]
    """What was sent a whole stretch of time ago and has not come by now is lost: a loop would run out of packets. But
    a DUT that delivers nothing at all stands still, and has them all: it gets longer."""
    if now - s[lay.STRETCH] < p[lay.LOST_AFTER]:
        return
    if counts[lay.ALL_RECEIVED] == s[lay.COME_BEFORE] and now - s[lay.STRETCH] < p[lay.SILENCE]:
        return
    counts[lay.WRITTEN_OFF] += max(0, s[lay.NOT_COME])
    s[lay.STRETCH_BEFORE] = s[lay.STRETCH]
    s[lay.STRETCH] = now
    s[lay.NOT_COME] = _under_way(s, counts)
    s[lay.COME_BEFORE] = counts[lay.ALL_RECEIVED]


@njit(nogil=True, error_model="numpy")
def _fill(now, counted, p, s, sizes, counts):  # type: ignore[no-untyped-def]
    """Send what a closed loop has room for, half of it in each direction."""
    ways = p[lay.DIRECTIONS]
    free = p[lay.UNDER_WAY] - _under_way(s, counts)
    odd = s[lay.SENT] & 1  # whose turn it is where the halves are not equal
    for port in range(ways):
        share = free if ways == 1 else (free + (odd ^ port)) // 2
        for _ in range(min(_BURST, share)):
            if port == lay.SERVER and _waits_for_client(p, s):
                break
            before = s[lay.SENT]
            _send(port, counted, now, p, s, sizes, counts)
            if s[lay.SENT] == before:  # a full ring, or a flow that the server has not seen
                break
            if counted:
                counts[lay.INTENDED + port] += 1
                counts[lay.ATTEMPTED + port] += 1
        for queue in range(p[lay.QUEUES]):
            r.publish(p[lay.TX + port] + queue * r.ROW_BYTES)


@njit(nogil=True, error_model="numpy")
def _look_at_own_rings(p, s, counts):  # type: ignore[no-untyped-def]
    """Whether what is under way waits for this function, and not for the DUT."""
    held = 0
    for port in range(2):
        for queue in range(p[lay.RX_RINGS + port]):
            held += r.backlog(p[lay.RX + port] + queue * r.ROW_BYTES)
    s[lay.LOOKS] += 1
    if 2 * held > _under_way(s, counts):
        s[lay.LOOKS_HELD] += 1


@njit(nogil=True, forceinline=True)
def _link_work(sign, p, s):  # type: ignore[no-untyped-def]
    s[lay.LINK_BUSY] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], BUSY)
    s[lay.LINK_FRAMES] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], FRAMES)
    s[lay.LINK_REFUSED] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], REFUSED)


@njit(nogil=True, cache=True, error_model="numpy")
def run(p, intervals, s, sizes, counts, marks, latencies, timeline):  # type: ignore[no-untyped-def]
    """Run a trial: ramp up, sustain, wait for the last packets. Arguments: see `stream_layout`.

    p: parameters · intervals: `plan.intervals` of one direction · s: state · sizes: payload bytes
    and pattern sum of each frame in turn · counts: counters, and marks[0], marks[1]: copies of them at the begin and
    the end of the sustain phase · latencies: a histogram per direction · timeline[i]: see `RECEIVED`.
    """
    interval = intervals[0]
    if s[lay.LEFT_AT]:
        s[lay.AWAY] += cycles() - s[lay.LEFT_AT]
    away = s[lay.AWAY]
    start = cycles() - away
    ramp_end = start + p[lay.RAMP]
    sustain = ramp_end + p[lay.SETTLE]
    end = sustain + p[lay.SUSTAIN]
    give_up = end + p[lay.LINGER]
    both = p[lay.DIRECTIONS] == 2
    due = np.zeros(2)
    not_before = np.zeros(2)
    due[0] = not_before[0] = float(start) + intervals[1]
    # Servers begin when the ramp is half over: they answer each flow when it has come, and not a whole pass later.
    # Half an interval apart, so that two directions are not a burst of two.
    due[1] = not_before[1] = due[0] + p[lay.RAMP] // 2 + interval / 2
    slack = max(interval * _BURST, float(p[lay.SLACK]))
    latest = end + p[lay.LATEST]
    next_point = sustain + p[lay.TIMELINE_STEP]
    point = 0
    phase = 0
    next_look = start
    previous = start
    while True:
        now = cycles() - away
        if now - previous > s[lay.LONGEST_PAUSE]:
            s[lay.LONGEST_PAUSE] = now - previous
        previous = now
        if phase == 0 and now >= sustain:
            phase = 1
            marks[0, :] = counts
            s[lay.COUNTED_FROM] = now
            if p[lay.UNDER_WAY]:  # however late it is: a slice has its whole length
                end, give_up = now + p[lay.SUSTAIN], now + p[lay.SUSTAIN] + p[lay.LINGER]
                next_point = now + p[lay.TIMELINE_STEP]
            s[lay.LONGEST_PAUSE] = 0
            _link_work(-1, p, s)
        if phase == 1:
            while next_point <= min(now, end) and point < timeline.shape[0]:
                timeline[point, RECEIVED] = counts[lay.ALL_RECEIVED]
                timeline[point, UNDER_WAY] = max(0, _under_way(s, counts))
                point += 1
                next_point += p[lay.TIMELINE_STEP]
            if schedule.ends_early(
                s[lay.LOST], p[lay.MOST_LOST], now, sustain + p[lay.EARLIEST], end - p[lay.LEAST_SAVED]
            ):
                end = latest = now
                give_up = now + p[lay.LINGER]
                s[lay.ENDED_AFTER] = now - sustain
        if phase == 1 and now >= end:
            phase = 2
            marks[1, :] = counts
            s[lay.COUNTED_UNTIL] = now
            s[lay.SUSTAIN_PAUSE] = s[lay.LONGEST_PAUSE]
            _link_work(1, p, s)
        if p[lay.UNDER_WAY]:
            _write_off(now, p, s, counts)
            if now < end:
                _fill(now, phase == 1, p, s, sizes, counts)
            if phase == 1 and now >= next_look:
                next_look = now + p[lay.LATE_LIMIT]
                _look_at_own_rings(p, s, counts)
        for port in range(2 if both else 1):
            sent = 0
            while (
                due[port] <= now and sent < _BURST and not_before[port] <= now and due[port] < end
                and now < latest
            ):  # fmt: skip
                counted = due[port] >= sustain
                if counted:
                    late = now - due[port]
                    if late > s[lay.LATE_MAX]:
                        s[lay.LATE_MAX] = late
                    if late > p[lay.LATE_LIMIT]:
                        s[lay.LATE_COUNT] += 1
                    counts[lay.INTENDED + port] += 1
                    counts[lay.ATTEMPTED + port] += 1
                _send(port, counted, now, p, s, sizes, counts)
                step = interval
                if due[port] < ramp_end:
                    step = interval / max(0.02, (due[port] - start) / (ramp_end - start))
                due[port] += step
                not_before[port] = schedule.next_allowed(not_before[port], now, slack, interval)
                sent += 1
            if sent:
                for queue in range(p[lay.QUEUES]):
                    r.publish(p[lay.TX + port] + queue * r.ROW_BYTES)
        _poll(lay.SERVER, away, p, s, counts, latencies)
        _poll(lay.CLIENT, away, p, s, counts, latencies)
        if s[lay.STOP]:
            break
        if phase == 2:
            missing = counts[lay.ATTEMPTED] + counts[lay.ATTEMPTED + 1]
            missing -= counts[lay.RECEIVED] + counts[lay.RECEIVED + 1]
            if (missing == 0 and due[0] >= end and (not both or due[1] >= end)) or now >= give_up:
                break
    if phase < 2:
        marks[1, :] = counts
        if phase < 1:
            marks[0, :] = counts
    s[lay.LEFT_AT] = cycles()
    for port in range(2 if both else 1):
        # What was due and never sent was intended all the same; but not what an early end left no time for.
        if due[port] < end and s[lay.ENDED_AFTER] == 0:
            counts[lay.INTENDED + port] += int((end - max(due[port], float(sustain))) / interval) + 1
    s[lay.POINTS] = point

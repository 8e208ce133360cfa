"""The kernel function of the software traffic generator: one thread drives both ports until the trial is over.

An open loop: connections begin on a schedule that does not yield to a slow DUT. A frame that meets a full ring of the
DUT is lost there and counted as the DUT's miss (what a NIC calls imissed). Nothing is sent twice: a connection that
loses a packet fails, which is stricter than TCP and what a loss ratio is about.

Compiled by numba without Python objects and without the GIL. All state is in int64 arrays and raw memory, see `layout`.
"""

from numba import njit

from ctbench.traffic.software import arp, timeline
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.client_end import at_client
from ctbench.traffic.software.lifecycle import begin, fail, find, sweep
from ctbench.traffic.software.link import BUSY, FRAMES, REFUSED, total
from ctbench.traffic.software.machine_code import cycles, prefetch
from ctbench.traffic.software.server_end import at_server, send_due_replies

#: Frames taken from one ring before the others have their turn.
_BURST = 32
#: Connections begun before the rings are polled again.
_BEGIN_BURST = 16
#: Connection records are fetched this many frames ahead.
_AHEAD = 3


@njit(nogil=True, forceinline=True, error_model="numpy")
def _poll(rx, rings, tx, port, now, p, s, counts, histogram):  # type: ignore[no-untyped-def]
    """Take a burst of frames from each ring of a port. Returns how many there were."""
    seen = 0
    for queue in range(rings):
        ring = rx + queue * r.ROW_BYTES
        waiting = r.frames_waiting(ring)
        if waiting == 0:
            continue
        if waiting > _BURST:
            waiting = _BURST
        for ahead in range(waiting):
            r.prefetch_frame(ring, ahead)
        for ahead in range(waiting):
            if ahead + _AHEAD < waiting:
                later, _ = r.frame_at(ring, ahead + _AHEAD)
                slot = f.tag_of(later, port == lay.CLIENT) & lay.SLOT_MASK
                if slot < s[lay.HIGHEST]:
                    prefetch(p[lay.RECORDS] + slot * c.RECORD_BYTES)
            frame, length = r.frame_at(ring, ahead)
            counts[lay.RX_PACKETS + port] += 1
            counts[lay.RX_BYTES + port] += length
            kind = f.classify(frame, length)
            if kind == f.IS_OTHER:
                if port == lay.CLIENT:
                    done = arp.answer(
                        tx, frame, length, p[lay.CLIENT_MACS], p[lay.CLIENT_IP], p[lay.CLIENT_IPS],
                        p[lay.CLIENT_NEXT_HOP],
                    )  # fmt: skip
                else:
                    done = arp.answer(
                        tx, frame, length, p[lay.SERVER_MACS], p[lay.SERVER_IP], p[lay.SERVER_IPS],
                        p[lay.SERVER_NEXT_HOP],
                    )  # fmt: skip
                if done == arp.ANSWERED:
                    counts[lay.TX_PACKETS + port] += 1
                    counts[lay.TX_BYTES + port] += arp.REPLY_BYTES
                elif done == arp.NOT_ARP:
                    counts[lay.FOREIGN] += 1
                continue
            slot = find(frame, port == lay.CLIENT, p, s)
            if kind == f.IS_BAD_CHECKSUM:
                if slot < 0:
                    counts[lay.FOREIGN] += 1
                else:
                    fail(p[lay.RECORDS] + slot * c.RECORD_BYTES, slot, lay.CAUSE_BAD_CHECKSUM, s, counts)
            elif slot < 0:
                counts[lay.UNKNOWN] += 1
            elif port == lay.CLIENT:
                at_client(frame, kind, slot, now, tx, p, s, counts, histogram)
            else:
                at_server(frame, kind, slot, now, tx, p, s, counts)
        r.give_back(ring, waiting)
        seen += waiting
    return seen


@njit(nogil=True, cache=True, error_model="numpy")
def run(p, intervals, s, counts, marks, histogram, points):  # type: ignore[no-untyped-def]
    """Run a trial: ramp up, sustain, ramp down. Arguments: see `layout`. Returns when it is over or `STOP` is set.

    p: parameters · intervals: `plan.schedule` · s: state · counts: counters, and
    marks[0], marks[1]: copies of them at the begin and the end of the sustain phase · histogram: connect times ·
    points: see `timeline`.
    """
    interval = intervals[0]
    client_tx, client_rx, server_tx, server_rx = p[lay.CLIENT_TX], p[lay.CLIENT_RX], p[lay.SERVER_TX], p[lay.SERVER_RX]
    s[lay.FREE_HEAD] = c.link_free(p[lay.RECORDS], p[lay.RECORD_COUNT])
    start = cycles()
    ramp_end = start + p[lay.RAMP]
    sustain = start + p[lay.RAMP] + p[lay.SETTLE]
    end = sustain + p[lay.SUSTAIN]
    give_up = end + p[lay.LINGER]
    due = float(start) + intervals[1]
    # After a pause it catches up at one and a half times its rate at most: a burst would be its own fault.
    not_before = float(start)
    slack = interval * _BEGIN_BURST
    next_tick = start
    next_point = sustain + p[lay.TIMELINE_STEP]
    tick = 1 << p[lay.TICK_SHIFT]
    phase = 0
    previous = start
    while True:
        now = cycles()
        if now - previous > s[lay.LONGEST_PAUSE]:
            s[lay.LONGEST_PAUSE] = now - previous
        previous = now
        if phase == 0 and now >= sustain:
            phase = 1
            marks[0, :] = counts
            s[lay.LONGEST_PAUSE] = 0
            s[lay.LINK_BUSY] = -total(p[lay.LINK], p[lay.LINK_THREADS], BUSY)
            s[lay.LINK_FRAMES] = -total(p[lay.LINK], p[lay.LINK_THREADS], FRAMES)
            s[lay.LINK_REFUSED] = -total(p[lay.LINK], p[lay.LINK_THREADS], REFUSED)
        if phase == 1 and now >= end:
            phase = 2
            marks[1, :] = counts
            next_point = timeline.note(points, end, next_point, p[lay.TIMELINE_STEP], s, counts)
            s[lay.SUSTAIN_PAUSE] = s[lay.LONGEST_PAUSE]
            s[lay.LINK_BUSY] += total(p[lay.LINK], p[lay.LINK_THREADS], BUSY)
            s[lay.LINK_FRAMES] += total(p[lay.LINK], p[lay.LINK_THREADS], FRAMES)
            s[lay.LINK_REFUSED] += total(p[lay.LINK], p[lay.LINK_THREADS], REFUSED)
        if due < end and now < end + p[lay.LATE_LIMIT]:
            begun = 0
            while due <= now and begun < _BEGIN_BURST and not_before <= now and due < end:
                counted = due >= sustain
                if counted:
                    late = now - due
                    if late > s[lay.LATE_MAX]:
                        s[lay.LATE_MAX] = late
                    if late > p[lay.LATE_LIMIT]:
                        s[lay.LATE_COUNT] += 1
                    s[lay.INTENDED] += 1
                begin(client_tx, now, counted, p, s, counts)
                step = interval
                if due < ramp_end:
                    step = interval / max(0.02, (due - start) / (ramp_end - start))
                due += step
                not_before = max(not_before, now - slack) + interval * 0.6667
                begun += 1
        send_due_replies(now, server_tx, p, s, counts)
        _poll(server_rx, p[lay.SERVER_RX_RINGS], server_tx, lay.SERVER, now, p, s, counts, histogram)
        for queue in range(p[lay.QUEUES]):
            r.publish(server_tx + queue * r.ROW_BYTES)
        _poll(client_rx, p[lay.CLIENT_RX_RINGS], client_tx, lay.CLIENT, cycles(), p, s, counts, histogram)
        for queue in range(p[lay.QUEUES]):
            r.publish(client_tx + queue * r.ROW_BYTES)
        if now >= next_tick:
            next_tick = now + tick
            sweep(now, p, s, counts)
            if phase == 1:
                s[lay.ACTIVE_SUM] += s[lay.ACTIVE]
                s[lay.ACTIVE_SAMPLES] += 1
                if s[lay.ACTIVE] > s[lay.ACTIVE_MAX]:
                    s[lay.ACTIVE_MAX] = s[lay.ACTIVE]
                next_point = timeline.note(points, now, next_point, p[lay.TIMELINE_STEP], s, counts)
            if s[lay.STOP]:
                break
        begun_all = due >= end or now >= end + p[lay.LATE_LIMIT]
        if phase == 2 and ((s[lay.ACTIVE] == 0 and begun_all) or now >= give_up):
            break
    if phase < 2:
        marks[1, :] = counts
        if phase < 1:
            marks[0, :] = counts
    if due < end:  # what was due and never begun was intended all the same
        s[lay.INTENDED] += int((end - max(due, float(sustain))) / interval) + 1

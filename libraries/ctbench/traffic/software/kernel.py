"""The kernel function of the software traffic generator: one thread drives both ports until the trial is over.

An open loop: connections begin on a schedule that does not yield to a slow DUT. Or a closed one: so many are open at
once, and each that ends begins the next. A frame that meets a full ring of the
DUT is lost there and counted as the DUT's miss (what a NIC calls imissed). Nothing is sent twice: a connection that
loses a packet fails, which is stricter than TCP and what a loss ratio is about.

The function may be left and entered again with the state that it left: what is under way waits meanwhile, and no timer
sees the time in between. All times in it are of that clock.

Compiled by numba without Python objects and without the GIL. All state is in int64 arrays and raw memory, see `layout`.
"""

import math

from numba import njit

from ctbench.traffic.software import clock, ends
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.connection import begin, sweep
from ctbench.traffic.software.machine_code import cycles

#: Connections begun before the rings are polled again.
BURST = 16
#: Coprime to all that it is used with but its own multiples: a jump of 0.618 of 2**20, the golden section.
STRIDE = 648_059


@njit(nogil=True, forceinline=True, error_model="numpy")
def opened_share(elapsed, wait, waits):  # type: ignore[no-untyped-def]
    """The share of the population that is open, or was not worth opening, `elapsed` after the start: evenly within a
    wait, and less from one of the `waits` to the next, as those that are open take a growing share of the load."""
    before = min(elapsed // wait, waits)
    of_this_one = (waits - before) * (elapsed - before * wait) / wait
    return (before * waits - before * (before - 1) / 2 + of_this_one) / (waits * (waits + 1) / 2)


@njit(nogil=True, forceinline=True, error_model="numpy")
def messages_left(number, elapsed, interval, p):  # type: ignore[no-untyped-def]
    """The messages that one of the population has before it which is opened `elapsed` after the start: 0 where it is
    over by now. One ends each `interval`; of those that live on when all short ones have ended only a share of the long
    ones ends in the same time."""
    wait = p[lay.SERVER_WAIT]
    short = p[lay.SHORT_MESSAGES] * wait
    at = (number * STRIDE % p[lay.POPULATION] + 0.5) * interval
    ends = max(at, short + (at - short) * 1000000 / (1000000 - p[lay.SHORT_PER_MILLION]))
    return max(0, math.floor(ends / wait) - elapsed // wait)


@njit(nogil=True, error_model="numpy")
def open_population(now, start, interval, tx, p, s, counts):  # type: ignore[no-untyped-def]
    """Open some of the connections that are due by now. `interval`: cycles from one connection of the load to the
    next."""
    elapsed = now - start
    wanted = int(p[lay.POPULATION] * opened_share(elapsed, p[lay.SERVER_WAIT], p[lay.OPENING_WAITS]))
    begun = 0
    while s[lay.OPENED] < wanted and begun < BURST:
        messages = messages_left(s[lay.OPENED], elapsed, interval, p)
        s[lay.OPENED] += 1
        if messages:
            begin(tx, now, False, min(messages, p[lay.MESSAGES]), p, s, counts)
            begun += 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def mixed(number, count, messages):  # type: ignore[no-untyped-def]
    """Messages that number `number` of `count` connections has left, of connections that are in the middle of their
    life: 1 to `messages`, evenly, in an order that jumps."""
    place = number * STRIDE % count
    return 1 + place * messages // count


@njit(nogil=True, forceinline=True)
def _messages(p, s):  # type: ignore[no-untyped-def]
    """Messages of the next connection: error feedback spreads the short ones evenly."""
    s[lay.SHORT_DEBT] += p[lay.SHORT_PER_MILLION]
    if s[lay.SHORT_DEBT] >= 1000000:
        s[lay.SHORT_DEBT] -= 1000000
        return p[lay.SHORT_MESSAGES]
    return p[lay.MESSAGES]


@njit(nogil=True, forceinline=True)
def _lost(counts):  # type: ignore[no-untyped-def]
    """Connections that count and are lost for certain. A packet that met a full ring dooms its connection, which fails
    only when its time is up: the larger number, so that none is counted twice."""
    failed = 0
    for cause in range(len(lay.CAUSES)):
        failed += counts[lay.FAILED + cause]
    return max(failed, counts[lay.COUNTED_MISSED])


@njit(nogil=True, error_model="numpy")
def _discard(port, p, counts):  # type: ignore[no-untyped-def]
    """Take the frames off a port's rings, count them and answer none."""
    for queue in range(p[lay.RX_RINGS + port]):
        ring = p[lay.RX + port] + queue * r.ROW_BYTES
        waiting = r.frames_waiting(ring)
        for ahead in range(waiting):
            _, length = r.frame_at(ring, ahead)
            counts[lay.RX_PACKETS + port] += 1
            counts[lay.RX_BYTES + port] += length
        r.give_back(ring, waiting)


@njit(nogil=True, cache=True, error_model="numpy")
def run(p, intervals, s, counts, marks, histograms, points):  # type: ignore[no-untyped-def]
    """Run a trial: ramp up, sustain, ramp down. Arguments: see `layout`. Returns when it is over or `STOP` is set; with
    the same state it goes on later with what was under way.

    p: parameters · intervals: `plan.intervals` · s: state · counts: counters, and
    marks[0], marks[1]: copies of them at the begin and the end of the sustain phase · histograms: see
    `clock.ROWS` · points: see `clock.note_points`.
    """
    interval = intervals[0]
    client_tx = p[lay.TX + lay.CLIENT]
    if s[lay.LEFT_AT] == 0:
        s[lay.FREE_HEAD] = c.link_free(p[lay.RECORDS], p[lay.RECORD_COUNT])
    away, start, ramp_end, sustain = clock.enter(p, s)
    end = latest = give_up = next_point = 1 << 62  # until the sustain phase has begun
    due = float(start) + intervals[1]
    not_before = half_open_due = float(start)
    slack = max(interval * BURST, float(p[lay.SLACK]))
    next_tick = next_sweep = start
    tick = 1 << p[lay.TICK_SHIFT]
    phase = 0
    if p[lay.UNDER_WAY]:  # counted all along: what was lost in the sustain phase is the difference of two marks
        s[lay.FAILURES_FROM] = ((start >> p[lay.TICK_SHIFT]) - 0x40000000) & 0xFFFFFFFF
        s[lay.FAILURES_FOR] = 0x80000000
    previous = start
    while True:
        now = cycles() - away
        s[lay.LONGEST_PAUSE] = max(s[lay.LONGEST_PAUSE], now - previous)
        if p[lay.UNDER_WAY] and now - previous > p[lay.LATE_LIMIT]:
            # What waited for this function and not for the DUT has the same time to make progress.
            next_sweep = max(next_sweep, now + (now - previous))
        previous = now
        if phase == 0 and clock.ramp_up_is_over(now, due, sustain, p):
            phase = 1
            due += clock.begin_counting(now, sustain, p, s, counts, marks)
            sustain, end, next_point = now, now + p[lay.SUSTAIN], now + p[lay.TIMELINE_STEP]
            latest, give_up = end + p[lay.LATEST], end + p[lay.LINGER]
            if p[lay.POPULATION]:
                s[lay.FAILURES_FROM] = (sustain >> p[lay.TICK_SHIFT]) & 0xFFFFFFFF
                s[lay.FAILURES_FOR] = p[lay.SUSTAIN] >> p[lay.TICK_SHIFT]
        if phase == 1 and now >= end:
            phase = 2
            clock.end_counting(now, p, s, counts, marks)
            next_point = clock.note_points(points, end, next_point, p[lay.TIMELINE_STEP], s, counts)
        if p[lay.UNDER_WAY] and now < end:
            begun = 0
            while s[lay.ACTIVE] < p[lay.UNDER_WAY] and begun < BURST:
                # The first of them end as in the middle of a loop: not all at once.
                number = s[lay.BEGUN]
                messages = _messages(p, s)
                if number < p[lay.UNDER_WAY] and messages:
                    messages = mixed(number, p[lay.UNDER_WAY], messages)
                begin(client_tx, now, phase == 1, messages, p, s, counts)
                begun += 1
        if s[lay.OPENED] < p[lay.POPULATION]:
            open_population(now, start, interval, client_tx, p, s, counts)
        until = end if phase else sustain
        if due < until and now < latest:
            begun = 0
            while due <= now and begun < BURST and not_before <= now and due < until:
                counted = due >= sustain
                if counted:
                    clock.note_late(now - due, p, s)
                    counts[lay.INTENDED] += 1
                begin(client_tx, now, counted, _messages(p, s), p, s, counts)
                due += clock.step(interval, due, start, ramp_end)
                not_before = clock.next_allowed(not_before, now, slack, interval)
                begun += 1
        if p[lay.HALF_OPEN] and half_open_due <= now < end:
            half_open_due = ends.send_due_syns(half_open_due, now, intervals[2], client_tx, p, s, counts)
        ends.send_due_replies(now, p[lay.TX + lay.SERVER], p, s, counts)
        ends.poll(lay.SERVER, away, p, s, counts, histograms)
        ends.poll(lay.CLIENT, away, p, s, counts, histograms)
        if now >= next_tick:
            next_tick = now + tick
            if now >= next_sweep:
                sweep(now, p, s, counts)
            if phase == 1:
                s[lay.ACTIVE_SUM] += s[lay.ACTIVE]
                s[lay.ACTIVE_SAMPLES] += 1
                s[lay.ACTIVE_MAX] = max(s[lay.ACTIVE_MAX], s[lay.ACTIVE])
                next_point = clock.note_points(points, now, next_point, p[lay.TIMELINE_STEP], s, counts)
                if p[lay.UNDER_WAY]:
                    clock.look_at_own_rings(s[lay.ACTIVE], p, s)
                if clock.ends_early(_lost(counts), now, sustain, end, p):
                    end = latest = now
                    give_up = now + p[lay.SHORT_LINGER]
                    s[lay.ENDED_AFTER] = now - sustain
            if s[lay.STOP]:
                break
        begun_all = due >= end or now >= latest
        if phase == 2 and ((s[lay.ACTIVE] == 0 and begun_all) or now >= give_up):
            break
    if s[lay.ACTIVE] > 0:
        quiet = cycles() + p[lay.HUSH]
        while cycles() < quiet:
            _discard(lay.CLIENT, p, counts)
            _discard(lay.SERVER, p, counts)
    clock.leave(phase, s, counts, marks)
    counts[lay.INTENDED] += clock.never_sent(interval, due, sustain, end, s)

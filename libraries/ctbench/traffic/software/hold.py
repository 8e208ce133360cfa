"""Connections that the software generator holds: it opens many and keeps them open, or asks each of them something.

A phase is a call of the kernel function `run_phase`. What is open stays so between calls, and nothing is sent then.
Connections begin at a rate at most, and only so many wait for the DUT at once that no ring of it overflows: what is
looked for is how many the DUT knows, not how fast it learns of them. What is not answered within a while no longer
holds the next one back; where many in a row are not, the DUT refuses them, and no more are begun.

Compiled by numba as `kernel` is, with the same records, parameters and counters (`layout`), and two arrays of its own.
"""

import ctypes
import time
from dataclasses import replace

import numpy as np
from numba import njit

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.generator import Answered, Holding, Opened, Trial
from ctbench.traffic.loads import Hold, Saturation
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import engine, plan
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.clock import connect_time, cycles_per_second
from ctbench.traffic.software.connection import begin, client_tcp, client_udp
from ctbench.traffic.software.ends import poll
from ctbench.traffic.software.machine_code import cycles, load8, load32, store8, store16, store32
from ctbench.traffic.software.wiring import Wiring

#: Connections begun, or asked, before the rings are polled again.
_TAKEN = 16

#: What a phase is to do: open, or ask; connections to open; cycles from one to the next; how many may wait at once, and
#: for how many cycles one of them holds the next one back; cycles after the last in which answers still count; after so
#: many in a row without an answer it ends, 0: never.
MODE, WANTED, INTERVAL, JOB_WINDOW, PATIENCE, TIMEOUT, JOB_GIVE_UP = range(7)
OPEN, ASK = 0, 1
#: What came of it: whether it gave up; how many were begun, or asked; cycles until the first answer and until the last
#: (0: none came).
GAVE_UP, TRIED, FIRST, LAST = range(4)
FOUND = 4


@njit(nogil=True, forceinline=True, error_model="numpy")
def _ask(slot, tx, now, p, counts):  # type: ignore[no-untyped-def]
    """Ask a connection that is open something; whether it was."""
    record = p[lay.RECORDS] + slot * c.RECORD_BYTES
    if load8(record + c.CLIENT_STATE) != c.HELD:
        return False
    store8(record + c.CLIENT_STATE, c.AWAITS_REPLY)
    store16(record + c.CLIENT_LEFT, 1)
    store16(record + c.SERVER_LEFT, 1)
    store32(record + c.STARTED, now >> 6)
    ring, tag = tx + load8(record + c.QUEUE) * r.ROW_BYTES, slot | p[lay.SALT]
    if load8(record + c.FLAGS) & c.UDP:
        client_udp(ring, record, tag, p, counts)
    else:
        client_tcp(ring, record, tag, f.PSH | f.ACK, p[lay.REQUEST_BYTES], p, counts)
    return True


@njit(nogil=True, error_model="numpy")
def _pass_over(tail, cursor, in_a_row, asks, now, patience, p):  # type: ignore[no-untyped-def]
    """The oldest record, up to `cursor`, that still holds the next one back, and how many in a row before it did not
    answer in time."""
    while tail < cursor:
        record = p[lay.RECORDS] + tail * c.RECORD_BYTES
        state = load8(record + c.CLIENT_STATE)
        if state == c.AWAITS_REPLY or (state == c.SYN_SENT and not asks):
            if ((now >> 6) - load32(record + c.STARTED)) & 0xFFFFFFFF <= patience >> 6:
                break
            in_a_row += 1
        elif state == c.HELD:
            in_a_row = 0
        tail += 1
    return tail, in_a_row


@njit(nogil=True, cache=True, error_model="numpy")
def run_phase(p, job, found, s, counts, histograms):  # type: ignore[no-untyped-def]
    """Open connections, or ask those that are open. Returns when all have answered, when the time for that is over, or
    when `STOP` is set. p, s, counts: see `layout`; job, found: see above; histograms: see `clock`."""
    client_tx = p[lay.TX + lay.CLIENT]
    if s[lay.LEFT_AT] == 0:
        s[lay.FREE_HEAD] = c.link_free(p[lay.RECORDS], p[lay.RECORD_COUNT])
    asks = job[MODE] == ASK
    cursor = tail = 0 if asks else s[lay.BEGUN]
    last = s[lay.HIGHEST] if asks else min(cursor + job[WANTED], p[lay.RECORD_COUNT])
    answers = counts[lay.ALL_COMPLETED] if asks else counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]
    seen = in_a_row = 0
    found[:] = 0
    start = sent_at = cycles()
    due = start
    quiet_from = 0
    while True:
        now = cycles()
        tail, in_a_row = _pass_over(tail, cursor, in_a_row, asks, now, job[PATIENCE], p)
        if job[JOB_GIVE_UP] and in_a_row >= job[JOB_GIVE_UP]:
            found[GAVE_UP] = 1
            last = cursor
        begun = 0
        while cursor < last and due <= now and cursor - tail < job[JOB_WINDOW] and begun < _TAKEN:
            if asks:
                tried = _ask(cursor, client_tx, now, p, counts)
            else:
                record = p[lay.RECORDS] + s[lay.FREE_HEAD] * c.RECORD_BYTES  # the one at `cursor`
                begin(client_tx, now, True, 1, p, s, counts)
                if not load8(record + c.FLAGS) & c.UDP:
                    store16(record + c.CLIENT_LEFT, 0)  # nothing is asked yet
                tried = True
            cursor += 1
            if tried:
                found[TRIED] += 1
                begun += 1
                sent_at = now
                due += job[INTERVAL]
        due = max(due, now - _TAKEN * job[INTERVAL])  # what was held back is not made good in a burst
        poll(lay.SERVER, 0, p, s, counts, histograms)
        poll(lay.CLIENT, 0, p, s, counts, histograms)
        total = counts[lay.ALL_COMPLETED] if asks else counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED]
        if total - answers > seen:
            if seen == 0:
                found[FIRST] = cycles() - start
            seen = total - answers
            found[LAST] = cycles() - start
        if s[lay.STOP]:
            break
        if quiet_from == 0 and cursor >= last and (seen >= found[TRIED] or now - sent_at > job[TIMEOUT]):
            quiet_from = now
        if quiet_from and now - quiet_from > p[lay.HUSH]:  # the last acknowledgments reach the DUT, and the server
            break
    s[lay.LEFT_AT] = cycles()


#: Connections that wait for the DUT at once at most: few enough for any ring, enough for full batches.
WINDOW = 512
#: One that is not answered for so long no longer holds the next one back. The DUT's queues hold a few milliseconds.
PATIENCE_S = 0.1
#: After so many in a row without an answer the DUT refuses connections. Four windows full.
GIVE_UP = 4 * WINDOW


class HeldConnections(Holding):
    """What is open when it ends stays open, and the DUT forgets it: nothing is kept but the memory, the caller's."""

    def __init__(
        self,
        wiring: Wiring, tables: engine.Tables, profile: ConnectionProfile, load: Hold,
        cpus: tuple[int, ...] = (), salt: int = 1,
    ) -> None:  # fmt: skip
        """`tables`: memory, kept by the caller for the next one; `cpus`: where the
        generator's thread may run; `salt`: as for `engine.prepare`."""
        if load.connections > min(lay.MOST_RECORDS, profile.client_endpoints):
            raise MissingResource(
                f"{load.connections} connections are to be held; the software traffic generator holds "
                f"{lay.MOST_RECORDS}, and profile {profile.name} has {profile.client_endpoints} client addresses and "
                "ports."
            )
        self._wiring, self._cpus, self._load = wiring, cpus, load
        # A closed loop's parameters: nothing waits, and what is under way is bounded.
        loop = replace(plan.timing_of(profile, Saturation(WINDOW), 1.0), sustain_s=0.0)
        self._run = engine.prepare(wiring, tables, profile, Saturation(WINDOW), loop, salt, records=load.connections)
        self._run.p[lay.ENDED_BY] = lay.NEVER
        self._found = np.zeros(FOUND, np.int64)
        self._hertz = cycles_per_second()
        self._window = min(WINDOW, wiring.ring_frames // 2)
        self._started = time.perf_counter()
        self._answered: Answered | None = None
        self._opening_s = 0.0

    def open(self, connections: int) -> Opened:
        before = self._established()
        self._phase(OPEN, connections)
        first, last = (int(self._found[at]) / self._hertz or None for at in (FIRST, LAST))
        self._answered = None
        self._opening_s += last or 0.0
        return Opened(
            intended=connections,
            begun=int(self._found[TRIED]),
            established=self._established() - before,
            first_s=first,
            last_s=last,
            gave_up=bool(self._found[GAVE_UP]),
        )

    def ask(self) -> Answered:
        before = int(self._run.counts[lay.ALL_COMPLETED])
        self._phase(ASK, 0)
        answered = int(self._run.counts[lay.ALL_COMPLETED]) - before
        self._answered = Answered(asked=int(self._found[TRIED]), answered=answered)
        return self._answered

    def held(self) -> int:
        records = ctypes.c_uint8 * (int(self._run.s[lay.HIGHEST]) * c.RECORD_BYTES)
        states = np.ctypeslib.as_array(records.from_address(int(self._run.p[lay.RECORDS])))
        return int(np.count_nonzero(states[c.CLIENT_STATE :: c.RECORD_BYTES] == c.HELD))

    def trial(self) -> Trial:
        run, counts, s = self._run, self._run.counts, self._run.s
        begun, established = int(s[lay.BEGUN]), self._established()
        failed = engine.named(counts, lay.CAUSE_PLACES)
        refused, lost = begun - established, self._answered.lost if self._answered else 0
        failed |= {name: n for name, n in (("no_syn_ack", refused), ("no_reply", lost)) if n}
        seconds = max(self._opening_s, 1e-3)
        return Trial.of(
            engine.traffic(counts),
            load=begun / seconds,
            duration_s=seconds,
            ramp_up_s=0.0,
            wall_s=time.perf_counter() - self._started,
            intended=begun,
            attempted=begun,
            established=established,
            completed=self._answered.answered if self._answered else self.held(),
            failed=failed,
            dut_missed=int(counts[lay.DUT_MISSED]),
            total_dut_missed=int(counts[lay.DUT_MISSED]),
            active_mean=float(s[lay.ACTIVE]),
            active_max=int(s[lay.ACTIVE]),
            connect_time_us=connect_time(run.times, counts, int(counts[lay.SETUP_MAX]), self._hertz),
        )

    def _established(self) -> int:
        counts = self._run.counts
        return int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED])

    def _phase(self, mode: int, wanted: int) -> None:
        run, s = self._run, self._run.s
        if mode == OPEN and s[lay.BEGUN] + wanted > run.p[lay.RECORD_COUNT]:
            raise GeneratorError(f"No more than {self._load.connections} connections were to be held.")
        give_up = GIVE_UP if mode == OPEN else 0
        seconds = (1 / self._load.opened_per_s, PATIENCE_S, plan.REPLY_TIMEOUT_S)
        interval, patience, timeout = (int(each * self._hertz) for each in seconds)
        job = np.array([mode, wanted, interval, self._window, patience, timeout, give_up], np.int64)
        number = wanted or int(s[lay.HIGHEST])
        # A window that is never answered takes its patience: no phase is slower.
        longest_s = number / self._load.opened_per_s + PATIENCE_S * number / self._window + plan.REPLY_TIMEOUT_S
        arguments = (run.p, job, self._found, s, run.counts, run.times)
        replace(run, function=run_phase, arguments=arguments).go_on(self._wiring, self._cpus, longest_s)

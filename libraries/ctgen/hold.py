"""Connections that the software generator holds open: it opens many, or sends a message on each of them.

A phase is one call of the kernel. Between calls, open connections stay open and nothing is sent. Connections begin at
most at a rate, and fewer wait for the DUT at once than its rings hold: a test of the table asks how many connections
the DUT holds, not how fast it takes them. A connection that is not answered within a while no longer delays the next
one; where many in a row are not answered, the DUT refuses them, and no more are begun.
"""

import ctypes
import time
from dataclasses import replace

import numpy as np

from ctgen import engine, plan
from ctgen import layout as lay
from ctgen.clock import cycles_per_second, times_of
from ctgen.errors import GeneratorError, Unavailable
from ctgen.library import kernel
from ctgen.loads import Hold, Saturation
from ctgen.profiles import ConnectionProfile
from ctgen.trial import Answered, Opened, Trial
from ctgen.wiring import Wiring

#: Connections that wait for the DUT at once at most: few enough for any ring, enough for full batches.
WINDOW = 512
#: One that is not answered for so long no longer holds the next one back. The DUT's queues hold a few milliseconds.
PATIENCE_S = 0.1
#: After so many in a row without an answer the DUT refuses connections. Four windows full.
GIVE_UP = 4 * WINDOW


class HeldConnections:
    """Connections that are held open. Nothing is sent between two calls."""

    def __init__(
        self,
        wiring: Wiring, tables: engine.Tables, profile: ConnectionProfile, load: Hold,
        cpus: tuple[int, ...] = (), salt: int = 1,
    ) -> None:  # fmt: skip
        """`tables`: memory that the caller keeps for the next ones; `cpus`: where the generator's thread may run;
        `salt`: as for `engine.prepare`."""
        if load.connections > min(lay.MOST_RECORDS, profile.client_endpoints):
            raise Unavailable(
                f"{load.connections} connections are to be held; the software traffic generator holds "
                f"{lay.MOST_RECORDS}, and profile {profile.name} has {profile.client_endpoints} client addresses and "
                "ports."
            )
        self._wiring, self._cpus, self._load = wiring, cpus, load
        # A closed loop's parameters: nothing waits, and what is under way is bounded.
        loop = replace(plan.timing_of(profile, Saturation(WINDOW), 1.0), sustain_s=0.0)
        self._run = engine.prepare(wiring, tables, profile, Saturation(WINDOW), loop, salt, records=load.connections)
        self._run.p.ended_by = lay.NEVER
        self._hertz = cycles_per_second()
        self._window = min(WINDOW, wiring.ring_frames // 2)
        self._started = time.perf_counter()
        self._answered: Answered | None = None
        self._opening_s = 0.0

    def open(self, connections: int) -> Opened:
        """Open `connections` more, at the load's rate at most. Raise `GeneratorError` where generator or link broke."""
        before = self._established()
        phase = self._phase(wanted=connections)
        first, last = (each / self._hertz or None for each in (phase.first, phase.last))
        self._answered = None
        self._opening_s += last or 0.0
        return Opened(
            begun=phase.tried,
            established=self._established() - before,
            first_s=first,
            last_s=last,
            gave_up=bool(phase.gave_up),
        )

    def ask(self) -> Answered:
        """Send a message on each open connection, and wait for the replies."""
        before = self._run.counts.all_completed
        phase = self._phase(asks=1)
        self._answered = Answered(asked=phase.tried, answered=self._run.counts.all_completed - before)
        return self._answered

    def reconnect(self) -> None:
        """Make the links to a restarted DUT again. Open connections stay open."""
        self._wiring.reconnect()

    def held(self) -> int:
        """Return the number of open connections by the generator's count."""
        return self._in_state(lay.HELD)

    def trial(self) -> Trial:
        """Return everything as one trial. `intended` and `attempted` are the connections begun, `completed` those that
        answered the last message (the open ones where none was sent), and the sustain phase is the time in which they
        were opened."""
        run, counts, s = self._run, self._run.counts, self._run.s
        begun = s.begun
        waiting = {"no_syn_ack": self._in_state(lay.SYN_SENT), "no_reply": self._in_state(lay.AWAITS_REPLY)}
        failed = engine.failed_of(counts) | {cause: number for cause, number in waiting.items() if number}
        seconds = max(self._opening_s, 1e-3)
        return Trial.of(
            engine.traffic(counts),
            load=begun / seconds,
            duration_s=seconds,
            ramp_up_s=0.0,
            wall_s=time.perf_counter() - self._started,
            intended=begun,
            attempted=begun,
            established=self._established(),
            completed=self._answered.answered if self._answered else self.held(),
            failed=failed,
            dut_missed=counts.dut_missed,
            total_dut_missed=counts.dut_missed,
            total_untaken=s.untaken,
            active_mean=float(s.active),
            active_max=s.active,
            connect_time_us=times_of(run.times, counts, self._hertz).get("connect_time_us"),
        )

    def _in_state(self, state: int) -> int:
        records = (lay.Connection * self._run.s.highest).from_address(self._run.p.records)
        return int(np.count_nonzero(np.asarray(records)["states"][:, lay.CLIENT] == state))

    def _established(self) -> int:
        counts = self._run.counts
        return counts.tcp_established + counts.udp_established  # type: ignore[no-any-return]

    def _phase(self, wanted: int = 0, asks: int = 0) -> ctypes.Structure:
        run = self._run
        if run.s.begun + wanted > run.p.record_count:
            raise GeneratorError(f"No more than {self._load.connections} connections were to be held.")
        seconds = {"interval": 1 / self._load.opened_per_s, "patience": PATIENCE_S, "timeout": plan.REPLY_TIMEOUT_S}
        cycles = {name: int(each * self._hertz) for name, each in seconds.items()}
        phase = lay.Phase(asks=asks, wanted=wanted, window=self._window, give_up=0 if asks else GIVE_UP, **cycles)
        number = wanted or run.s.highest
        # A window that is never answered takes its patience: no phase is slower.
        longest_s = number / self._load.opened_per_s + PATIENCE_S * number / self._window + plan.REPLY_TIMEOUT_S
        replace(run, work=lambda of: kernel().run_phase(of, phase)).go_on(self._wiring, self._cpus, longest_s)
        return phase

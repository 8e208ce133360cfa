"""Connections that the software generator holds: phases of `hold_kernel`, and the memory that lives between them."""

import time
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.generator import ConnectTime, Trial
from ctbench.traffic.holding import Answered, Opened
from ctbench.traffic.loads import Hold, Saturation
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import engine, hold_kernel, plan
from ctbench.traffic.software import histogram as bins
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.drive import drive
from ctbench.traffic.software.latency import CONNECT
from ctbench.traffic.software.wiring import Wiring

#: Connections that wait for the DUT at once at most: few enough for any ring, enough for full batches.
WINDOW = 512
#: One that is not answered for so long no longer holds the next one back. The DUT's queues hold a few milliseconds.
PATIENCE_S = 0.1
#: After so many in a row without an answer the DUT refuses connections. Four windows full.
GIVE_UP = 4 * WINDOW


class HeldConnections:
    """Implements `ctbench.traffic.holding.Holding`."""

    def __init__(
        self,
        wiring: Wiring,
        tables: engine.Tables,
        profile: ConnectionProfile,
        load: Hold,
        cpus: tuple[int, ...] = (),
        salt: int = 1,
    ) -> None:
        """`tables`: memory, kept by the caller for the next one; `cpus`, `salt`: as for `engine.run_trial`."""
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
        self._found = np.zeros(hold_kernel.FOUND, np.int64)
        self._hertz = cycles_per_second()
        self._window = min(WINDOW, wiring.ring_frames // 2)
        self._started = time.perf_counter()
        self._opened: list[Opened] = []
        self._answered: Answered | None = None
        self._opening_s = 0.0

    def open(self, connections: int) -> Opened:
        """See `Holding.open`."""
        before = self._established()
        self._phase(hold_kernel.OPEN, connections)
        first, last = (int(self._found[at]) / self._hertz or None for at in (hold_kernel.FIRST, hold_kernel.LAST))
        found = Opened(
            intended=connections,
            begun=int(self._found[hold_kernel.TRIED]),
            established=self._established() - before,
            first_s=first,
            last_s=last,
            gave_up=bool(self._found[hold_kernel.GAVE_UP]),
        )
        self._opened.append(found)
        self._answered = None
        self._opening_s += last or 0.0
        return found

    def ask(self) -> Answered:
        """See `Holding.ask`."""
        before = int(self._run.counts[lay.ALL_COMPLETED])
        self._phase(hold_kernel.ASK, 0)
        answered = int(self._run.counts[lay.ALL_COMPLETED]) - before
        self._answered = Answered(asked=int(self._found[hold_kernel.TRIED]), answered=answered)
        return self._answered

    def held(self) -> int:
        """See `Holding.held`."""
        return int(hold_kernel.held(self._run.p, int(self._run.s[lay.HIGHEST])))

    def trial(self) -> Trial:
        """See `Holding.trial`."""
        run, counts, s = self._run, self._run.counts, self._run.s
        begun = sum(each.begun for each in self._opened)
        failed = {cause: int(n) for cause, n in zip(lay.CAUSES, counts[lay.FAILED :], strict=True) if n}
        refused, lost = sum(each.refused for each in self._opened), self._answered.lost if self._answered else 0
        failed |= {name: n for name, n in (("no_syn_ack", refused), ("no_reply", lost)) if n}
        seconds = max(self._opening_s, 1e-3)
        setup = None
        if counts[lay.TCP_ESTABLISHED]:
            p50, p90, p99 = (bins.percentile(run.times[CONNECT], share, self._hertz) for share in (0.5, 0.9, 0.99))
            setup = ConnectTime(
                p50=p50, p90=p90, p99=p99, max=bins.microseconds(int(counts[lay.SETUP_MAX]), self._hertz)
            )
        traffic = {
            name: {"client": int(counts[place]), "server": int(counts[place + 1])}
            for name, place in (
                ("tx_packets", lay.TX_PACKETS), ("rx_packets", lay.RX_PACKETS),
                ("tx_bytes", lay.TX_BYTES), ("rx_bytes", lay.RX_BYTES),
            )
        }  # fmt: skip
        return Trial(
            load=begun / seconds,
            duration_s=seconds,
            ramp_up_s=0.0,
            wall_s=time.perf_counter() - self._started,
            intended=begun,
            attempted=begun,
            established=self._established(),
            completed=self._answered.answered if self._answered else self.held(),
            failed=failed,
            **traffic,
            total_tx_packets=traffic["tx_packets"],
            total_rx_packets=traffic["rx_packets"],
            dut_missed=int(counts[lay.DUT_MISSED]),
            total_dut_missed=int(counts[lay.DUT_MISSED]),
            active_mean=float(s[lay.ACTIVE]),
            active_max=int(s[lay.ACTIVE]),
            connect_time_us=setup,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is kept but the memory, which is the caller's: what is open stays open, and the DUT forgets it."""

    def _established(self) -> int:
        counts = self._run.counts
        return int(counts[lay.TCP_ESTABLISHED] + counts[lay.UDP_ESTABLISHED])

    def _phase(self, mode: int, wanted: int) -> None:
        """Run the kernel function once."""
        run, s = self._run, self._run.s
        if mode == hold_kernel.OPEN and s[lay.BEGUN] + wanted > run.p[lay.RECORD_COUNT]:
            raise GeneratorError(f"No more than {self._load.connections} connections were to be held.")
        job = np.zeros(hold_kernel.JOB, np.int64)
        job[hold_kernel.MODE], job[hold_kernel.WANTED], job[hold_kernel.WINDOW] = mode, wanted, self._window
        job[hold_kernel.INTERVAL] = int(self._hertz / self._load.opened_per_s)
        job[hold_kernel.PATIENCE] = int(PATIENCE_S * self._hertz)
        job[hold_kernel.TIMEOUT] = int(plan.REPLY_TIMEOUT_S * self._hertz)
        job[hold_kernel.GIVE_UP] = GIVE_UP if mode == hold_kernel.OPEN else 0
        s[lay.STOP] = 0

        def stop() -> None:
            s[lay.STOP] = 1

        number = wanted or int(s[lay.HIGHEST])
        # A window that is never answered takes its patience: no phase is slower.
        longest_s = number / self._load.opened_per_s + PATIENCE_S * number / self._window + plan.REPLY_TIMEOUT_S
        arguments = (run.p, job, self._found, s, run.counts, run.times)
        drive(hold_kernel.run, arguments, self._wiring, self._cpus, stop, longest_s, lambda _elapsed: None)

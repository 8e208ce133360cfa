"""What a running ovs-vswitchd with the userspace datapath answers, and that it can be paused."""

import re
import time

from ctbench.base.errors import TestbedError
from ctbench.dut.base import CpuUse, LookUps
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.cpu import cpu_use, look_ups
from ctbench.dut.ovs.instance import POLL_S, Instance, ProcessIdentity, VswitchdLog
from ctbench.dut.ovs.parse import parse_cycle_rate, parse_datapath_flows, parse_pmd_statistics
from ctbench.dut.ovs.pause import awake
from ctbench.dut.ovs.pmd_samples import sample_pmd
from ctbench.dut.ovs.revalidators import Revalidators
from ctbench.dut.sampling import ThreadSamples
from ctbench.dut.table import FullSaid
from ctbench.hosts.base import Host

#: Seconds that conntrack gets to empty its table.
FLUSH_TIMEOUT_S = 30.0


class OvsAnswers:
    """The part of `OvsDpdkDut` that does not depend on what it is set up as: its connection table, its flows and its
    threads."""

    #: See `TableDut.sweep_s`; lib/conntrack.c of 3.1: the thread that cleans wakes up so often.
    sweep_s = 20.0

    def __init__(self, host: Host, control: OvsControl, instance: Instance) -> None:
        """`instance`: the Open vSwitch that `control` speaks to, which need not run yet."""
        self._host = host
        self.control = control
        self._instance = instance
        self._log = VswitchdLog(host, instance)
        #: Resident memory of ovs-vswitchd when its first topology stood, bytes; 0: there was none yet.
        self._empty_memory = 0

    @awake
    def flush_state(self) -> None:
        """See `Dut.flush_state`."""
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        while True:
            # Again and again: frames that waited in the rings may have opened connections since.
            self.control.appctl("dpctl/flush-conntrack")
            if (left := self.connections()) == 0:
                return
            if time.monotonic() > deadline:
                raise TestbedError(f"{left} connections are left {FLUSH_TIMEOUT_S:g} s after conntrack was flushed.")
            time.sleep(POLL_S)

    @awake
    def connections(self) -> int:
        """Entries in the connection table now."""
        return int(self.control.appctl("dpctl/ct-get-nconns"))

    @awake
    def table_memory(self) -> int | None:
        """See `TableDut.table_memory`: ovs-vswitchd's resident memory."""
        return self._resident() - self._empty_memory

    def sweeps_within(self, timeout_s: float) -> float:
        """See `TableDut.sweeps_within`: it sweeps as often, whatever is in the table."""
        return self.sweep_s

    @awake
    def limit_now(self) -> int | None:
        """See `TableDut.limit_now`."""
        return int(self.control.appctl("dpctl/ct-get-maxconns"))

    @awake
    def full_said(self) -> FullSaid:
        """See `TableDut.full_said`."""
        counted = int(self.control.appctl("coverage/read-counter", "conntrack_full"))
        return FullSaid(counted, sum("table" in line and "full" in line for line in self._log.since(0)))

    def limit_table(self, entries: int) -> None:
        """See `TableDut.limit_table`: what is beyond the limit already stays. It is not paused then."""
        self.control.appctl("dpctl/ct-set-maxconns", str(entries))

    @awake
    def cpu_use(self) -> CpuUse | None:
        """See `Dut.cpu_use`; none of a dead OVS. The time after a trial counts as idle: to be asked at its end."""
        if self._instance.vswitchd() is None:
            return None
        statistics = parse_pmd_statistics(self.control.appctl("dpif-netdev/pmd-stats-show"))
        return cpu_use(statistics.values(), parse_cycle_rate(self.control.appctl("dpif-netdev/pmd-perf-show")))

    @awake
    def look_ups(self) -> LookUps | None:
        """See `LookingUp.look_ups`; none of a dead OVS."""
        if self._instance.vswitchd() is None:
            return None
        statistics = parse_pmd_statistics(self.control.appctl("dpif-netdev/pmd-stats-show"))
        return look_ups(statistics.values(), parse_datapath_flows(self.control.appctl("upcall/show")))

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """See `ctbench.dut.sampling.SampledDut`: of the PMD thread of the lowest CPU."""

        def cycles(cpu: int) -> tuple[int, int]:
            pmd = parse_pmd_statistics(self.control.appctl("dpif-netdev/pmd-stats-show"))[cpu]
            return pmd.processing_cycles, pmd.idle_cycles

        return sample_pmd(self._host, self._running().pid, seconds, cycles)

    @awake
    def forget_flows(self) -> None:
        """See `ctbench.dut.upcalls.UpcallDut`."""
        Revalidators(self.control).purge()

    @awake
    def upcalls(self) -> tuple[int, int]:
        """See `ctbench.dut.upcalls.UpcallDut`."""
        pmds = parse_pmd_statistics(self.control.appctl("dpif-netdev/pmd-stats-show")).values()
        return sum(pmd.upcalls for pmd in pmds), sum(pmd.failed_upcalls for pmd in pmds)

    @property
    def paused(self) -> bool:
        """Whether `pause` was called last, and no `resume`."""
        return self._instance.paused

    def pause(self) -> None:
        """See `Dut.pause`: its PMD threads poll."""
        self._instance.pause()

    def resume(self) -> None:
        """See `Dut.resume`."""
        self._instance.resume()

    def _resident(self) -> int:
        """Resident memory of ovs-vswitchd, bytes; 0 where the kernel does not say."""
        found = re.search(r"^VmRSS:\s+(\d+) kB", self._host.read(f"/proc/{self._running().pid}/status"), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def _running(self) -> ProcessIdentity:
        process = self._instance.vswitchd()
        if process is None:
            raise TestbedError(f"ovs-vswitchd died: {self._log.excerpt()}.")
        return process

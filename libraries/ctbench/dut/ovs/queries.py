"""What a running ovs-vswitchd with the userspace datapath is asked: its table, its flows, its threads, its failure."""

import re
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Done, FullSaid, ThreadSamples
from ctbench.dut.base import CpuUse, Dut, LookUps
from ctbench.dut.capture import KERNEL_LOG, Question
from ctbench.dut.ovs.control import (
    OvsControl,
    PmdStatistics,
    parse_cycle_rate,
    parse_datapath_flows,
    parse_pmd_statistics,
    parse_rxq_map,
)
from ctbench.dut.ovs.control_plane import dump_connections, forget_flows
from ctbench.dut.ovs.instance import Instance, VswitchdLog
from ctbench.dut.ovs.processes import ProcessIdentity
from ctbench.dut.ovs.threads import sample_pmd
from ctbench.dut.table import empty
from ctbench.hosts.base import Host

Answer = TypeVar("Answer")


def awake(method: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """Of what may be paused and could not answer then: it goes on for as long as it is asked something."""

    @wraps(method)
    def asked(self: Any, /) -> Answer:
        paused = self.paused
        self.resume()
        try:
            return method(self)
        finally:
            if paused:
                self.pause()

    return asked


class OvsQueries(Dut):
    """What does not depend on what an OVS is set up as: its connection table, its flows and its threads."""

    #: `TableDut.sweep_s`, by lib/conntrack.c of 3.1: the thread that cleans wakes up so often.
    sweep_s = 20.0

    def __init__(self, host: Host, control: OvsControl, instance: Instance) -> None:
        """`instance`: the Open vSwitch that `control` speaks to, which need not run yet."""
        self._host = host
        self.control = control
        self._instance = instance
        self._log = VswitchdLog(instance)
        #: Resident memory of ovs-vswitchd when its first topology stood, bytes; 0: there was none yet.
        self._empty_memory = 0

    @awake
    def flush_state(self) -> None:
        empty(lambda: self.control.appctl("dpctl/flush-conntrack"), self.connections)

    @awake
    def connections(self) -> int:
        return int(self.control.appctl("dpctl/ct-get-nconns"))

    @awake
    def dump_connections(self) -> Done:
        return dump_connections(self.control)

    @awake
    def table_memory(self) -> int | None:
        """By how much the resident memory of ovs-vswitchd has grown, bytes."""
        return self._resident() - self._empty_memory

    def sweeps_within(self, timeout_s: float) -> float:
        return self.sweep_s

    @awake
    def limit_now(self) -> int | None:
        return int(self.control.appctl("dpctl/ct-get-maxconns"))

    @awake
    def full_said(self) -> FullSaid:
        counted = int(self.control.appctl("coverage/read-counter", "conntrack_full"))
        return FullSaid(counted, sum("table" in line and "full" in line for line in self._log.since(0)))

    def limit_table(self, entries: int) -> None:
        """What is beyond the limit already stays. It is not paused then."""
        self.control.appctl("dpctl/ct-set-maxconns", str(entries))

    @awake
    def cpu_use(self) -> CpuUse | None:
        """None of a dead OVS. The time after a trial counts as idle: to be asked at its end."""
        if self._instance.vswitchd() is None:
            return None
        return cpu_use(self._pmds().values(), parse_cycle_rate(self.control.appctl("dpif-netdev/pmd-perf-show")))

    @awake
    def look_ups(self) -> LookUps | None:
        """None of a dead OVS."""
        if self._instance.vswitchd() is None:
            return None
        return look_ups(self._pmds().values(), parse_datapath_flows(self.control.appctl("upcall/show")))

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Of the PMD thread of the lowest CPU."""

        def cycles(cpu: int) -> tuple[int, int]:
            pmd = self._pmds()[cpu]
            return pmd.processing_cycles, pmd.idle_cycles

        return sample_pmd(self._host, self._running().pid, seconds, cycles)

    @awake
    def forget_flows(self) -> None:
        forget_flows(self.control)

    @awake
    def upcalls(self) -> tuple[int, int]:
        pmds = self._pmds().values()
        return sum(pmd.upcalls for pmd in pmds), sum(pmd.failed_upcalls for pmd in pmds)

    @property
    def paused(self) -> bool:
        return self._instance.paused

    def pause(self) -> None:
        """Its PMD threads poll."""
        self._instance.pause()

    def resume(self) -> None:
        self._instance.resume()

    def _pmds(self) -> dict[int, PmdStatistics]:
        return parse_pmd_statistics(self.control.appctl("dpif-netdev/pmd-stats-show"))

    def _resident(self) -> int:
        """Resident memory of ovs-vswitchd, bytes; 0 where the kernel does not say."""
        found = re.search(r"^VmRSS:\s+(\d+) kB", self._host.read(f"/proc/{self._running().pid}/status"), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def _running(self) -> ProcessIdentity:
        process = self._instance.vswitchd()
        if process is None:
            raise TestbedError(f"ovs-vswitchd died: {self._log.excerpt()}.")
        return process


def cpu_use(statistics: Collection[PmdStatistics], cycles_per_second: float | None) -> CpuUse | None:
    """CPU use from the `statistics` of all PMD threads; None when they have received no packet.

    A PMD thread polls without end: of its CPU it uses the share of the cycles in which a poll found packets. The time
    for a packet needs the rate at which cycles are counted; None where it is not known."""
    packets = sum(pmd.packets_received for pmd in statistics)
    if not packets:
        return None
    cycles = sum(pmd.processing_cycles for pmd in statistics) / packets
    busy = sum(pmd.processing_percent for pmd in statistics) / 100
    each_ns = cycles / cycles_per_second * 1e9 if cycles_per_second else None
    return CpuUse(busy, each_ns, "PMD cycles", hertz=cycles_per_second, cpus=len(statistics))


def look_ups(statistics: Collection[PmdStatistics], datapath_flows: int) -> LookUps:
    """Where packets were found, summed over the PMD threads."""
    counted = ("recirculations", "emc_hits", "smc_hits", "megaflow_hits", "upcalls", "failed_upcalls")
    sums = {name: sum(getattr(pmd, name) for pmd in statistics) for name in counted}
    return LookUps(sum(pmd.packets_received for pmd in statistics), **sums, datapath_flows=datapath_flows)


def running_facts(control: OvsControl) -> dict[str, Any]:
    """Its settings, which PMD thread polls which queue, and what each of them has done."""
    queues = parse_rxq_map(control.appctl("dpif-netdev/pmd-rxq-show"))
    statistics = parse_pmd_statistics(control.appctl("dpif-netdev/pmd-stats-show"))
    return {
        "other_config": control.columns("Open_vSwitch", ".", "other_config")["other_config"],
        "rxq_map": {str(cpu): [f"{port}/{queue}" for port, queue in polled] for cpu, polled in queues.items()},
        "pmd": {str(cpu): pmd.as_record() for cpu, pmd in statistics.items()},
    }


#: Lines of the log's end.
LOG_LINES = 400
#: What ovs-appctl(8) is asked, by the name of the file that it is kept in.
_APPCTL = {
    "pmd-stats": "dpif-netdev/pmd-stats-show", "pmd-rxq": "dpif-netdev/pmd-rxq-show",
    "pmd-perf": "dpif-netdev/pmd-perf-show", "upcall": "upcall/show", "coverage": "coverage/show",
    "memory": "memory/show", "conntrack-count": "dpctl/ct-get-nconns", "conntrack-limit": "dpctl/ct-get-maxconns",
    "conntrack-states": "dpctl/ct-stats-show", "datapath": "dpctl/show -s", "datapath-flows": "dpctl/dump-flows -m",
}  # fmt: skip


def questions(control: OvsControl, log: str) -> list[Question]:
    appctl, ofctl = control.installation.tool("ovs-appctl"), control.installation.tool("ovs-ofctl")
    asked = {name: (appctl, "-t", control.vswitchd, *command.split()) for name, command in _APPCTL.items()}
    asked["ports"] = (ofctl, "-O", "OpenFlow14", "dump-ports", control.bridge)
    asked["flows"] = (ofctl, "dump-flows", control.bridge)
    of_vswitchd = (Question(name, argv, control.environment, daemon="ovs-vswitchd") for name, argv in asked.items())
    return [Question("log", ("tail", "-n", str(LOG_LINES), log)), *of_vswitchd, Question(*KERNEL_LOG)]

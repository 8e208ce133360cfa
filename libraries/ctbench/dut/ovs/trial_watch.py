"""How ovs-vswitchd was when a trial began, and what went wrong with it since."""

import time
from collections.abc import Mapping

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Problem
from ctbench.dut.ovs.counters import new_drops
from ctbench.dut.ovs.cpu_contention import read_thread_times, sharing_problems
from ctbench.dut.ovs.health import TrialStart, drop_problems, log_problems, process_problem
from ctbench.dut.ovs.instance import Instance, ProcessIdentity, VswitchdLog
from ctbench.dut.ovs.parse import PortCounters
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement


class TrialWatch:
    """Remembers one beginning."""

    def __init__(self, host: Host, instance: Instance, log: VswitchdLog) -> None:
        self._host = host
        self._instance = instance
        self._log = log
        self._start: TrialStart | None = None

    def begin(self, process: ProcessIdentity, ports: Mapping[int, PortCounters]) -> None:
        """A trial begins, with the ports' counters as they are."""
        times = read_thread_times(self._host, process.pid)
        size, paused_s = self._log.size(), self._instance.paused_s
        self._start = TrialStart(process, size, ports, times, time.monotonic(), paused_s)

    def forget(self) -> None:
        """Nothing is set up any more."""
        self._start = None

    @property
    def has_begun(self) -> bool:
        """Whether there is a beginning to compare with; the questions below need one."""
        return self._start is not None

    def fatal(self, trouble: str) -> list[Problem]:
        """Why nothing more can be measured, with the errors that ovs-vswitchd logged since; empty where it can.
        `trouble`: see `Dut.trouble`."""
        start = self._start
        assert start is not None, "it has begun"
        try:
            now = self._instance.vswitchd()
        except TestbedError:
            now = None
        found = process_problem(start.process, now)
        if trouble and (found is None or now is None):  # else it is another one that is well, or in trouble
            found = Problem("fatal", trouble)
        if found is None:
            return []
        try:
            return [found, *log_problems(self._log.since(start.log_size))]
        except TestbedError:
            return [found]

    def problems(self, placement: Placement | None, ports: Mapping[int, PortCounters], kind: str) -> list[Problem]:
        """What else went wrong, of one that runs. `placement`: of the topology that is set up; `ports`: their counters
        now, of this kind."""
        start = self._start
        assert start is not None, "it has begun"
        paused_s = self._instance.paused_s - start.paused_s
        found = log_problems(self._log.since(start.log_size), was_paused=paused_s > 0)
        if placement and not placement.oversubscribed:  # where it is, nothing is measured anyway
            times = read_thread_times(self._host, start.process.pid)
            shares = set(placement.housekeeping) == set(placement.generator)
            ran_s = time.monotonic() - start.at_s - paused_s
            found += sharing_problems(start.times, times, ran_s, with_generator=shares)
        return found + drop_problems(new_drops(start.ports, ports), kind)

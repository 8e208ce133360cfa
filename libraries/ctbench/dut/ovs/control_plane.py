"""The control plane of Open vSwitch with the userspace datapath: its main thread and its revalidators."""

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import ControlPlane, Done, Revalidation, ThreadLook
from ctbench.dut.ovs.bridge import IdlePorts
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.table import dump
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement, format_cpu_list


class OvsControlPlane(ControlPlane):
    """Times are those of a whole command, as an operator waits for it: the program starts, the main thread of
    ovs-vswitchd answers, the program prints."""

    def __init__(self, control: OvsControl, ports: IdlePorts, pid: int) -> None:
        self._control = control
        self._ports = ports
        self._main = _main_thread(control.host, pid)

    def add_port(self, name: str) -> Done:
        """By ovs-vsctl add-port, which returns when ovs-vswitchd has taken it over."""
        return self._timed(lambda: self._ports.add(name))

    def delete_port(self, name: str) -> Done:
        return self._timed(lambda: self._ports.delete([name]))

    def check_port(self, name: str) -> None:
        self._ports.check(name)

    def delete_ports(self, names: Sequence[str]) -> None:
        self._ports.delete(names)

    def revalidation(self) -> Revalidation:
        return parse_upcalls(self._control.appctl("upcall/show"))

    def allow_flows(self, number: int) -> None:
        allow_flows(self._control, number)

    def revalidate_all(self) -> None:
        """What the bridge has learnt of MAC addresses is flushed, so no flow can be trusted any more
        (REV_MAC_LEARNING)."""
        self._control.appctl("fdb/flush", self._control.bridge)

    def command(self, *words: str) -> Done:
        """By ovs-appctl."""
        begun = time.monotonic()
        answer = self._control.appctl(*words)
        return Done(time.monotonic() - begun, len(answer.splitlines()))

    def main_thread(self) -> ThreadLook | None:
        """None where it is on another machine. `TestbedError` where it is gone."""
        if self._main is None:
            return None
        try:
            ran, _, _ = (self._main / "schedstat").read_text().split()
            state = (self._main / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError) as error:
            raise TestbedError("The main thread of ovs-vswitchd is gone.") from error
        return ThreadLook(int(ran) / 1e9, state in _WAITS)

    def _timed(self, change: Callable[[], None]) -> Done:
        begun = time.monotonic()
        change()
        return Done(time.monotonic() - begun, self._ports.staying)


#: States of proc(5) in which a thread waits: for an event, in poll(2).
_WAITS = "SI"
#: Of upcall/show, ovs-vswitchd(8): what it prints first is the only datapath that an instance has.
_FLOWS = re.compile(r"\(current (\d+)\).*\(limit (\d+)\)")
_DURATION = re.compile(r"dump duration : (\d+)ms")


def parse_upcalls(text: str) -> Revalidation:
    """What upcall/show prints. `TestbedError` where it is something else."""
    flows, duration = _FLOWS.search(text), _DURATION.search(text)
    if flows is None or duration is None:
        raise TestbedError("upcall/show printed neither flows nor a dump duration.")
    return Revalidation(int(duration[1]) / 1000, int(flows[1]), int(flows[2]))


def require_cpus(topology: Topology, placement: Placement) -> None:
    """`MissingResource` where a topology asks for more revalidators, or handlers, than there are CPUs for them: threads
    that share one take turns, and say nothing about what more of them are good for."""
    cpus = placement.housekeeping
    for wanted, threads in ((topology.revalidators, "revalidators"), (topology.handlers, "handlers")):
        if (wanted or 0) > len(cpus) and not placement.oversubscribed:
            raise MissingResource(
                f"{wanted} {threads} need {wanted} CPUs besides those of the PMD threads: here they have CPU "
                f"{format_cpu_list(cpus)} (cpus.housekeeping)."
            )


#: Flows that the datapath is allowed to have: as in the measurements of 2024, and Open vSwitch's own default.
FLOWS_ALLOWED = 200_000


def dump_connections(control: OvsControl) -> Done:
    """dpctl/dump-conntrack: one line for an entry that has not expired. `TestbedError` where it prints none."""
    argv = [control.installation.tool("ovs-appctl"), "-t", control.vswitchd, "dpctl/dump-conntrack"]
    return dump(control.host, argv, control.environment)


def allow_flows(control: OvsControl, number: int) -> None:
    """Let the datapath have so many flows; the revalidators lower that by themselves where a round takes long."""
    control.appctl("upcall/set-flow-limit", str(number))


def forget_flows(control: OvsControl) -> None:
    """Delete all flows of the datapath, and allow as many as by default."""
    control.appctl("revalidator/purge")
    allow_flows(control, FLOWS_ALLOWED)


def _main_thread(host: Host, pid: int) -> Path | None:
    """The folder of a main thread in /proc of this machine, whatever its ID on the host; proc(5), fdinfo of a pidfd."""
    descriptor = host.open_process(pid)
    if descriptor is None:
        return None
    try:
        known = re.search(r"^Pid:\s+(\d+)$", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.MULTILINE)
    finally:
        os.close(descriptor)
    return Path(f"/proc/{known[1]}/task/{known[1]}") if known else None

"""The revalidators of Open vSwitch: how long they take for all flows of the datapath, and how they are made to."""

import re

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.control_plane import Revalidation
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, format_cpu_list

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


class Revalidators:
    """Those of one instance."""

    def __init__(self, control: OvsControl) -> None:
        self._control = control

    def last(self) -> Revalidation:
        """Their last round, in whole milliseconds."""
        return parse_upcalls(self._control.appctl("upcall/show"))

    def allow(self, flows: int) -> None:
        """Let the datapath have so many flows from now on; they lower that by themselves where a round takes long."""
        self._control.appctl("upcall/set-flow-limit", str(flows))

    def purge(self) -> None:
        """Delete all flows of the datapath, and allow as many as by default."""
        self._control.appctl("revalidator/purge")
        self.allow(FLOWS_ALLOWED)

    def force(self) -> None:
        """Make them look at every flow now: what the bridge has learnt of MAC addresses is flushed, so none can be
        trusted any more (REV_MAC_LEARNING)."""
        self._control.appctl("fdb/flush", self._control.bridge)

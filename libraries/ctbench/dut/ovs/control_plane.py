"""The control plane of Open vSwitch with the userspace datapath: its main thread and its revalidators."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import STAYS, ControlPlane, Done, Revalidation, ThreadLook
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.threads import Thread
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, cpu_ranges

#: Ports that one transaction adds or deletes at most: a command line has a limit.
_AT_ONCE = 256
#: Seconds that ovs-vswitchd gets for a port that comes or goes, and for each that goes with it in one transaction: the
#: time grows with their number. ovs-vsctl waits for one that has died, too.
_TAKE_OVER_S, _TAKE_OVER_EACH_S = 5, 0.1


class OvsControlPlane(ControlPlane):
    """The control plane of one bridge, and its idle ports, which the rules do not use. A time is that of a whole
    command, for which an operator waits: the program starts, the main thread of ovs-vswitchd answers, the program
    prints."""

    def __init__(self, control: OvsControl) -> None:
        self._control = control
        self._staying = 0
        self._main: Path | None = None

    def of_process(self, pid: int) -> Self:
        """Look at the main thread of this ovs-vswitchd from now on."""
        here = self._control.host.local_pid(pid)
        self._main = Path(f"/proc/{here}/task/{here}") if here else None
        return self

    def keep_ports(self, number: int) -> None:
        """Keep this number of idle ports on the bridge: add or delete ports until it has them, then check the last."""
        names = [f"{STAYS}{each}" for each in range(max(number, self._staying))]
        for some in _parts(names[self._staying :]):
            self._control.vsctl(*(part for name in some for part in self._added(name)))
        self.delete_ports(names[number:])
        self._staying = number
        if number:
            self.check_port(names[number - 1])

    def add_port(self, name: str) -> Done:
        """Add a port by ovs-vsctl add-port, which returns when ovs-vswitchd has taken it over."""
        return self._timed(lambda: self._control.vsctl(f"--timeout={_TAKE_OVER_S}", *self._added(name)[1:]))

    def delete_port(self, name: str) -> Done:
        return self._timed(lambda: self.delete_ports([name]))

    def delete_ports(self, names: Sequence[str]) -> None:
        for some in _parts(names):
            gone = (part for name in some for part in ("--", "--if-exists", "del-port", name))
            self._control.vsctl(f"--timeout={_TAKE_OVER_S + int(_TAKE_OVER_EACH_S * len(some))}", *gone)

    def check_port(self, name: str) -> None:
        found = self._control.rows("Interface", [name], "ofport", "error")[name]
        if found["error"] or found["ofport"] in ([], -1):
            raise TestbedError(f"Open vSwitch cannot add port {name}: {found['error'] or 'it has no number'}.")

    def _added(self, name: str) -> tuple[str, ...]:
        return ("--", "add-port", self._control.bridge, name, "--", "set", "Interface", name, "type=internal")

    def revalidation(self) -> Revalidation:
        return self._control.ask(answers.REVALIDATION)

    def allow_flows(self, number: int) -> None:
        """Set the limit of flows, which the revalidators lower by themselves where a round takes long."""
        self._control.ask(answers.SET_FLOW_LIMIT, str(number))

    def revalidate_all(self) -> None:
        """Flush the MAC addresses that the bridge has learnt, after which all flows have to be looked at
        (REV_MAC_LEARNING)."""
        self._control.ask(answers.FORGET_ADDRESSES, self._control.bridge)

    def main_thread(self) -> ThreadLook | None:
        """Return the main thread's state; None on another machine. Raise `TestbedError` where it is gone."""
        if self._main is None:
            return None
        try:
            ran, _, _ = (self._main / "schedstat").read_text().split()
            state = (self._main / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError) as error:
            raise TestbedError("The main thread of ovs-vswitchd is gone.") from error
        return ThreadLook(int(ran) / 1e9, state in _WAITS and not self._is_blocked())

    def _is_blocked(self) -> bool:
        """True where the main thread waits for a lock, or a time: as if it worked, it answers nothing then. False where
        this machine does not tell where a thread waits."""
        assert self._main is not None
        try:
            return (self._main / "wchan").read_text().startswith(_BLOCKED)
        except OSError:
            return False

    def _timed(self, change: Callable[[], object]) -> Done:
        begun = time.monotonic()
        change()
        return Done(time.monotonic() - begun, self._staying)


def _parts(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)]


#: States of proc(5) in which a thread waits: for an event, in poll(2).
_WAITS = "SI"
#: What functions of Linux begin with in which a thread waits for something else: kernel/futex, kernel/time/hrtimer.c.
_BLOCKED = ("futex", "hrtimer_nanosleep", "do_nanosleep")


def require_cpus(topology: Topology, placement: Placement) -> None:
    """Raise `MissingResource` where a topology asks for more revalidators, or handlers, than there are CPUs for them:
    threads that share a CPU take turns, and do not show the gain of more of them."""
    cpus = placement.housekeeping
    for wanted, threads in ((topology.revalidators, "revalidators"), (topology.handlers, "handlers")):
        if (wanted or 0) > len(cpus) and not placement.oversubscribed:
            raise MissingResource(
                f"{wanted} {threads} need {wanted} CPUs besides those of the PMD threads: here they have CPU "
                f"{cpu_ranges(cpus)} (cpus.housekeeping)."
            )


def require_handlers(topology: Topology, threads: Iterable[Thread], release: str) -> None:
    """Raise `MissingResource` where a topology asks for handlers, and ovs-vswitchd has no such threads: since 3.4 the
    userspace datapath has none (f0d1beca6), and its PMD threads handle upcalls."""
    if topology.handlers and not any(thread.name.startswith("handler") for thread in threads):
        raise MissingResource(
            f"{topology.handlers} handlers are asked for, and Open vSwitch {release} has no such threads for its "
            "userspace datapath."
        )

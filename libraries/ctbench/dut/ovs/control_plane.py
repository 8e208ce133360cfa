"""The control plane of Open vSwitch with the userspace datapath: its main thread answers an operator."""

import time
from collections.abc import Callable, Sequence

from ctbench.base.errors import TestbedError
from ctbench.dut.control_plane import DUMP_TIMEOUT_S, Done, Revalidation, ThreadLook
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.idle_ports import IdlePorts
from ctbench.dut.ovs.main_thread import MainThread
from ctbench.dut.ovs.revalidators import Revalidators

#: Counts the lines that a command prints. They are not kept: a million entries are 150 MB.
_COUNT_LINES = '"$@" | wc -l'


class OvsControlPlane:
    """Implements `ctbench.dut.control_plane.ControlPlane`. Times are those of a whole command, as an operator waits for
    it: the program starts, the main thread of ovs-vswitchd answers, the program prints."""

    def __init__(self, control: OvsControl, ports: IdlePorts, pid: int) -> None:
        """`pid`: of ovs-vswitchd on the host."""
        self._control = control
        self._ports = ports
        self._revalidators = Revalidators(control)
        self._main = MainThread(control.host, pid)

    def dump_connections(self) -> Done:
        """See `ControlPlane.dump_connections`: dpctl/dump-conntrack, one line for an entry that has not expired."""
        control = self._control
        command = [control.installation.tool("ovs-appctl"), "-t", control.vswitchd, "dpctl/dump-conntrack"]
        begun = time.monotonic()
        argv = ["sh", "-c", _COUNT_LINES, "sh", *command]
        printed = control.host.run(argv, DUMP_TIMEOUT_S, env=control.environment).stdout
        seconds = time.monotonic() - begun
        if not (entries := int(printed)):  # of a pipe, nobody hears how its first command ended
            raise TestbedError("dpctl/dump-conntrack printed no connection.")
        return Done(seconds, entries)

    def add_port(self, name: str) -> Done:
        """See `ControlPlane.add_port`: ovs-vsctl add-port, which returns when ovs-vswitchd has taken it over."""
        return self._timed(lambda: self._ports.add(name))

    def delete_port(self, name: str) -> Done:
        """See `ControlPlane.delete_port`."""
        return self._timed(lambda: self._ports.delete([name]))

    def check_port(self, name: str) -> None:
        """See `ControlPlane.check_port`."""
        self._ports.check(name)

    def delete_ports(self, names: Sequence[str]) -> None:
        """See `ControlPlane.delete_ports`."""
        self._ports.delete(names)

    def revalidation(self) -> Revalidation:
        """See `ControlPlane.revalidation`."""
        return self._revalidators.last()

    def allow_flows(self, number: int) -> None:
        """See `ControlPlane.allow_flows`."""
        self._revalidators.allow(number)

    def revalidate_all(self) -> None:
        """See `ControlPlane.revalidate_all`."""
        self._revalidators.force()

    def main_thread(self) -> ThreadLook | None:
        """See `ControlPlane.main_thread`."""
        return self._main.look()

    def _timed(self, change: Callable[[], None]) -> Done:
        begun = time.monotonic()
        change()
        return Done(time.monotonic() - begun, self._ports.staying)

"""Ports of the bridge that no packet of the load passes: internal ones, as the interfaces of containers are."""

from collections.abc import Sequence

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.control import OvsControl

#: What their names begin with; at most 15 characters, as interfaces of Linux.
STAYS, COMES = "stay", "pod"
#: Ports that one transaction adds or deletes at most: a command line has a limit.
_AT_ONCE = 256
#: Seconds that ovs-vswitchd gets for a port that comes or goes: ovs-vsctl waits for one that has died, too.
_TAKE_OVER_S = 5


class IdlePorts:
    """The ports of one bridge besides those of its rules."""

    def __init__(self, control: OvsControl) -> None:
        self._control = control
        #: How many stay.
        self.staying = 0

    def keep(self, number: int) -> None:
        """Let so many stay; what is not so is changed, and looked at afterwards."""
        names = [f"{STAYS}{each}" for each in range(max(number, self.staying))]
        for some in _parts(names[self.staying :]):
            self._control.vsctl(*(part for name in some for part in self._added(name)))
        self.delete(names[number:])
        self.staying = number
        if number:
            self.check(names[number - 1])

    def add(self, name: str) -> None:
        """Add one, and wait until ovs-vswitchd has it."""
        self._control.vsctl(f"--timeout={_TAKE_OVER_S}", *self._added(name)[1:])

    def delete(self, names: Sequence[str]) -> None:
        """Delete those of them that are there."""
        for some in _parts(names):
            gone = (part for name in some for part in ("--", "--if-exists", "del-port", name))
            self._control.vsctl(f"--timeout={_TAKE_OVER_S}", *gone)

    def check(self, name: str) -> None:
        """`TestbedError` where ovs-vswitchd could not open a port."""
        found = self._control.columns("Interface", name, "ofport", "error")
        if found["error"] or found["ofport"] in ([], -1):
            raise TestbedError(f"Open vSwitch cannot add port {name}: {found['error'] or 'it has no number'}.")

    def _added(self, name: str) -> tuple[str, ...]:
        return ("--", "add-port", self._control.bridge, name, "--", "set", "Interface", name, "type=internal")


def _parts(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)]

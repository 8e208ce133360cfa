"""What a DUT's control plane can be made to do while the DUT forwards: what passes between it and a procedure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

#: Seconds that a table gets to be printed: a million entries take some ten.
DUMP_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Done:
    """Something that the control plane did once."""

    seconds: float
    #: How much of it there was: entries that were dumped, ports of the bridge, flows of the datapath.
    size: float


@dataclass(frozen=True)
class Revalidation:
    """A round of looking at all flows of the datapath."""

    seconds: float
    #: Flows that there are now, and that there may be: fewer than was allowed, where the DUT has lowered that.
    flows: int
    limit: int


@dataclass(frozen=True)
class ThreadLook:
    """A look at a thread."""

    #: CPU time that it has had so far, seconds.
    ran_s: float
    #: Whether it waits for an event now.
    waits: bool


@runtime_checkable
class DumpingDut(Protocol):
    """A DUT with the ability `dump`, or its control plane."""

    def dump_connections(self) -> Done:
        """Print the connection table, as an operator does; `size`: its entries. `TestbedError` where that fails."""


class ControlPlane(Protocol):
    """The control plane of a DUT with the ability `control plane`. Every method raises `TestbedError` where the DUT
    does not do what it is asked for."""

    def dump_connections(self) -> Done:
        """Print the connection table, as an operator does; `size`: its entries."""

    def add_port(self, name: str) -> Done:
        """Add a port that no packet of the load passes, and wait until it is there; `size`: how many such ports stay,
        whatever comes and goes."""

    def delete_port(self, name: str) -> Done:
        """Delete it, and wait until it is gone."""

    def check_port(self, name: str) -> None:
        """`TestbedError` where a port was added and does not work."""

    def delete_ports(self, names: Sequence[str]) -> None:
        """Delete those of them that are there."""

    def revalidation(self) -> Revalidation:
        """The last round in which all flows of the datapath were looked at."""

    def allow_flows(self, number: int) -> None:
        """Let the datapath have so many flows."""

    def revalidate_all(self) -> None:
        """Make it look at all flows now, as after a change of its rules."""

    def main_thread(self) -> ThreadLook | None:
        """What its main thread does now; None where that cannot be seen from here."""


@runtime_checkable
class ControlPlaneDut(Protocol):
    """A DUT with the ability `control plane`."""

    @property
    def control_plane(self) -> ControlPlane:
        """What can be done while it forwards."""

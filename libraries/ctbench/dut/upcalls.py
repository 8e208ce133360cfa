"""Packets of flows that a datapath does not know yet: what passes between a DUT with the ability `upcalls` and a
procedure."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class UpcallDut(Protocol):
    """A DUT with the ability `upcalls`."""

    def forget_flows(self) -> None:
        """Delete all flows of the datapath, and let it have as many as at first."""

    def upcalls(self) -> tuple[int, int]:
        """Packets since `begin_trial` for which a flow was made, and for which that failed."""

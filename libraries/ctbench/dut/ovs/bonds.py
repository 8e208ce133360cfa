"""Bonds: OVS sees with a delay that the generator has come, and until then it drops what comes over a link."""

import time
from collections.abc import Sequence

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.instance import POLL_S
from ctbench.dut.ovs.parse import parse_bond_members


def await_bonds(control: OvsControl, bonds: Sequence[str], timeout_s: float) -> None:
    """Wait until all links of these bonds are in use; `TestbedError` names those that are not when the time is up."""
    deadline = time.monotonic() + timeout_s
    while bonds and (idle := _idle_members(control, bonds)):
        if time.monotonic() > deadline:
            raise TestbedError(f"Links of bonds are down: {', '.join(idle)}. Is the generator at their other end?")
        time.sleep(POLL_S)


def _idle_members(control: OvsControl, bonds: Sequence[str]) -> list[str]:
    members = [parse_bond_members(control.appctl("bond/show", bond)) for bond in bonds]
    return sorted(name for bond in members for name, used in bond.items() if not used)

"""What is between the links and the router or bridge: nothing, VLAN devices, bonds, or VLAN devices on bonds."""

import time

from ctbench.base.errors import TestbedError
from ctbench.base.ethernet import VLAN_ID
from ctbench.dut.iproute import IpRoute
from ctbench.dut.topology import PortSetup

#: Names of our own: what a crash left on a lab's host is removed, and nothing else.
BONDS = ("ctbond0", "ctbond1")
#: A bond of one link: measured is its work per packet.
BOND_OPTIONS = ("mode", "balance-xor", "xmit_hash_policy", "layer3+4", "miimon", "100")
#: Seconds that devices get to notice that their links are up (a bond looks every 100 ms), and between two looks.
UP_TIMEOUT_S = 5.0
POLL_S = 0.02


def stack(ip: IpRoute, ports: PortSetup, interfaces: tuple[str, str], mtu: int) -> tuple[str, str]:
    """Put the devices that `ports` asks for on the two interfaces, which are down; return the topmost, client side
    first. `MissingResource` names the kernel module that is missing."""
    tops = interfaces
    if ports.startswith("bond"):
        for bond, interface in zip(BONDS, interfaces, strict=True):
            ip.add(bond, "bond", "bonding", *BOND_OPTIONS)
            ip.batch([f"link set {interface} master {bond}", f"link set {bond} mtu {mtu} up"])
        tops = BONDS
    if ports.endswith("vlan"):
        for top in tops:
            ip.add(f"{top}.{VLAN_ID}", "vlan", "8021q", "id", str(VLAN_ID), link=top)
        tops = f"{tops[0]}.{VLAN_ID}", f"{tops[1]}.{VLAN_ID}"
        ip.batch(f"link set {top} mtu {mtu} up" for top in tops)
    return tops


def below(ports: PortSetup, tops: tuple[str, str]) -> tuple[str, ...]:
    """What the VLAN devices among the topmost stand on; frames without a tag come in there."""
    return tuple(top.removesuffix(f".{VLAN_ID}") for top in tops) if ports.endswith("vlan") else ()


def wait_until_up(ip: IpRoute, interfaces: tuple[str, str], tops: tuple[str, str]) -> None:
    """Wait until each topmost device is up whose interface is; `TestbedError` when one stays down. A card without a
    carrier is not waited for: its other end may be switched on later."""
    deadline = time.monotonic() + UP_TIMEOUT_S
    while down := _down(ip, interfaces, tops):
        if time.monotonic() > deadline:
            raise TestbedError(f"{ip.host.name}: {' and '.join(down)} did not come up within {UP_TIMEOUT_S:g} s.")
        time.sleep(POLL_S)


def _down(ip: IpRoute, interfaces: tuple[str, str], tops: tuple[str, str]) -> list[str]:
    states = {link["ifname"]: link["operstate"] for link in ip.show("link", "show")}
    pairs = zip(interfaces, tops, strict=True)
    return [top for interface, top in pairs if states[interface] == "UP" and states[top] != "UP"]


def unstack(ip: IpRoute, interfaces: tuple[str, str]) -> None:
    """Remove whatever `stack` put there; VLAN devices go with what they stand on."""
    made = [f"{interface}.{VLAN_ID}" for interface in interfaces] + list(BONDS)
    ip.batch(f"link del {name}" for name in made if ip.has(name))

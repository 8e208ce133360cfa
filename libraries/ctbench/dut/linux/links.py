"""Links of a Linux DUT: network cards, the bonds and VLAN devices on links, and the kernel's counters at them."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.network import MOST_PORT_PAIRS, VLAN_ID
from ctbench.base.text import one_line
from ctbench.dut.base import PortCounters, do_all, wait_until
from ctbench.dut.linux.found import Found
from ctbench.dut.topology import PortSetup
from ctbench.dut.veth import GENERATOR, IpRoute, Links
from ctbench.hosts.machine import read_files
from ctbench.hosts.offloads import OFFLOADS, read_offloads

#: Counters of `ip -s link` that count lost packets.
LOSSES = ("errors", "dropped", "over_errors", "missed_errors", "fifo_errors", "carrier_errors")


def read_counters(ip: IpRoute, links: Links) -> dict[str, PortCounters]:
    here = ip.show("-s", "link", "show")
    there = ip.show("-s", "link", "show", namespace=GENERATOR, where_known=True) if any(links.peers) else []
    wanted = {*links.interfaces, *links.peers}
    return {link["ifname"]: parse_counters(link) for link in [*here, *there] if link["ifname"] in wanted}


def describe(ip: IpRoute, names: Collection[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": link["ifname"],
            "kind": link.get("linkinfo", {}).get("info_kind", "card"),
            "mtu": link["mtu"],
            "mac": link["address"],
            "rx_queues": link.get("num_rx_queues"),
            "tx_queues": link.get("num_tx_queues"),
        }
        for link in ip.show("-d", "link", "show")
        if link["ifname"] in names
    ]


def parse_counters(link: Mapping[str, Any]) -> PortCounters:
    statistics = link["stats64"]
    drops = {f"{way}_{name}": int(statistics[way].get(name, 0)) for way in ("rx", "tx") for name in LOSSES}
    return PortCounters(statistics["rx"]["packets"], statistics["tx"]["packets"], drops, index=link["ifindex"])


#: Clock ticks per second of /proc/stat on every architecture that Linux has today; time(7), USER_HZ.
TICKS_PER_S = 100
#: Columns of /proc/stat's `cpu` line in which a CPU works: user, nice, system, irq, softirq; proc(5).
BUSY = (0, 1, 2, 5, 6)


class CardSetting(NamedTuple):
    """A setting that ethtool(8) reads and sets: its name, why it is not known, the options that read and set it, its
    word, and the pattern that finds its value."""

    what: str
    unknown: str
    read: str
    set: str
    word: str
    shown: str


#: Channels that only receive (mlx4, tg3) count where there are no others, and are not set: such a card has the number
#: that is asked, or is refused. What a card does not have is `n/a`, or 0.
CHANNELS = CardSetting(
    "receive queues", "ethtool knows no channels", "-l", "-L", "combined",
    r"Current(?:.*Combined|.*?RX):\s+([1-9]\d*)",
)  # fmt: skip
#: By ice_set_channels; udev loads irdma for such a card.
_NO_RDMA = " The driver ice refuses while RDMA is active: unload that (rmmod irdma)."
RING = CardSetting("frames in a receive ring", "ethtool knows no ring", "-g", "-G", "rx", r"Current.*?RX:\s+(\d+)")
#: With these a router may forward other frames than came, and a program of the host receive others than were sent.
OFFLOAD_SETTINGS = tuple(
    CardSetting(shown, "ethtool does not know it", "-k", "-K", word, rf"\b{shown}: (on|off)\b")
    for shown, word in OFFLOADS.items()
)
#: All of them, by what they are.
SETTINGS = {setting.what: setting for setting in (CHANNELS, RING, *OFFLOAD_SETTINGS)}


class CardLinks(Links):
    """Interfaces that exist already, two of each pair of ports. They need root on the host. The record names what could
    not be set."""

    def __init__(
        self, ip: IpRoute, found: Found, interfaces: tuple[str, ...], ring: int | None = None, *, offloads: bool = True
    ) -> None:
        """`ring`: frames of a receive ring; None leaves it as it is. `offloads`: leave them as they are, else switch
        them off."""
        self._ip = ip
        self.interfaces = interfaces
        self.peers = ("",) * len(interfaces)
        self._ring = ring
        self._offloads = offloads
        self._found = found
        #: Where interrupts were sent to, by the same files.
        self._pinned: dict[str, str] = {}
        self._not_set: list[str] = []
        self._cpus: tuple[int, ...] = ()

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        self._cpus, self._not_set, self._pinned = cpus, [], {}
        missing = [name for name in self.interfaces if not self._ip.has(name)]
        if missing:
            raise MissingResource(f"{self._ip.host.name}: there is no interface {' and no '.join(missing)}.")
        cards = {name: self._ip.show("address", "show", "dev", name)[0] for name in self.interfaces}
        for name, link in cards.items():
            if own := own_address(link):  # the routes by it would be lost as the card goes down
                raise MissingResource(
                    f"{self._ip.host.name}: {name} has the address {own} of its own. Expected a card that nothing "
                    f"else uses: name another one, or remove its addresses (ip address flush dev {name})."
                )
        for name, link in cards.items():
            if name not in self._found.links:  # what a driver does as a card comes up is not what was found
                self._found.links[name] = link["mtu"], "UP" in link["flags"]
                self._found.affinities[name] = read_files(self._ip.host, *map(_cpus_of, self._interrupts(name)))
                self._found.keep(self._ip.host)
            self._ip.batch([f"link set {name} down", f"link set {name} mtu {mtu}"])
            self._set(name, CHANNELS, str(rx_queues))
            if self._ring:
                self._set(name, RING, str(self._ring))
            for setting in () if self._offloads else OFFLOAD_SETTINGS:
                self._set(name, setting, "off")

    def up(self) -> None:
        """Bring the cards up, and share their interrupts among the DUT's CPUs: a driver may request them only now
        (/proc/interrupts has no names before), and set their CPUs itself, as ice_vsi_req_irq_msix of Intel's ice did
        until 2024."""
        self._ip.batch(f"link set {name} up" for name in self.interfaces)
        for name in self.interfaces:
            self._pin(name)

    def remove(self) -> None:
        """Restore MTU, settings of ethtool and interrupts as they were found. Routes and neighbours go with `down`.
        Raise the first error, such as a setting that the card does not take back; all others are restored then. A card
        that is not there, under its name, is passed over."""
        do_all(self._restoring())

    def _restoring(self) -> Iterator[Callable[[], object]]:
        for name, (mtu, was_up) in self._found.links.items():
            if self._ip.has(name):  # raises, and forgets nothing, where the host is out of reach
                yield partial(self._ip.batch, [f"link set {name} down", f"link set {name} mtu {mtu}"])
                for what, value in self._found.settings.get(name, {}).items():
                    yield partial(self._set, name, SETTINGS[what], value)
                yield partial(self._ip.batch, [f"link set {name} up"] if was_up else [])
                for path, cpus in self._found.affinities.get(name, {}).items():
                    yield partial(self._write, path, cpus)
        for restored in (self._found.links, self._found.settings, self._found.affinities):
            yield restored.clear

    def facts(self) -> dict[str, Any]:
        return {
            "kind": "interfaces",
            "cpus": list(self._cpus),
            "binding": f"interrupts of the receive queues on CPUs {list(self._cpus)}",
            "ring": {name: self._read(name, RING) for name in self.interfaces},
            "offloads": {name: read_offloads(self._ethtool(name, "-k")) for name in self.interfaces},
            "not_set": list(self._not_set),
        }

    def _ethtool(self, name: str, option: str) -> str:
        return self._ip.host.run(["ethtool", option, name], check=False).stdout

    def _read(self, name: str, setting: CardSetting) -> str:
        current = re.search(setting.shown, self._ethtool(name, setting.read), re.DOTALL)
        return current[1] if current else ""

    def _set(self, name: str, setting: CardSetting, value: str) -> None:
        """Set a value. Raise `MissingResource` where the card does not have it afterwards."""
        if not self._found.settings.setdefault(name, {}).setdefault(setting.what, self._read(name, setting)):
            self._not_set.append(f"{setting.what} of {name}: {setting.unknown}")
        elif self._read(name, setting) != value:
            self._found.keep(self._ip.host)
            done = self._ip.host.run(["ethtool", setting.set, name, setting.word, value], check=False)
            if (found := self._read(name, setting)) != value:
                said = one_line("; ".join(done.stderr.splitlines())) or "no reason given"
                remedy = _NO_RDMA if setting == CHANNELS and "busy" in said else ""
                raise MissingResource(
                    f"{self._ip.host.name}: {setting.what} of {name}: asked {value}, and it has {found} afterwards "
                    f"(ethtool: {said}).{remedy}"
                )

    def differences(self) -> list[str]:
        found = read_files(self._ip.host, *self._pinned)
        return [
            f"{path}: asked {cpu}, found {found.get(path)} (does irqbalance run?)"
            for path, cpu in self._pinned.items()
            if found.get(path) != cpu
        ]

    def _interrupts(self, name: str) -> list[str]:
        """Return the numbers of the card's interrupts, in order."""
        host, card = self._ip.host, f"/sys/class/net/{name}/device"
        if "/virtio" in host.run(["readlink", "-f", card], check=False).stdout:
            card += "/.."
        return sorted(host.run(["ls", f"{card}/msi_irqs"], check=False).stdout.split(), key=int)

    def _pin(self, name: str) -> None:
        """Share the card's interrupts among the DUT's CPUs, in turn: all interrupts of a queue have one CPU."""
        interrupts = self._interrupts(name)
        if not interrupts:
            self._not_set.append(f"interrupts of {name}: none found in sysfs")
        queues = queues_of(self._ip.host.read("/proc/interrupts"))
        for index, interrupt in enumerate(interrupts):
            cpu = str(self._cpus[queues.get(interrupt, index) % len(self._cpus)])
            if self._write(_cpus_of(interrupt), cpu):
                self._pinned[_cpus_of(interrupt)] = cpu
            else:
                self._not_set.append(f"interrupt {interrupt} of {name}: the kernel keeps it where it is")

    def _write(self, path: str, text: str) -> bool:
        return self._ip.host.run(["tee", path], stdin=text, check=False).exit_status == 0


def own_address(link: Mapping[str, Any]) -> str:
    """Return an address by which the host may be reached, in what `ip address show` says of a link; empty where there
    is none."""
    return next((found["local"] for found in link["addr_info"] if found["scope"] == "global"), "")


def _cpus_of(interrupt: str) -> str:
    """Return the file with the CPUs that may handle an interrupt."""
    return f"/proc/irq/{interrupt}/smp_affinity_list"


def queues_of(interrupts: str) -> dict[str, int]:
    """Return interrupt -> its queue: the number that its name ends with in /proc/interrupts (`ens1f0-TxRx-3`,
    `virtio1-input.3`, `mlx5_comp3@pci:0000:18:00.2`)."""
    found = re.findall(r"^ *(\d+):.*?(\d+)(?:@\S+)?$", interrupts, re.MULTILINE)
    return {interrupt: int(queue) for interrupt, queue in found}


def busy_cpus(before: Sequence[int], now: Sequence[int], seconds: float) -> float:
    """Return the CPUs' worth of work between two readings of /proc/stat's `cpu` line."""
    ticks = sum(now[column] - before[column] for column in BUSY)
    return ticks / TICKS_PER_S / seconds if seconds > 0 else 0.0


#: Names of our own: what a crash left on a lab's host is removed, and nothing else.
BONDS = ("ctbond0", "ctbond1")
VLANS = tuple(f"ctvlan{number}" for number in range(2 * MOST_PORT_PAIRS))
#: A bond of one link: measured is its work per packet.
BOND_OPTIONS = ("mode", "balance-xor", "xmit_hash_policy", "layer3+4", "miimon", "100")
#: Seconds that devices get to notice that their links are up (a bond looks every 100 ms), and between two looks.
UP_TIMEOUT_S = 5.0
POLL_S = 0.02


def stack(ip: IpRoute, ports: PortSetup, interfaces: tuple[str, ...], mtu: int) -> tuple[str, ...]:
    """Put the devices that `ports` asks for on the interfaces, which are down. Return the topmost ones, client side
    first. Raise `MissingResource` with the kernel module that is missing, or where bonds have more than one pair of
    ports."""
    tops = interfaces
    if ports.startswith("bond"):
        if len(interfaces) > len(BONDS):
            raise MissingResource(f"Bonds need a testbed with one pair of ports; this one has {len(interfaces) // 2}.")
        for bond, interface in zip(BONDS, interfaces, strict=True):
            ip.add(bond, "bond", "bonding", *BOND_OPTIONS)
            ip.batch([f"link set {interface} master {bond}", f"link set {bond} mtu {mtu} up"])
        tops = BONDS
    if ports.endswith("vlan"):
        for vlan, top in zip(VLANS, tops, strict=False):
            try:
                ip.add(vlan, "vlan", "8021q", "id", str(VLAN_ID), link=top)
            except TestbedError as error:
                if not any(said in str(error) for said in ("File exists", "already exists")):
                    raise
                raise MissingResource(
                    f"{ip.host.name}: {top} has a device of its own for VLAN {VLAN_ID}: remove it (ip -d link show)."
                ) from None
        tops = VLANS[: len(tops)]
        ip.batch(f"link set {top} mtu {mtu}" for top in tops)
    return tops


def below(ports: PortSetup, interfaces: tuple[str, ...]) -> tuple[str, ...]:
    """Return the devices below the topmost VLAN devices, where frames without a tag come in; none without VLAN
    devices."""
    if not ports.endswith("vlan"):
        return ()
    return BONDS if ports.startswith("bond") else interfaces


def bring_up(ip: IpRoute, links: Links, tops: tuple[str, ...]) -> None:
    """Bring the interfaces up, then the topmost devices: a VLAN device comes up only above a device that is up. Wait
    until each topmost device is up whose interface is. Raise `TestbedError` when one stays down. Do not wait for a card
    without a carrier: its other end may be switched on later."""
    interfaces = links.interfaces
    links.up()
    ip.batch(f"link set {top} up" for top in tops if top not in interfaces)

    def down() -> list[str]:
        states = {link["ifname"]: link["operstate"] for link in ip.show("link", "show")}
        pairs = zip(interfaces, tops, strict=True)
        # One that is gone meanwhile is down.
        return [top for interface, top in pairs if states.get(interface, "UP") == "UP" and states.get(top) != "UP"]

    if not wait_until(lambda: not down(), UP_TIMEOUT_S, POLL_S):
        raise TestbedError(f"{ip.host.name}: {' and '.join(down())} did not come up within {UP_TIMEOUT_S:g} s.")


def unstack(ip: IpRoute) -> None:
    """Remove the devices that `stack` made, by their names."""
    there = {link["ifname"] for link in ip.show("link", "show")}
    ip.batch(f"link del {name}" for name in (*VLANS, *BONDS) if name in there)

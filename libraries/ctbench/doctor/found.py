"""The resources of a host for a testbed file: network cards that nothing uses, CPUs, hugepages, Open vSwitch, TRex."""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ctbench.base.errors import CtbenchError
from ctbench.doctor.cards import SHARED, UIO, VFIO
from ctbench.dut.registry import KINDS
from ctbench.hosts.base import Host
from ctbench.hosts.machine import (
    BOOT,
    CGROUP_ISOLATED,
    ISOLATED,
    NET,
    NODE,
    PCI,
    Machine,
    cpu_ranges,
    parse_cpu_list,
    read_files,
    read_machine,
)

OVS = "ovs-dpdk"
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
#: Class of a PCI device: a network controller.
_NETWORK = "0x02"
#: Where programs are that no package brought, and since when; the find(1) of a host looks so deep.
_SINCE = ("-printf", "%T@ %h\\n")
_VSWITCHD = ("find", "/opt", "/usr/local", "-maxdepth", "3", "-path", "*/sbin/ovs-vswitchd", *_SINCE)
_TREX = ("find", "/opt", "/usr/local", "/home", "/root", "-maxdepth", "4", "-name", "t-rex-64", *_SINCE)
#: Devices that a process has open which drives a card without the kernel, and where sysfs links to the card.
_DEVICES = {
    r"/dev/vfio/(?:noiommu-)?(\d+)": "/sys/kernel/iommu_groups/{}/devices/",
    r"/dev/vfio/devices/(vfio\d+)": "/sys/class/vfio-dev/{}/device",
    r"/dev/(uio\d+)": "/sys/class/uio/{}/device",
    r"/dev/infiniband/(uverbs\d+)": "/sys/class/infiniband_verbs/{}/device",
}
#: Prints each of those and the file descriptor that it is. Of /proc it enters the folders of processes and `fd` only.
_OPEN_DEVICES = (
    "find", "/proc", "-mindepth", "1", "-maxdepth", "3", "!", "-name", "[0-9]*", "!", "-name", "fd", "-prune", "-o",
    "(", "-lname", "/dev/vfio/*", "-o", "-lname", "/dev/uio*", "-o", "-lname", "/dev/infiniband/uverbs*", ")",
    "-printf", "%p %l\\n",
)  # fmt: skip
#: env(1) says with its status that sudo is missing.
_SUDO = ("env", "sudo", "-n")


@dataclass(frozen=True)
class FreeCard:
    """A network card that nothing uses: its link is up, or a driver of DPDK has it."""

    #: PCI address, empty where it has none; and the interface, empty where the kernel does not have it.
    address: str
    interface: str
    driver: str
    #: NUMA node, -1 where the kernel does not say.
    node: int
    #: Empty where the kernel does not have it.
    mac: str
    #: Mbit/s; 0 where it is not known.
    speed: int
    #: PCI address of the card's port, which several virtual functions may share; of what has none, the interface.
    port: str

    def __str__(self) -> str:
        said = [self.interface, self.address, f"driver {self.driver}" if self.driver else ""]
        said += [f"virtual function of {self.port}" if self.address not in ("", self.port) else ""]
        said += [f"{self.speed / 1000:g} Gbit/s" if self.speed else "", f"NUMA node {self.node}" * (self.node >= 0)]
        return ", ".join(filter(None, said))

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key of the cards to take, the best first: those that a DPDK driver has, whose speed is unknown, then
        the fastest."""
        return self.driver not in (VFIO, *UIO), -self.speed


@dataclass(frozen=True)
class Found:
    """The resources of a host for a testbed file."""

    machine: Machine
    #: CPUs that the scheduler leaves alone, a thread of each core before the second ones.
    isolated: tuple[int, ...]
    cards: tuple[FreeCard, ...]
    #: Of the other interfaces, why they are not taken.
    taken: tuple[str, ...]
    #: Whether each process was seen that may drive a card.
    sees_all: bool
    #: MAC addresses of its network cards, as far as the kernel has them, and the ID of its boot. Clones of a virtual
    #: machine may share the first, network namespaces of a machine share the second.
    macs: frozenset[str]
    boot: str
    #: `distribution`, or the prefixes of builds that fit, and folders of t-rex-64: that to take first.
    ovs: tuple[str, ...]
    trex: tuple[str, ...]
    #: NUMA node -> MiB of its free hugepages, of the size that it has most of.
    node_mb: dict[int, int]

    @property
    def hugepages(self) -> str:
        """The free and the reserved hugepages, in words."""
        huge = [each for each in self.machine.hugepages if each.total]
        sizes = [f"{each.free} of {each.total} of {each.size_kb} kB free" for each in huge]
        return ", ".join(sizes) or "none reserved"

    def hugepages_mb(self, node: int) -> int:
        """Return the MiB of free hugepages on a NUMA node; of the node with the most where `node` is unknown (-1)."""
        return self.node_mb.get(node, 0) if node >= 0 else max(self.node_mb.values(), default=0)

    @property
    def others(self) -> tuple[int, ...]:
        """The CPUs that are not isolated."""
        return tuple(cpu for cpu in self.machine.usable_cpus if cpu not in self.isolated)

    @property
    def cpus(self) -> str:
        """The CPUs in words."""
        isolated = cpu_ranges(self.isolated) or "none"
        nodes = ", ".join(f"{cpu_ranges(cpus)} on node {node}" for node, cpus in self.machine.numa.items())
        return f"{self.machine.cpu_model}, CPUs {nodes or cpu_ranges(self.machine.usable_cpus)}; isolated: {isolated}"

    def near(self, node: int) -> tuple[int, ...]:
        """Return the isolated CPUs of a NUMA node; all isolated CPUs where `node` is unknown (-1)."""
        return tuple(cpu for cpu in self.isolated if node < 0 or cpu in self.machine.numa.get(node, ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """A line each on the free cards, on what is unknown of them, and on the interfaces that are not free."""
        lines = [f"Free: {'; '.join(map(str, self.cards))}."] if self.cards else []
        if not self.sees_all and any(card.driver in (VFIO, *UIO, *SHARED) for card in self.cards):
            lines.append(
                "Whether a process of another user drives one of these is not known. Only root sees it: fuser -v "
                "/dev/vfio/* /dev/uio* /dev/infiniband/uverbs*"
            )
        return (*lines, f"Not taken: {'; '.join(self.taken)}.") if self.taken else tuple(lines)

    def pairs(self, *, pci: bool | None) -> list[tuple[FreeCard, FreeCard]]:
        """Return pairs of ports with one driver and on one NUMA node, the best first; ports of one card make a pair.
        Where there are none, pairs across nodes, else two functions of one port. `pci`: only cards with a PCI address
        (True), only interfaces of the kernel (False), or both (None)."""
        usable = (card for card in self.cards if pci is None or (card.address if pci else card.interface))
        cards = sorted(usable, key=lambda card: card.rank)
        of_card = _paired(cards, lambda card: (card.driver, card.port.rpartition(".")[0] or card.port))
        ports = {card.port for pair in of_card for card in pair}
        others = [card for card in cards if card.port not in ports]
        near = [*of_card, *_paired(others, lambda card: (card.driver, card.node))]
        return (
            sorted(near, key=lambda pair: max(card.rank for card in pair))
            or _paired(cards, lambda card: card.driver)
            or _paired(cards, lambda card: card.driver, lambda card: card.address or card.interface)
        )


def _paired(
    cards: Iterable[FreeCard],
    same: Callable[[FreeCard], Hashable],
    other: Callable[[FreeCard], Hashable] = lambda card: card.port,
) -> list[tuple[FreeCard, FreeCard]]:
    """Return pairs of cards with equal `same` and different `other`."""
    groups: dict[Hashable, dict[Hashable, FreeCard]] = {}
    for card in cards:
        groups.setdefault(same(card), {}).setdefault(other(card), card)
    some = (list(group.values()) for group in groups.values())
    return [pair for group in some for pair in zip(group[::2], group[1::2], strict=False)]


def look(host: Host, ports: str, *, sudo: bool) -> Found:
    """Read the resources of a host. `ports`: the kind of ports that an Open vSwitch needs drivers for. `sudo`: whether
    commands need sudo(8) to run as root, who alone sees all processes that drive cards."""
    machine = read_machine(host)
    files = read_files(host, ISOLATED, CGROUP_ISOLATED, BOOT)
    isolated = {cpu for path in (ISOLATED, CGROUP_ISOLATED) for cpu in parse_cpu_list(files.get(path, ""))}
    second = {cpu for core in machine.cores for cpu in core[1:]}
    users, sees_all = _read_users(host, sudo=sudo)
    cards, taken, macs = _read_cards(host, users)
    built = [path.removesuffix("/sbin") for path in _newest_first(host, _VSWITCHD)]
    return Found(
        machine=machine,
        isolated=tuple(sorted(isolated & {*machine.usable_cpus}, key=lambda cpu: (cpu in second, cpu))),
        cards=tuple(cards),
        taken=tuple(taken),
        sees_all=sees_all,
        macs=frozenset(macs),
        boot=files.get(BOOT, ""),
        ovs=tuple(prefix for prefix in ("distribution", *built) if _fits(host, prefix, ports)),
        trex=tuple(_newest_first(host, _TREX)),
        node_mb=_read_node_mb(host),
    )


def _fits(host: Host, prefix: str, ports: str) -> bool:
    try:
        KINDS[OVS].check_build(host, prefix, ports)
    except CtbenchError:
        return False
    return True


def _lines(host: Host, command: Sequence[str]) -> list[str]:
    return sorted(host.run(command, check=False).stdout.splitlines())


def _newest_first(host: Host, command: Sequence[str]) -> list[str]:
    """Return the folders that a command finds, the newest first: by the release in their names where all have one, else
    by the age of the program in them."""
    lines = _lines(host, command)
    told = {line: re.findall(r"\d+(?:\.\d+)+", line.partition(" ")[2]) for line in lines}

    def release(line: str) -> tuple[list[int], str]:
        last = told[line][-1] if all(told.values()) else ""
        return [int(number) for number in last.split(".") if number], line.partition(" ")[0]

    return [line.partition(" ")[2] for line in sorted(lines, key=release, reverse=True)]


def _read_node_mb(host: Host) -> dict[int, int]:
    found: dict[int, int] = {}
    for path, text in read_files(host, "-r", "--include=free_hugepages", NODE).items():
        if place := re.search(r"/node(\d+)/hugepages/hugepages-(\d+)kB/free_hugepages$", path):
            node, kilobytes = map(int, place.groups())
            found[node] = max(found.get(node, 0), kilobytes * int(text) // 1024)
    return found


def _read_users(host: Host, *, sudo: bool) -> tuple[dict[str, str], bool]:
    """Return the process of each card that one drives, by PCI address, and whether all processes were visible."""
    before = _SUDO if sudo else ()
    is_root = host.run([*before, "id", "-u"], check=False).stdout.strip() == "0"
    opened = host.run([*(before if is_root else ()), *_OPEN_DEVICES], check=False, env={"LC_ALL": "C"})
    processes = {}
    for line in opened.stdout.splitlines():
        descriptor, _, device = line.partition(" ")
        for pattern, place in _DEVICES.items():
            if number := re.fullmatch(pattern, device):
                processes[place.format(number[1])] = descriptor.split("/")[2]
    users = {}
    if processes:
        names = read_files(host, *(f"/proc/{process}/comm" for process in processes.values()))
        for line in _lines(host, ["find", *processes, "-maxdepth", "1", "-type", "l", "-printf", "%H %l\\n"]):
            place, _, card = line.partition(" ")
            name = names.get(f"/proc/{processes[place]}/comm", "a program")
            users[card.rpartition("/")[2]] = f"{name} (process {processes[place]})"
    return users, is_root and "Permission denied" not in opened.stderr


def _read_ports(host: Host, addresses: Sequence[str]) -> dict[str, str]:
    """Return the physical function of each virtual function that one of these PCI addresses is or has, by PCI
    address."""
    ports: dict[str, str] = {}
    if addresses:
        folders = [f"{PCI}/{address}/" for address in addresses]
        for line in _lines(host, ["find", *folders, "-maxdepth", "1", "(", "-name", "physfn", "-o", "-name", "virtfn*",
                                  ")", "-printf", "%H %f %l\\n"]):  # fmt: skip
            folder, name, link = line.split()
            here, there = folder.split("/")[-2], link.rpartition("/")[2]
            ports |= {here: there} if name == "physfn" else {there: here}
    return ports


def _read_cards(host: Host, users: dict[str, str]) -> tuple[list[FreeCard], list[str], set[str]]:
    """Return the cards that nothing uses; why other interfaces, and cards with `users`, are not taken; and the MAC
    addresses of all network cards."""
    shown = _json(host, "address")
    routes = {each.get("dev") for version in ("-4", "-6") for each in _json(host, version, "route", "show", "default")}
    below = {each["link"]: each["ifname"] for each in shown if each.get("link")}
    places = [host.run(["readlink", "-m", *(f"{NET}/{each['ifname']}/{what}" for each in shown)], check=False).stdout
              for what in ("device", "device/driver")]  # fmt: skip
    bound = _lines(host, ["find", *(f"/sys/bus/pci/drivers/{driver}" for driver in (VFIO, *UIO)), "-maxdepth", "1",
                          "-type", "l", "-printf", "%f %h\\n"])  # fmt: skip
    seen = [(address, "", driver, "") for address, driver in map(str.split, bound) if _PCI_ADDRESS.fullmatch(address)]
    taken = []
    macs = set()
    for each, device, driver in zip(shown, *map(str.splitlines, places), strict=False):
        if "/virtual/" not in device:
            macs.add(each.get("address", ""))
        if why := _used(each, device, routes, below):
            taken.append(f"{each['ifname']} {why}")
        else:
            pci = _PCI_ADDRESS.findall(device)[-1:] or [""]
            seen.append((pci[0], each["ifname"], driver, each.get("address", "")))
    addresses = [address for address, *_ in seen if address]
    ports = _read_ports(host, addresses)
    # Who drives a virtual function uses the port as well.
    users = {ports[address]: user for address, user in users.items() if address in ports} | users
    paths = [f"{PCI}/{address}/{name}" for address in addresses for name in ("class", "numa_node")]
    files = read_files(host, *paths, *(f"{NET}/{interface}/speed" for _, interface, *_ in seen if interface))
    cards = []
    for address, interface, driver, mac in seen:
        if not interface and not files.get(f"{PCI}/{address}/class", "").startswith(_NETWORK):
            continue
        if address in users:
            taken.append(f"{interface or address} is used by {users[address]}")
            continue
        node, speed = files.get(f"{PCI}/{address}/numa_node", "-1"), files.get(f"{NET}/{interface}/speed", "")
        known = int(speed) if speed.isdigit() else 0
        port = ports.get(address, address or interface)
        cards.append(FreeCard(address, interface, driver.rpartition("/")[2], int(node), mac, known, port))
    return cards, taken, macs - {""}


def _used(each: dict[str, Any], device: str, routes: set[Any], below: dict[str, str]) -> str:
    """Return why an interface is unfit to measure with, by the answer of ip-address(8); empty where it is fit."""
    name = each["ifname"]
    if "/virtual/" in device or each.get("link_type") != "ether":
        return "is not an Ethernet card"
    if each.get("master"):
        return f"is a part of {each['master']}"
    if name in below:
        return f"carries {below[name]}"
    if any(address.get("scope") != "link" for address in each.get("addr_info", [])):
        return "has an address"
    if name in routes:
        return "has the default route"
    return "" if "LOWER_UP" in each.get("flags", []) else "is down, or has no link"


def _json(host: Host, *words: str) -> list[dict[str, Any]]:
    said = host.run(["ip", "-json", *words], check=False).stdout
    return json.loads(said) if said.strip() else []

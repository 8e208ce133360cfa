"""Checks of a host's network cards: presence, driver, IOMMU, NUMA node, link, MAC address, offloads."""

from collections.abc import Iterator

from ctbench.doctor.site import Site
from ctbench.hosts import machine
from ctbench.hosts.machine import Card, Finding, HostFacts, bad, ok, unknown
from ctbench.hosts.offloads import MERGING, read_offloads, switch_off

#: Drivers that hand a card to DPDK; those of Mellanox (NVIDIA) and of Azure stay the kernel's while DPDK uses the card.
VFIO, UIO, SHARED = "vfio-pci", ("uio_pci_generic", "igb_uio"), ("mlx4_core", "mlx5_core", "mana")


def check(site: Site) -> Iterator[Finding]:
    """Check the network cards that the testbed file names."""
    facts = site.facts
    for card in site.plan.cards:
        yield _driver(facts, card)
    cards = tuple(card for card in site.plan.cards if _is_there(facts, card))
    if any(card.is_pci for card in cards):
        yield _iommu(facts, cards)
    for card in cards:
        yield _node(site, card)
    for card in cards:
        yield _link(facts, card)
        if not card.is_pci:
            yield _offloads(site, card)


def numa_node(facts: HostFacts, card: Card) -> int:
    """Return the NUMA node of a card; -1 where it is unknown or the host has only one."""
    return int(facts.files.get(f"{facts.device(card)}/numa_node", -1))


def _is_there(facts: HostFacts, card: Card) -> bool:
    folder = f"{facts.device(card)}/" if card.is_pci else f"{machine.NET}/{card.address}/"
    return any(path.startswith(folder) for path in (*facts.files, *facts.links))


def _driver(facts: HostFacts, card: Card) -> Finding:
    what, role = f"card {card.address}", f"{card.owner}, {card.side}"
    if not _is_there(facts, card):
        find = "lspci -D | grep Ethernet" if card.is_pci else "ip -br link"
        return bad(what, f"there is no such card ({role})", f"{find}  # and name one that is there")
    driver = facts.links.get(f"{facts.device(card)}/driver", "")
    if not card.is_pci:
        return ok(what, f"{role}: the kernel's, {f'driver {driver}' if driver else 'a virtual interface'}")
    if driver in (VFIO, *UIO, *SHARED):
        return ok(what, f"{role}: DPDK's, driver {driver}")
    tool = "driverctl set-override" if "driverctl" in facts.programs else "dpdk-devbind.py --bind=vfio-pci"
    remedy = f"modprobe vfio-pci && {tool} {card.address}" + (f" {VFIO}" if "driverctl" in tool else "")
    return bad(what, f"{role}: driver {driver or 'none'}, and DPDK needs {VFIO}", remedy)


def _iommu(facts: HostFacts, cards: tuple[Card, ...]) -> Finding:
    what = "IOMMU"
    cards = tuple(card for card in cards if card.is_pci)
    drivers = {facts.links.get(f"{facts.device(card)}/driver", "") for card in cards}
    if drivers and drivers <= {*UIO, *SHARED}:
        return unknown(what, f"not needed with {', '.join(sorted(drivers))}")
    groups = [facts.links.get(f"{facts.device(card)}/iommu_group", "") for card in cards]
    if all(groups):
        return ok(what, f"on, the cards are in group {', '.join(sorted(set(groups)))}")
    if facts.files.get(machine.NOIOMMU, "").strip() == "Y":
        return unknown(what, "off, and vfio goes without it (enable_unsafe_noiommu_mode): no protection, same speed")
    vendor = "amd" if "AMD" in facts.machine.cpu_model else "intel"
    asked = f"{vendor}_iommu=on" in facts.files.get(machine.CMDLINE, "").split()
    found = "asked for on the kernel's command line, but" if asked else "off:"
    remedy = "switch VT-d (AMD: IOMMU) on in the firmware" if asked else ""
    return bad(
        what,
        f"{found} the cards are in no IOMMU group",
        remedy or machine.kernel_arguments(facts, f"{vendor}_iommu=on iommu=pt"),
    )


def _node(site: Site, card: Card) -> Finding:
    facts, plan = site.facts, site.plan
    what, node = f"NUMA of {card.address}", numa_node(facts, card)
    if node < 0 or len(facts.machine.numa) < 2:
        return unknown(what, "the host has one node" if len(facts.machine.numa) < 2 else "the kernel does not say")
    ours = card.owner == machine.GENERATOR
    cpus = plan.generating if ours else plan.forwarding
    astray = [cpu for cpu in cpus if cpu not in facts.machine.numa.get(node, ())]
    near = ",".join(map(str, facts.machine.numa.get(node, ())))
    if astray:
        key = "generator.cpus" if ours else "cpus.pmd"
        far = ",".join(map(str, astray))
        return bad(what, f"node {node}, and CPU {far} is on another", f"name CPUs of node {node} in {key}: {near}")
    said = plan.generator.numa_node if ours and plan.generator else None
    if said is not None and said != node:
        return bad(what, f"node {node}, and generator.socket is {said}", f"set generator.socket: {node}")
    return ok(what, f"node {node}" + (", as its CPUs" if cpus else ""))


def _link(facts: HostFacts, card: Card) -> Finding:
    what, interface = f"link of {card.address}", facts.interface(card)
    carrier = facts.files.get(f"{machine.NET}/{interface}/carrier") if interface else None
    if not interface:
        return unknown(what, "no interface of the kernel's: neither link nor MAC address can be seen")
    mac = facts.mac(card)
    if carrier is None:  # reading it fails while the interface is down
        return unknown(what, f"{interface} is down, so the kernel does not tell; MAC {mac or 'unknown'}",
                       f"ip link set {interface} up")  # fmt: skip
    speed = facts.files.get(f"{machine.NET}/{interface}/speed", "").strip()
    shown = f", {int(speed) / 1000:g} Gbit/s" if speed.isdigit() else ""
    if carrier.strip() != "1":
        return bad(what, f"no link on {interface}; MAC {mac}", "see to the cable, and to the port at its other end")
    return ok(what, f"up{shown}; MAC {mac}")


def _offloads(site: Site, card: Card) -> Finding:
    """Check the offloads of an interface. Where they merge frames, a generator that receives through the kernel gets
    one large frame for several that the DUT forwarded."""
    what = f"offloads of {card.address}"
    found = read_offloads(site.host.run(["ethtool", "-k", card.address], check=False).stdout)
    used = [word for word, is_on in found.items() if is_on]
    merging = [word for word in used if word in MERGING]
    if not found:
        return unknown(what, "ethtool does not show them")
    if card.owner == machine.GENERATOR and merging:
        said = f"{', '.join(merging)} on: the kernel makes one frame of several, and the generator misses the others"
        return bad(what, said, switch_off(card.address, merging))
    if used and card.owner != machine.GENERATOR:
        return unknown(what, f"{', '.join(used)} on", "ports.offloads: none in the testbed file switches them off")
    return ok(what, f"{', '.join(used) or 'none'} on")

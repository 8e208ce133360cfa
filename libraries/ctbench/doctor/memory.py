"""Checks of a host's hugepages: enough for OVS and for TRex, on the NUMA node of the cards."""

import re
from collections.abc import Iterator

from ctbench.doctor.cards import numa_node
from ctbench.doctor.finding import Finding, bad, ok, unknown
from ctbench.doctor.plan import HostPlan
from ctbench.doctor.remedy import kernel_arguments
from ctbench.doctor.site import NODE, Facts, Site
from ctbench.dut.ovs.memory import choose_memory

#: What t-rex-64 reserves for cards where nobody else has (2048 pages of 2 MiB, dpdk_setup_ports.py).
TREX_MB = 4096
GIB_KB = 1 << 20


def check(site: Site) -> Iterator[Finding]:
    """Hugepages against what OVS and TRex ask for."""
    plan, facts = site.plan, site.facts
    needed = needed_mb(plan)
    node = next((found for card in plan.cards if (found := numa_node(facts, card)) >= 0), 0)
    total, free = (_megabytes(facts, node, name) for name in ("nr_hugepages", "free_hugepages"))
    if not needed:
        yield unknown("hugepages", "not asked for")
    elif free >= needed:
        yield ok("hugepages", f"{free} of {total} MiB free on node {node}, {needed} MiB needed")
    elif total >= needed:
        yield unknown(
            "hugepages", f"{free} of {total} MiB free on node {node}, {needed} MiB needed: who has the others?"
        )
    elif plan.is_lab:
        yield bad("hugepages", f"{total} MiB on node {node}; {needed} MiB are needed", _reserve(facts, needed))
    else:
        memory = choose_memory(facts.machine.hugepages, needed)
        yield unknown("hugepages", f"{free} MiB free: OVS will use ordinary pages, which are slower", memory.advice)


def needed_mb(plan: HostPlan) -> int:
    """MiB of hugepages that the testbed file asks for on this host; TRex on virtual ports needs none."""
    ovs = plan.ovs.memory_mb if plan.ovs and plan.ovs.hugepages == "auto" else 0
    trex = any(card.owner == "generator" and card.is_pci for card in plan.cards)
    return ovs + (TREX_MB if trex else 0)


def _megabytes(facts: Facts, node: int, name: str) -> int:
    kilobytes = 0
    for path, text in facts.files.items():
        match = re.fullmatch(rf"{NODE}/node{node}/hugepages/hugepages-(\d+)kB/{name}", path)
        kilobytes += int(match[1]) * int(text) if match else 0
    return kilobytes // 1024


def _reserve(facts: Facts, needed: int) -> str:
    pages = -(-needed * 1024 // GIB_KB)
    nodes = max(1, len(facts.machine.numa))
    return kernel_arguments(facts, f"default_hugepagesz=1G hugepagesz=1G hugepages={pages * nodes}")

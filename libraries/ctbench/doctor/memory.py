"""Checks of a host's hugepages: enough for the DUTs and the generator, on the NUMA node of the cards."""

import re
from collections.abc import Iterator

from ctbench.doctor.cards import numa_node
from ctbench.doctor.site import Site
from ctbench.hosts.examination.facts import NODE, Facts
from ctbench.hosts.examination.finding import Finding, bad, ok, unknown
from ctbench.hosts.examination.remedy import kernel_arguments
from ctbench.hosts.machine import reserve_command

GIB_KB = 1 << 20


def check(site: Site) -> Iterator[Finding]:
    """Hugepages against what the DUTs and the generator ask for."""
    plan, facts = site.plan, site.facts
    needed = plan.hugepages_mb
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
        advice = reserve_command(facts.machine.hugepages, needed)
        yield unknown("hugepages", f"{free} MiB free: the DUT will use ordinary pages, which are slower", advice)


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

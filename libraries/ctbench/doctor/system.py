"""Checks of a host as a whole: login, clock, claims of other runs, hugepages; of this machine also what a sandbox
needs."""

import re
import sys
from collections.abc import Iterator

from ctbench.base.errors import MissingResource
from ctbench.doctor.cards import numa_node
from ctbench.doctor.site import Site
from ctbench.hosts.claims import folders_of, holders
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.machine import (
    CPU,
    NODE,
    Finding,
    HostFacts,
    bad,
    cpu_ranges,
    install,
    kernel_arguments,
    ok,
    refused,
    reserve_command,
    unknown,
)
from ctbench.testbed.config import TestbedConfig, check_namespaces
from ctbench.testbed.pool import cpus_for_itself

#: Clocks further apart than this make logs and records hard to compare, seconds.
APART_S = 1.0
#: Starts what is installed to synchronise the clock.
_SYNCHRONISE = "timedatectl set-ntp true"


def check(site: Site) -> Iterator[Finding]:
    """Check login, clock and claim of a lab's host; Python and namespaces of this machine."""
    if site.plan.ssh is None:
        yield ok("Python", ".".join(map(str, sys.version_info[:3])))
        if any(dut.host == SANDBOX for dut in site.plan.duts):
            yield _namespaces()
    if site.plan.is_lab:
        yield _root(site)
        yield _clock(site)
        yield _claim(site)


def _namespaces() -> Finding:
    try:
        check_namespaces()
    except MissingResource as error:
        return refused("namespaces", error)
    return ok("namespaces", "a sandbox can be made")


def _claim(site: Site) -> Finding:
    for by in holders(site.host).values():
        return unknown("other runs", f"{by} has this host for itself")
    return ok("other runs", "none is seen to have this host")


def check_claimed(testbed: TestbedConfig, site: Site) -> Iterator[Finding]:
    """Report the runs that hold CPUs of this machine which a run of the testbed would claim for itself."""
    cpus = cpus_for_itself(testbed, site.facts.machine.usable_cpus)
    taken: dict[str, list[int]] = {}
    for folder, by in (holders(site.host, folders_of(cpus)) if cpus else {}).items():
        taken.setdefault(by, []).append(int(folder.removeprefix(f"{CPU}/cpu")))
    for by, theirs in taken.items():
        yield unknown("other runs", f"{by} has CPU {cpu_ranges(theirs)} for itself")
    if cpus and not taken:
        yield ok("other runs", "none is seen to have CPUs of this testbed")


def _root(site: Site) -> Finding:
    if site.facts.uid == 0:
        return ok("rights", "commands run as root")
    remedy = "run as root" if site.plan.ssh is None else f"set hosts.{site.plan.name}.sudo: true, or user: root"
    return bad("rights", f"commands run as user {site.facts.uid}, and setting a host up needs root", remedy)


def _clock(site: Site) -> Finding:
    facts = site.facts
    asked = [f"--property={name}" for name in ("NTPSynchronized", "CanNTP")]
    answers = site.host.run(["timedatectl", "show", *asked], check=False).stdout.split()
    said = next((line.partition("=")[2] for line in answers if line.startswith("NTPSynchronized=")), "")
    remedy = f"{install(facts, ['chrony'])} && {_SYNCHRONISE}" if "CanNTP=no" in answers else _SYNCHRONISE
    synchronised = {"yes": ", synchronised", "no": ", not synchronised"}.get(said, "")
    if site.plan.ssh is None:
        return (
            ok("clock", "synchronised") if said == "yes" else unknown("clock", "not known to be synchronised", remedy)
        )
    apart, exact = facts.clock_ahead_s, facts.clock_exact_s
    side = "ahead of" if apart > 0 else "behind"
    shown = f"{abs(apart):.3f} s {side} this machine's, give or take {exact:.3f} s{synchronised}"
    if abs(apart) - exact > APART_S:
        return bad("clock", shown, remedy)
    if said == "no":
        return unknown("clock", shown, remedy)
    return ok("clock", shown)


def check_memory(site: Site) -> Iterator[Finding]:
    """Check the hugepages against the demand of the DUTs and the generator."""
    plan, facts = site.plan, site.facts
    needed = plan.hugepages_mb
    node = next((found for card in plan.cards if (found := numa_node(facts, card)) >= 0), 0)
    generator = plan.generator.hugepages_mb if plan.generator else 0
    smaller = min(generator, needed - generator)
    total, free = (_megabytes(facts, node, name, smaller) for name in ("nr_hugepages", "free_hugepages"))
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
        # The kernel spreads them over the nodes.
        advice = reserve_command(facts.machine.hugepages, needed * max(1, len(facts.machine.numa)))
        yield unknown("hugepages", f"{free} MiB free: the DUT will use ordinary pages, which are slower", advice)


def _megabytes(facts: HostFacts, node: int, name: str, smaller: int) -> int:
    """Return the MiB for a DUT and a generator; `smaller`: the need of the one that needs less."""
    pattern = rf"{NODE}/node{node}/hugepages/hugepages-(\d+)kB/{name}"
    found = ((re.fullmatch(pattern, path), text) for path, text in facts.files.items())
    # DPDK's memory is of one size; two programs may have different ones.
    sizes = sorted((int(match[1]) * int(text) // 1024 for match, text in found if match), reverse=True)
    return sum(sizes[:1]) + (smaller if sum(sizes[1:2]) >= smaller else 0)


def _reserve(facts: HostFacts, needed: int) -> str:
    pages = -(-needed // 1024)  # of 1 GiB
    nodes = max(1, len(facts.machine.numa))
    return kernel_arguments(facts, f"default_hugepagesz=1G hugepagesz=1G hugepages={pages * nodes}")

"""Checks of a host's CPUs: presence, limits, isolation, frequency governor, hyper-threads, steal time."""

from collections.abc import Iterator, Sequence

from ctbench.base.errors import MissingResource
from ctbench.doctor.site import HostPlan, Site
from ctbench.dut.registry import KINDS
from ctbench.hosts import machine
from ctbench.hosts.limits import LEAST_MB, LEAST_TASKS, NO_LIMITS
from ctbench.hosts.machine import Finding, HostFacts, bad, cpu_ranges, ok, parse_cpu_list, unknown
from ctbench.testbed.cpus import AUTO, plan_cpus

#: The tuned profile of the 2022 article; it sets nohz_full, and lets systemd keep everything off those CPUs.
TUNED_PROFILE = "cpu-partitioning"
#: Columns of the first line of /proc/stat behind its name; proc(5).
STEAL, GUEST = 7, 8


def check(site: Site) -> Iterator[Finding]:
    """Check the CPUs that the testbed file names, or those of an automatic plan."""
    plan, facts = site.plan, site.facts
    yield _there(plan, facts)
    yield from _limits(plan, facts)
    yield _isolated(plan, facts)
    yield _governor(plan, facts)
    yield from _hyper_threads(plan, facts)
    yield _virtual(facts)


def _online(facts: HostFacts) -> tuple[int, ...]:
    return parse_cpu_list(facts.files.get(machine.ONLINE, "")) or facts.machine.usable_cpus


def _there(plan: HostPlan, facts: HostFacts) -> Finding:
    online = _online(facts)
    named = {*plan.forwarding, *plan.generating, *plan.others}
    missing = sorted(named - set(online))
    if missing:
        return bad(
            "CPUs",
            f"the host has {cpu_ranges(online)}, and the testbed file names {cpu_ranges(missing)} as well",
            "name CPUs that are there: cpus.pmd, cpus.housekeeping or generator.cpus of the testbed file",
        )
    shown = f"{facts.machine.cpu_model}, CPUs {cpu_ranges(online)}"
    if named:
        return ok("CPUs", shown)
    usable = facts.machine.usable_cpus
    generator = plan.generator.cpus_needed if plan.generator else 0
    most = len(usable) - generator
    if plan.duts and most < 1:
        return bad(
            "CPUs",
            f"{shown}, of which {len(usable)} can be used; {generator + 1} are needed",
            "give the machine more CPUs, or the generator fewer",
        )
    return ok("CPUs", f"{shown}: topologies with up to {most} PMD CPU(s)" if plan.duts else shown)


def _limits(plan: HostPlan, facts: HostFacts) -> Iterator[Finding]:
    """Check the limits of the control group, such as a container's or a login's, where they are below what the machine
    has."""
    what, limits = "control group", facts.machine.limits
    polling = (plan.generator.cpus_needed if plan.generator else 0) + bool(plan.duts)
    # One DUT alone takes half of what two do side by side, all of it of one size of hugepages.
    dut_mb = max((KINDS[dut.type].hugepages_mb(dut) for dut in plan.duts), default=0) // 2
    room = sum((pages.size_kb * pages.free >> 10) // dut_mb for pages in facts.machine.hugepages) if dut_mb else 2
    # Hugepages are not counted as memory of the group.
    needed_mb = LEAST_MB + (0 if room >= 2 else dut_mb)
    lacks = [f"time of {polling} CPUs"] if limits.cpus is not None and limits.cpus < polling else []
    lacks += [f"{needed_mb} MiB"] if limits.memory_mb is not None and limits.memory_mb < needed_mb else []
    lacks += [f"{LEAST_TASKS} processes and threads"] if limits.tasks is not None and limits.tasks < LEAST_TASKS else []
    named = {*plan.forwarding, *plan.generating, *plan.others}.intersection(_online(facts))
    # On a lab's host, what is set up may be in another group than our login.
    outside = sorted(named.difference(parse_cpu_list(limits.cpuset))) if limits.cpuset and not plan.ssh else []
    lacks += [f"CPUs {cpu_ranges(outside)}"] if outside else []
    if lacks:
        yield bad(
            what,
            f"{limits}; {' and '.join(lacks)} are needed",
            "start the container (docker, Kubernetes) or the service (systemd) without these limits",
        )
    elif limits != NO_LIMITS:
        yield unknown(what, f"{limits}: enough where nothing else of the group takes it")


def _isolated(plan: HostPlan, facts: HostFacts) -> Finding:
    wanted = sorted({*(plan.forwarding if plan.duts_poll else ()), *plan.generating})
    if not plan.is_lab:
        return unknown("isolated CPUs", "not needed: a sandbox changes nothing of the machine")
    if not plan.duts_poll and not plan.generator_has_cards:
        return unknown("isolated CPUs", "not needed: the kernel forwards where its interrupts are")
    if not wanted:
        return unknown(
            "isolated CPUs", "the testbed file names no CPUs for polling threads (auto)", "name the isolated ones there"
        )
    tuned = facts.files.get(machine.TUNED, "").strip()
    isolated = {
        cpu for path in (machine.ISOLATED, machine.CGROUP_ISOLATED) for cpu in parse_cpu_list(facts.files.get(path, ""))
    }
    if tuned == TUNED_PROFILE:
        nohz = facts.files.get(machine.NOHZ_FULL, "").strip()
        isolated |= set(parse_cpu_list("" if nohz == "(null)" else nohz))
    wanted = sorted({*wanted}.intersection(_online(facts)))  # the row above says which are not there
    left = [cpu for cpu in wanted if cpu not in isolated]
    by = f" (tuned: {tuned})" if tuned else ""
    if not left:
        return ok("isolated CPUs", f"{cpu_ranges(sorted(isolated))}, which cover {cpu_ranges(wanted)}{by}")
    cpus = cpu_ranges(wanted)
    if "tuned-adm" in facts.programs:
        remedy = (
            f"printf 'isolated_cores={cpus}\\nno_balance_cores={cpus}\\n' > /etc/tuned/cpu-partitioning-variables.conf"
            f" && tuned-adm profile {TUNED_PROFILE} && reboot"
        )
    else:
        remedy = machine.kernel_arguments(facts, f"isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus}")
    return bad("isolated CPUs", f"{cpu_ranges(sorted(isolated)) or 'none'}; {cpu_ranges(left)} should be{by}", remedy)


def _governor(plan: HostPlan, facts: HostFacts) -> Finding:
    governors: dict[str, list[int]] = {}
    wanted = {*plan.forwarding, *plan.generating} or set(_online(facts))
    for path, name in facts.files.items():
        if path.endswith("/scaling_governor"):
            policy = path.rsplit("/", 1)[0]
            for cpu in facts.files.get(f"{policy}/affected_cpus", "").split():
                if int(cpu) in wanted:
                    governors.setdefault(name, []).append(int(cpu))
    if not governors:
        return unknown("frequency governor", "none: the hypervisor or the firmware decides")
    shown = ", ".join(f"{name} on CPU {cpu_ranges(cpus)}" for name, cpus in sorted(governors.items()))
    slow = cpu_ranges([cpu for name, cpus in governors.items() for cpu in cpus if name != "performance"])
    if not slow:
        return ok("frequency governor", shown)
    remedy = f"cpupower -c {slow} frequency-set -g performance"
    return (bad if plan.is_lab else unknown)("frequency governor", shown, remedy)


def _hyper_threads(plan: HostPlan, facts: HostFacts) -> Iterator[Finding]:
    """Report which CPUs share a core. It is judged only between generator and DUT: the 2022 article shares cores on
    purpose."""
    what, files = "hyper-threads", facts.files.items()
    # Isolated CPUs count, which `Machine.cores` may lack: a login cannot use them.
    groups = sorted({parse_cpu_list(text) for path, text in files if path.endswith("/thread_siblings_list")})
    forwarding, generating, chosen = plan.forwarding, plan.generating, ""
    if plan.duts and not plan.is_lab and not forwarding:
        try:
            placement = plan_cpus(AUTO, facts.machine, 1)
        except MissingResource:
            return  # the row of CPUs says it
        forwarding, generating = placement.pmd, generating or placement.generator
        chosen = f"generator on CPU {cpu_ranges(generating)}, DUT on CPU {cpu_ranges(forwarding)}: "
    both = sorted(set(forwarding) & set(generating))
    shared = [core for core in groups if set(core) & set(forwarding) and set(core) & set(generating)]
    if both:
        yield bad(
            what, f"CPU {cpu_ranges(both)} is the generator's and the DUT's", "name different CPUs in the testbed file"
        )
    elif shared and len(groups) > 1:
        yield bad(
            what,
            f"{chosen}generator and DUT share the core of CPUs {_cores(shared)}",
            f"name CPUs of different cores in the testbed file; the cores are {_cores(groups)}",
        )
    elif shared:
        yield unknown(
            what, f"{chosen}they share the only core, and slow each other down", "give the machine a second core"
        )
    else:
        pairs = [core for core in groups if len(set(core) & {*forwarding, *generating}) > 1]
        yield unknown(
            what, f"{chosen}{f'CPUs {_cores(pairs)} share a core' if pairs else 'no two of these share a core'}"
        )


def _cores(groups: Sequence[Sequence[int]]) -> str:
    return ", ".join("+".join(map(str, core)) for core in groups)


def _virtual(facts: HostFacts) -> Finding:
    if facts.machine.virtualisation == "none":
        return ok("virtualisation", "none")
    ticks = [int(field) for field in facts.files.get(machine.STAT, "").split("\n")[0].split()[1:]]
    total = sum(ticks[:GUEST])
    stolen = f", which took {100 * ticks[STEAL] / total:.1f} % of the CPUs' time since boot (steal)" if total else ""
    return unknown(
        "virtualisation", f"a guest of {facts.machine.virtualisation}{stolen}: rates vary with the neighbours"
    )

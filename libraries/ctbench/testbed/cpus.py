"""The CPUs that a topology uses: those that the testbed file names, and the rest chosen from the machine's cores."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from ctbench.base.errors import MissingResource
from ctbench.base.network import MOST_CPU
from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.machine import Machine, Placement


def _check_cpus(cpus: list[int]) -> list[int]:
    if not cpus or min(cpus) < 0 or max(cpus) > MOST_CPU or len(set(cpus)) < len(cpus):
        raise ValueError(
            f"{cpus} is not a list of CPUs.\n  Expected each CPU number once, from 0 to {MOST_CPU}, for example [2, 3]."
        )
    return cpus


CpuList = Annotated[list[int], AfterValidator(_check_cpus)]


class CpuPlan(YamlModel):
    """The CPUs of generator, PMD threads and other threads. `auto`: chosen for the machine, and shown in the record."""

    generator: Literal["auto"] | CpuList
    #: A list: a topology with N PMD threads takes its first N. A mapping: a list for each number of PMD threads.
    pmd: Literal["auto"] | CpuList | dict[int, CpuList]
    #: Everything else of the DUT: the main thread, handlers, revalidators, what sweeps the connection table. `auto`: a
    #: CPU that is left over, else the PMD threads', so that the DUT pays for it.
    housekeeping: Literal["auto"] | CpuList

    @property
    def pmd_named(self) -> set[int]:
        """CPUs that the file gives to PMD threads in any topology; empty where the testbed chooses."""
        if self.pmd == "auto":
            return set()
        return {cpu for cpus in self.pmd.values() for cpu in cpus} if isinstance(self.pmd, dict) else set(self.pmd)

    def pmd_for(self, count: int) -> list[int] | None:
        """Return the CPUs for `count` PMD threads: None where the testbed chooses, an empty list where the file has no
        CPUs for that many."""
        if self.pmd == "auto":
            return None
        if isinstance(self.pmd, dict):
            return list(self.pmd.get(count, []))
        return self.pmd[:count] if len(self.pmd) >= count else []

    @model_validator(mode="after")
    def _counts_match(self) -> Self:
        for count, cpus in self.pmd.items() if isinstance(self.pmd, dict) else ():
            if len(cpus) != count:
                raise ValueError(
                    f"pmd.{count}: {cpus} are {len(cpus)} CPUs.\n  Expected as many as the key says: {count}."
                )
        return self


#: All of it is left to the testbed.
AUTO = CpuPlan(generator="auto", pmd="auto", housekeeping="auto")


def plan_cpus(
    plan: CpuPlan, machine: Machine, pmd_cpus: int, *, generator_cpus: int = 1, of_use: int = 0, shared: bool = False
) -> Placement:
    """Choose the CPUs of `machine`, the DUT's, for `pmd_cpus` PMD threads.

    `generator_cpus`: CPUs that the traffic generator needs on this machine; 0 where it is on another one. `of_use`:
    CPUs that the generator can use where the DUT leaves them, at most as many as PMD threads. With `shared` all threads
    share all CPUs, and OVS is shown enough CPUs (`pretended_numa`). Raise `MissingResource` with the CPUs that are
    needed and those that are there.
    """
    wanted = plan.pmd_for(pmd_cpus)
    if wanted == []:
        raise MissingResource(f"{pmd_cpus} PMD CPUs are needed, and cpus.pmd of the testbed file has no such list.")
    usable = machine.usable_cpus
    if shared:
        return Placement(usable[: max(generator_cpus, 1)], tuple(range(pmd_cpus)), usable, oversubscribed=True)
    polling = generator_cpus + pmd_cpus
    if machine.limits.cpus is not None and machine.limits.cpus < polling:
        raise MissingResource(
            f"{polling} threads that poll need the time of {polling} CPUs; the control group has {machine.limits}: "
            "start the container without a limit of CPU time."
        )
    apart = _set_apart(plan, machine, wanted or [], generator_cpus)
    free = _in_order(machine, apart, pmd_cpus)
    if wanted is None and pmd_cpus > len(free):
        beside = f"{generator_cpus} for the traffic generator" if generator_cpus else "one for the DUT's other threads"
        raise MissingResource(
            f"{pmd_cpus} PMD CPU(s) and {beside} need {pmd_cpus + len(apart)} CPUs; "
            f"{'this' if generator_cpus else 'its'} machine has {len(usable)} usable{machine.limited}."
        )
    pmd = sorted(free[:pmd_cpus]) if wanted is None else wanted
    left = [cpu for cpu in free if cpu not in pmd]
    generator = apart if generator_cpus else ()
    others: Sequence[int] = left[-1:] or apart[:1]
    if plan.housekeeping != "auto":
        others = plan.housekeeping
    elif set(others) <= set(generator):
        others = pmd
    if generator_cpus and plan.generator == "auto":
        most = min(of_use, pmd_cpus or of_use) - generator_cpus
        if machine.limits.cpus is not None:
            most = min(most, int(machine.limits.cpus) - polling)
        polled = {cpu for core in machine.cores if set(core) & set(pmd) for cpu in core}
        near = {cpu for node in machine.nodes_of(pmd) for cpu in machine.numa.get(node, ())}
        spare = sorted(set(left) - set(others), key=lambda cpu: (cpu in polled, cpu not in near, cpu))
        generator = (*generator, *spare[: max(0, most)])
    return Placement(generator, tuple(pmd), tuple(others))


def _set_apart(plan: CpuPlan, machine: Machine, wanted: Sequence[int], generator_cpus: int) -> tuple[int, ...]:
    """Return the CPUs that no PMD thread gets: the generator's, or one for the DUT's other threads where the generator
    is on another machine."""
    if generator_cpus and plan.generator != "auto":
        return tuple(plan.generator)
    free = sorted(set(machine.usable_cpus).difference(wanted), key=lambda cpu: (machine.nodes_of([cpu]), cpu))
    need = max(generator_cpus, 1)
    if wanted and len(free) < need and (generator_cpus or plan.housekeeping == "auto"):
        raise MissingResource(
            f"cpus.pmd of the testbed file gives PMD threads {wanted}, which leaves {len(free)} CPUs for the rest; "
            f"{need} are needed."
        )
    return tuple(free[:need])


def _in_order(machine: Machine, apart: Sequence[int], pmd_cpus: int) -> list[int]:
    """Return the CPUs that are not in `apart`, in the order in which PMD threads get them: those of the first NUMA node
    that has enough, the first thread of each core, then the second threads, and last the CPUs that share a core with
    one of `apart`. Open vSwitch gives a port's queues to the PMD threads of its node alone, where that has any
    (dpif-netdev.c, sched_numa_list_schedule), and ports that are no cards are of node 0."""
    siblings = {cpu for core in machine.cores if set(core) & set(apart) for cpu in core}
    second = {cpu for core in machine.cores for cpu in core[1:]}
    free = set(machine.usable_cpus) - set(apart)
    room = Counter(machine.nodes_of([cpu]) for cpu in free - siblings)

    def place(cpu: int) -> tuple[bool, bool, tuple[int, ...], bool, int]:
        node = machine.nodes_of([cpu])
        return room[node] < pmd_cpus, cpu in siblings, node, cpu in second, cpu

    return sorted(free, key=place)

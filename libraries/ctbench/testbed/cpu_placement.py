"""Which CPUs a topology uses: what the testbed file says, and the rest from what suits the machine."""

from dataclasses import replace

from ctbench.base.errors import MissingResource
from ctbench.hosts.machine import Machine, Placement, place
from ctbench.testbed.config import CpuPlan


def plan_cpus(plan: CpuPlan, machine: Machine, pmd_cpus: int, *, generator_cpus: int = 1, shared: bool) -> Placement:
    """CPUs of `machine`, the DUT's, for `pmd_cpus` PMD threads.

    `generator_cpus`: how many the traffic generator needs there; 0 when it is on another machine. With `shared` all
    CPUs are everybody's. `MissingResource` says what is needed and what is there.
    """
    wanted = plan.pmd_for(pmd_cpus)
    if wanted == []:
        raise MissingResource(f"{pmd_cpus} PMD CPUs are needed, and cpus.pmd of the testbed file has no such list.")
    if shared:
        return place(machine, pmd_cpus, generator_cpus=max(generator_cpus, 1), oversubscribed=True)
    taken = _set_apart(plan, machine, wanted or [], generator_cpus)
    if wanted is None:
        if generator_cpus == 0 and pmd_cpus >= len(machine.usable_cpus):
            raise MissingResource(
                f"{pmd_cpus} PMD CPU(s) and one for the DUT's other threads need {pmd_cpus + 1} CPUs; its machine has "
                f"{len(machine.usable_cpus)} usable."
            )
        others = tuple(cpu for cpu in machine.usable_cpus if cpu not in taken)
        ordered = replace(machine, usable_cpus=(*taken, *others))
        found = place(ordered, pmd_cpus, generator_cpus=len(taken))
    else:
        left = [cpu for cpu in machine.usable_cpus if cpu not in (*taken, *wanted)]
        found = Placement(taken, tuple(wanted), tuple(left[-1:]) or taken[:1])
    return replace(
        found,
        generator=taken if generator_cpus else (),
        housekeeping=found.housekeeping if plan.housekeeping == "auto" else tuple(plan.housekeeping),
    )


def _set_apart(plan: CpuPlan, machine: Machine, wanted: list[int], generator_cpus: int) -> tuple[int, ...]:
    """CPUs that no PMD thread gets: the generator's, or where it is elsewhere one for the DUT's other threads."""
    if generator_cpus and plan.generator != "auto":
        return tuple(plan.generator)
    free = [cpu for cpu in machine.usable_cpus if cpu not in wanted]
    need = max(generator_cpus, 1)
    if wanted and len(free) < need and (generator_cpus or plan.housekeeping == "auto"):
        raise MissingResource(
            f"cpus.pmd of the testbed file gives PMD threads {wanted}, which leaves {len(free)} CPUs for the rest; "
            f"{need} are needed."
        )
    return tuple(free[:need])

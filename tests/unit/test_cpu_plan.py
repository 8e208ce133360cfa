"""Which CPUs a topology gets: the testbed file's, and the rest from the machine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import MissingResource
from ctbench.hosts.machine import Machine, Placement
from ctbench.testbed.config import CpuPlan
from ctbench.testbed.cpu_placement import plan_cpus
from ctbench.traffic.software.config import SoftwareGeneratorConfig
from ctbench.traffic.trex.config import TrexGeneratorConfig

pytestmark = pytest.mark.unit


def machine(cpus: int) -> Machine:
    usable = tuple(range(cpus))
    cores = tuple((cpu,) for cpu in usable)
    return Machine("model", usable, cores, {0: usable}, "6", "Debian", "none", {}, "none", (), {})


def plan(cpus: int, pmd_cpus: int, generator_cpus: int = 1, **keys: Any) -> Placement:
    written = CpuPlan.model_validate({"generator": "auto", "pmd": "auto", "housekeeping": "auto"} | keys)
    return plan_cpus(written, machine(cpus), pmd_cpus, generator_cpus=generator_cpus, shared=False)


def trex(**keys: Any) -> TrexGeneratorConfig:
    return TrexGeneratorConfig.model_validate({"type": "trex", "host": "sandbox", "server": "start", **keys})


def test_two_cpus_are_the_generators_and_a_pmd_threads() -> None:
    assert plan(2, 1) == Placement((0,), (1,), (0,))


def test_a_generator_on_another_machine_takes_none_of_the_duts() -> None:
    assert plan(3, 2, generator_cpus=0) == Placement((), (1, 2), (0,))


def test_the_duts_other_threads_need_a_cpu_where_the_generator_leaves_them_none() -> None:
    with pytest.raises(MissingResource, match=r"2 PMD CPU\(s\) and one for the DUT's other threads need 3 CPUs"):
        plan(2, 2, generator_cpus=0)


def test_what_the_file_names_need_not_be_usable_by_others() -> None:
    """Isolated CPUs are not among those that a login may use."""
    found = plan(2, 2, generator_cpus=0, pmd=[14, 15])

    assert found == Placement((), (14, 15), (1,))


def test_the_generators_own_list_is_kept_off_the_pmd_threads() -> None:
    assert plan(4, 2, generator=[1]) == Placement((1,), (0, 2), (3,))
    assert plan(4, 1, pmd=[3]) == Placement((0,), (3,), (2,))
    assert plan(4, 1, pmd=[0]).generator == (1,)


def test_a_file_that_gives_pmd_threads_every_cpu_is_short_of_one() -> None:
    with pytest.raises(MissingResource, match=r"gives PMD threads \[0, 1\], which leaves 0 CPUs"):
        plan(2, 2, pmd=[0, 1])


def test_a_topology_that_the_file_has_no_list_for_is_a_missing_resource() -> None:
    with pytest.raises(MissingResource, match=r"4 PMD CPUs are needed, and cpus.pmd of the testbed file has no such"):
        plan(8, 4, pmd={2: [2, 3]})


@given(cpus=st.integers(1, 12), pmd_cpus=st.integers(1, 12), generator_cpus=st.integers(0, 4))
def test_nobody_shares_a_cpu_with_a_pmd_thread(cpus: int, pmd_cpus: int, generator_cpus: int) -> None:
    try:
        found = plan(cpus, pmd_cpus, generator_cpus)
    except MissingResource:
        assert pmd_cpus + max(generator_cpus, 1) > cpus
        return
    assert len(found.pmd) == pmd_cpus and len(found.generator) == generator_cpus and found.housekeeping
    assert not set(found.pmd) & {*found.generator, *found.housekeeping}


def test_trex_needs_a_cpu_for_each_thread_unless_it_is_told_to_do_with_one() -> None:
    assert SoftwareGeneratorConfig(type="software").cpus_needed == 1
    assert trex(low_end=True).cpus_needed == 1
    assert trex(cores=2).cpus_needed == 4
    assert trex(cores=2, cpus=[0, 1, 2, 3]).cpus_needed == 4

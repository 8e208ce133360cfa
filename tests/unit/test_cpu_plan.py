"""Which CPUs a topology gets: the testbed file's, and the rest from the machine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import MissingResource
from ctbench.hosts.machine import Machine, Placement
from ctbench.testbed.config import CpuPlan, plan_cpus
from ctbench.traffic.software.kind import SoftwareGeneratorConfig
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


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ({"cpus": 2, "pmd_cpus": 1}, ((0,), (1,), (0,))),
        ({"cpus": 3, "pmd_cpus": 2, "generator_cpus": 0}, ((), (1, 2), (0,))),  # it is on another machine
        # Isolated CPUs are not among those that a login may use.
        ({"cpus": 2, "pmd_cpus": 2, "generator_cpus": 0, "pmd": [14, 15]}, ((), (14, 15), (1,))),
        ({"cpus": 4, "pmd_cpus": 2, "generator": [1]}, ((1,), (0, 2), (3,))),
        ({"cpus": 4, "pmd_cpus": 1, "pmd": [3]}, ((0,), (3,), (2,))),
        ({"cpus": 4, "pmd_cpus": 1, "pmd": [0]}, ((1,), (0,), (3,))),
    ],
)
def test_cpus_are_those_of_the_file_and_the_rest_from_the_machine(
    given: dict[str, Any], placed: tuple[tuple[int, ...], ...]
) -> None:
    assert plan(**given) == Placement(*placed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"cpus": 2, "pmd_cpus": 2, "generator_cpus": 0},
            r"2 PMD CPU\(s\) and one for the DUT's other threads need 3 CPUs",
        ),
        ({"cpus": 2, "pmd_cpus": 2, "pmd": [0, 1]}, r"gives PMD threads \[0, 1\], which leaves 0 CPUs"),
        ({"cpus": 8, "pmd_cpus": 4, "pmd": {2: [2, 3]}}, "4 PMD CPUs are needed, and cpus.pmd of the testbed file has"),
    ],
)
def test_too_few_cpus_are_a_missing_resource(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MissingResource, match=said):
        plan(**given)


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

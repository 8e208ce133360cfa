"""Which CPUs a topology gets: the testbed file's, and the rest from the machine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import MissingResource
from ctbench.hosts.machine import Machine, Placement, pretended_numa
from ctbench.testbed.config import CpuPlan, plan_cpus
from ctbench.traffic.software.kind import SoftwareGeneratorConfig
from ctbench.traffic.trex.config import TrexGeneratorConfig


def machine(*cores: tuple[int, ...]) -> Machine:
    usable = tuple(sorted(cpu for core in cores for cpu in core))
    return Machine("model", usable, cores, {0: usable}, "6", "Debian", "none", {}, "none", (), {})


def plan(
    cores: Machine | int, pmd_cpus: int, generator_cpus: int = 1, *, shared: bool = False, **keys: Any
) -> Placement:
    """Of a machine, or of one with so many CPUs, each a core."""
    written = CpuPlan.model_validate({"generator": "auto", "pmd": "auto", "housekeeping": "auto"} | keys)
    made = machine(*((cpu,) for cpu in range(cores))) if isinstance(cores, int) else cores
    return plan_cpus(written, made, pmd_cpus, generator_cpus=generator_cpus, shared=shared)


def trex(**keys: Any) -> TrexGeneratorConfig:
    return TrexGeneratorConfig.model_validate({"type": "trex", "host": "sandbox", "server": "start", **keys})


HYPERTHREADS = machine((0, 4), (1, 5), (2, 6), (3, 7))


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ({"cores": 2, "pmd_cpus": 1}, ((0,), (1,), (1,))),  # the DUT pays for its other threads
        *(
            ({"cores": 2, "pmd_cpus": 1, "housekeeping": given}, ((0,), (1,), cpus))
            for given, cpus in (("dut", (1,)), ("generator", (0,)), ("both", (0, 1)), ([0], (0,)))
        ),
        ({"cores": 3, "pmd_cpus": 1, "housekeeping": "generator"}, ((0,), (1,), (0,))),
        ({"cores": 3, "pmd_cpus": 1}, ((0,), (1,), (2,))),
        ({"cores": machine((4,), (7,)), "pmd_cpus": 1}, ((4,), (7,), (7,))),  # others are not ours
        # PMD threads get whole cores before they share one; a thread of the generator's core comes last.
        ({"cores": HYPERTHREADS, "pmd_cpus": 3}, ((0,), (1, 2, 3), (4,))),
        ({"cores": HYPERTHREADS, "pmd_cpus": 4}, ((0,), (1, 2, 3, 5), (4,))),
        ({"cores": machine((0, 1), (2, 3)), "pmd_cpus": 1}, ((0,), (2,), (1,))),
        ({"cores": 3, "pmd_cpus": 2, "generator_cpus": 0}, ((), (1, 2), (0,))),  # it is on another machine
        # Isolated CPUs are not among those that a login may use.
        ({"cores": 2, "pmd_cpus": 2, "generator_cpus": 0, "pmd": [14, 15]}, ((), (14, 15), (1,))),
        ({"cores": 4, "pmd_cpus": 2, "generator": [1]}, ((1,), (0, 2), (3,))),
        ({"cores": 4, "pmd_cpus": 1, "pmd": [3]}, ((0,), (3,), (2,))),
        ({"cores": 4, "pmd_cpus": 1, "pmd": [3, 1]}, ((0,), (3,), (2,))),
        ({"cores": 4, "pmd_cpus": 2, "pmd": {1: [0], 2: [3, 1]}}, ((0,), (3, 1), (2,))),
        ({"cores": 4, "pmd_cpus": 1, "pmd": [0]}, ((1,), (0,), (3,))),
    ],
)
def test_cpus_are_those_of_the_file_and_the_rest_from_the_machine(
    given: dict[str, Any], placed: tuple[tuple[int, ...], ...]
) -> None:
    assert plan(**given) == Placement(*placed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cores": 2, "pmd_cpus": 2}, r"2 PMD CPU\(s\) and 1 for the .* need 3 CPUs; this machine has 2 usable"),
        (
            {"cores": 2, "pmd_cpus": 2, "generator_cpus": 0},
            r"2 PMD CPU\(s\) and one for the DUT's other threads need 3 CPUs",
        ),
        ({"cores": 2, "pmd_cpus": 2, "pmd": [0, 1]}, r"gives PMD threads \[0, 1\], which leaves 0 CPUs"),
        ({"cores": 8, "pmd_cpus": 4, "pmd": [2, 3]}, "4 PMD CPUs are needed, and cpus.pmd of the testbed file"),
        ({"cores": 8, "pmd_cpus": 4, "pmd": {2: [2, 3]}}, "4 PMD CPUs are needed, and cpus.pmd of the testbed file"),
    ],
)
def test_too_few_cpus_are_a_missing_resource(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MissingResource, match=said):
        plan(**given)


def test_oversubscribed_any_topology_fits() -> None:
    placement = plan(2, 8, shared=True)

    assert (placement.pmd, placement.pmd_mask, placement.oversubscribed) == (tuple(range(8)), "0xff", True)
    assert pretended_numa(8) == "0,0,0,0,0,0,0,0"


@given(cpus=st.integers(1, 24), threads=st.sampled_from([1, 2]), pmd=st.integers(1, 24), generators=st.integers(0, 4))
def test_no_cpu_of_a_pmd_thread_is_shared(cpus: int, threads: int, pmd: int, generators: int) -> None:
    host = machine(*(tuple(range(first, min(first + threads, cpus))) for first in range(0, cpus, threads)))
    try:
        found = plan(host, pmd, generators)
    except MissingResource:
        assert pmd + max(generators, 1) > cpus
        return
    assert pmd + max(generators, 1) <= cpus
    assert len(found.pmd) == pmd and len(found.generator) == generators and found.housekeeping
    assert not set(found.pmd) & set(found.generator) and not set(found.housekeeping) & set(found.generator)
    assert set(found.pmd) == set(found.housekeeping) or not set(found.pmd) & set(found.housekeeping)
    assert {*found.pmd, *found.generator, *found.housekeeping} <= set(host.usable_cpus)
    assert found.generator == plan(host, 1, generators).generator


def test_other_threads_have_a_known_place_and_links_are_carried_off_the_pmd_threads_cpu() -> None:
    with pytest.raises(ValueError, match="'auto', 'dut', 'generator' or 'both'"):
        plan(2, 1, housekeeping="pmd")
    placed = [plan(2, 1), plan(3, 1), plan(2, 1, housekeeping="both"), Placement((), (1,), (1,))]
    assert [each.of_links for each in placed] == [(0,), (2,), (0,), (1,)]


def test_trex_needs_a_cpu_for_each_thread_unless_it_is_told_to_do_with_one() -> None:
    assert SoftwareGeneratorConfig(type="software").cpus_needed == 1
    assert trex(low_end=True).cpus_needed == 1
    assert trex(cores=2).cpus_needed == 4
    assert trex(cores=2, cpus=[0, 1, 2, 3]).cpus_needed == 4

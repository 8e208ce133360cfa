"""CPU placement, and the facts of a machine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import MissingResource
from ctbench.hosts.machine import Machine, Placement, parse_cpu_list, place, pretended_numa
from ctbench.hosts.sandbox import why_forbidden

pytestmark = pytest.mark.unit


def machine(*cores: tuple[int, ...]) -> Machine:
    usable = tuple(sorted(cpu for core in cores for cpu in core))
    return Machine("CPU", usable, cores, {0: usable}, "6.1", "Debian", "none", {}, "none", (), {})


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0-1,4,6-7\n", (0, 1, 4, 6, 7)), ("", ())]
)
def test_the_kernels_cpu_lists_are_read(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


def test_the_generator_has_the_first_cpu_the_pmd_threads_the_next_and_housekeeping_what_is_left() -> None:
    assert place(machine((0,), (1,)), 1) == Placement(generator=(0,), pmd=(1,), housekeeping=(0,))
    assert place(machine((0,), (1,), (2,)), 1) == Placement(generator=(0,), pmd=(1,), housekeeping=(2,))
    assert place(machine((4,), (7,)), 1) == Placement(
        generator=(4,), pmd=(7,), housekeeping=(4,)
    )  # others are not ours


def test_pmd_threads_get_whole_cores_before_they_share_one() -> None:
    hyperthreads = machine((0, 4), (1, 5), (2, 6), (3, 7))

    assert place(hyperthreads, 3).pmd == (1, 2, 3)
    assert place(hyperthreads, 4).pmd == (1, 2, 3, 5)
    assert place(machine((0, 1), (2, 3)), 1).pmd == (2,)  # 1 is the other thread of the generator's core


def test_too_few_cpus_say_what_is_needed_and_what_is_there() -> None:
    with pytest.raises(
        MissingResource, match=r"2 PMD CPU\(s\) and 1 for the .* need 3 CPUs; this machine has 2 usable"
    ):
        place(machine((0,), (1,)), 2)


def test_oversubscribed_any_topology_fits() -> None:
    placement = place(machine((0,), (1,)), 8, oversubscribed=True)

    assert placement.pmd == tuple(range(8))
    assert placement.pmd_mask == "0xff"
    assert placement.oversubscribed
    assert pretended_numa(8) == "0,0,0,0,0,0,0,0"


@given(cpus=st.integers(2, 24), threads=st.sampled_from([1, 2]), pmd=st.integers(1, 24), generators=st.integers(1, 3))
def test_no_cpu_is_the_generators_and_a_pmd_threads(cpus: int, threads: int, pmd: int, generators: int) -> None:
    host = machine(*(tuple(range(first, min(first + threads, cpus))) for first in range(0, cpus, threads)))
    if pmd + generators > cpus:
        with pytest.raises(MissingResource):
            place(host, pmd, generator_cpus=generators)
        return

    placement = place(host, pmd, generator_cpus=generators)

    assert len(placement.pmd) == pmd and len(placement.generator) == generators
    assert not set(placement.pmd) & {*placement.generator, *placement.housekeeping}
    assert {*placement.pmd, *placement.generator, *placement.housekeeping} <= set(host.usable_cpus)
    assert placement.generator == place(host, 1, generator_cpus=generators).generator


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ],
)
def test_a_setting_that_forbids_sandboxes_comes_with_its_remedy(
    tmp_path: Path, setting: str, value: str, remedy: str
) -> None:
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")

    assert why_forbidden("unshare: unshare failed: Operation not permitted", tmp_path).endswith(remedy)
    said = why_forbidden("unshare: unshare failed: Operation not permitted\n", tmp_path / "none")  # a container
    assert "unshare failed: Operation not permitted" in said and "seccomp=unconfined" in said

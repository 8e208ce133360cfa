"""Which CPUs a topology gets: the testbed file's, and the rest from the machine; which testbeds may measure side by
side."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Machine, Placement, pretended_numa
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.cpus import CpuPlan, plan_cpus
from ctbench.testbed.pool import Member, make_pool, split_names
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.software import SoftwareGeneratorConfig
from ctbench.traffic.trex.source import TrexGeneratorConfig


def machine(*cores: tuple[int, ...], numa: Sequence[Iterable[int]] = ()) -> Machine:
    """`numa`: the CPUs of each node; all of node 0 where none are given."""
    usable = tuple(sorted(cpu for core in cores for cpu in core))
    nodes = {node: tuple(cpus) for node, cpus in enumerate(numa or (usable,))}
    return Machine("model", usable, cores, nodes, "6", "Debian", "none", {}, "none", (), {})


def plan(
    cores: Machine | int, pmd_cpus: int, generator_cpus: int = 1, *, of_use: int = 0, shared: bool = False, **keys: Any
) -> Placement:
    """Of a machine, or of one with so many CPUs, each a core."""
    written = CpuPlan.model_validate({"generator": "auto", "pmd": "auto", "housekeeping": "auto"} | keys)
    made = machine(*((cpu,) for cpu in range(cores))) if isinstance(cores, int) else cores
    return plan_cpus(written, made, pmd_cpus, generator_cpus=generator_cpus, of_use=of_use, shared=shared)


def trex(**keys: Any) -> TrexGeneratorConfig:
    return TrexGeneratorConfig.model_validate({"type": "trex", "host": "sandbox", "server": "start", **keys})


def two_nodes(*numa: Iterable[int]) -> Machine:
    """Two NUMA nodes, each CPU a core."""
    return machine(*((cpu,) for cpu in sorted(chain(*numa))), numa=numa)


#: As some firmware numbers the CPUs: by turns.
BY_TURNS = two_nodes(range(0, 16, 2), range(1, 16, 2))
HYPERTHREADS = machine((0, 4), (1, 5), (2, 6), (3, 7))


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ({"cores": 2, "pmd_cpus": 1}, ((0,), (1,), (1,))),  # the DUT pays for its other threads
        ({"cores": 2, "pmd_cpus": 1, "housekeeping": [0]}, ((0,), (1,), (0,))),
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
        # The generator has what the DUT leaves, a thread for each PMD thread at most.
        ({"cores": 16, "pmd_cpus": 8, "of_use": 8}, ((0, *range(9, 15)), tuple(range(1, 9)), (15,))),
        ({"cores": 16, "pmd_cpus": 2, "of_use": 8}, ((0, 3), (1, 2), (15,))),
        ({"cores": 16, "pmd_cpus": 1, "of_use": 8}, ((0,), (1,), (15,))),
        ({"cores": 4, "pmd_cpus": 0, "of_use": 8}, ((0, 1, 2), (), (3,))),  # a cable
        ({"cores": 16, "pmd_cpus": 2, "of_use": 8, "generator": [5]}, ((5,), (0, 1), (15,))),
        # A core that a PMD thread has comes last.
        ({"cores": HYPERTHREADS, "pmd_cpus": 2, "of_use": 8}, ((0, 3), (1, 2), (4,))),
        # All PMD threads are of one NUMA node, the first that has room.
        ({"cores": BY_TURNS, "pmd_cpus": 2}, ((0,), (2, 4), (15,))),
        ({"cores": BY_TURNS, "pmd_cpus": 2, "of_use": 8}, ((0, 6), (2, 4), (15,))),
        ({"cores": BY_TURNS, "pmd_cpus": 2, "generator_cpus": 2}, ((0, 2), (4, 6), (15,))),
        ({"cores": two_nodes(range(3), range(3, 8)), "pmd_cpus": 3, "of_use": 8}, ((0, 6, 7), (3, 4, 5), (2,))),
        ({"cores": two_nodes(range(2), range(2, 4)), "pmd_cpus": 3}, ((0,), (1, 2, 3), (1, 2, 3))),  # neither has
    ],
)
def test_cpus_are_of_the_file_or_else_of_the_host(given: dict[str, Any], placed: tuple[tuple[int, ...], ...]) -> None:
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


def test_oversubscribed_any_topology_fits_and_testbeds_need_one_cpu_each() -> None:
    placement = plan(2, 8, shared=True)
    assert (placement.pmd, placement.pmd_mask, placement.oversubscribed) == (tuple(range(8)), "0xff", True)
    assert pretended_numa(8) == "0,0,0,0,0,0,0,0"
    config = a_testbed(oversubscribe=True)
    assert shares(make_pool([("x", config)] * 2, [(0, 1)])) == {"local#1": (0,), "local#2": (1,)}
    with pytest.raises(MissingResource):
        make_pool([("x", config)] * 3, [(0, 1)])


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
    placed = [plan(2, 1), plan(3, 1), plan(2, 1, housekeeping=[0, 1]), Placement((), (1,), (1,))]
    assert [each.of_links for each in placed] == [(0,), (2,), (0,), (1,)]


def test_trex_needs_a_cpu_for_each_thread_unless_it_is_told_to_do_with_one() -> None:
    assert SoftwareGeneratorConfig(type="software").cpus_needed == 1
    assert trex(low_end=True).cpus_needed == 1
    assert trex(cores=2).cpus_needed == 4
    assert trex(cores=2, cpus=[0, 1, 2, 3]).cpus_needed == 4


TESTBEDS = Path(__file__).parents[2] / "variables" / "testbeds"


def a_testbed(name: str = "local", file: str = "local", **changes: Any) -> TestbedConfig:
    document = yaml.safe_load((TESTBEDS / f"{file}.yaml").read_text())
    return TestbedConfig.model_validate(document | {"name": name} | changes)


def lab(name: str, address: str = "") -> TestbedConfig:
    """The example lab with its hosts at other addresses."""
    document = yaml.safe_load((TESTBEDS / "example-trex-xeon.yaml").read_text())
    for host, keys in document["hosts"].items():
        keys["address"] = f"{host}.{address or name}.example"
    return TestbedConfig.model_validate(document | {"name": name})


def given_cpus(generator: Any, pmd: Any, housekeeping: Any = "auto") -> dict[str, Any]:
    return {"cpus": {"generator": generator, "pmd": pmd, "housekeeping": housekeeping}}


def single(cpus: int) -> list[tuple[int, ...]]:
    return [(cpu,) for cpu in range(cpus)]


def shares(members: list[Member]) -> dict[str, tuple[int, ...]]:
    return {member.name: member.cpus for member in members}


def test_a_cpu_of_the_generator_is_no_pmd_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="CPU 1 is given to the generator and to a PMD thread"):
        a_testbed(**given_cpus([1], [1, 2]))
    a_testbed(**given_cpus([1], [1, 2]), oversubscribe=True)
    file = "example-trex-xeon"
    of_trex: dict[str, Any] = yaml.safe_load((TESTBEDS / f"{file}.yaml").read_text())["generator"]
    here = of_trex | {"host": "dut", "cores": 1, "cpus": [0, 12, 2]}
    with pytest.raises(ValueError, match="CPU 2 is given to the generator and to a PMD thread"):
        a_testbed(file, file, generator=here)
    a_testbed(file, file, generator=of_trex)  # the same numbers, of another host
    monkeypatch.setattr(HostPool, "machine", lambda _pool, _name: machine(*single(13)))
    beside = Testbed(a_testbed(file, file, generator=here, **given_cpus("auto", "auto")), tmp_path)
    found = beside.placement(Topology(cpus=2))
    assert (found.generator, found.pmd) == ((0, 12, 2), (1, 3))


@pytest.mark.parametrize("text", ["", "local", ",local"])
def test_a_pool_of_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="at least two testbeds"):
        split_names(text)


@pytest.mark.parametrize(
    ("cores", "one", "two"),
    [
        (single(4), (0, 1), (2, 3)),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], (0, 1, 4, 5), (2, 3, 6, 7)),  # two hyper-threads of a core stay together
        ([(4,), (5,), (8,), (9,), (11,)], (4, 5), (8, 9, 11)),  # some that may not be used
    ],
)
def test_the_local_testbed_twice_gets_half_of_the_cpus_each(
    cores: list[tuple[int, ...]], one: tuple[int, ...], two: tuple[int, ...]
) -> None:
    members = make_pool([("local", a_testbed())] * 2, cores)
    assert shares(members) == {"local#1": one, "local#2": two}
    assert {member.testbed for member in members} == {"local"}


def test_named_cpus_stay_those_of_their_file_and_others_get_the_rest_and_a_lab_none_of_this_machine() -> None:
    named = a_testbed("named", **given_cpus([0], [2], [0]))
    members = make_pool([("named", named), ("local", a_testbed())], single(5))
    assert shares(members) == {"named": (0, 2), "local": (1, 3, 4)}
    half = a_testbed("half", **given_cpus([3], "auto"))
    members = make_pool([("half", half), ("local", a_testbed())], single(6))
    assert shares(members) == {"half": (0, 1, 3), "local": (2, 4, 5)}
    assert shares(make_pool([("lab-a", lab("lab-a")), ("local", a_testbed())], single(2))) == {
        "lab-a": (),
        "local": (0, 1),
    }
    # CPU 1 is a PMD thread's on the other machine.
    box = load("testbeds", "lab-in-a-box", TestbedConfig)
    assert shares(make_pool([("box", box), ("two", a_testbed("two", **given_cpus([1], "auto")))], single(3))) == {
        "lab-in-a-box": (0,),
        "two": (1, 2),
    }


def test_over_a_cable_the_generator_has_its_cpu_whatever_threads_of_another_machine_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostPool, "machine", lambda _pool, _name: machine((1,)))
    testbed = Testbed(load("testbeds", "lab-in-a-box", TestbedConfig), tmp_path)
    assert testbed.placement(CABLE).generator == (1,)


ONE, TWO = a_testbed("one", **given_cpus([0], [1], [0])), a_testbed("two", **given_cpus([2], {1: [3], 2: [3, 1]}, [2]))
PORTS = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}
OWN = a_testbed(duts=[{"type": "linux-router", "host": "local", "ports": PORTS}])
SHARED = r"would share host \S+\.lab-a\.example"


@pytest.mark.parametrize(
    ("pool", "cpus", "status", "said"),
    [
        ([("local", a_testbed())] * 2, 2, 6, r"local would have 1 of this machine's 2 CPU\(s\) and needs 2"),
        ([("one", ONE), ("two", TWO)], 4, 4, "CPU 1 is named by two testbeds"),
        ([("lab-a", lab("lab-a"))] * 2, 8, 4, SHARED),
        ([("lab-a", lab("lab-a")), ("b", lab("lab-b", address="lab-a"))], 8, 4, SHARED),
        ([("own", OWN)] * 2, 8, 4, "this machine's own network"),
        ([("a.yaml", a_testbed()), ("b.yaml", a_testbed())], 4, 4, "two files have the name local"),
    ],
)
def test_what_is_no_pool_is_refused(pool: list[tuple[str, TestbedConfig]], cpus: int, status: int, said: str) -> None:
    with pytest.raises(CtbenchError, match=said) as refused:
        make_pool(pool, single(cpus))
    assert refused.value.exit_status == status

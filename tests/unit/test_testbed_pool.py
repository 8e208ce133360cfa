"""Which testbeds may measure side by side, and which CPUs of this machine each of them gets."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import Member, make_pool, split_names

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


def plan(generator: Any, pmd: Any, housekeeping: Any = "auto") -> dict[str, Any]:
    return {"cpus": {"generator": generator, "pmd": pmd, "housekeeping": housekeeping}}


def single(cpus: int) -> list[tuple[int, ...]]:
    return [(cpu,) for cpu in range(cpus)]


def shares(members: list[Member]) -> dict[str, tuple[int, ...]]:
    return {member.name: member.cpus for member in members}


@pytest.mark.parametrize("text", ["", "local", ",local"])
def test_a_pool_of_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="at least two testbeds"):
        split_names(text)


@pytest.mark.parametrize(
    ("cores", "one", "two"),
    [
        (single(4), (0, 1), (2, 3)),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], (0, 1, 4, 5), (2, 3, 6, 7)),  # two hyper-threads of a core stay together
        ([(4,), (5,), (8,), (9,), (11,)], (4, 5), (8, 9, 11)),  # some nobody may use
    ],
)
def test_the_local_testbed_twice_gets_half_of_the_cpus_each(
    cores: list[tuple[int, ...]], one: tuple[int, ...], two: tuple[int, ...]
) -> None:
    members = make_pool([("local", a_testbed())] * 2, cores)
    assert shares(members) == {"local#1": one, "local#2": two}
    assert {member.testbed for member in members} == {"local"}


def test_oversubscribed_testbeds_need_one_cpu_each() -> None:
    config = a_testbed(oversubscribe=True)
    assert shares(make_pool([("x", config)] * 2, [(0, 1)])) == {"local#1": (0,), "local#2": (1,)}
    with pytest.raises(MissingResource):
        make_pool([("x", config)] * 3, [(0, 1)])


def test_cpus_that_a_file_names_stay_its_own_and_the_other_gets_the_rest() -> None:
    named = a_testbed("named", **plan([0], [2], [0]))
    members = make_pool([("named", named), ("local", a_testbed())], single(5))
    assert shares(members) == {"named": (0, 2), "local": (1, 3, 4)}


def test_a_file_that_leaves_some_to_us_gets_them_beside_those_it_names() -> None:
    half = a_testbed("half", **plan([3], "auto"))
    members = make_pool([("half", half), ("local", a_testbed())], single(6))
    assert shares(members) == {"half": (0, 1, 3), "local": (2, 4, 5)}


def test_a_lab_uses_no_cpu_of_this_machine_and_leaves_them_to_the_local_testbed() -> None:
    pool = [("lab-a", lab("lab-a")), ("lab-b", lab("lab-b"))]
    assert shares(make_pool(pool, single(1))) == {"lab-a": (), "lab-b": ()}
    assert shares(make_pool([pool[0], ("local", a_testbed())], single(2))) == {"lab-a": (), "local": (0, 1)}


ONE, TWO = a_testbed("one", **plan([0], [1], [0])), a_testbed("two", **plan([2], {1: [3], 2: [3, 1]}, [2]))
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
def test_what_cannot_be_a_pool_is_refused(
    pool: list[tuple[str, TestbedConfig]], cpus: int, status: int, said: str
) -> None:
    with pytest.raises(CtbenchError, match=said) as refused:
        make_pool(pool, single(cpus))
    assert refused.value.exit_status == status

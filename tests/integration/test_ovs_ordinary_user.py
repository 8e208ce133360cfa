"""OVS-DPDK needs no root."""

from collections.abc import Callable


def test_ovs_works_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_ovs_topologies.py::test_a_topology_is_what_ovs_then_says", "test_ovs_life.py")


def test_bridges_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_ovs_bridges.py", generator=True)


def test_veth_links_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_ovs_veth.py", generator=True)

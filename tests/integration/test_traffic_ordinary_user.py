"""Traffic through OVS-DPDK and through the kernel needs no root."""

from collections.abc import Callable


def test_traffic_passes_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    topologies = "test_traffic_topologies.py::test_connections_complete_over_every_queue"
    as_ordinary_user(f"{topologies}[1-1]", f"{topologies}[8-8]", "test_traffic_rulesets.py", generator=True)


def test_traffic_passes_the_kernel_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    # What may differ are sockets, threads and tables; one kind of translation is as good as another for that.
    as_ordinary_user("test_traffic_interfaces.py", generator=True, only="not dnat and not masquerade")

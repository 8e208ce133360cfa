"""What of a DUT's ports a generator can be connected to, and what it says of the others."""

from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import Ports
from ctbench.hosts.config import SshConfig
from ctbench.hosts.connections import HostPool, machine_of
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Placement
from ctbench.testbed.connectors.software import SoftwareConnector
from ctbench.testbed.connectors.trex import TrexConnector
from ctbench.traffic.trex.config import TrexGeneratorConfig

APART, TOGETHER = Placement((0,), (1,), (2,)), Placement((0,), (1,), (0,))
CARDS = Ports("pci", "0000:18:00.2", "0000:18:00.3", 1, 2)
MEMIF = Ports("memif", "/run/x/port0.sock", "/run/x/port1.sock", 1, 2)
HERE = LocalHost()


class NoSocketError(Exception):
    """The software generator got as far as asking for a socket."""


def refuse_socket(_kind: str) -> Any:
    raise NoSocketError


def veth(cpus: tuple[int, ...]) -> Ports:
    return Ports("interface", "g0", "g1", 1, 1, cpus=cpus, open_socket=refuse_socket)


def trex(folder: Path, **keys: Any) -> TrexConnector:
    config = TrexGeneratorConfig.model_validate({"type": "trex", "host": "sandbox", "server": "start", **keys})
    return TrexConnector(config, {}, HostPool({}), folder)


def test_the_software_generator_has_no_cards() -> None:
    with pytest.raises(MissingResource, match=r"Testbed lab has network cards .* only ports of kind memif and veth"):
        SoftwareConnector((0,), "lab").connect(CARDS, HERE, APART, 1514)


def test_the_software_generator_needs_a_cpu_more_for_ovs_over_veth() -> None:
    with pytest.raises(MissingResource, match="a CPU more is needed, or ports of kind memif"):
        SoftwareConnector((0,), "lab").connect(veth(TOGETHER.housekeeping), HERE, TOGETHER, 1514)
    with pytest.raises(NoSocketError):
        SoftwareConnector((0,), "lab").connect(veth(APART.housekeeping), HERE, APART, 1514)


def test_a_linux_duts_cpus_are_never_the_software_generators() -> None:
    with pytest.raises(NoSocketError):
        SoftwareConnector((0,), "lab").connect(veth(TOGETHER.pmd), HERE, TOGETHER, 1514)


def test_trex_in_the_sandbox_reaches_no_memif(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match="TRex in the sandbox reaches ports of kind veth; the DUT's are memif"):
        trex(tmp_path).connect(MEMIF, HERE, APART, 1514)


def test_trex_offers_to_one_dut_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match="Two DUTs side by side need the software traffic generator"):
        trex(tmp_path).connect_pair(CARDS, CARDS, APART, 1514)


def test_trex_that_is_not_connected_says_so_and_starts_nothing(tmp_path: Path) -> None:
    connector = trex(tmp_path / "generator")

    assert connector.facts() == {"type": "trex", "wiring": "not connected"}
    with pytest.raises(TestbedError, match="TRex is not connected to a DUT"):
        _ = connector.generator
    connector.disconnect()
    connector.close()
    assert not (tmp_path / "generator").exists()


def test_a_host_is_connected_to_once_and_a_sandbox_is_on_this_machine() -> None:
    pool = HostPool({"far": SshConfig(address="192.0.2.1", user="root")})

    assert pool.host("local") is pool.host("local")
    assert pool.machine("sandbox") is pool.machine("local")
    assert pool.host("far") is pool.host("far")  # connects when it is asked for something
    assert (machine_of("sandbox"), machine_of("far")) == ("local", "far")
    pool.close()
    pool.close()

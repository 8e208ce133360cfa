"""What a generator can be asked to offer, what of a DUT's ports it can be connected to, and what it says else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from wire import software_connector

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.network import own_macs
from ctbench.base.yaml_files import load
from ctbench.dut.base import Ports
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Placement
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.trex import TrexConnector
from ctbench.traffic.loads import Hold, Rate, Saturation
from ctbench.traffic.software import SoftwareGeneratorConfig
from ctbench.traffic.trex.source import TrexGeneratorConfig


@pytest.mark.parametrize("per_s", [0, -1, float("inf"), float("nan")])
def test_a_load_that_cannot_be_offered_is_refused(per_s: float) -> None:
    with pytest.raises(ValueError, match="Expected more than 0"):
        Rate(per_s)


APART, TOGETHER = Placement((0,), (1,), (2,)), Placement((0,), (1,), (0,))
CARDS = Ports("pci", (("0000:18:00.2", "0000:18:00.3"),), 1, 2)
MEMIF = Ports("memif", (("/run/x/port0.sock", "/run/x/port1.sock"),), 1, 2)
HERE = LocalHost()


class NoSocketError(Exception):
    """The software generator got as far as asking for a socket."""


def refuse_socket(_kind: str) -> Any:
    raise NoSocketError


def veth(cpus: tuple[int, ...]) -> Ports:
    return Ports("interface", (("g0", "g1"),), 1, 1, cpus=cpus, open_socket=refuse_socket)


def trex(folder: Path, **keys: Any) -> TrexConnector:
    config = TrexGeneratorConfig.model_validate({"type": "trex", "host": "sandbox", "server": "start", **keys})
    testbed = load("testbeds", "local", TestbedConfig).model_copy(update={"generator": config})
    return TrexConnector(testbed, HostPool({}), lambda: APART, folder)


def test_the_software_generator_reaches_cards_over_interfaces_that_the_testbed_file_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MissingResource, match=r"Testbed local has network cards .* generator\.interfaces"):
        software_connector(0).connect(CARDS, HERE, APART, 1514)
    named = SoftwareGeneratorConfig.model_validate(
        {"type": "software", "interfaces": {"client": "c0", "server": "s0"}}, strict=True
    )
    connector = software_connector(0)
    connector._testbed = connector._testbed.model_copy(update={"generator": named})
    monkeypatch.setattr(LocalHost, "open_socket", lambda _host, kind: refuse_socket(kind))
    with pytest.raises(NoSocketError):
        connector.connect(CARDS, HERE, APART, 1514)


def test_the_software_generator_needs_a_cpu_more_for_ovs_over_veth() -> None:
    with pytest.raises(MissingResource, match="a CPU more is needed, or ports of kind memif"):
        software_connector(0).connect(veth(TOGETHER.housekeeping), HERE, TOGETHER, 1514)
    with pytest.raises(NoSocketError):
        software_connector(0).connect(veth(APART.housekeeping), HERE, APART, 1514)
    # A Linux DUT's CPUs are never its own.
    with pytest.raises(NoSocketError):
        software_connector(0).connect(veth(TOGETHER.pmd), HERE, TOGETHER, 1514)


def test_what_a_generator_offers_and_reaches_is_known_before_it_is_connected(tmp_path: Path) -> None:
    assert trex(tmp_path).offers == {Rate, Hold} and not trex(tmp_path).pairs
    assert software_connector(0).offers == {Rate, Hold, Saturation}
    with pytest.raises(MissingResource, match="TRex in the sandbox reaches ports of kind veth; the DUT's are memif"):
        trex(tmp_path).connect(MEMIF, HERE, APART, 1514)


def test_frames_of_trex_go_to_the_dut_that_routes_or_through_one_that_bridges_to_the_other_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wired: list[TrexGeneratorConfig] = []
    monkeypatch.setattr(TrexConnector, "_wire", lambda _self, config, *_: wired.append(config))
    client, server = own_macs(0)
    ports = {"client": {"interface": "g0", "mac": client}, "server_port": {"interface": "g1", "mac": server}}
    for dut in (CARDS, replace(CARDS, macs=(("dut-c", "dut-s"),))):
        trex(tmp_path, host="local", **ports).connect(dut, HERE, APART, 1514)
    aims = [(config.client.dest_mac, config.server_port.dest_mac) for config in wired]
    assert aims == [(server, client), ("dut-c", "dut-s")]


def test_trex_that_is_not_connected_says_so_and_starts_nothing(tmp_path: Path) -> None:
    connector = trex(tmp_path / "generator")

    assert connector.facts() == {"type": "trex", "wiring": "not connected"}
    with pytest.raises(TestbedError, match="TRex is not connected to a DUT"):
        _ = connector.generator
    connector.disconnect()
    connector.close()
    assert not (tmp_path / "generator").exists()

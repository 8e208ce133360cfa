"""The doctor judges network cards: driver, IOMMU, NUMA node, link, and where TRex' frames go."""

from typing import Any

import pytest

from ctbench.doctor import cards
from ctbench.doctor.examine import check_wiring
from ctbench.hosts.examination import CMDLINE, NODE, NOIOMMU, PCI, Card, Facts, Finding
from ctbench.traffic.trex.config import TrexGeneratorConfig

from .doctor_facts import CARDS, example, kernels_card, plans, site, vfio_links, xeon_facts

pytestmark = pytest.mark.unit

CLIENT, SERVER = "04:3f:72:f2:8f:32", "04:3f:72:f2:8f:33"
DUT_CLIENT, DUT_SERVER = "3c:fd:fe:00:00:02", "3c:fd:fe:00:00:03"


def rows(facts: Facts, host: str = "dut") -> dict[str, Finding]:
    return {finding.what: finding for finding in cards.check(site(plans()[host], facts))}


def wiring(*, dut: str = "ovs-dpdk", dut_macs: tuple[str, str] = ("", ""), **client: str) -> Finding:
    """The row of the client's port."""
    generator = example().generator.model_dump()
    generator["client"] |= client
    macs = {Card(dut, side, "0"): mac for side, mac in zip(("client", "server"), dut_macs, strict=True)}
    macs |= {Card("generator", side, "1"): "" for side in ("client", "server")}
    return next(iter(check_wiring(TrexGeneratorConfig.model_validate(generator), macs)))


def test_the_articles_cards_are_well() -> None:
    found = rows(xeon_facts())
    assert found["card 0000:18:00.2"].found == "ovs-dpdk, client: DPDK's, driver vfio-pci"
    assert found["IOMMU"].found == "on, the cards are in group 40, 41"
    assert not [finding for finding in found.values() if finding.state == "bad"]
    assert found["link of 0000:18:00.2"].state == "unknown"  # vfio hides it
    assert [card.address for card in plans()["tgen"].cards] == list(CARDS)  # TRex names them without their domain


def test_a_card_in_the_kernels_hands_is_bound_to_vfio() -> None:
    facts = kernels_card(xeon_facts(programs=frozenset({"driverctl"})), CARDS[0], "ens1f2", CLIENT)
    finding = rows(facts)["card 0000:18:00.2"]
    assert (finding.state, "driver i40e" in finding.found) == ("bad", True)
    assert finding.remedy == "modprobe vfio-pci && driverctl set-override 0000:18:00.2 vfio-pci"
    assert rows(facts)["link of 0000:18:00.2"].found == f"up, 10 Gbit/s; MAC {CLIENT}"
    plain = rows(kernels_card(xeon_facts(), CARDS[0], "ens1f2", CLIENT, up=False))
    assert plain["card 0000:18:00.2"].remedy.endswith("dpdk-devbind.py --bind=vfio-pci 0000:18:00.2")
    assert plain["link of 0000:18:00.2"].state == "bad"


def test_cards_that_dpdk_shares_with_the_kernel_need_neither_vfio_nor_iommu() -> None:
    facts = xeon_facts(links={})
    for number, card in enumerate(CARDS):
        facts = kernels_card(facts, card, f"ens1f{number}", CLIENT, driver="mlx5_core")
    found = rows(facts)
    assert found["card 0000:18:00.2"].state == "ok"
    assert found["IOMMU"].state == "unknown"


def test_a_card_that_is_not_there_is_not_taken_for_one_without_a_driver() -> None:
    files = {path: text for path, text in xeon_facts().files.items() if PCI not in path}
    facts = Facts(xeon_facts().machine, files)
    assert "there is no such card" in rows(facts)["card 0000:18:00.2"].found


def test_an_iommu_that_is_off_is_switched_on_by_the_kernels_arguments() -> None:
    links = {path: target for path, target in vfio_links().items() if "iommu" not in path}
    finding = rows(xeon_facts(files={CMDLINE: "quiet"}, links=links))["IOMMU"]
    assert (finding.state, "intel_iommu=on iommu=pt" in finding.remedy) == ("bad", True)
    asked = rows(xeon_facts(links=links))["IOMMU"]
    assert "firmware" in asked.remedy
    assert rows(xeon_facts(files={NOIOMMU: "Y"}, links=links))["IOMMU"].state == "unknown"


def test_cpus_of_another_numa_node_are_named() -> None:
    numa = {0: (0, 1, 2, 3), 1: tuple(range(4, 24))}
    finding = rows(xeon_facts({"numa": numa}, {f"{NODE}/node1/x": ""}))["NUMA of 0000:18:00.2"]
    assert (finding.state, finding.found) == ("bad", "node 0, and CPU 4,13,14,15,16 is on another")


def test_trex_is_told_the_node_of_its_card() -> None:
    everywhere = tuple(range(24))
    facts = xeon_facts({"numa": {0: (), 1: everywhere}}, {f"{PCI}/{card}/numa_node": "1" for card in CARDS})
    assert rows(facts, "tgen")["NUMA of 0000:18:00.2"].remedy == "set generator.socket: 1"


BRIDGE: dict[str, Any] = {}
ROUTER: dict[str, Any] = {"dut": "linux-router"}
SHOWN: dict[str, Any] = ROUTER | {"dut_macs": (DUT_CLIENT, DUT_SERVER)}


@pytest.mark.parametrize(
    ("keys", "state", "found"),
    [
        (BRIDGE, "ok", f"{SERVER}, TRex' other port"),
        (BRIDGE | {"dest_mac": CLIENT}, "bad", ""),  # to itself
        (BRIDGE | {"dest_mac": ""}, "unknown", ""),
        (BRIDGE | {"dest_mac": "", "gateway": "1.1.1.1"}, "unknown", "gateway"),
        (SHOWN, "bad", ""),  # a router does not send frames for TRex' other port on
        (SHOWN | {"dest_mac": DUT_CLIENT}, "ok", f"{DUT_CLIENT}, the DUT's client port"),
        (SHOWN | {"dest_mac": DUT_SERVER}, "bad", DUT_CLIENT),  # crossed cables
        (ROUTER | {"dest_mac": DUT_CLIENT}, "unknown", ""),  # no kernel shows it
    ],
)
def test_frames_go_to_the_port_that_sends_them_on(keys: dict[str, Any], state: str, found: str) -> None:
    finding = wiring(**keys)
    assert (finding.state, found in finding.found) == (state, True)
    assert state != "bad" or "generator.client.dest_mac" in finding.remedy

"""A gate on nothing but a ratio, and a DUT that is broken on purpose after it was set up: what does not come through,
all of it or the connections of one client in 128, is missed; a dead reference is a fault."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from integration.small_testbed import small
from integration.test_suites_records import HERE, judged, measure, started

from ctbench.dut.base import Dut
from ctbench.dut.topology import Topology
from ctbench.results.verdict import word_of
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import Profile
from ctgen import plan

#: Whether most, one in 128 or none are lost is looked at: others may use the machine as well.
pytestmark = [pytest.mark.usefixtures("resting", "unhurried"), pytest.mark.beside_others]
SNAT = Topology(datapath="linux-router", ruleset="iptables-snat")
NAT = Topology(ruleset="nat")
TO = {SNAT.key: "linux-router/forward/1cpu-1rxq", NAT.key: "ovs-dpdk/conntrack/1cpu-1rxq"}
#: Of the 65 536 clients of short-lived.
ALL, ONE_IN_128 = "16.0.0.0/16", "16.0.0.0/23"


def settings() -> RunSettings:
    """The gate of this folder with loads that are large enough for one loss in 128 to be no accident. Where all are
    lost, no load far below the first one is tried."""
    read = RunSettings.load(campaign=str(HERE / "gate.yaml"), sla=str(HERE / "floors.yaml"))
    large = read.campaign.loads["packets"].model_copy(update={"min": 5e3, "max": 1e4, "relative_width": 0.9})
    loads = {**read.campaign.loads, "short-lived": large}
    how = read.campaign.saturation.model_copy(update={"final_duration": 0.3, "max_trials": 2})
    campaign = read.campaign.model_copy(update={"loads": loads, "saturation": how})
    head = {"name": "mine", "description": "", "source": "tests", "loss_ratio": "<= 0.3%"}
    ratios = {key: {"short-lived": {"ratio": {"to": to, "rate": ">= 1%"}}} for key, to in TO.items()}
    return replace(read, testbed=small(read.testbed), campaign=campaign, floors=Floors.model_validate(head | ratios))


@pytest.fixture(scope="module")
def run(able_machine: None, unhurried: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptanceRun]:
    """What never comes need not be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", 0.5)
        yield from started(tmp_path_factory.mktemp("planted"), settings())


def drop(testbed: Testbed, dut: Dut, clients: str) -> None:
    """Have the DUT drop what these clients send, until rules are loaded again: for the next test."""
    (host,) = (host for known, host in testbed._duts.values() if known is dut)
    if hasattr(dut, "control"):
        rule = f"priority=65535,ip,nw_src={clients},actions=drop"
        dut.resume()  # the other side is paused until its turn
        dut.control.ofctl("add-flow", dut.control.bridge, rule)
    else:
        host.run(["iptables", "-w", "-I", "FORWARD", "1", "-s", clients, "-j", "DROP"])


@pytest.mark.usefixtures("any_packets")
@pytest.mark.parametrize(
    ("topology", "side", "clients", "word", "broken"),
    [
        (SNAT, "tested", ALL, "missed", {"ratio", "loss_ratio"}),
        (NAT, "tested", ONE_IN_128, "missed", {"loss_ratio"}),
        (SNAT, "other", ALL, "not measured", {"ratio", "loss_ratio"}),
    ],
)
def test_what_does_not_come_through_is_missed_and_a_dead_reference_measures_nothing(
    run: AcceptanceRun,
    monkeypatch: pytest.MonkeyPatch,
    topology: Topology,
    side: Side,
    clients: str,
    word: str,
    broken: set[str],
) -> None:
    apply_pair = Testbed.apply_pair

    def planted(testbed: Testbed, tested: Setup, other: Setup, profile: Profile, first: Side | None = None) -> None:
        apply_pair(testbed, tested, other, profile, first)
        drop(testbed, testbed.side_by_side._duts[side], clients)

    monkeypatch.setattr(Testbed, "apply_pair", planted)
    record = judged(lambda: measure(run, settings(), topology))
    assert record.verdict == word, record.verdict_reason
    # What a busy machine leaves open otherwise is neither met nor missed.
    missed = {each.metric for each in record.thresholds if word_of(each, record.verdict) == "missed"}
    assert missed == (broken if word == "missed" else set())
    assert broken.isdisjoint(each.metric for each in record.thresholds if each.met)
    assert (record.limited_by == "fault") is (side == "other")
    assert ("Nothing comes through" in record.verdict_reason) is (side == "other"), record.verdict_reason

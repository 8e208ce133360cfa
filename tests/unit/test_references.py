"""A name that stands for nothing is found before the first trial, with the file and the key."""

from itertools import zip_longest
from pathlib import Path

import pytest
from robot.running import TestSuite, TestSuiteBuilder

from ConntrackSLA.rows import named
from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT, SUITES
from ctbench.base.yaml_files import load
from ctbench.measure.campaign import Campaign
from ctbench.run.settings import check_references
from ctbench.sla.floors import Floors

STOCK_SLA = (ROOT / "variables/sla/local.yaml").read_text()
STOCK_CAMPAIGN = (ROOT / "variables/campaigns/quick.yaml").read_text()
TO_CONNTRACK, RATIO_TO = "to: ovs-dpdk/conntrack/1cpu-1rxq", "\n    ratio: {to: "


def mistake(tmp_path: Path, *, sla: str = STOCK_SLA, campaign: str = STOCK_CAMPAIGN) -> str:
    (tmp_path / "mine.yaml").write_text(sla)
    (tmp_path / "own.yaml").write_text(campaign)
    floors, own = load("sla", tmp_path / "mine.yaml", Floors), load("campaigns", tmp_path / "own.yaml", Campaign)
    with pytest.raises(ConfigError) as error:
        check_references(floors, own)
    return str(error.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        (TO_CONNTRACK, "to: ovs-dpdk/nosuch/1cpu-1rxq", "mine.yaml: ovs-dpdk/forward/1cpu-1rxq.s"),
        (TO_CONNTRACK, "to: vpp/conntrack/1cpu-1rxq", 'ratio.to: "vpp" is not a kind of DUT'),
        (TO_CONNTRACK, "to: emulated/forward/1cpu-1rxq", "ratio.to: emulated/forward/1cpu-1rxq"),
        ("\n    cost: {to: emulated/", "\n    cost: {to: linux-router/", "cost.to: "),
        (RATIO_TO, "\n    ratio: {profile: short-lifed, to: ", 'ratio.profile: "short-lifed" is not a profile'),
        (RATIO_TO, "\n    ratio: {profile: udp-64-10k, to: ", "ratio.profile: udp-64-10k is a profile of packets"),
        ("\n  short-lived:", "\n  short-lifed:", 'short-lifed: "short-lifed" is not a profile'),
        ("\novs-dpdk/forward", "\novs-dpkd/forward", 'mine.yaml: ovs-dpkd/forward/1cpu-1rxq: "ovs-dpkd" is not a kind'),
    ],
)
def test_a_name_in_an_sla_that_stands_for_nothing(tmp_path: Path, before: str, after: str, where: str) -> None:
    assert before in STOCK_SLA
    assert where in mistake(tmp_path, sla=STOCK_SLA.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("  http-600:", "  htpp-600:", 'own.yaml: loads.htpp-600: "htpp-600" is not a profile'),
        (": long-lived-short}", ": long-short}", 'own.yaml: profiles.long-lived: "long-short" is not a profile'),
    ],
)
def test_a_misspelt_profile_in_a_campaign(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in STOCK_CAMPAIGN
    assert mistake(tmp_path, campaign=STOCK_CAMPAIGN.replace(before, after)).startswith(said)


def suite(tmp_path: Path, row: str) -> TestSuite:
    file = tmp_path / "own.robot"
    resource = ROOT / "resources" / "testbed.resource"
    file.write_text(f"*** Settings ***\nResource    {resource}\n*** Test Cases ***\nMine\n    {row}\n")
    return TestSuiteBuilder().build(file)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("ovs-dpkd    conntrack    1    1    short-lived", '"ovs-dpkd" is not a kind of DUT'),
        ("ovs-dpdk    contrack    1    1    short-lived", '"contrack" is not a ruleset'),
        ("ovs-dpdk    conntrack    1    1    short-lifed", "short-lifed.yaml: no such file"),
        ("ovs-dpdk    conntrack    0    1    short-lived", "cpus is"),
    ],
)
def test_a_name_in_a_row_that_stands_for_nothing(tmp_path: Path, row: str, what: str) -> None:
    floors, campaign = load("sla", "local", Floors), load("campaigns", "quick", Campaign)
    with pytest.raises(ConfigError) as error:
        check_references(floors, campaign, named(suite(tmp_path, f"Connection Rate Should Meet SLA    {row}")))
    assert what in str(error.value)
    assert "own.robot: Mine: " in str(error.value)


def test_what_ships_and_what_is_known_only_when_it_runs_stands_for_something(tmp_path: Path) -> None:
    stock = named(TestSuiteBuilder().build(SUITES))
    own = named(suite(tmp_path, "Connection Rate Should Meet SLA    ${KIND}    conntrack    1    1    short-lived"))
    assert own == []
    slas = ("local", "published-2022", "published-2019", "published-2017")
    campaigns = ("quick", "gate", "characterise", "published", "tables", "night", "rfc2544")
    # A name stands for something in one file whatever the other says.
    for sla, campaign in zip_longest(slas, campaigns, fillvalue="local"):
        check_references(load("sla", sla, Floors), load("campaigns", campaign, Campaign), stock)

"""A name that stands for nothing is found before the first trial, with the file and the key."""

from itertools import zip_longest
from pathlib import Path

import pytest
from robot.running import TestSuite, TestSuiteBuilder

from ConntrackSLA.check_promises import problems_of_own
from ConntrackSLA.rows import named, own_variables, row_of
from ctbench.base import paths
from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT, SUITES
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.run.settings import check_references
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import load_profile

OWN = ROOT / "tests" / "data" / "own_suites" / "elsewhere"
STOCK_SLA = (ROOT / "variables/sla/local.yaml").read_text()
STOCK_CAMPAIGN = (ROOT / "variables/campaigns/quick.yaml").read_text()
TO_CONNTRACK, RATIO_TO = "to: ovs-dpdk/conntrack/1cpu-1rxq", "\n    ratio: {to: "


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder whose files are for all suites, as those below variables/ are."""
    monkeypatch.setattr(paths, "VARIABLES", tmp_path)
    return tmp_path


def mistake(tmp_path: Path, *, sla: str = STOCK_SLA, campaign: str = STOCK_CAMPAIGN) -> str:
    (tmp_path / "mine.yaml").write_text(sla)
    (tmp_path / "own.yaml").write_text(campaign)
    floors, own = load("sla", tmp_path / "mine.yaml", Floors), load("campaigns", tmp_path / "own.yaml", Campaign)
    with pytest.raises(ConfigError) as error:
        check_references(floors, own, [("", Topology(), load_profile(OWN / "our-mix.yaml"))])
    return str(error.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        (TO_CONNTRACK, "to: ovs-dpdk/nosuch/1cpu-1rxq", "mine.yaml: ovs-dpdk/forward/1cpu-1rxq.s"),
        (TO_CONNTRACK, "to: vpp/conntrack/1cpu-1rxq", 'ratio.to: "vpp" is not a kind of DUT'),
        (TO_CONNTRACK, "to: emulated/forward/1cpu-1rxq", "ratio.to: emulated/forward/1cpu-1rxq"),
        ("\n    cost: {to: emulated/", "\n    cost: {to: linux-router/", "cost.to: "),
        (RATIO_TO, "\n    ratio: {profile: our-mix, to: ", 'ratio.profile: "our-mix" is not a profile'),
        (RATIO_TO, "\n    ratio: {profile: short-lifed, to: ", 'ratio.profile: "short-lifed" is not a profile'),
        (RATIO_TO, "\n    ratio: {profile: udp-64-10k, to: ", "ratio.profile: udp-64-10k is a profile of packets"),
        ("\n  short-lived:", "\n  short-lifed:", 'short-lifed: "short-lifed" is not a profile'),
        ("\novs-dpdk/forward", "\novs-dpkd/forward", 'mine.yaml: ovs-dpkd/forward/1cpu-1rxq: "ovs-dpkd" is not a kind'),
    ],
)
def test_a_name_in_an_sla_that_stands_for_nothing(shared: Path, before: str, after: str, where: str) -> None:
    assert before in STOCK_SLA
    assert where in mistake(shared, sla=STOCK_SLA.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("  http-600:", "  htpp-600:", 'own.yaml: loads.htpp-600: "htpp-600" is not a profile'),
        (": long-lived-short}", ": our-mix}", 'own.yaml: profiles.long-lived: "our-mix" is not a profile'),
        (": long-lived-short}", ": long-short}", 'own.yaml: profiles.long-lived: "long-short" is not a profile'),
    ],
)
def test_a_misspelt_profile_in_a_campaign(shared: Path, before: str, after: str, said: str) -> None:
    assert before in STOCK_CAMPAIGN
    assert mistake(shared, campaign=STOCK_CAMPAIGN.replace(before, after)).startswith(said)


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
        ("ovs-dpdk    conntrack    1    1    ~nouser/mix.yaml", "no such file"),
        ("ovs-dpdk    conntrack    0    1    short-lived", "cpus is"),
        (
            "linux-router    iptables-snat    1    1    short-lived    emc_insert_inv_prob=0",
            "not an option of Linux router",
        ),
        ("linux-router    forward    1    1    short-lived    timeout_s=5", "forward tracks nothing"),
        ("linux-bridge    forward    1    1    short-lived    max_connections=5", "not an option of Linux bridge"),
        ("emulated    forward    1    1    short-lived    mtu=9000", "not an option of Emulated machine"),
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


OURS = """name: mine
description: ours
source: ours
linux-router/nftables-notyet/1cpu-1rxq:
  their-mix: {pps: ">= 300k"}
linux-router/nftables-stateful/1cpu-1rxq:
  udp-64-10k: {ratio: {to: linux-router/forward/1cpu-1rxq, rate: ">= 60%"}}
"""
IN_LOADS = STOCK_CAMPAIGN.replace("  http-600:", "  their-mix:")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "", ""),  # of rows that are not selected, or known when they run
        ("linux-router/nftables-notyet", "linux-ruoter/nftables-notyet", '"linux-ruoter" is not a kind of DUT'),
        ("to: linux-router/forward", "to: linux-router/froward", 'ratio.to: "froward" is not a ruleset'),
    ],
)
def test_a_file_of_ones_own_may_name_what_this_run_does_not_have_and_its_rows_are_checked(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    row = ("", Topology(datapath="linux-router", ruleset="nftables-stateful"), load_profile("udp-64-10k"))
    (tmp_path / "mine.yaml").write_text(OURS.replace(before, after))
    (tmp_path / "own.yaml").write_text(IN_LOADS)
    floors, campaign = load("sla", tmp_path / "mine.yaml", Floors), load("campaigns", tmp_path / "own.yaml", Campaign)
    try:
        check_references(floors, campaign, [row])
    except ConfigError as error:
        assert said and said in str(error)
    else:
        assert not said


def test_the_check_of_promises_finds_what_is_misspelt_in_files_of_ones_own(tmp_path: Path) -> None:
    row = "Packet Rate Should Meet SLA    linux-router    nftables-stateful    1    1    udp-64-10k"
    opened = (
        "Run Keywords    Log    hi    AND    Use The Testbed    sla=${CURDIR}/mine.yaml    campaign=${CURDIR}/own.yaml"
    )
    head = f"*** Settings ***\nLibrary    ConntrackSLA\nSuite Setup    {opened}\n"
    for name, text in (
        ("__init__.robot", head),
        (
            "a.robot",
            f"*** Settings ***\nLibrary    ConntrackSLA\nSuite Setup    Log    hi\n*** Test Cases ***\nA\n    {row}\n",
        ),
        ("mine.yaml", OURS.replace("to: linux-router/forward", "to: linux-router/froward")),
        ("own.yaml", IN_LOADS),
    ):
        (tmp_path / name).write_text(text)
    floor, ratio, load_of = problems_of_own([tmp_path])
    assert "linux-router/nftables-notyet/1cpu-1rxq.their-mix: no row" in floor
    assert 'ratio.to: "froward" is not a ruleset' in ratio
    assert 'loads.their-mix: "their-mix" is not a profile' in load_of


@pytest.mark.parametrize("given", ["%{NOT SET=udp-64-10k}", "@{LAST}", "@{LAST}    &{OPTIONS}", "${LAST}[0]"])
def test_a_row_is_read_with_whatever_kind_of_variable_it_has(tmp_path: Path, given: str) -> None:
    test = suite(tmp_path, f"Packet Rate Should Meet SLA    linux-router    forward    1    1    {given}").tests[0]
    variables = own_variables(test.parent)
    variables["@{LAST}"], variables["&{OPTIONS}"] = ["udp-64-10k"], {"mtu": "9000"}
    assert row_of(test) is None, "known when it runs"
    row = row_of(test, variables.replace_scalar)
    assert row and (row.profile.name, row.topology.mtu) == ("udp-64-10k", 9000 if "OPT" in given else 1500)


@pytest.mark.parametrize(
    ("name", "like"),
    [("as-read-before", "short-lived"), ("udp-64-10k", "udp-imix-10k")],
)
def test_a_profile_with_the_name_of_another_one_is_refused_and_a_copy_of_it_is_not(
    tmp_path: Path, name: str, like: str
) -> None:
    text = f"name: {name}\ndescription: x\nlike: "
    for path, kind in (("a.yaml", "udp-64-10k"), ("b.yaml", like), ("copy.yaml", "udp-64-10k")):
        (tmp_path / path).write_text(text + kind)
    if name != "udp-64-10k":
        assert load_profile(tmp_path / "a.yaml") == load_profile(tmp_path / "copy.yaml")
    with pytest.raises(ConfigError, match=f'b.yaml: name: "{name}" is the name of .*\\.yaml'):
        load_profile(tmp_path / "b.yaml")

"""Releases of TRex that are known to be broken: what is said of them, and that the page for users has them all."""

import re

import pytest

from ctbench.base.paths import ROOT
from ctbench.traffic.trex.releases import E810, FAULTS, I40E, Fault, SetUp, judge

NUMBERS = re.compile(r"\d+")


def test_a_fault_is_told_with_its_mode_its_conditions_and_its_source() -> None:
    found = judge("v3.08", SetUp(cards=I40E.numbers, software=True)).found
    assert found == (
        "v3.08 takes no frames on its server port in ASTF with --software on X710, XXV710, XL710 or X722 (i40e) "
        "(trex-core issue 1221)"
    )


@pytest.mark.parametrize(
    ("setup", "met"),
    [
        (SetUp({"8086:1572"}, software=True), True),
        (SetUp({"8086:1572", "15b3:1017"}, software=True), True),  # one of two ports is enough
        (SetUp({"15b3:1017"}, software=True), False),
        (SetUp(set(), software=True), False),  # virtual ports
        (SetUp({"8086:1572"}, software=False), False),
        (SetUp(None, software=False), False),
        (SetUp({"15b3:1017"}, software=None), False),
        (SetUp(None, software=True), None),
        (SetUp({"8086:1572"}, software=None), None),
    ],
)
def test_a_fault_is_met_where_all_its_conditions_are_and_unknown_where_one_is(setup: SetUp, met: bool | None) -> None:
    assert FAULTS[0].is_met(setup) is met


def test_the_word_of_one_user_is_passed_on_and_not_judged() -> None:
    finding = judge("v3.05", SetUp(E810.numbers, software=False))
    assert (finding.state, finding.remedy) == ("unknown", "use TRex v3.03, or v3.07 or newer")
    assert "whether this testbed meets that is not known" in finding.found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.source)
def test_the_page_of_trex_has_each_fault_with_its_releases_and_its_source(fault: Fault) -> None:
    rows = (ROOT / "docs/trex.md").read_text().splitlines()
    named = {fault.releases[0], fault.releases[-1], *NUMBERS.findall(fault.source)}
    assert any(row.startswith("|") and all(name in row for name in named) for row in rows)

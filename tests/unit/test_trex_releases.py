"""Releases of TRex that are known to be broken: what is said of them, and that the page for users has them all."""

import re

import pytest

from ctbench.base.paths import ROOT
from ctbench.traffic.trex.releases import FAULTS, Fault, judge

NUMBERS = re.compile(r"\d+")


@pytest.mark.parametrize(
    ("cards", "software", "met"),
    [
        ({"8086:1572"}, True, True),
        ({"8086:1572", "15b3:1017"}, True, True),  # one of two ports is enough
        ({"15b3:1017"}, True, False),
        (set(), True, False),  # virtual ports
        ({"8086:1572"}, False, False),
        (None, False, False),
        ({"15b3:1017"}, None, False),
        (None, True, None),
        ({"8086:1572"}, None, None),
    ],
)
def test_a_fault_is_met_where_all_its_conditions_are_and_unknown_where_one_is(
    cards: set[str] | None, software: bool | None, met: bool | None
) -> None:
    found = judge("v3.08", cards, software)
    assert found.state == {True: "bad", False: "ok", None: "unknown"}[met]
    if met is not False:
        assert "in ASTF with --software on X710" in found.found and "(trex-core issue 1221)" in found.found


def test_the_word_of_one_user_is_passed_on_and_not_judged() -> None:
    finding = judge("v3.05", {"8086:1592"}, software=False)
    assert (finding.state, finding.remedy) == ("unknown", "use TRex v3.03, or v3.07 or newer")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.source)
def test_the_page_of_trex_has_each_fault_with_its_releases_and_its_source(fault: Fault) -> None:
    rows = (ROOT / "docs/trex.md").read_text().splitlines()
    named = {fault.releases[0], fault.releases[-1], *NUMBERS.findall(fault.source)}
    assert any(row.startswith("|") and all(name in row for name in named) for row in rows)

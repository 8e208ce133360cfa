"""The stock SLA and the table that says where its ratios are from and what they notice: one cannot change alone."""

import re

import pytest

from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES
from ctbench.results.metrics import METRICS
from ctbench.sla.floors import Floors

STOCK = load("sla", "local", Floors)
PUBLISHED = load("sla", "published-2022", Floors)
#: A promise that this much of a regression passes unnoticed is a smoke test.
SMOKE = 0.30
#: A ratio, or the least and the most of several.
_PERCENT = re.compile(r"([0-9]+)(?: %| to)")


#: What is promised of the control plane: times, and what becomes of the load meanwhile.
OF_CONTROL = {
    name
    for promise in PROMISES.values()
    if promise.about == "control plane" and promise.procedure
    for name in promise.procedure.found_out
} - {"held_connections"}


def table(page: str = "floors.md") -> list[list[str]]:
    text = (ROOT / "docs" / "evidence" / page).read_text().partition("## Ratios")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]


def ratios() -> dict[tuple[str, str], tuple[str, float, bool]]:
    return {
        (key, profile): (
            entry.ratio.to
            + (f" with {entry.ratio.profile}" if entry.ratio.profile else "")
            + (" per CPU" if entry.ratio.per else ""),
            entry.ratio.rate.limit,
            entry.ratio.smoke,
        )
        for key, entries in STOCK.floors.items()
        for profile, entry in entries.items()
        if entry.ratio
    }


def test_the_table_has_every_ratio_of_the_stock_sla_with_its_floor_and_its_kind() -> None:
    told = {
        (key, profile): (to, float(floor.strip(">= %")) / 100, kind == "smoke test")
        for key, profile, to, _a, _b, _c, _p, floor, _catches, kind in table()
    }
    assert told == ratios()


def test_what_a_ratio_notices_follows_from_the_largest_that_is_known() -> None:
    for key, profile, _to, a, b, c, published, floor, catches, kind in table():
        known = [float(found) for cell in (a, b, c, published) for found in _PERCENT.findall(cell)]
        assert known, f"{key} {profile}: no ratio is known, so nothing says what it notices"
        least = float(floor.strip(">= %"))
        assert least < min(known), f"{key} {profile}: the floor is above a ratio that was measured"
        noticed = 1 - least / max(known)
        assert float(catches.strip(" %")) / 100 == pytest.approx(noticed, abs=0.006), f"{key} {profile}"
        assert (kind == "smoke test") == (noticed > SMOKE), f"{key} {profile}: {noticed:.0%} pass unnoticed"


def test_every_relative_cost_has_its_evidence_and_room_for_a_minor_update_of_the_kernel() -> None:
    costs = {
        (key, profile): (entry.cost.to, entry.cost.instructions.limit)
        for key, entries in STOCK.floors.items()
        for profile, entry in entries.items()
        if entry.cost
    }
    told = {}
    for key, profile, to, stock, earlier, _other, floor in table("emulated.md"):
        told[key, profile] = to, float(floor.strip("<= %")) / 100
        known = [float(found) for found in re.findall(r"[0-9.]+", stock + earlier)]
        margin = float(floor.strip("<= %")) / max(known) - 1
        assert 0.03 < margin < 0.3, f"{key} {profile}: {margin:.1%}"
    assert told == costs


def test_every_row_has_a_ratio_but_where_the_generator_is_the_limit_and_every_rate_is_a_smoke_test() -> None:
    for key, entries in STOCK.floors.items():
        for profile, entry in entries.items():
            rates = entry.rates - {"mutex_share"}  # a share of time holds anywhere
            if entry.rates and entry.rates <= OF_CONTROL and not entry.ratio:
                assert entry.smoke, f"{key} {profile}"
                continue
            large = profile in ("udp-1518-10k", "udp-9018") and key.startswith("ovs-dpdk/")
            if any(METRICS[name].of_table for name in entry.thresholds):
                continue  # counts and timeouts hold anywhere
            fast = (key, profile) == ("ovs-dpdk/conntrack/1cpu-1rxq", "short-lived")  # its base, forwarding, is
            mobile = profile == "mobile"  # a rate with so many flows open, which no turns of milliseconds hold
            assert entry.ratio or entry.cost or key.startswith("cable/") or large or fast or mobile, f"{key} {profile}"
            assert entry.smoke == bool(rates), f"{key} {profile}"
            if rates and not key.startswith("cable/") and not large and not mobile:
                assert profile == "short-lived" and key.startswith("ovs-dpdk/conntrack/")


def test_what_is_compared_with_can_be_set_up_with_the_same_ports() -> None:
    for (key, _profile), (to, _limit, _smoke) in ratios().items():
        tested, other = Topology.parse(key), Topology.parse(to.partition(" ")[0])
        assert tested.cpus >= other.cpus and tested.mtu == other.mtu


def test_the_stock_sla_is_bound_to_no_machine_and_the_published_one_to_that_of_the_article() -> None:
    assert STOCK.machine is None and STOCK.of_build is not None and STOCK.of_build.base == "distribution"
    assert PUBLISHED.machine is not None and PUBLISHED.machine.cpu_model == "Gold 5118"
    assert not any(entry.ratio or entry.smoke for entries in PUBLISHED.floors.values() for entry in entries.values())

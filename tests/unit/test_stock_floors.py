"""The stock SLA and the table that says where its ratios are from and what they notice: one cannot change alone."""

import re

import pytest
import yaml

from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES
from ctbench.results.metrics import METRICS
from ctbench.sla.floors import Floors
from ctbench.sla.travelling import EVIDENCE, rewritten
from ctbench.sla.travelling import STOCK as SLA_FILE

STOCK = load("sla", "local", Floors)
PUBLISHED = load("sla", "published-2022", Floors)
#: A promise that this much of a regression passes unnoticed is a smoke test.
SMOKE = 0.30


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


def ratios() -> dict[tuple[str, str], tuple[str, float | None, bool]]:
    return {
        (key, profile): (
            entry.ratio.to
            + (f" with {entry.ratio.profile}" if entry.ratio.profile else "")
            + (" per CPU" if entry.ratio.per else ""),
            entry.ratio.rate.limit if entry.ratio.rate else None,
            entry.ratio.smoke,
        )
        for key, entries in STOCK.floors.items()
        for profile, entry in entries.items()
        if entry.ratio
    }


def test_the_table_has_every_ratio_of_the_stock_sla_with_its_floor_and_its_kind() -> None:
    told = {}
    for key, profile, to, _a, _b, _c, _p, floor, catches, kind in table():
        told[key, profile] = to, float(floor.strip(">= %")) / 100 if catches else None, bool(kind)
        assert bool(kind) == (bool(catches) and float(catches.strip(" %")) / 100 > SMOKE), f"{key} {profile}"
    assert told == ratios()


def test_the_floors_are_what_follows_from_the_figures_of_two_machines_or_more() -> None:
    evidence, stock = (path.read_text() for path in (EVIDENCE, SLA_FILE))
    assert rewritten(evidence, stock) == (evidence, stock), "run python -m ctbench.sla.travelling (docs/adding.md)"
    # A machine that reached less lowers the floor below what it reached; what one machine knows has none.
    row = "| linux-router/nftables-snat/1cpu-1rxq | udp-64-10k | linux-router/iptables-snat/1cpu-1rxq | "
    cells, limits = "106 % | 99 to 103 % | 106 % |", []
    for other in ("80 % | 99 to 103 % | 106 % |", "guess: 106 % | 99 to 103 % | guess: 106 % |"):
        assert row + cells in evidence
        made = yaml.safe_load(rewritten(evidence.replace(row + cells, row + other), stock)[1])
        limits.append(made["linux-router/nftables-snat/1cpu-1rxq"]["udp-64-10k"]["ratio"].get("rate"))
    assert 70 < int(limits[0].strip(">= %")) < 80 and limits[1] is None


def test_every_relative_cost_has_its_evidence_and_room_for_a_minor_update_of_the_kernel() -> None:
    costs = {
        (key, profile): (entry.cost.to, entry.cost.threshold.metric.name, entry.cost.threshold.limit)
        for key, entries in STOCK.floors.items()
        for profile, entry in entries.items()
        if entry.cost
    }
    told = {}
    for key, profile, to, stock, earlier, _other, floor in table("emulated.md"):
        added, most = floor.startswith("added"), float(re.findall(r"[0-9.]+", floor)[0])
        told[key, profile] = to, "added_cost" if added else "relative_cost", pytest.approx(most / 100)
        known = [float(found) - 100 * added for found in re.findall(r"[0-9.]+", stock + earlier)]
        margin = most / max(known) - 1
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

"""The files that ship: all can be read, and promise what was published; the stock SLA and the table that says where its
ratios are from and what they notice: one cannot change alone."""

import csv
import re
from dataclasses import replace
from functools import cache
from ipaddress import IPv4Address

import pytest
import yaml
from pydantic import BaseModel
from robot import running

from ConntrackSLA.rows import rows
from ctbench.base.errors import ConfigError, ExitStatus, NoFloorYet
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load, names
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.promises import PROMISES
from ctbench.results.environment import MachineFacts
from ctbench.results.evidence import Evidence, LookRecord, PairRecord, SideRecord
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import by_interval
from ctbench.run.measurement import plan
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from tools.floors import EVIDENCE, left_out, rewritten, with_runs
from tools.floors import STOCK as SLA_FILE
from tools.floors import main as floors_tool

from .simulated import found_packets, judged, made_up_packet_floor, made_up_record, outcome_of

KINDS: dict[str, type[BaseModel]] = {"campaigns": Campaign, "sla": Floors, "testbeds": TestbedConfig}

#: OVS 3.0.0, tables 4 to 17 of the 2022 article; more queues on one CPU take the figures of one queue.
with (ROOT / "docs" / "evidence" / "published-2022.csv").open(encoding="utf-8", newline="") as file:
    TABLES = [row for row in csv.DictReader(file) if (row["release"], row["ruleset"]) == ("3.0.0", "conntrack")]
PUBLISHED = [(Topology(cpus=int(row["CPUs"]), rx_queues=int(row["queues"])), row) for row in TABLES]
PUBLISHED += [(Topology(rx_queues=queues), row) for row in TABLES[:2] for queues in (2, 4, 8)]
STOCK = load("sla", "local", Floors)
ARTICLE = load("sla", "published-2022", Floors)
#: The table of ratios and the stock SLA as they are written.
FIGURES, FLOORS = (path.read_text() for path in (EVIDENCE, SLA_FILE))


@cache
def profile(name: str) -> ConnectionProfile:
    return load("profiles", name, ConnectionProfile)


@cache
def campaign(name: str) -> Campaign:
    return load("campaigns", name, Campaign)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in (*KINDS, "profiles") for name in names(kind)])
def test_every_file_that_ships_can_be_read(kind: str, name: str) -> None:
    read = load(kind, name, KINDS[kind]) if kind in KINDS else load_profile(name)
    assert read.name == name  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "messages", "wait"), [("short-lived", 1, 0), ("long-lived", 500, 50)])
def test_the_published_profiles_have_the_published_parameters(name: str, messages: int, wait: int) -> None:
    ours = profile(name)
    assert (ours.messages, ours.server_wait_ms, ours.udp_percent) == (messages, wait, 1)
    assert (ours.request_bytes, ours.reply_bytes, ours.tcp_port, ours.udp_port) == (20, 20, 8080, 5353)
    assert str(IPv4Address(ours.client_ip) + ours.client_ips - 1) == "16.0.255.255"
    assert str(IPv4Address(ours.server_ip) + ours.server_ips - 1) == "48.0.0.255"
    assert (ours.client_ip, ours.server_ip) == ("16.0.0.0", "48.0.0.0")


@pytest.mark.parametrize(("topology", "row"), PUBLISHED)
def test_the_floors_with_conntrack_are_the_published_figures(topology: Topology, row: dict[str, str]) -> None:
    offered, short = profile(row["profile"]), row["profile"] == "short-lived"
    cps, pps = float(row["connections/s"]), float(row["packets/s"])
    floor = ARTICLE.find(topology, offered)
    assert (floor.limit("cps"), floor.limit("pps"), floor.thresholds["cps"].bound_to) == (cps, pps, "Gold 5118")
    assert floor.conditions({"loss_ratio": 1}) == {"loss_ratio": 0.0002}
    if topology.cpus > 1 and not short:
        with pytest.raises(NoFloorYet):
            STOCK.find(topology, offered)
        return
    # The stock SLA shows them all, and promises those of short-lived connections as a smoke test.
    shown = STOCK.find(topology, offered)
    assert shown.reference is not None and shown.reference.figures == {"cps": cps, "pps": pps}
    rates = [(each.limit, each.smoke) for each in shown.thresholds.values() if each.metric == "cps"]
    assert rates == ([(cps, True)] if short else [])


def test_the_published_campaign_is_the_procedure_of_2022() -> None:
    ours = campaign("published")
    for name, duration, lo, hi in (("short-lived", 30, 1_000, 100_000), ("long-lived", 120, 500, 2_000)):
        search, where = ours.search_for(profile(name)), ours.load_range(profile(name))
        assert (search.trial_duration, search.max_iterations, search.middle) == (duration, 8, "arithmetic")
        assert (search.relative_width, search.final_duration) == (None, duration)
        assert (where.min, where.max) == (lo, hi)
    assert ours.loss_ratio == 0.0002


def test_the_gate_offers_enough_for_the_floors_that_ship() -> None:
    headroom = campaign("gate").floor_trials(profile("short-lived")).headroom
    for name in ("short-lived", "long-lived"):
        floor = ARTICLE.find(Topology(), profile(name))
        packets = floor.load(headroom) * profile(name).packets_each
        assert packets * (1 - floor.conditions({"loss_ratio": 1})["loss_ratio"]) > (floor.limit("pps") or 0.0) > 0


#: All rows of all suites but those over the cable, by name.
ROWS = {
    row.test.name: row
    for row in rows(running.TestSuite.from_file_system(ROOT / "suites"))
    if row.topology.datapath != CABLE.datapath
}


#: Those that promise a rate: instructions, and entries of the table, are counted without one.
OF_RATES = {name: row for name, row in ROWS.items() if row.promise.about == "rate"}


def test_the_quick_campaign_is_planned_for_less_than_seven_minutes_on_two_cpus() -> None:
    # Setting a topology up takes about 1 s, a pair 2 s, a trial 0.6 s besides its traffic. Floors are so far
    # away that the trial of the search confirms them. Bonds and the VLANs of Linux are skipped.
    quick = campaign("quick")
    total = 0.0
    for row in OF_RATES.values():
        offered = load_profile(quick.profile_for(row.profile.name))
        linux = row.topology.datapath != "ovs-dpdk"
        left_out = set(quick.skips) & set(row.test.tags)
        if left_out or row.topology.cpus > 1 or (linux and row.topology.ports != "plain"):
            continue
        try:
            floor = STOCK.find(row.topology, offered)
        except NoFloorYet:
            continue
        planned = plan(row.promise, quick, row.topology, offered)
        steps = [Pair() if floor.relative_to else planned.first, planned.main]
        total += (2 if floor.relative_to else 1) + sum(each.expected_s(offered, quick) + 0.6 for each in steps)
    # 40 s, and 10.5 s to fill the table. A search of the gate would take longer than what it compares.
    sustained = [row for row in ROWS.values() if row.promise.name == "sustained rate"]
    rows = [row for row in sustained if not set(quick.skips) & set(row.test.tags)]
    total += len(rows) * (1 + quick.table.sustained) * (40 + 10.5 + 0.6)
    assert rows and quick.table.sustained and not campaign("gate").table.sustained
    assert total < 7 * 60


#: A promise that this much of a regression passes unnoticed is a smoke test.
SMOKE = 0.30


#: What is promised of the control plane: times, and what becomes of the load meanwhile.
OF_CONTROL = {
    name
    for promise in PROMISES.values()
    if promise.about == "control plane" and promise.procedure
    for name in promise.procedure.found_out
} - {"held_connections"}


def table(name: str = "floors") -> list[list[str]]:
    with (ROOT / "docs" / "evidence" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


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
    # One that nobody has measured yet has no floor, and needs no line.
    known = {place: ratio for place, ratio in ratios().items() if place in told or ratio[1] is not None}
    assert told == known


def test_the_floors_are_what_follows_from_the_figures_of_two_machines_or_more() -> None:
    assert rewritten(FIGURES, FLOORS) == (FIGURES, FLOORS), "python -m tools.floors --write (docs/adding.md)"
    # A machine that reached less lowers the floor below what it reached; what one machine knows has none.
    row = "linux-router/nftables-snat/1cpu-1rxq,udp-64-10k,linux-router/iptables-snat/1cpu-1rxq,"
    (line,), limits = [each for each in FIGURES.splitlines() if each.startswith(row)], []
    for cells in ("80 %,99 to 103 %,106 %,", "guess: 106 %,99 to 103 %,guess: 106 %,"):
        made = yaml.safe_load(rewritten(FIGURES.replace(line, row + cells + ",,,"), FLOORS)[1])
        limits.append(made["linux-router/nftables-snat/1cpu-1rxq"]["udp-64-10k"]["ratio"].get("rate"))
    assert 70 < int(limits[0].strip(">= %")) < 80 and limits[1] is None


def test_the_range_of_a_machine_grows_by_its_runs_where_a_ratio_is_outside_of_it() -> None:
    head = "topology,profile,compared with,machine A,machine B,machine C,published,floor,catches,kind\n"
    row = "linux-router/iptables-stateful/1cpu-1rxq,short-lived,linux-router/forward/1cpu-1rxq,62 %,{},63 %,,,,\n"
    sides = [SideRecord(key=key) for key in row.split(",")[0:3:2]]

    def run(ratio: float) -> Record:
        look = LookRecord(value=ratio, low=ratio, high=ratio, rounds=16)
        pair = PairRecord(tested=sides[0], other=sides[1], how="side by side", ratios=[ratio], looks=[look])
        made = made_up_record(evidence=Evidence(trials=[], pairs=[pair]))
        return made.model_copy(update={"floor": made.floor.model_copy(update={"profile": "short-lived"})})

    for before, ratios, after in (
        ("66 to 70 %", [0.651, 0.68], "65 to 70 %"),
        ("", [0.7], "70 %"),
        ("guess: 66 %", [0.7], "70 %"),
    ):
        assert with_runs(head + row.format(before), "B", [*map(run, ratios)]) == head + row.format(after)


def test_runs_of_another_kind_of_cpu_are_not_taken_for_a_machine_and_those_of_a_new_one_name_its_kind() -> None:
    made = made_up_record()

    def run(kind: str) -> Record:
        facts = made.environment.machine.model_copy(update={"cpu_kind": kind})
        return made.model_copy(update={"environment": made.environment.model_copy(update={"machine": facts})})

    zen_3, old = run("AuthenticAMD family 25 model 1"), run("")
    assert with_runs(FIGURES, "B", [old]) == FIGURES
    with pytest.raises(ConfigError, match="kinds of CPU: AuthenticAMD family 25 model 1, AuthenticAMD family 26"):
        with_runs(FIGURES, "B", [old, zen_3])
    named = with_runs(FIGURES, "C", [zen_3])
    known = yaml.safe_load(rewritten(named, FLOORS)[1])["known_kinds"]
    assert known == [*STOCK.known_kinds, "AuthenticAMD family 25 model 1"]


def words_of(leasts: list[tuple[int, int]], known_kinds: list[str], *, before: bool = False) -> list[str]:
    """The verdicts on ratios that another kind of machine measured, each with its floor."""
    words = []
    for least, limit in leasts:
        floor = made_up_packet_floor(share=f">= {limit}%")
        only = replace(floor, thresholds={"ratio": floor.thresholds["ratio"]}, known_kinds=tuple(known_kinds))
        share = Estimate(least / 100, "ratio", low=least / 100, high=least / 100)
        decided = by_interval(METRICS["ratio"], share, limit / 100, "pairs")
        outcome = replace(outcome_of(found_packets(1e6)), figures={"ratio": share}, verdicts=decided)
        machine = MachineFacts(cpu_kind="a kind left out")
        words.append(judged(outcome, only, machine=machine, broken_before=lambda _: before).word)
    return words


def test_no_kind_of_machine_is_red_in_its_first_run_by_floors_that_follow_from_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, *rows = csv.reader(EVIDENCE.read_text().splitlines())
    machines = [left_out(rows, column) for column in range(3, 6)]
    assert [words_of(each, STOCK.known_kinds).count("missed") for each in machines] == [0, 0, 0]
    # Without the rule one of three is, and by it in the second run.
    red = [words_of(each, []).count("missed") for each in machines]
    assert sum(red) > 0
    assert words_of(machines[1], STOCK.known_kinds, before=True) == words_of(machines[1], [])
    assert all(len(each) > 30 for each in machines)
    assert floors_tool(["--left-out"]) == ExitStatus.MET
    said = [f"{count} of {len(each)} floors" for count, each in zip(red, machines, strict=True)]
    assert [line.split(": ")[1].split(" of the")[0] for line in capsys.readouterr().out.splitlines()] == said
    page = (EVIDENCE.parent / "README.md").read_text()
    assert f"{sum(red)} of {sum(map(len, machines))} bounds" in page


def test_a_floor_of_which_no_machine_knows_is_a_mistake_and_one_without_a_rate_waits() -> None:
    row = "linux-router/iptables-mine/1cpu-1rxq:\n  short-lived:\n    ratio: {to: linux-router/forward/1cpu-1rxq%s}\n"
    waits = FLOORS + row % ""
    assert rewritten(FIGURES, waits)[1] == waits
    with pytest.raises(ConfigError, match=r"iptables-mine/1cpu-1rxq.short-lived.ratio.rate"):
        rewritten(FIGURES, FLOORS + row % ', rate: ">= 80%"')


def test_every_relative_cost_has_its_evidence_and_room_for_a_minor_update_of_the_kernel() -> None:
    costs = {
        (key, profile): (entry.cost.to, promised.metric, promised.limit)
        for key, entries in STOCK.floors.items()
        for profile, entry in entries.items()
        if entry.cost and (promised := entry.cost.threshold(key))
    }
    told = {}
    for key, profile, to, stock, earlier, _other, floor in table("emulated-ratios"):
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
            large |= profile.startswith("udp-fragments")  # two to four frames a packet
            if any(METRICS[name].of_table for name in entry.thresholds):
                continue  # counts and timeouts hold anywhere
            fast = (key, profile) == ("ovs-dpdk/conntrack/1cpu-1rxq", "short-lived")  # its base, forwarding, is
            mobile = profile == "mobile"  # a rate with so many flows open, which no turns of milliseconds hold
            assert entry.ratio or entry.cost or key.startswith("cable/") or large or fast or mobile, f"{key} {profile}"
            assert entry.smoke == bool(rates), f"{key} {profile}"
            if rates and not key.startswith("cable/") and not large and not mobile:
                assert profile == "short-lived" and key.startswith("ovs-dpdk/conntrack/")


def test_what_is_compared_with_can_be_set_up_and_only_the_published_sla_is_bound() -> None:
    for (key, _profile), (to, _limit, _smoke) in ratios().items():
        tested, other = Topology.parse(key), Topology.parse(to.partition(" ")[0])
        assert tested.cpus >= other.cpus and tested.mtu == other.mtu
    assert STOCK.machine is None and STOCK.of_build is not None and STOCK.of_build.base == "distribution"
    assert ARTICLE.machine is not None and ARTICLE.machine.cpu_model == "Gold 5118"
    assert not any(entry.ratio or entry.smoke for entries in ARTICLE.floors.values() for entry in entries.values())

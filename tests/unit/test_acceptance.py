"""The acceptance run on a simulated testbed: what is measured once per run, what is compared, where searches begin, and
what it says meanwhile."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import ConfigError, MissingResource, OutputError, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Outcome
from ctbench.measure.promises import PROMISES
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.results import store
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code
from ctbench.run import acceptance
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.run.testbed_session import TestbedSession
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.loads import Hold, Rate, Saturation

from .simulated import FORWARDING
from .simulated_run import (
    FORWARD,
    GATING,
    OVS,
    SNAT,
    SNAT_KEY,
    SimulatedTestbed,
    campaign,
    floors,
    rate_of,
)
from .table_double import TableDouble


def test_quick_needs_two_trials_where_all_is_well(simulated: SimulatedTestbed) -> None:
    record = simulated.begin(campaign=load("campaigns", "quick", Campaign)).measure(FORWARD)
    assert [made.phase for made in record.evidence.trials] == ["saturation", "final"]
    assert record.verdict == "met"
    assert record.result and (record.result.value, record.result.high) == pytest.approx((340_000, 400_000))
    assert record.limited_by == "dut"


def test_another_sla_and_campaign_judge_what_follows_and_each_campaign_has_one_budget(
    simulated: SimulatedTestbed,
) -> None:
    started = simulated.begin(campaign=load("campaigns", "quick", Campaign))
    run, first = started.run, started.run.settings
    budget = run._repetitions
    strict = floors(**{FORWARDING: {"udp-64-10k": {"pps": ">= 800k"}}})
    other = replace(first, floors=strict, campaign=load("campaigns", "gate", Campaign))
    words = []
    for settings in (first, other, first):
        run.judge_by(settings)
        record = started.measure(FORWARD)
        words.append((record.verdict, record.campaign.name))
        assert (run._repetitions is budget) == (settings is first)
    assert words == [("met", "quick"), ("missed", "gate"), ("met", "quick")]
    assert simulated.applied.count("cable/none/1cpu-1rxq") <= 2  # once more for a floor above the ceiling at most


@pytest.mark.parametrize(("capacity", "kept"), [(400_000.0, True), (60_000.0, False)], ids=["met", "missed"])
def test_what_else_failed_a_test_is_in_its_record_unless_the_verdict_failed_it(
    simulated: SimulatedTestbed, capacity: float, kept: bool
) -> None:
    simulated.capacities = {FORWARDING: capacity}
    started = simulated.begin()
    started.measure(FORWARD)
    started.measure(FORWARD)
    run, output = started.run, started.run.output
    assert not run.note_end("Suite", "Another", "why")
    assert run.note_end("Suite", "Test", "")
    before = [each.record for each in store.read_stored(output)[0]]
    assert run.note_end("Suite", "Test", "1 > 2\nshould be true.")
    stored = [each.record for each in store.read_stored(output)[0]]
    assert [each.failed for each in stored] == [None, "1 > 2 should be true." if kept else None]
    assert [each.failed for each in run.records] == [each.failed for each in stored]
    assert stored[-1].outcome == ("met, failed" if kept else "missed")
    assert stored == before or kept


@pytest.mark.parametrize("name", ["quick", "gate", "night", "characterise", "published"])
@pytest.mark.parametrize("closed_loop", [True, False])
@pytest.mark.parametrize(("capacity", "word"), [(400_000.0, "met"), (60_000.0, "missed")])
def test_every_campaign_comes_to_its_verdict_with_every_generator(
    simulated: SimulatedTestbed, name: str, closed_loop: bool, capacity: float, word: str
) -> None:
    if not closed_loop:
        simulated.offers = frozenset((Rate,))
    simulated.capacities = {FORWARDING: capacity, SNAT_KEY: capacity * 0.7}
    plain = floors(share=None)
    record = simulated.begin(campaign=load("campaigns", name, Campaign), floors=plain).measure(FORWARD)
    assert record.verdict == word, record.verdict_reason
    goal = record.evidence.goal
    assert (goal is not None) == (name in ("night", "characterise") or (name == "quick" and not closed_loop))
    assert goal is None or goal.relevant_lower_bound is not None
    assert ("pdr_pps" in record.figures) == (record.evidence.partial_goal is not None) == (name == "night")


@pytest.mark.parametrize("name", ["quick", "gate"])
def test_a_machine_that_scatters_seldom_gives_a_verdict_that_is_wrong(simulated: SimulatedTestbed, name: str) -> None:
    words: dict[float, list[str]] = {}
    for capacity in (90_000.0, 112_000.0):
        simulated.capacities, simulated.noise = {FORWARDING: capacity}, 0.05
        settings = {"campaign": load("campaigns", name, Campaign), "floors": floors(share=None)}
        words[capacity] = [
            simulated.begin(f"{capacity}-{seed}", **settings).measure(FORWARD).verdict for seed in range(12)
        ]
    assert "met" not in words[90_000.0] and words[90_000.0].count("missed") > 6
    assert "missed" not in words[112_000.0] and words[112_000.0].count("met") > 6


def test_a_missing_floor_is_a_mistake_in_a_file_and_leaves_no_record(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    with pytest.raises(ConfigError, match=r"linux-router/iptables-notrack/2cpu-2rxq\.udp-64-10k: is missing"):
        started.measure(Topology(datapath="linux-router", ruleset="iptables-notrack", cpus=2, rx_queues=2))
    assert started.run.records == []


def test_where_nothing_joins_the_generators_ports_the_ceiling_is_not_known_and_why(simulated: SimulatedTestbed) -> None:
    simulated.errors["cable/none/1cpu-1rxq"] = MissingResource("There is no cable.")
    started = simulated.begin()
    record = started.measure(FORWARD)
    assert (record.verdict, record.evidence.ceiling) == ("met", None)
    assert "The generator's ceiling is not known: There is no cable." in record.notes
    assert any("There is no cable." in line for line in started.said)


def test_a_ceiling_that_no_trial_tells_is_not_known_and_asked_for_twice(
    simulated: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Outcome.nothing(METRICS["pps"], "generator", "others had its CPU")
    asked: list[object] = []
    monkeypatch.setattr(TestbedSession, "_measure_ceiling", lambda *given: asked.append(given) or nothing)
    started = simulated.begin()
    records = [started.measure(FORWARD) for _ in range(3)]
    assert [(each.verdict, each.evidence.ceiling) for each in records] == [("met", None)] * 3 and len(asked) == 2
    assert all(any("ceiling is not known" in note for note in each.notes) for each in records)


def test_no_load_is_offered_that_the_generator_does_not_reach(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.offers = frozenset((Rate,))
    trex = load("testbeds", "local-trex", TestbedConfig)
    slow = trex.model_copy(update={"generator": trex.generator.model_copy(update={"max_pps": 300_000})})
    run = AcceptanceRun(RunSettings(testbed=slow, campaign=campaign(), floors=floors()), tmp_path, lambda _: None)
    record = run.measure(TestName("Suite", "Test"), FORWARD, "udp-64-10k", rate_of("udp-64-10k"))
    assert max(simulated.loads) <= 300_000
    assert record.campaign.model_extra["most"] == {"connections": 80_000, "packets": 300_000}


def test_a_ratio_is_measured_as_a_pair_and_the_rates_of_the_tested_side(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    record = started.measure(SNAT)
    assert simulated.applied == ["cable/none/1cpu-1rxq", f"{SNAT_KEY} next to {FORWARDING}"]
    assert record.verdict == "met"
    assert record.figures["ratio"].value == pytest.approx(0.7, rel=0.01)
    assert record.result and record.result.value == pytest.approx(280_000, rel=0.1)
    (pair,) = record.evidence.pairs
    assert (pair.tested.key, pair.other.key) == (SNAT_KEY, FORWARDING)
    assert (record.procedure, record.metric) == ("highest-rate", "pps")
    # Its slices showed the saturation rate, so no trial was made for that.
    assert record.figures["saturation_pps"].value == pytest.approx(280_000, rel=0.01)
    assert "saturation" not in {made.phase for made in record.evidence.trials}
    assert any("ratio 70.0 %" in line for line in started.said)
    # A test without a ratio is set up although the pair stands there.
    record = started.measure(FORWARD)
    assert simulated.applied == ["cable/none/1cpu-1rxq", f"{SNAT_KEY} next to {FORWARDING}", FORWARDING]
    assert record.topology.key == FORWARDING and record.result and record.result.value > 280_000


def test_a_ratio_to_what_is_lacking_leaves_the_rates_and_to_what_fails_a_name(simulated: SimulatedTestbed) -> None:
    simulated.errors[f"{SNAT_KEY} next to {FORWARDING}"] = MissingResource("There are no bonds here.")
    record = simulated.begin().measure(SNAT)
    assert record.verdict == "not measured"
    assert "There are no bonds here" in record.verdict_reason
    assert record.result and record.result.value == pytest.approx(280_000, rel=0.1)
    assert simulated.applied[-1] == SNAT_KEY
    simulated.errors[f"{SNAT_KEY} next to {FORWARDING}"] = TestbedError("The link broke.")
    record = simulated.begin().measure(SNAT)
    assert record.verdict == "not measured"
    assert record.verdict_reason == f"{SNAT_KEY} could not be set up next to {FORWARDING}: The link broke."


def test_a_gate_decides_a_ratio_by_the_pair_and_the_rate_by_trials_at_it(simulated: SimulatedTestbed) -> None:
    record = simulated.begin(campaign=GATING).measure(SNAT)
    assert record.verdict == "met"
    # 100k are far below what the pair shows, so one trial confirms it.
    assert [made.trial.load for made in record.evidence.trials] == pytest.approx([101_000])
    assert (record.procedure, record.limited_by) == ("at-floor", "floor")
    missed = simulated.begin(campaign=GATING, floors=floors(">= 90%")).measure(SNAT)
    assert (missed.verdict, [each.metric for each in missed.thresholds if not each.met]) == ("missed", ["ratio"])


ONLY_A_RATIO = {SNAT_KEY: {"udp-64-10k": {"ratio": {"to": FORWARDING, "rate": ">= 60%"}}}, "loss_ratio": "<= 0.02%"}


@pytest.mark.parametrize(
    ("testbed", "word", "states"),
    [
        ({}, "met", {"good"}),
        ({"leak": 0.01}, "missed", {"bad"}),  # of each load, as a NAT that loses one client in a hundred
        ({"generator_limit": 1.0}, "not measured", {"invalid"}),
    ],
)
def test_a_gate_on_nothing_but_a_ratio_is_met_only_with_evidence_on_losses(
    testbed: dict[str, float], word: str, states: set[str], simulated: SimulatedTestbed
) -> None:
    for name, value in testbed.items():
        setattr(simulated, name, value)
    record = simulated.begin(campaign=GATING, floors=floors(**ONLY_A_RATIO)).measure(SNAT)
    assert (record.verdict, record.procedure, record.metric) == (word, "pair", "ratio")
    assert {made.state for made in record.evidence.trials} == states and len(record.evidence.pairs) == 1
    assert [each.metric for each in record.thresholds] == ["ratio", "loss_ratio"]


def test_a_gate_without_any_condition_makes_no_trial_for_a_ratio(simulated: SimulatedTestbed) -> None:
    free = {SNAT_KEY: ONLY_A_RATIO[SNAT_KEY]}
    record = simulated.begin(campaign=GATING, floors=floors(**free)).measure(SNAT)
    assert (record.verdict, record.evidence.trials) == ("met", [])
    # Whether a side waited for the generator is seen in each slice, so its ceiling says no more.
    assert (record.evidence.ceiling, simulated.applied) == (None, [f"{SNAT_KEY} next to {FORWARDING}"])


@pytest.mark.parametrize(("promised", "word"), [(">= 250k", "met"), (">= 310k", "missed")])
@pytest.mark.parametrize("campaign", [load("campaigns", "quick", Campaign), GATING], ids=["quick", "gate"])
def test_what_is_served_is_judged_by_closed_loops_alone(
    promised: str, word: str, campaign: Campaign, simulated: SimulatedTestbed
) -> None:
    alone = {SNAT_KEY: {"udp-64-10k": {"saturation_pps": promised}}}
    record = simulated.begin(campaign=campaign, floors=floors(**alone)).measure(SNAT)
    assert (record.verdict, record.thresholds[0].metric) == (word, "saturation_pps")
    assert record.figures["saturation_pps"].value == pytest.approx(280_000, rel=0.01)


@pytest.mark.parametrize(
    ("in_loops", "lost", "said"),
    [
        # Of 400 k/s that it can, a closed loop of which is served at a fifth.
        (0.2, 0.0, "101.0 k/s were held, and a closed loop that lost nothing was served at 80.0 k/s"),
        (0.24, 0.0, ""),  # the machine scatters by 5 %
        (0.2, 0.12, "A closed loop was served at 80.0 k/s, and 12.0 % of the packets were lost"),
        (1.0, 0.0, ""),
    ],
)
def test_a_figure_that_contradicts_another_one_is_said_in_the_record_and_on_the_page(
    simulated: SimulatedTestbed, in_loops: float, lost: float, said: str
) -> None:
    simulated.in_loops, simulated.lost_in_loops = in_loops, lost
    started = simulated.begin(campaign=GATING)
    record = started.measure(FORWARD)
    assert (record.verdict, record.figures["pps"].value) == ("met", 101_000), record.verdict_reason
    output = started.run.output
    for notes in (record.notes, list(compose(read_runs([output]), output).notes)):
        found = [note for note in notes if "closed loop" in note]
        assert len(found) == bool(said), notes
        assert not said or found[0].startswith(said)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({}, True),
        ({"floors": floors(**{FORWARDING: {"udp-64-10k": {"pps": ">= 101k"}}})}, False),
        ({"campaign": campaign()}, False),
        ({"testbed": load("testbeds", "local", TestbedConfig).model_copy(update={"name": "other"})}, False),
        ({"programs": {"tested": "rebuilt"}}, False),
        ({"version": "0.1.0+changed"}, False),
        ({"rules": "changed"}, False),
        ({"failed": "Execution terminated by signal"}, False),
    ],
)
def test_a_row_that_has_a_record_in_the_folder_is_measured_again_where_something_has_changed(
    simulated: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], counts: bool
) -> None:
    before = simulated.begin("run", campaign=GATING)
    record = before.measure(FORWARD)
    before.run.note_end(record.suite, record.test, change.get("failed", ""))
    simulated.programs = change.get("programs", {})
    monkeypatch.setattr(acceptance, "SUITE_VERSION", change.get("version", record.tool_version))
    monkeypatch.setattr(acceptance, "rules_of", lambda _: change.get("rules", record.environment.dut.rules))
    settings = {name: change[name] for name in change.keys() & {"floors", "campaign", "testbed"}}
    again = simulated.begin("run", **({"campaign": GATING} | settings))
    again.goes_on(record.run_id)
    simulated.applied.clear()
    found = again.measure(FORWARD)
    assert (found.started == record.started) == counts
    if counts:
        assert found.evidence.trials == record.evidence.trials, "the whole one"
        assert any("Met: its record of" in line for line in again.said)
        assert simulated.applied == [] and again.run.measured == []
    assert again.run.note_end(record.suite, record.test, "") == [found]
    (stored,) = store.read_stored(again.run.output)[0]
    assert (stored.record.started == record.started) == counts, "the record of before has stepped aside"


@pytest.mark.parametrize(("allowed", "counts"), [("<= 0.02%", True), ("<= 0.01%", False), (None, False)])
def test_a_row_of_the_table_that_was_missed_counts_where_the_conditions_of_the_file_are_the_same(
    simulated: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch, allowed: str | None, counts: bool
) -> None:
    """No trial of it tells of them, so that its record judges none. `allowed`: by the file of the second part."""
    simulated.offers, name, words = frozenset((Rate, Saturation, Hold)), TestName("Suite", "Test"), []
    for limit, loss_ratio in ((500, "<= 0.02%"), (5000, allowed)):
        table = TableDouble(limit=limit)
        for each in ("flush_state", "health", "connections", "limit_now", "full_said", "hold"):
            monkeypatch.setattr(simulated, each, getattr(table, each), raising=False)
        promised = floors(None, **{OVS.key: {"held": {"held_connections": ">= 1000"}}}, loss_ratio=loss_ratio)
        started = simulated.begin(floors=promised)
        started.goes_on("the run")
        words.append(started.run.measure(name, OVS, "held", PROMISES["held connections"]).verdict)
    assert words == ["missed", "missed" if counts else "met"]


@pytest.mark.parametrize("rows", [1, 2])
def test_of_a_test_with_several_rows_those_are_measured_that_have_no_record(
    simulated: SimulatedTestbed, rows: int
) -> None:
    """Whatever the run was ended by, and whether a row of before is there no more."""
    before = simulated.begin()
    first = [before.measure(*row) for row in ((FORWARD, "short-lived"), (FORWARD,))][:rows]
    for each in store.read_stored(simulated.output)[0][rows:]:
        each.path.unlink()
    again = simulated.begin()
    again.goes_on(first[0].run_id)
    now = [again.measure(FORWARD, "short-lived"), again.measure(SNAT)]
    assert now[0] == first[0]
    assert again.run.measured == [now[1]] and now[1].topology == SNAT
    assert again.run.note_end("Suite", "Test", "") == now
    assert [each.record.started for each in store.read_stored(simulated.output)[0]] == [each.started for each in now]


def test_what_was_measured_counts_where_the_test_fails_before_it_comes_there(simulated: SimulatedTestbed) -> None:
    before = simulated.begin()
    first = [before.measure(*row) for row in ((FORWARD, "short-lived"), (FORWARD,))]
    again = simulated.begin()
    again.goes_on(first[0].run_id)
    again.measure(FORWARD, "short-lived")
    assert again.run.note_end("Suite", "Test", "a step of its own failed") == [first[0]], "and not as failed"
    assert [each.record.started for each in store.read_stored(simulated.output)[0]] == [each.started for each in first]


def test_a_record_that_a_full_disk_did_not_take_does_not_count(
    simulated: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "write", Mock(side_effect=OutputError("no space left on the device.")))
    started = simulated.begin()
    with pytest.raises(OutputError):
        started.measure(FORWARD)
    assert not started.run.note_end("Suite", "Test", "no space left on the device.")


def test_what_was_measured_of_a_test_that_is_skipped_now_does_not_count_any_more(simulated: SimulatedTestbed) -> None:
    record = simulated.begin().measure(FORWARD)
    again = simulated.begin()
    again.goes_on(record.run_id)
    assert not again.run.note_end(record.suite, record.test, "")
    assert store.read_stored(simulated.output)[0], "it was not begun"
    assert not again.run.note_end(record.suite, record.test, "", True)
    assert not store.read_stored(simulated.output)[0]


def test_a_miss_on_a_new_kind_of_machine_counts_when_another_run_there_found_the_same_row_below_the_same_floor(
    simulated: SimulatedTestbed,
) -> None:
    simulated.capacities[SNAT_KEY] = 200_000.0
    zen_3, other = "AuthenticAMD family 25 model 1", "GenuineIntel family 6 model 207"

    def run(folder: str, kind: str = zen_3, share: str = ">= 60%") -> list[str]:
        simulated.cpu_kind = kind
        started = simulated.begin(folder, floors=floors(share, known_kinds=["AuthenticAMD family 26 model 2"]))
        return [started.measure(SNAT).verdict_code for _ in range(2)]

    new = [Code.NEW_KIND, Code.NEW_KIND]
    assert run("another kind", other) == run("another floor", share=">= 70%") == new
    assert run("first") == new, "tests of one run confirm nothing of each other, nor does another kind or another floor"
    torn = simulated.output / "torn" / "records" / "suite.test.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("{")
    assert run("second") == run("third") == [Code.INTERVAL, Code.INTERVAL]
    assert {each.record.verdict for each in store.read_stored(simulated.output / "third")[0]} == {"missed"}

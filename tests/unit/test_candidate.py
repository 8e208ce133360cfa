"""A candidate that is named on the command line takes the place of the testbed's build, and is compared with a base."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import ConfigError, Crashed, MissingResource, NoPromise, TestbedError
from ctbench.base.paths import SUITES
from ctbench.cli.robot.command_line import chosen_files, parse
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedures.rates import AtFloor
from ctbench.measure.promises import PROMISES
from ctbench.results import store
from ctbench.results.record import Record, from_json
from ctbench.results.verdict import Code
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import load_profile

from .simulated import campaign, made_up_record
from .simulated_run import (
    BASE,
    GATING,
    OVS,
    SimulatedTestbed,
    Started,
    compared,
    floors,
    leave_undecided,
    rate_of,
)

ROUTER = Topology(datapath="linux-router", ruleset="forward")
MLR = {"trial_duration": "500ms", "final_duration": "1s", "relative_width": "5%"}


def floor_of(settings: RunSettings) -> tuple[str, str]:
    profile = load_profile("short-lived")
    floor = settings.floor(OVS, profile, AtFloor(settings.campaign.floor_trials(profile)))
    return floor.base_build, floor.thresholds["of_build"].written


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ({"candidate": "/opt/ovs-3.3"}, "distribution"),
        ({"candidate": "/opt/ovs-3.3", "base": "/opt/ovs-3.2"}, "/opt/ovs-3.2"),
        ({"candidate": "/opt/ovs-3.3", "sla": "published-2022"}, "distribution"),
    ],
)
def test_its_rows_are_compared_with_the_base_and_other_rows_are_left_out(
    given: dict[str, str], base: str, installed: None
) -> None:
    settings = RunSettings.load(**given)
    assert settings.build(OVS) == "/opt/ovs-3.3"
    assert floor_of(settings) == (base, ">= 97%")
    settings.require_asked(OVS, ())
    with pytest.raises(MissingResource):
        settings.require_asked(ROUTER, ())
    # Every release since 3.3 fails here, a like build too.
    first_policy = OVS.model_copy(update={"zone_policy": "first"})
    with pytest.raises(MissingResource, match="first timeout policy"):
        settings.require_asked(first_policy, ())
    for row in (ROUTER, first_policy):
        RunSettings.load(**given, all_rows="yes").require_asked(row, ())
    RunSettings.load().require_asked(first_policy, ())


def test_rfc2544_lets_nothing_be_lost_whatever_the_stock_sla_allows() -> None:
    settings, profile = RunSettings.load(campaign="rfc2544"), load_profile("udp-1518-10k")
    floor = settings.floor(Topology(ruleset="normal"), profile, AtFloor(settings.campaign.floor_trials(profile)))
    assert (floor.conditions({}), floor.thresholds["loss_ratio"].written) == ({"loss_ratio": 0.0}, "<= 0%")


def test_an_sla_may_leave_out_tests_of_which_it_promises_nothing_and_else_it_is_an_error() -> None:
    settings, profile = RunSettings.load(sla="published-2022"), load_profile("short-lived")
    nat = Topology(ruleset="nat"), profile, AtFloor(settings.campaign.floor_trials(profile))
    with pytest.raises(MissingResource, match="published-2022 promises nothing"):
        settings.floor(*nat)
    with pytest.raises(NoPromise):
        replace(settings, floors=settings.floors.model_copy(update={"others": "refused"})).floor(*nat)


@pytest.mark.parametrize(
    "given",
    [
        {"candidate": "/nowhere"},
        {"candidate": "distribution"},
        {"candidate": "/opt/ovs", "base": "/opt/ovs"},
        {"base": "/opt/ovs"},
        {"candidate": "/opt/ovs", "testbed": "emulated"},
    ],
)
def test_a_mistake_is_said_before_anything_is_measured(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Expected"):
        RunSettings.load(**given)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"candidate": "/usr"}, '"/usr" is the same build as its base, the packaged build'),
        ({"candidate": "x/../ovs", "base": "ovs"}, '"x/../ovs" is the same build as its base, "ovs"'),
    ],
)
def test_the_base_itself_is_no_candidate_whatever_its_name(given: dict[str, str], shown: str, installed: None) -> None:
    with pytest.raises(ConfigError, match=shown):
        RunSettings.load(**given)


def test_the_command_line_hands_it_on_to_robot(tmp_path: Path) -> None:
    command = parse(["--candidate", "ovs-3.3", "--base", "distribution", "--all"], SUITES)
    assert chosen_files(command.assignments) == {"candidate": "ovs-3.3", "base": "distribution", "all_rows": "true"}
    assert parse(["--candidate", "x"], SUITES).arguments[0] == "--variable=CANDIDATE:x"
    (tmp_path / "x.args").write_text("--bisect")
    hidden = ["--candidate", "x", "-A", str(tmp_path / "x.args")]
    for wrong in (["--base", "/opt/ovs-3.2"], ["--bisect"], ["--candidate", ""], hidden):
        with pytest.raises(ConfigError, match="Expected"):
            parse(wrong, SUITES)


def test_a_folder_is_found_from_where_the_command_was_typed(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert RunSettings.load(candidate="ovs").candidate == str(tmp_path / "ovs")


def test_a_row_measures_its_starts_within_its_test_and_the_next_one_knows_how_far_apart_they_lay(
    simulated: SimulatedTestbed, installed: None
) -> None:
    started = simulated.gate()
    record = started.measure(OVS, "short-lived")
    assert record.verdict == "met", record.verdict_reason
    assert simulated.applied.count(f"{OVS.key} next to {OVS.key}") == 4
    (pair,) = record.evidence.pairs
    assert [each.first for each in pair.starts] == ["other", "tested"] * 2 and pair.sees
    assert [line for line in started.said if "4 starts" in line and "decided" in line]
    assert from_json(record.model_dump_json(), "it").evidence.pairs[0].starts == pair.starts
    assert pair.gated_rows == 1
    (scatter,) = started.run._scatter.values()
    assert scatter[0].degrees == 3
    started.measure(OVS, "short-lived")
    assert scatter[0].degrees == 6 and [*started.run._scatter] == [("connections", True)]


def test_the_rows_of_a_run_share_its_error_and_one_that_goes_on_does_not_forget_those_of_its_earlier_parts(
    simulated: SimulatedTestbed, installed: None
) -> None:
    run_id = ""
    for counted, shared in ((35, 35), (2, 35)):
        started = simulated.gate()
        started.goes_on(run_id or started.run.run_id)
        started.run.share_error(counted)
        record = started.run.measure(TestName("Suite", f"{counted}"), OVS, "short-lived", rate_of("short-lived"))
        assert record.evidence.pairs[0].gated_rows == shared
        run_id = record.run_id


REBUILT = {"tested": "rebuilt", "other": "base"}


@pytest.mark.parametrize(
    ("code", "change", "before"),
    [
        (Code.TOO_CLOSE, {}, 4),
        (Code.TOO_CLOSE, {"programs": REBUILT}, 0),
        (Code.TOO_CLOSE, {"programs": {"tested": "candidate", "other": "rebuilt"}}, 0),
        (Code.TOO_CLOSE, {"told": {"machine": {"cpu_model": "another one"}}}, 0),
        (Code.TOO_CLOSE, {"base": "/opt/ovs-3.1"}, 0),
        (Code.INTERVAL, {"programs": REBUILT}, 0),
        (Code.INTERVAL, {}, None),
    ],
)
def test_a_row_that_was_too_close_to_call_adds_its_starts_when_it_is_gated_again_and_any_other_counts(
    simulated: SimulatedTestbed, installed: None, code: Code, change: dict[str, Any], before: int | None
) -> None:
    simulated.programs = {"tested": "candidate", "other": "base"}
    simulated.gate().measure(OVS, "short-lived")
    first = leave_undecided(simulated.output, code)
    simulated.programs = change.get("programs", simulated.programs)
    simulated.told |= change.get("told", {})
    base = {"floors": compared({"cps": ">= 10k"}).compared_with(change["base"])} if "base" in change else {}
    again = simulated.gate(**base)
    again.goes_on(first.run_id)
    if before is None:
        assert again.measure(OVS, "short-lived").started == first.started
    else:
        pair = again.measure(OVS, "short-lived").evidence.pairs[0]
        assert (pair.before, len(pair.starts)) == (before, before + 4)
    (stored,) = store.read_stored(simulated.output)[0]
    assert stored.record.verdict == ("not measured" if before is None else "met")


@pytest.fixture
def again(simulated: SimulatedTestbed, installed: None) -> Started:
    """The gate of a row that was too close to call before."""
    simulated.gate().measure(OVS, "short-lived")
    started = simulated.gate()
    started.goes_on(leave_undecided(simulated.output).run_id)
    return started


def test_a_row_that_is_gated_again_and_interrupted_keeps_the_starts_that_it_had(
    simulated: SimulatedTestbed, again: Started
) -> None:
    simulated.faults[len(simulated.loads) + 1] = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        again.measure(OVS, "short-lived")
    (stored,) = store.read_stored(simulated.output)[0]
    assert stored.record.verdict_code == Code.TOO_CLOSE and stored.record.evidence.pairs[0].starts


@pytest.fixture
def undecided(simulated: SimulatedTestbed, installed: None) -> Record:
    """The record of a row that was too close to call, of builds whose programs are known."""
    simulated.programs = {"tested": "candidate", "other": "base"}
    simulated.gate().measure(OVS, "short-lived")
    return leave_undecided(simulated.output, Code.TOO_CLOSE)


def test_a_row_that_is_gated_again_and_breaks_off_keeps_the_starts_that_it_had(
    simulated: SimulatedTestbed, undecided: Record
) -> None:
    found = []
    for broken in (True, True, False):
        again = simulated.gate()
        again.goes_on(undecided.run_id)
        simulated.faults = {len(simulated.loads) + 1: TestbedError("The link was reset.")} if broken else {}
        record = again.measure(OVS, "short-lived")
        assert again.run.note_end("Suite", "Test", "it failed" if broken else "") == [record] == again.run.measured
        (stored,) = store.read_stored(simulated.output)[0]
        (pair,) = stored.record.evidence.pairs
        found.append(
            (stored.record.verdict_code, stored.record.started == undecided.started, pair.before, len(pair.starts))
        )
        assert ("The link was reset" in stored.record.verdict_reason) == broken
    assert found == [(Code.FAULT, True, 0, 4), (Code.FAULT, True, 0, 4), (Code.FAR, False, 4, 8)]


def test_a_crash_after_the_starts_of_a_further_gate_counts_and_no_later_gate_hides_it(
    simulated: SimulatedTestbed, undecided: Record
) -> None:
    simulated.faults = {len(simulated.loads) + 5: Crashed("ovs-vswitchd was killed by SIGSEGV.")}
    for _ in range(2):
        again = simulated.gate()
        again.goes_on(undecided.run_id)
        record = again.measure(OVS, "short-lived")
        assert (record.verdict, record.verdict_code) == ("not measured", Code.FAULT)
        assert "SIGSEGV" in record.verdict_reason


def test_a_row_that_is_gated_again_and_skipped_has_no_record(
    simulated: SimulatedTestbed, again: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again.run, "_measure", Mock(side_effect=MissingResource("There is no memory.")))
    with pytest.raises(MissingResource, match="no memory"):
        again.measure(OVS, "short-lived")
    assert store.read_stored(simulated.output) == ([], [])


def test_of_two_records_of_a_run_that_was_killed_in_between_the_later_one_counts(
    simulated: SimulatedTestbed, installed: None
) -> None:
    decided = simulated.gate().measure(OVS, "short-lived")
    first = leave_undecided(simulated.output, Code.TOO_CLOSE)
    store.write(decided.model_copy(update={"started": decided.started + timedelta(minutes=1)}), simulated.output)
    again = simulated.gate()
    again.goes_on(first.run_id)
    assert again.measure(OVS, "short-lived").verdict == "met" and not again.run.measured
    (stored,) = store.read_stored(simulated.output)[0]
    assert stored.record.verdict == "met"


def test_records_that_step_aside_keep_their_places(tmp_path: Path) -> None:
    for _ in range(3):
        path = store.write(made_up_record(), tmp_path)
        store.set_aside([store.Stored(path, made_up_record())])
    assert store.read_stored(tmp_path) == ([], [])
    assert sorted(each.name.removeprefix(path.stem) for each in path.parent.iterdir()) == [
        "-2.earlier", "-3.earlier", ".earlier",
    ]  # fmt: skip


def test_a_crash_counts_for_the_whole_run_whatever_campaign_a_suite_asks_for(
    simulated: SimulatedTestbed, installed: None
) -> None:
    started = simulated.gate()
    started.run._crashes.append("a start")
    started.run.judge_by(replace(started.run.settings, campaign=campaign(search="saturation", mlr=MLR)))
    assert started.run._crashes == ["a start"]


@pytest.mark.parametrize(
    ("leaks", "smoke", "verdict", "code", "blocks"),
    [
        ((), True, "met", Code.HOLDS_AS_BASE, 1),
        (("other",), True, "met", Code.HOLDS_AS_BASE, 1),
        (("tested",), True, "missed", Code.HOLDS_LESS, 3),
        (("tested", "other"), True, "not measured", Code.BASE_TOO, 3),
        # What an SLA promises of this machine counts, whatever the base does.
        (("tested", "other"), False, "missed", Code.SPRT, 3),
    ],
)
@pytest.mark.parametrize("how", [GATING, campaign(search="saturation", mlr=MLR)], ids=["gate", "saturation"])
def test_what_a_candidate_loses_counts_where_its_base_holds_the_load(
    simulated: SimulatedTestbed, installed: None, how: Campaign, leaks: tuple[Side, ...], smoke: bool, verdict: str,
    code: Code, blocks: int,
) -> None:  # fmt: skip
    simulated.leak, simulated.leaks = 0.002, leaks
    promised = compared({"cps": ">= 10k", "smoke": smoke}, loss_ratio="<= 0.02%")
    started = simulated.gate(floors=promised, campaign=how)
    record = started.measure(OVS, "short-lived")
    assert (record.verdict, record.verdict_code) == (verdict, code), record.verdict_reason
    in_turn = [made for made in record.evidence.trials if made.phase == "in turn"]
    assert len(in_turn) == len(record.evidence.base_trials) == 2 * blocks
    assert record.procedure == ("same-load" if smoke or how is not GATING else "at-floor")
    # A smoke floor is decided by these trials, and what is promised of this machine by some at it.
    assert any(made.phase == "gate" for made in record.evidence.trials) is (not smoke and bool(leaks))
    # Both are set up again for each block but the first at a load.
    again = blocks - 1 if code is Code.HOLDS_LESS else 0
    assert simulated.applied.count(f"{OVS.key} next to {OVS.key}") == 4 + again
    assert sum(line.startswith("   base") for line in started.said) == 2 * blocks


def loads_of(record: Record) -> list[float]:
    return [made.trial.load for made in record.evidence.trials]


@pytest.mark.parametrize(
    ("leaks", "verdict", "code", "loads"),
    [
        ((), "met", Code.HOLDS_AS_BASE, [50_000]),
        (("tested",), "missed", Code.HOLDS_LESS, [50_000] * 5),
        (("tested", "other"), "missed", Code.FIGURE, [50_000, 20_000]),
    ],
)
def test_a_candidate_sustains_what_its_base_sustains(
    simulated: SimulatedTestbed, installed: None, monkeypatch: pytest.MonkeyPatch, leaks: tuple[Side, ...],
    verdict: str, code: Code, loads: list[float],
) -> None:  # fmt: skip
    for name, value in {"connections": lambda _self: 0, "sweep_s": 20.0}.items():
        monkeypatch.setattr(type(simulated), name, value, raising=False)
    simulated.leak, simulated.leaks = 0.002, leaks
    promised: dict[str, Any] = {"loss_ratio": "<= 0.02%", OVS.key: {"short-lived": {"sustained_cps": ">= 20k"}}}
    own = floors(None, **promised)
    started = simulated.begin("alone", floors=own), simulated.gate(floors=own.compared_with(BASE))
    asked = TestName("Suite", "Test"), OVS, "short-lived", PROMISES["sustained rate"]
    as_it_is, record = (each.run.measure(*asked) for each in started)
    assert (as_it_is.procedure, loads_of(as_it_is)) == ("sustained-rate", [20_000])
    assert (record.verdict, record.verdict_code) == (verdict, code), record.verdict_reason
    assert (record.procedure, loads_of(record)) == ("sustained-in-turn", loads)
    # The first of the base is a closed loop, which says what it serves.
    assert len(record.evidence.base_trials) == 1 + (code is not Code.HOLDS_AS_BASE) * loads.count(50_000)

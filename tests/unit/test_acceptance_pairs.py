"""The acceptance run where a ratio is promised: two set-ups side by side, and the rate beside it."""

from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource, TestbedError

from .simulated import FORWARDING
from .simulated_run import FORWARD, GATING, SNAT, SNAT_KEY, SimulatedTestbed, Started, floors, simulated

__all__ = ["simulated"]


def test_a_ratio_is_measured_as_a_pair_and_the_rates_beside_the_side_that_is_tested(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    assert simulated.applied == ["cable/none/1cpu-1rxq", f"{SNAT_KEY} beside {FORWARDING}"]
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


def test_a_ratio_that_is_not_reached_is_missed_whatever_the_rate(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    record = Started(tmp_path, simulated, floors=floors(">= 90%")).measure(SNAT)
    assert record.verdict == "missed"
    assert "at least 90 % promised" in record.verdict_reason


def test_what_a_ratio_compares_with_and_the_testbed_lacks_leaves_the_rates_measured(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.errors[f"{SNAT_KEY} beside {FORWARDING}"] = MissingResource("There are no bonds here.")
    record = Started(tmp_path, simulated).measure(SNAT)
    assert record.verdict == "not measured"
    assert "There are no bonds here" in record.verdict_reason
    assert record.result and record.result.value == pytest.approx(280_000, rel=0.1)
    assert simulated.applied[-1] == SNAT_KEY


def test_what_a_ratio_compares_with_and_cannot_be_set_up_is_named(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.errors[f"{SNAT_KEY} beside {FORWARDING}"] = TestbedError("The link broke.")
    record = Started(tmp_path, simulated).measure(SNAT)
    assert record.verdict == "not measured"
    assert record.verdict_reason == f"{SNAT_KEY} could not be set up beside {FORWARDING}: The link broke."


def test_a_gate_decides_a_ratio_by_the_pair_and_the_rate_by_trials_at_it(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    record = Started(tmp_path, simulated, campaign=GATING).measure(SNAT)
    assert record.verdict == "met"
    # 100k are far below what the pair shows, so one trial confirms it.
    assert [made.trial.load for made in record.evidence.trials] == pytest.approx([101_000])
    assert (record.procedure, record.limited_by) == ("at-floor", "floor")
    assert Started(tmp_path, simulated, campaign=GATING, floors=floors(">= 90%")).measure(SNAT).verdict == "missed"


def test_a_gate_on_nothing_but_a_ratio_makes_no_trial(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    only = {SNAT_KEY: {"udp-64-10k": {"ratio": {"to": FORWARDING, "rate": ">= 60%"}}}}
    record = Started(tmp_path, simulated, campaign=GATING, floors=floors(**only)).measure(SNAT)
    assert (record.verdict, record.procedure, record.metric) == ("met", "pair", "ratio")
    assert record.evidence.trials == []
    assert len(record.evidence.pairs) == 1


def test_a_test_without_a_ratio_is_set_up_although_the_pair_of_the_test_before_stands_there(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    started.measure(SNAT)
    record = started.measure(FORWARD)
    assert simulated.applied == ["cable/none/1cpu-1rxq", f"{SNAT_KEY} beside {FORWARDING}", FORWARDING]
    assert record.topology.key == FORWARDING and record.result and record.result.value > 280_000

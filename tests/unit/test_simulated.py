"""The simulated DUTs behave as those that they stand for: rings hide an overload, machines hop, pairs share them. The
simulations behind docs/evidence, which are scripts and use what a change may move, still run."""

import math
import runpy
import statistics
from pathlib import Path

import pytest

from ctbench.measure.pairs import log_ratio, rounds_of, turns
from ctbench.traffic.loads import Rate, Saturation

from .simulated import SimulatedDut
from .simulated_machine import Machine
from .simulated_pair import SimulatedPair


def too_slow(ring: int, packets: bool = False) -> SimulatedDut:
    return SimulatedDut(98_000, ring=ring, packets=packets)


@pytest.mark.parametrize("packets", [False, True])
def test_a_ring_hides_that_a_dut_is_too_slow_by_2_percent_but_not_what_piles_up_in_it(packets: bool) -> None:
    trial = too_slow(16_384, packets).run_trial(None, Rate(100_000), 2.0)
    assert trial.loss_ratio == 0
    grown = statistics.mean(trial.timeline_active[-10:]) - statistics.mean(trial.timeline_active[:10])
    assert grown / 1.5 == pytest.approx(2_000, rel=0.15)
    assert trial.service_rate == pytest.approx(98_000, rel=1e-3)


def test_a_small_ring_overflows() -> None:
    assert too_slow(1_000).run_trial(None, Rate(100_000), 2.0).loss_ratio == pytest.approx(0.0175, rel=0.1)


def test_nothing_piles_up_below_the_capacity() -> None:
    trial = SimulatedDut(98_000, ring=16_384).run_trial(None, Rate(90_000), 2.0)
    assert (trial.loss_ratio, trial.service_rate) == (0, 90_000)
    assert statistics.median(trial.timeline_active) < 100


def test_a_closed_loop_serves_at_the_capacity_and_loses_nothing() -> None:
    trial = SimulatedDut(98_000, ring=16_384, saturation=1.1).run_trial(None, Saturation(512), 0.5)
    assert trial.service_rate == pytest.approx(107_800)
    assert (trial.under_way, trial.loss_ratio, set(trial.timeline_active)) == (512, 0, {512})


def test_a_shared_machine_scatters_from_trial_to_trial_as_one_was_seen_to() -> None:
    machine = Machine(seed=1)
    logs = []
    for _ in range(500):
        logs.append(math.log(machine.run(1.0)))
        machine.run(0.6)
    assert 0.07 < statistics.stdev(logs) < 0.11


def test_what_the_machine_does_falls_on_both_sides_of_a_pair() -> None:
    pair = SimulatedPair(0.95, machine=Machine(seed=1))
    slices = pair.run_slices(turns(0, 192), 0.05)
    logs = [log_ratio(parts) for parts in rounds_of(slices)]
    assert statistics.stdev(part.rate for part in slices) > 0.1 * statistics.mean(part.rate for part in slices)
    assert math.exp(statistics.median(log for log in logs if log is not None)) == pytest.approx(0.95, rel=0.01)
    assert len(pair.order) == 384


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", ["backlog", "floor", "pairs", "search"])
def test_a_simulation_prints_whole_tables(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [name, "--runs", "4"])
    runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    tables = [block.splitlines() for block in printed.split("\n\n") if block.startswith("|")]
    assert tables
    for table in tables:
        assert len(table) > 4
        assert len({row.count("|") for row in table}) == 1, table[0]

"""The simulated DUTs behave as those that they stand for: machines hop. The
simulations behind docs/evidence, which are scripts and use what a change may move, still run."""

import math
import runpy
import statistics

import pytest

from .simulated_machine import Machine


def test_a_shared_machine_scatters_from_trial_to_trial_as_one_was_seen_to() -> None:
    machine = Machine(seed=1)
    logs = []
    for _ in range(500):
        logs.append(math.log(machine.run(1.0)))
        machine.run(0.6)
    assert 0.07 < statistics.stdev(logs) < 0.11


@pytest.mark.parametrize("name", ["floor", "pairs", "search"])
def test_a_simulation_prints_whole_tables(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [name, "--runs", "2"])
    runpy.run_module(f"tools.benchmarks.{name}", run_name="__main__")
    printed = capsys.readouterr().out
    tables = [block.splitlines() for block in printed.split("\n\n") if block.startswith("|")]
    assert tables
    for table in tables:
        assert len(table) > 4
        assert len({row.count("|") for row in table}) == 1, table[0]

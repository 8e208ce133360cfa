"""The simulations behind docs/evidence still run: they are scripts, and use what a change may move."""

import runpy
from pathlib import Path

import pytest

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

"""The simulations behind docs/evidence, which are scripts and use what a change may move, still run."""

import runpy

import pytest


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

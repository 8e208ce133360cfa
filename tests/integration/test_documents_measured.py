"""What README.md and docs/ measure is typed in, in a fresh clone, each command shortened to one test."""

from pathlib import Path

import document_commands
import documents
import pytest
from integration.clone import Clone, clone
from whole_records import read_all

from ctbench.base.yaml_files import load
from ctbench.sla.floors import Floors

__all__ = ["clone"]
BY_TEXT = {command.text: command for command in documents.everything()}


@pytest.fixture(scope="module")
def measured() -> dict[str, str]:
    """What the commands below have said."""
    return {}


@pytest.mark.parametrize("text", document_commands.MEASURED)
def test_a_command_that_measures_works(clone: Clone, measured: dict[str, str], text: str) -> None:
    if "SLA:mine" in text and not (clone.folder / "variables" / "sla" / "mine.yaml").exists():
        pytest.skip("This machine was too busy to calibrate it.")
    measured[text] = clone.follow(BY_TEXT[text])


def test_the_floors_that_calibrate_wrote_are_those_that_the_next_run_judged_by(
    clone: Clone, measured: dict[str, str]
) -> None:
    if not {"./run calibrate mine", "./run sla -v SLA:mine"} <= set(measured):
        pytest.skip("This machine was too busy to calibrate it.")
    mine = load("sla", clone.folder / "variables" / "sla" / "mine.yaml", Floors)
    (folder,) = [line for line in measured["./run sla -v SLA:mine"].splitlines() if line.startswith("Results: ")]
    (record,), _ = read_all(Path(folder.removeprefix("Results: ")))
    entry = mine.floors[record.topology.key][record.profile.name]
    promised = entry.thresholds["cps"].written
    assert mine.source.startswith("5 runs on ")
    # A figure that scatters too much keeps the floor and the source that it had.
    assert record.floor.source == (entry.source or mine.source)
    assert [each.written for each in record.thresholds if each.metric == "cps"] == [promised]
    held, served = promised != ">= 1k", "saturation_cps" in entry.thresholds
    assert f"calibrate: floors of this machine: {held + served}, of " in measured["./run calibrate mine"]

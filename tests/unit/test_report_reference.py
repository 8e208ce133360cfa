"""Figures from elsewhere: what was published, labelled as other hardware, and other runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctbench.base.yaml_files import load
from ctbench.report.reference import NONE, against, published_parts, read_references
from ctbench.report.runs import read_runs
from ctbench.results.environment import MachineFacts
from ctbench.results.published import read_published
from ctbench.results.record_model import Reference
from ctbench.results.store import Stored, write
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import found, made_up_floor, made_up_record

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
#: Stands where there is no figure: an en dash.
DASH = "\u2013"
OVS_3 = REFERENCE / "ovs-3.0.0"


def test_the_published_figures_are_those_that_the_sla_shows_beside_its_floors() -> None:
    floors = load("sla", "local", Floors)
    compared = 0
    for figure in read_published(OVS_3):
        published = floors.floors[figure.key][figure.profile].reference
        assert published is not None
        assert (published.cps, published.pps) == (figure.figures["cps"], figure.figures["pps"]), figure.label
        compared += 1
    assert compared == 16


def test_without_a_reference_the_figure_beside_the_floor_serves() -> None:
    reference = Reference(figures={"cps": 100_000}, source="the article")
    record = made_up_record(floor=replace(made_up_floor(), reference=reference))
    compared = against(record, NONE.find(record))
    assert compared is not None and compared.other_hardware
    assert compared.difference_pct == pytest.approx(281.0)
    assert against(made_up_record(), NONE.find(made_up_record())) is None


def test_shortened_connections_are_compared_by_their_packets() -> None:
    short = ConnectionProfile(name="long-lived-short", derived_from="long-lived", udp_percent=1)
    record = made_up_record(found(14_600.0), profile=short)
    compared = against(record, read_references([OVS_3]).find(record))
    assert compared is not None
    assert (compared.metric.name, compared.theirs, compared.ours) == ("pps", 1_800_000, record.figures["pps"].value)


def test_another_run_of_the_same_machine_is_not_called_other_hardware(tmp_path: Path) -> None:
    machines = {"old": "Xeon A", "new": "Xeon A", "elsewhere": "Xeon B"}
    for name, model in machines.items():
        record = made_up_record(found(100_000.0 if name == "old" else 110_000.0))
        environment = record.environment.model_copy(update={"machine": MachineFacts(cpu_model=model)})
        write(record.model_copy(update={"environment": environment}), tmp_path / name)
    references = read_references([tmp_path / "old"])
    for name, other in (("new", False), ("elsewhere", True)):
        record = read_runs([tmp_path / name]).newest[0].record
        compared = against(record, references.find(record))
        assert compared is not None
        assert (round(compared.difference_pct, 6), compared.other_hardware) == (10.0, other)


def test_the_published_tables_have_a_line_of_this_run_and_the_articles_difference(tmp_path: Path) -> None:
    references = read_references([OVS_3, REFERENCE / "ovs-2.17.2"])
    (part,) = published_parts([Stored(tmp_path / "records/a.json", made_up_record())], references, tmp_path)
    table = part.table
    assert table is not None and len(table.groups) == 16
    fourth = table.groups[2]
    assert fourth.name == "2022, table 4: connection tracking, 1 CPU, 1 queue, short-lived"
    lines = [[cell.text for cell in line.cells] for line in fourth.lines]
    assert [(name, cps, difference) for name, cps, *_, difference in lines] == [
        ("Open vSwitch 2.17.2", "39.7 k/s", DASH),
        ("Open vSwitch 3.0.0", "48.2 k/s", "+21.4 %"),
        ("this run: Open vSwitch 3.1.0", "381.0 k/s", "+690 %"),
    ]
    assert fourth.lines[-1].cells[0].href == "records/a.json"
    assert table.groups[0].lines[-1].cells[0].text == "this run: no figure"

"""Figures from elsewhere: what was published, labelled as other hardware, and other runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from robot.running import TestSuiteBuilder

from ConntrackSLA.rows import named
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.report import labels
from ctbench.report.reference import NONE, against, keys, published_parts, read_references
from ctbench.report.runs import read_runs
from ctbench.results.environment import MachineFacts
from ctbench.results.published import read_published
from ctbench.results.record_model import Reference
from ctbench.results.store import Stored, write
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile, load_profile

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


def test_every_published_figure_is_shown_beside_a_row() -> None:
    """A reference file that describes no row would be shown nowhere."""
    rows = named(TestSuiteBuilder().build(SUITES))
    shown = {(key, row.profile.name) for row in rows for key in keys(row.topology)}
    figures = [figure for folder in sorted(REFERENCE.iterdir()) for figure in read_published(folder)]
    assert len(figures) == 47
    assert [figure.label for figure in figures if (figure.key, figure.profile) not in shown] == []


@pytest.mark.parametrize("folder", ["ovs-2.7", "linux-5.0"])
def test_the_figures_of_2017_and_2019_stand_beside_their_floors(folder: str) -> None:
    floors = load("sla", "local", Floors).floors
    for figure in read_published(REFERENCE / folder):
        entries = [entries[figure.profile] for key, entries in floors.items()
                   if figure.key in keys(Topology.parse(key)) and figure.profile in entries]  # fmt: skip
        assert entries
        for entry in entries:
            assert entry.reference is not None
            assert entry.published == Reference(
                figures={name: value for name, value in figure.figures.items() if name != "busy_cpus"},
                source=entry.reference.source,
                cpus_given=figure.cpus_given,
            )
            assert entry.published.label == figure.label


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_figure_without_a_number_of_cpus_is_beside_every_number_and_says_so(tmp_path: Path, cpus: int) -> None:
    topology = Topology(datapath="linux-router", ruleset="forward", cpus=cpus, rx_queues=cpus)
    record = made_up_record(topology=topology, profile=load_profile("udp-64-10k"))
    references = read_references([REFERENCE / "linux-5.0"])
    found = references.find(record)
    assert found is not None and found.figures["pps"] == 14e6
    assert found.label == "Linux 5.0, 2019, test 1, some 16 CPUs busy, number of CPUs not given"
    bonds = record.model_copy(update={"topology": topology.model_copy(update={"ports": "bond"})})
    assert references.find(bonds) is None
    (part,) = published_parts([Stored(tmp_path / "records/a.json", record)], references, tmp_path)
    assert part.table is not None
    group = part.table.groups[1]
    assert group.name == "2019, test 1, some 16 CPUs busy: plain forwarding, number of CPUs not given, udp-64-10k"
    assert labels.cpus_and_queues(cpus, cpus) in group.lines[-1].cells[0].text


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

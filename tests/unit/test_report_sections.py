"""The sections of the page: a line for each test that they are about, and a dash for what was not measured."""

from pathlib import Path

from ctbench.dut.topology import Topology
from ctbench.report import labels
from ctbench.report.compose import compose
from ctbench.report.page import Page, Table
from ctbench.report.runs import read_runs
from ctbench.report.sections import SECTIONS
from ctbench.results.evidence import Series as Sampled
from ctbench.results.evidence import TableCount
from ctbench.results.record import Record
from ctbench.results.record_model import Figure, Reference
from ctbench.results.store import write
from ctbench.traffic.profiles import PacketProfile, load_profile

from .simulated import found_packets, made_up_packet_record, made_up_record

FIGURES = {
    "cps": Figure(17_700.0, "connections/s"), "active_connections": Figure(100_100.0, "connections"),
    "pps": Figure(345_000.0, "packets/s"), "latency_p50": Figure(20e-6, "s"), "latency_p99": Figure(900e-6, "s"),
    "latency_jitter": Figure(31e-6, "s"),
}  # fmt: skip


def page_of(folder: Path) -> Page:
    return compose(read_runs([folder]), folder)


def test_a_line_has_the_rate_what_was_open_and_how_long_a_message_took(tmp_path: Path) -> None:
    write(made_up_record(test="Short"), tmp_path)
    assert page_of(tmp_path).section("mobile") is None
    record = made_up_record(test="Mobile Traffic")
    write(record.model_copy(update={"profile": load_profile("mobile"), "figures": FIGURES}), tmp_path)
    page = page_of(tmp_path)
    (part,) = page.section("mobile").parts
    assert part.table is not None
    (line,) = part.table.groups[""]
    assert line.cells[0].href in [row.href for row in page.rows if row.test == "Mobile Traffic"]
    assert {column.name: cell.text for column, cell in zip(part.table.columns, line.cells, strict=True)} == {
        "Test": "Mobile Traffic", "New connections": "17.7 k CPS", "Open at once": "100.1 k connections",
        "Packets": "345.0 k pps", "Throughput": labels.DASH, "Cycles per packet": labels.DASH,
        "Latency (median)": "20 us", "Latency (p99)": "900 us", "Jitter": "31 us",
    }  # fmt: skip


def test_sections_stand_in_their_order_and_each_has_an_anchor_of_its_own(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    anchors = [section.anchor for section in SECTIONS]
    assert len(set(anchors)) == len(anchors)
    shown = [section.anchor for section in page_of(tmp_path).sections]
    assert shown == [anchor for anchor in anchors if anchor in shown] == ["searches"]


def matching(ruleset: str, flows: int, rate: float, *, tag: str = "match-fields", emc: int | None = None) -> Record:
    topology = Topology(ruleset=ruleset, emc_insert_inv_prob=emc)
    profile = PacketProfile(name=f"match-{flows}", kind="packets", flows=flows)
    made = made_up_packet_record(found_packets(rate), topology=topology, profile=profile)
    return made.model_copy(update={"tags": [tag]})


def match_tables(folder: Path, *records: Record) -> list[Table]:
    """The tables of a run with these records."""
    for number, record in enumerate(records):
        write(record.model_copy(update={"test": f"Test {number}"}), folder)
    sections = [section for section in page_of(folder).sections if section.anchor == "match-fields"]
    return [part.table for section in sections for part in section.parts if part.table]


def test_rates_stand_by_match_fields_and_flows_and_each_setting_of_the_caches_has_its_table(tmp_path: Path) -> None:
    published = Reference(figures={"pps": 1_760_000.0}, source="2017")
    source = matching("match-src", 1000, 1_000_000)
    source = source.model_copy(update={"floor": source.floor.model_copy(update={"reference": published})})
    default, without = match_tables(
        tmp_path, matching("match-none", 1000, 2_000_000), source, matching("match-none", 10_000, 1_500_000),
        matching("match-none", 1000, 900_000, emc=0), matching("conntrack", 1000, 5_000_000, tag="conntrack"),
    )  # fmt: skip
    assert [column.name for column in default.columns] == ["Fields", "1\u202f000 flows", "10\u202f000 flows"]
    none, by_source = (line.cells for line in default.groups[""])
    assert [cell.text for cell in none] == ["Any IP packet", "2.00 M", "1.50 M"]
    assert [cell.shade for cell in none] == ["", "heat-4", "heat-2"]
    assert [cell.text for cell in by_source] == ["Match of the source address", "1.00 M", labels.DASH]
    assert [note.text for note in by_source[1].notes] == ["2017: 1.76 M"]
    assert without.caption.endswith("no exact match cache")
    assert without.groups[""][0].cells[1].shade == "heat-0", "of one scale, so that both tables compare"
    made = matching("match-none", 1000, 2_000_000)
    assert match_tables(tmp_path / "unsure", made.model_copy(update={"verdict": "not measured"})) == []


def of_table(metric: str, figures: dict[str, Figure], topology: Topology, **evidence: object) -> Record:
    record = made_up_record()
    return record.model_copy(
        update={
            "metric": metric,
            "topology": topology,
            "profile": load_profile("held"),
            "figures": figures,
            "evidence": record.evidence.model_copy(update=evidence),
        }
    )


def test_connections_held_stand_with_their_memory_and_the_counts_of_the_dut(tmp_path: Path) -> None:
    counts = [TableCount(trial=1, moment=moment, expected=4_000_000, found=4_000_000) for moment in ("opened", "held")]
    figures = {"held_connections": Figure(4e6, "connections"), "table_entry_bytes": Figure(365.2, "bytes")}
    ovs = of_table("held_connections", figures, Topology(), table=counts)
    router = Topology(datapath="linux-router", ruleset="iptables-stateful")
    linux = of_table("held_connections", {"held_connections": Figure(250e3, "connections")}, router)
    for record in (ovs, linux):
        write(record, tmp_path)
    (part,) = page_of(tmp_path).section("table").parts
    assert part.table is not None
    assert sorted([cell.text for cell in line.cells[1:]] for line in part.table.groups[""]) == [
        ["250.0 k connections", labels.DASH, labels.DASH],
        ["4.00 M connections", "365 bytes", "opened 4\u202f000\u202f000, held 4\u202f000\u202f000"],
    ]


def test_entries_over_time_are_drawn_of_what_was_watched(tmp_path: Path) -> None:
    series = [
        Sampled(name="entries_after_the_last_packet", unit="entries", trial=1, every_s=0.2, values=[5.0, 5.0, 0.0])
    ]
    figures, one = {"drain_time": Figure(0.4, "s")}, made_up_record().evidence.trials[:1]
    record = of_table("drain_time", figures, Topology(timeout_s=5), series=series, trials=one)
    write(record, tmp_path)
    (part,) = page_of(tmp_path).section("table").parts
    (chart,) = part.charts
    assert chart.title.startswith("Entries after the last packet over trial 1: OVS-DPDK, ")

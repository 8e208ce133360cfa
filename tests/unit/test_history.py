"""What became of known misses from release to release, and the history of the rows in files for other programs."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pages import read_page

from ctbench.report.write import write_reports
from ctbench.results.environment import DutFacts, TestbedFacts
from ctbench.results.floor import Accepted, promise
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.store import write
from ctbench.results.verdict import Code

from .simulated import found, made_up_record

NIGHT = datetime(2026, 10, 30, 20, tzinfo=UTC)
TICKET = "https://tickets.example/OVS-1234"
#: With the first record of a report being accepted until then.
ACCEPTED = Accepted.model_validate(
    {"because": "slower locks", "by": "R. Manager", "until": "2026-11-02", "ticket": TICKET}
)


def night(number: int, rate: float, version: str = "3.1.0", accepted: Accepted | None = None, **changes: Any) -> Record:
    made = made_up_record(found(rate), started=NIGHT + timedelta(days=number), ended=NIGHT + timedelta(days=number),
                          run_id=f"run-{number}", **changes)  # fmt: skip
    facts = {"dut": DutFacts(product=f"Open vSwitch {version}"), "testbed": TestbedFacts(name="lab")}
    return made.model_copy(
        update={
            "environment": made.environment.model_copy(update=facts),
            "floor": made.floor.model_copy(update={"accepted": accepted}),
        }
    )


def written(folder: Path, *records: Record) -> Path:
    """The folder of a report over runs with a record each."""
    for number, record in enumerate(records):
        write(record, folder / str(number))
    write_reports([folder / str(number) for number in range(len(records))], folder)
    return folder


def known(folder: Path) -> list[str]:
    """The cells of the only known miss on the page."""
    section = read_page((folder / "sla.html").read_text()).by_id("known")
    return [" ".join(cell.text.split()) for cell in section.all("td")]


OF_MEMORY = ACCEPTED.model_copy(update={"metrics": ["memory_kept"]})
LOW, HIGH = 40_000.0, 381_000.0


@pytest.mark.parametrize(
    ("last", "accepted", "became"),
    [
        ((2, LOW, "3.3.0", ACCEPTED), "until 2026-11-02 by R. Manager", "Open vSwitch 3.3.0: missed, \u221217.0 %"),
        ((4, LOW, "3.3.0", ACCEPTED), "until 2026-11-02 by R. Manager; that day has passed",
         "Open vSwitch 3.3.0: missed, \u221217.0 %"),
        ((2, LOW, "3.3.0", OF_MEMORY), "until 2026-11-02 by R. Manager; this is another miss",
         "Open vSwitch 3.3.0: missed, \u221217.0 %"),
        ((2, HIGH, "3.3.1", ACCEPTED), "until 2026-11-02 by R. Manager; it is met: remove the entry",
         "Open vSwitch 3.3.1: met, +690 %"),
        ((2, HIGH, "3.3.1", None), "until 2026-11-02 by R. Manager; the SLA file no longer says so",
         "Open vSwitch 3.3.1: met, +690 %"),
    ],
)  # fmt: skip
def test_a_known_miss_is_on_the_page_with_its_ticket_and_what_each_release_made_of_it(
    last: tuple[Any, ...], accepted: str, became: str, tmp_path: Path
) -> None:
    folder = written(tmp_path, night(0, HIGH, "3.0.0"), night(1, LOW, accepted=ACCEPTED), night(*last))
    ticket, because, said, releases = known(folder)
    assert (ticket, because, said) == (TICKET, "slower locks", accepted)
    assert releases == f"{became} Open vSwitch 3.1.0: missed, \u221217.0 % Open vSwitch 3.0.0: met, +690 %"
    assert f'<a href="{TICKET}">' in (folder / "sla.html").read_text()
    assert "### Known misses" in (folder / "sla.md").read_text()


def test_of_runs_of_one_release_the_newest_is_said_and_an_identifier_is_no_link(tmp_path: Path) -> None:
    plain = ACCEPTED.model_copy(update={"ticket": "OVS-1234"})
    odd = ACCEPTED.model_copy(update={"ticket": "javascript:alert(1)"})
    ticket, *_, releases = known(written(tmp_path / "a", night(0, LOW, accepted=plain), night(1, HIGH, accepted=plain)))
    assert (ticket, releases) == ("OVS-1234", "Open vSwitch 3.1.0: met, +690 % (the newest of 2 runs)")
    folder = written(tmp_path / "b", night(0, LOW, accepted=odd))
    assert known(folder)[0] == odd.ticket and 'href="javascript' not in (folder / "sla.html").read_text()
    page = read_page((written(tmp_path / "c", night(0, LOW)) / "sla.html").read_text())
    assert not [each for each in page.all("section") if each.attributes.get("id") == "known"]


CONNECT = "connect_time_p99_at_half"
FALLS = (100_000, 101_000, 99_000, 100_500, 88_000, 88_500, 87_500)


def nights() -> list[Record]:
    return [night(number, rate, "3.3.0" if number > 3 else "3.1.0") for number, rate in enumerate(FALLS)]


def test_a_run_that_is_given_twice_is_one_run(tmp_path: Path) -> None:
    written(tmp_path, *nights()[:5])  # the last one is an outlier until a second one is as slow
    (tmp_path / "latest").symlink_to("4")
    write_reports([tmp_path / name for name in ("latest", *"01234")], tmp_path)
    lines = list(csv.DictReader(io.StringIO((tmp_path / "history.csv").read_text(), newline="")))
    assert [line["change_point"] for line in lines if line["metric"] == "cps"] == ["no"] * 5


def test_the_history_has_a_line_for_each_run_and_row_and_marks_the_change_point(tmp_path: Path) -> None:
    unmeasured = night(7, 90_000, verdict="not measured", figures={}, accepted=ACCEPTED, test="=SUM(A1)")
    folder = written(tmp_path, *nights(), unmeasured)
    lines = list(csv.DictReader(io.StringIO((folder / "history.csv").read_text(), newline="")))
    lines = [line for line in lines if line["metric"] == "cps"]
    assert [line["change_point"] for line in lines] == ["no"] * 4 + ["yes"] + ["no"] * 3
    assert [float(line["value"]) for line in lines[:-1]] == list(FALLS)
    assert {name: lines[4][name] for name in ("time_utc", "dut", "testbed", "metric", "unit", "verdict", "run_id")} == {
        "time_utc": "2026-11-03 20:00:00", "dut": "Open vSwitch 3.3.0", "testbed": "lab", "metric": "cps",
        "unit": "connections/s", "verdict": "met", "run_id": "run-4",
    }  # fmt: skip
    assert float(lines[4]["low"]) <= 88_000 < float(lines[4]["high"])
    assert (lines[-1]["value"], lines[-1]["ticket"], lines[-1]["test"]) == ("", TICKET, "'=SUM(A1)")
    assert 'class="run-change"' in (folder / "sla.html").read_text()


def test_small_steps_are_marked_where_they_are_together_enough_to_be_said(tmp_path: Path) -> None:
    records = [night(number, 100_000 * 0.99**number) for number in range(10)]
    lines = [*csv.DictReader(io.StringIO((written(tmp_path, *records) / "history.csv").read_text()))]
    assert [line["value"] for line in lines if line["change_point"] == "yes"] == [str(100_000 * 0.99**4)]
    marks = [line for line in (tmp_path / "history.openmetrics").read_text().splitlines() if "change_point{" in line]
    assert [" 1.0 " in line for line in marks].count(True) == 1


def test_a_finer_figure_has_lines_of_its_own_with_its_change_point(tmp_path: Path) -> None:
    served = [
        each.model_copy(
            update={
                "campaign": each.campaign.model_copy(update={"search": "saturation"}),
                "figures": each.figures | {"saturation_cps": Estimate(rate, "connections/s")},
            }
        )
        for each, rate in zip([night(number, 90_000) for number in range(7)], FALLS, strict=True)
    ]
    lines = list(csv.DictReader(io.StringIO((written(tmp_path, *served) / "history.csv").read_text())))
    marked = [(line["metric"], line["time_utc"][:10]) for line in lines if line["change_point"] == "yes"]
    assert (len(lines), marked) == (21, [("saturation_cps", "2026-11-03")])
    assert {line["metric"] for line in lines} == {"cps", "pps", "saturation_cps"}


@pytest.mark.parametrize(
    ("rate", "accepted", "verdict", "missed"),
    [
        (HIGH, None, "met", "missed"),
        (LOW, ACCEPTED.model_copy(update={"metrics": ["cps", "pps", CONNECT]}), "missed, accepted", "missed, accepted"),
    ],
    ids=["met", "accepted"],
)
def test_the_rate_with_losses_what_is_promised_and_times_below_the_edge_have_lines_of_their_own(
    rate: float, accepted: Accepted | None, verdict: str, missed: str, tmp_path: Path
) -> None:
    made = night(0, rate, accepted=accepted)
    promised = replace(promise(METRICS[CONNECT], 0.0005), measured=0.0008)
    more = {CONNECT: 0.0008, "first_byte_p99_at_half": 0.001, "pdr_cps": 400_000.0, "latency_p50": 0.0001}
    made = made.model_copy(
        update={
            "figures": made.figures | {name: Estimate(value, METRICS[name].unit.name) for name, value in more.items()},
            "thresholds": [*made.thresholds, promised],
        }
    )
    lines = list(csv.DictReader(io.StringIO((written(tmp_path, made) / "history.csv").read_text())))
    said = {line["metric"]: (line["value"], line["verdict"]) for line in lines if line["metric"] not in ("cps", "pps")}
    assert said == {
        CONNECT: ("0.0008", missed),
        "first_byte_p99_at_half": ("0.001", verdict),
        "pdr_cps": ("400000.0", verdict),
    }
    assert [line["verdict"] for line in lines if line["metric"] == "cps"] == [verdict]


@pytest.mark.parametrize(
    ("code", "shown"),
    [(Code.GENERATOR, {"saturation_cps"}), (Code.TOO_CLOSE, {"cps", "pps", "saturation_cps"})],
)
def test_a_gauge_has_what_was_measured_whether_or_not_that_decides(code: Code, shown: set[str], tmp_path: Path) -> None:
    made = night(0, HIGH, verdict="not measured").model_copy(update={"verdict_code": code})
    figures = made.figures | {"saturation_cps": Estimate(HIGH, "connections/s")}
    undecided = [replace(each, met=False, undecided=True) for each in made.thresholds]
    made = made.model_copy(update={"figures": figures, "thresholds": undecided})
    folder = written(tmp_path, made)
    families = samples_of((folder / "history.openmetrics").read_text())
    assert {re.findall('metric="(.*?)"', labels)[0] for labels, *_ in families["conntrack_sla_value"]} == shown
    lines = list(csv.DictReader(io.StringIO((folder / "history.csv").read_text())))
    assert {line["metric"] for line in lines if line["measured"] == "yes"} == shown
    assert not families["conntrack_sla_met"] and len(families["conntrack_sla_dut"]) == 3


# The grammar of OpenMetrics 1.0 (ABNF, "Text Format"), as far as gauges need it.
NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
NUMBER = r"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?"
LABELS = rf'\{{(?:{NAME}="(?:[^"\\\n]|\\[\\"n])*"(?:,(?!\}}))?)*\}}'
SAMPLE = re.compile(rf"({NAME})({LABELS}) ({NUMBER}) ({NUMBER})")
HEAD = re.compile(rf"# (TYPE) ({NAME}) gauge|# (HELP) ({NAME}) (?:[^\\\n]|\\[\\n])*")


def samples_of(text: str) -> dict[str, list[tuple[str, float, float]]]:
    """Family -> labels, value and time of its samples. Fails where the text breaks the grammar, or the order that it
    asks for: families and series together, times that grow."""
    *lines, end, rest = text.split("\n")
    assert (end, rest) == ("# EOF", "")
    families: dict[str, list[tuple[str, float, float]]] = {}
    for line in lines:
        if head := HEAD.fullmatch(line):
            name = head[2] or head[4]
            assert list(families)[-1:] == [name] if head[3] else name not in families
            families.setdefault(name, [])
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample and [sample[1]] == list(families)[-1:], line
        families[sample[1]].append((sample[2], float(sample[3]), float(sample[4])))
    for samples in families.values():
        series = [labels for labels, _, _ in samples]
        together = [one for one, before in zip(series, ["", *series], strict=False) if one != before]
        assert len(together) == len(set(series))
        assert all(one[2] < other[2] for one, other in pairwise(samples) if one[0] == other[0])
    return families


def test_the_openmetrics_file_keeps_the_grammar_whatever_a_name_holds(tmp_path: Path) -> None:
    hostile = 'back\\slash "quoted"\nnew line # EOF \x1b[31m'
    twice = night(2, 55_000, test=hostile)
    missed = night(8, LOW, test="missed", accepted=ACCEPTED)
    folder = written(tmp_path, *reversed(nights()), night(1, 90_000, test=hostile), twice, twice, missed)
    families = samples_of((folder / "history.openmetrics").read_text())
    kinds = ("value", "low", "high", "met", "change_point", "dut")
    assert list(families) == [f"conntrack_sla_{each}" for each in kinds]
    numbers = {name: [number for _, number, _ in samples] for name, samples in families.items()}
    assert {name.removeprefix("conntrack_sla_"): len(each) for name, each in numbers.items()} == {
        **dict.fromkeys(kinds, 20),
        "low": 10,
        "high": 10,  # of cps and pps, which has no interval
    }
    assert sum(numbers["conntrack_sla_change_point"]) == 1 and sum(numbers["conntrack_sla_met"]) == 18
    (changed,) = [at for _, number, at in families["conntrack_sla_change_point"] if number]
    assert changed == datetime(2026, 11, 3, 20, tzinfo=UTC).timestamp()
    said = " ".join(labels for labels, *_ in families["conntrack_sla_value"])
    assert 'test="back\\\\slash \\"quoted\\"\\nnew line # EOF \\\\x1b[31m"' in said

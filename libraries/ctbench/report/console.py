"""The lines of the console while a test works, when it ends, and when the run ends. Pure functions of records.

Every line fits 120 columns; those of a run's table fit 100.
"""

import statistics
import textwrap
from collections.abc import Sequence

from ctbench.base.text import one_line, printable
from ctbench.base.units import (
    format_bits,
    format_count,
    format_duration,
    format_margin,
    format_rate,
    format_ratio,
)
from ctbench.dut.abilities import InstructionCounts
from ctbench.measure.procedure import Look
from ctbench.report import figures, headline
from ctbench.report.compose import suite_names
from ctbench.report.labels import OUTCOMES
from ctbench.report.page import Page
from ctbench.results.evidence import TrialRecord
from ctbench.results.record import Record
from ctbench.results.store import WithoutRecord
from ctbench.traffic.generator import LoadUnit

WIDTH = 120
#: Of a row: test, floor, measured, verdict.
Cells = tuple[str, str, str, str]
#: Columns of a trial by what it counts: width and name.
_COLUMNS: dict[LoadUnit, tuple[tuple[int, str], ...]] = {
    "connections": ((12, "offered"), (12, "completed"), (9, "loss"), (11, "packets/s"), (12, "connect p99"),
                    (9, "verdict"), (0, "left")),
    "packets": ((12, "offered"), (12, "received"), (9, "loss"), (13, "throughput"), (12, "latency p99"),
                (10, "busy CPUs"), (9, "verdict"), (0, "left")),
}  # fmt: skip
#: Of the table of a run.
TABLE_WIDTH = 100
#: Stands where there is no figure.
_NONE = "-"


def heading(test: str, topology: str, version: str) -> str:
    """Return the line above a test's trials: its name, its topology (`ovs-dpdk/conntrack/1cpu-1rxq`), the DUT's
    version."""
    right = f"{one_line(topology)}  {one_line(version)}".rstrip()
    return f"{_cut(test, WIDTH - len(right) - 2):<50}  {right}"


def trial_heading(unit: LoadUnit = "connections") -> str:
    """Return the column names of `trial_line`."""
    return _columns(unit, "trial", [name for _, name in _COLUMNS[unit]])


def trial_line(number: str, made: TrialRecord, left_s: float) -> str:
    """Return the line of a trial, with its number or the name of its side. `left_s`: the estimated time to the result,
    seconds. Further lines give the reason of an invalid trial and the problems, which the figures do not show."""
    trial = made.trial
    rates = [format_rate(trial.load), format_rate(trial.rate), format_ratio(max(0.0, trial.loss_ratio))]
    line = _columns(trial.unit, number, [*rates, *_details(made), made.state, _left(left_s)])
    doubts = [made.reason] if made.state == "invalid" else []
    doubts += [problem.text for problem in made.problems if problem.text not in made.reason]
    return "\n".join([line, *(_cut(f"          {doubt}", WIDTH) for doubt in doubts)])


def look_line(look: Look, left_s: float) -> str:
    """Return the line of one look at a pair: the rounds so far, the ratio, and the estimated time to the test's end,
    seconds."""
    found = look.found
    if found is None:
        ratio, rounds = "too few that count", ""
    else:
        ratio, rounds = found.as_share(tenths=True), f"{found.rounds} {look.of}"
    promised = "" if look.promised is None else f"at least {look.promised * 100:g} %"
    word = "decided" if look.decided else "goes on" if look.goes_on else ""
    return f"  {f'look {look.number}':<8}{rounds:<13}ratio {ratio:<19} {promised:<17}{word:<10}{_left(left_s)}".rstrip()


def _left(seconds: float) -> str:
    return f"~{seconds:.0f} s" if seconds > 0 else ""


def counted_line(key: str, counted: Sequence[InstructionCounts], net: Sequence[float]) -> str:
    """Return the line of an emulated topology: the instructions that its machines counted, net of the baseline and in
    total."""
    cost, whole = statistics.median(net), statistics.median(each.each for each in counted)
    width = f"± {format_ratio((max(net) - min(net)) / 2 / cost)}" if cost > 0 else ""
    seeds = f"{len(counted)} seeds"
    return _cut(f"  {key:<46} {seeds:<10} {cost:>9,.1f} instructions {width:<11} {whole:>10,.1f} with the wires", WIDTH)


def verdict_line(record: Record) -> str:
    """Return the result of a test: figure, floor, margin, verdict. Lines below give its drop rates, and its promised
    ratio to another topology, or the reason where it is not met."""
    floor = figures.floor(record) or _NONE
    margin = f"   margin {said}" if (said := _margin(record)) != _NONE else ""
    kind = f" ({known})" if (known := figures.kind(record)) else ""
    line = f"  {_result(record)}   floor {floor}{kind}{margin}   {record.outcome.upper()}"
    below = record.message if record.floor.accepted else record.verdict_reason
    below = figures.relation(record) if record.verdict == "met" else below
    return "\n".join([line, *(_indented(each, 4) for each in (figures.drop_rates(record), below) if each)])


def pool_line(record: Record) -> str:
    """Return the line of a test that a member of a testbed pool has measured. The table at the end says why it is not
    met."""
    member, line = record.pool.name if record.pool else "", _cells(record)
    return f"{_cut(member, 14):<14}  {_row(line, len(line[2]), len('not measured'), WIDTH - 16)}"


def metadata(record: Record) -> dict[str, str]:
    """Return the metadata of a test for Robot Framework's log."""
    return {name: text for name, text in figures.metadata(record, _margin(record), none=_NONE).items() if text}


def summary(records: Sequence[Record]) -> str:
    """Return the table at the end of a run, and a line with the number of tests for each verdict."""
    rows, suites, suite = [_cells(record) for record in records], suite_names([each.suite for each in records]), ""
    head: Cells = ("test", "floor", "measured", "verdict")
    rule, widths = "-" * TABLE_WIDTH, [max(len(cells[column]) for cells in (head, *rows)) for column in (2, 3)]
    lines = [_row(head, *widths), rule]
    for record, cells in zip(records, rows, strict=True):
        if record.suite != suite:
            suite = record.suite
            lines.append(_cut(suites[suite], TABLE_WIDTH))
        lines.append(_row(cells, *widths))
        if record.outcome != "met":
            lines.append(_indented(record.message if record.accepted else record.reason, 4, TABLE_WIDTH))
    counts = {word: sum(record.outcome == word for record in records) for word in OUTCOMES}
    total = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    lines += [rule, total or "no test measured anything"]
    return "\n".join(lines)


def without_figure(tests: Sequence[WithoutRecord]) -> list[str]:
    """Return a line with the number of tests without a record, by outcome; empty where all have one."""
    outcomes = [test.outcome for test in tests]
    counts = [f"{outcomes.count(each)} {words}" for each, words in headline.WITHOUT.items() if each in outcomes]
    return [_indented("; ".join(counts), 0)] if counts else []


def report(page: Page) -> str:
    """Return the terminal's text of a report: its headline, and the first file that could not be read."""
    return "\n".join(_indented(said, 0) for said in (*page.headline, *page.unreadable[:1]))


def _margin(record: Record) -> str:
    found = figures.margin_pct(record)
    return _NONE if found is None else format_margin(found)


def _cells(record: Record) -> Cells:
    """Return the table cells of a record; the floor of a candidate is shown by its value alone."""
    floor = figures.floor(record).rpartition(" = ")[2] or _NONE
    return f"  {record.test}", floor, figures.measured(record) or _NONE, record.outcome.upper()


def _row(cells: Cells, measured: int, verdict: int, width: int = TABLE_WIDTH) -> str:
    """Return a row of a table of `width` columns, whose last two cells have these widths. The name gets the space that
    this row's floor leaves, and where that is too little, also the space next to the measured figure."""
    spare = width - len(cells[0]) - len(cells[1]) - verdict - 6
    right = f"  {cells[1]}  {cells[2]:>{min(measured, max(spare, 0))}}  {cells[3]:<{verdict}}"
    room = max(8, width - len(right))
    return f"{_cut(cells[0], room):<{room}}{right}".rstrip()


def _result(record: Record) -> str:
    """Return the figure of a record with its spread: `holds 381.0 k CPS for 1 s (± 5.0 %)`."""
    (promise, metric, _), measured = figures.shown(record), figures.measured(record)
    if not measured:
        return "no result"
    if promise and promise.kind != "absolute":
        return f"{'serves' if promise.kind == 'of_build' else 'ratio'} {measured}"
    asked = metric is figures.metric_of(record)
    what = "holds" if asked and figures.is_rate(record) else metric.title
    spread = " ".join(figures.spread(record)).rstrip() if asked else ""
    return f"{'floor tried:' if record.limited_by == 'floor' else what} {measured}{f' ({spread})' if spread else ''}"


def _details(made: TrialRecord) -> list[str]:
    """Return the cells between loss and verdict."""
    waited = _NONE if made.waited_p99_s is None else format_duration(made.waited_p99_s)
    if made.trial.unit == "connections":
        return [format_count(made.trial.pps), waited]
    return [format_bits(made.trial.bps), waited, f"{made.cpu.busy_cpus:.2f}" if made.cpu else _NONE]


def _columns(unit: LoadUnit, number: str, cells: Sequence[str]) -> str:
    padded = [f"{cell:<{width}}" for (width, _), cell in zip(_COLUMNS[unit], cells, strict=True)]
    return f"  {number:>5}   {' '.join(padded)}".rstrip()


def _cut(text: str, width: int) -> str:
    """Shorten a text to `width` columns; `...` marks the cut."""
    flat = one_line(text) if "\n" in text else printable(text)  # what is indented stays so
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _indented(text: str, by: int, width: int = WIDTH) -> str:
    """Break a sentence into lines that fit, each indented."""
    margin = " " * by
    return textwrap.fill(one_line(text), width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)

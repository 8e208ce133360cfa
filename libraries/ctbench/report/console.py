"""What the console shows while a test works, when it ends, and when the run ends. Pure functions of records.

Every line fits 120 columns.
"""

from collections.abc import Sequence

from ctbench.base.plain_text import one_line, printable
from ctbench.base.units import format_bits, format_count, format_duration, format_margin, format_rate, format_ratio
from ctbench.results.record import Record, ThresholdResult, TrialRecord, Word
from ctbench.traffic.generator import LoadUnit

WIDTH = 120
#: Columns of a trial by what it counts: width and name.
_COLUMNS: dict[LoadUnit, tuple[tuple[int, str], ...]] = {
    "connections": ((12, "offered"), (12, "completed"), (9, "loss"), (11, "packets/s"), (12, "set-up p99"),
                    (9, "verdict"), (0, "left")),
    "packets": ((12, "offered"), (12, "received"), (9, "loss"), (13, "throughput"), (12, "latency p99"),
                (10, "busy CPUs"), (9, "verdict"), (0, "left")),
}  # fmt: skip
_ROW = "{:<56}  {:>12}  {:>20}  {:>10}  {}"
_WORDS: dict[Word, str] = {"met": "MET", "missed": "MISSED", "not measured": "NOT MEASURED"}
#: Metrics of a floor that a row of the table may show.
_RATES = ("cps", "pps", "bps", "relative")


def heading(test: str, topology: str, version: str) -> str:
    """The line over a test's trials: its name, `ovs-dpdk/conntrack/1cpu-1rxq`, the version of the DUT."""
    right = f"{one_line(topology)}  {one_line(version)}".rstrip()
    return f"{_cut(test, WIDTH - len(right) - 2):<50}  {right}"


def trial_heading(unit: LoadUnit = "connections") -> str:
    """The names of the columns of `trial_line`."""
    return _columns(unit, "trial", [name for _, name in _COLUMNS[unit]])


def trial_line(number: int, made: TrialRecord, left_s: float) -> str:
    """One trial as it ends; `left_s` is the time that the result probably takes still. Why a trial was
    invalid is said in a second line: it is nothing that the figures show."""
    trial = made.trial
    rates = [format_rate(trial.load), format_rate(trial.rate), format_ratio(max(0.0, trial.loss_ratio))]
    left = f"~{left_s:.0f} s" if left_s > 0 else ""
    line = _columns(trial.unit, str(number), [*rates, *_details(made), made.state, left])
    doubts = [made.reason] if made.state == "invalid" else []
    doubts += [problem.text for problem in made.problems if problem.text not in made.reason]
    return "\n".join([line, *(_cut(f"          {doubt}", WIDTH) for doubt in doubts)])


def verdict_line(record: Record) -> str:
    """The result of a test: capacity, floor, margin, verdict; below it how it compares with another topology where
    that is promised, or the reason where it is not met."""
    word = _WORDS[record.verdict]
    floor = floor_text(record)
    margin = f"   margin {_margin(record)}" if record.margin_pct is not None else ""
    line = f"  {_capacity(record)}   floor {floor}{margin}   {word}"
    below = [relative_text(record), _repetitions(record)] if record.verdict == "met" else [record.verdict_reason]
    return "\n".join([line, *(_indented(text, 4) for text in below if text)])


def pool_line(record: Record) -> str:
    """A line for a test that a testbed of a pool has measured; why it is not met is in the table at the end."""
    member = record.pool.name if record.pool else ""
    cells = (_cut(record.test, 56), measured_text(record), _margin(record), _WORDS[record.verdict])
    return f"{_cut(member, 14):<14}  " + "{:<56}  {:>20}  {:>10}  {}".format(*cells)


def metadata(record: Record) -> dict[str, str]:
    """What Robot Framework's log shows of a test beside its name."""
    shown = {
        "Floor": floor_text(record),
        "Measured": measured_text(record),
        "Margin": _margin(record),
        "Verdict": record.verdict,
    }
    relative = relative_text(record)
    return shown | ({"Relative": relative} if relative else {})


def summary(records: Sequence[Record], made: Sequence[TrialRecord] | None = None) -> str:
    """The table at the end of a run, and a line that counts the verdicts. `made` are all trials of the run, where those
    of ceilings and comparisons are known; the records have those of the tests."""
    lines = [_ROW.format("test", "floor", "measured", "margin", "verdict"), "-" * WIDTH]
    for record in records:
        cells = (
            _cut(record.test, 56),
            floor_text(record),
            measured_text(record),
            _margin(record),
            _WORDS[record.verdict],
        )
        lines.append(_ROW.format(*cells).rstrip())
        if record.verdict != "met":
            lines.append(_indented(record.verdict_reason, 4))
    counts = {word: sum(record.verdict == word for record in records) for word in _WORDS}
    total = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    lines += ["-" * WIDTH, *_effort(records, made), total or "no test measured anything"]
    return "\n".join(lines)


def _effort(records: Sequence[Record], made: Sequence[TrialRecord] | None) -> list[str]:
    """Where the time of a run went: traffic that counts, ramps before it, what is neither, and all of it."""
    own = [trial for record in records for trial in record.trials]
    trials = [each.trial for each in (own if made is None else made)]
    if not trials:
        return []
    others = len(trials) - len(own)
    which = f" ({others} for ceilings and comparisons)" if others else " of the tests" if made is None else ""
    traffic, ramps = sum(trial.duration_s for trial in trials), sum(trial.ramp_up_s for trial in trials)
    overhead = sum(trial.wall_s for trial in trials) - traffic - ramps
    each = f"{overhead / len(trials):.2f} s a trial"
    whole = f"the tests took {sum(record.wall_s for record in records):.0f} s"
    line = f"{len(trials)} trials{which}: {traffic:.0f} s of traffic, {ramps:.0f} s of ramp-up, {overhead:.0f} s beside"
    return [_indented(f"{line} ({each}); {whole}", 0)]


def _repetitions(record: Record) -> str:
    """What several searches found; empty for one."""
    if record.spread is None:
        return ""
    rate = format_rate if record.profile.kind == "connections" else lambda value: f"{format_count(value)} pps"
    found = f"{rate(min(record.capacities))} to {rate(max(record.capacities))}"
    return f"{len(record.capacities)} searches found {found}, a spread of {format_ratio(record.spread)}"


def _capacity(record: Record) -> str:
    """Say what was found, and how far the next load was that did not hold."""
    if record.measured is None:
        return "no result"
    what = "floor tried:" if record.limited_by == "floor" else "capacity"
    width = ""
    if record.upper_bound is not None and record.measured.rate > 0:
        width = f" ± {(record.upper_bound / record.measured.rate - 1) * 100:.1f} %"
    return f"{what} {measured_text(record)}{width}"


def _deciding(record: Record) -> ThresholdResult | None:
    """The rate to show: the main one, unless only another one fails, or the comparison with another topology is the
    harder promise. Where none was measured, the first."""
    rates = [threshold for threshold in record.thresholds if threshold.metric in _RATES]
    known = [threshold for threshold in rates if threshold.margin_pct is not None]
    failing = [threshold for threshold in known if not threshold.met]
    # The main rate is what people ask for: others are shown only where they alone fail.
    chosen = (failing or known or rates)[:1]
    chosen += [threshold for threshold in failing or known if threshold.metric == "relative"]
    return min(chosen, key=lambda threshold: threshold.margin_pct or 0.0, default=None)


def floor_text(record: Record) -> str:
    """The floor that decides, as a rate: of a comparison, the share of the other topology's rate."""
    shown = _deciding(record)
    if shown is None:
        return (record.floors.cps or record.floors.pps or "").removeprefix(">=").strip()
    return _rate_text(record, shown, shown.limit)


def measured_text(record: Record) -> str:
    """What was measured of the floor that decides."""
    shown = _deciding(record)
    if record.measured is None or shown is None or shown.measured is None:
        return "-"
    least = "at least " if record.limited_by in ("generator", "range") and record.verdict != "missed" else ""
    return f"{least}{_rate_text(record, shown, shown.measured)}"


def relative_text(record: Record) -> str:
    """How the rate compares with that of another topology; empty where that was not promised, or not measured."""
    shown = next((threshold for threshold in record.thresholds if threshold.metric == "relative"), None)
    if shown is None or record.measured is None or record.baseline is None or not record.baseline.rate:
        return ""
    return record.baseline.relation(record.measured.rate, shown.limit)


def _rate_text(record: Record, threshold: ThresholdResult, value: float) -> str:
    """A limit or a figure of a threshold for people; connections need no word, packets have theirs."""
    if threshold.metric == "bps":
        return format_bits(value)
    if threshold.metric == "relative":
        value *= record.baseline.rate or 0.0 if record.baseline else 0.0
    connections = threshold.metric == "cps" or (threshold.metric == "relative" and record.profile.kind == "connections")
    return format_rate(value) if connections else f"{format_count(value)} pps"


def _details(made: TrialRecord) -> list[str]:
    """The cells between loss and verdict."""
    trial = made.trial
    if trial.unit == "connections":
        return [format_count(trial.pps), _microseconds(trial.setup_time_us.p99 if trial.setup_time_us else None)]
    busy = f"{made.cpu.busy_cpus:.2f}" if made.cpu else "-"
    return [format_bits(trial.bps), _microseconds(made.latency_us.p99 if made.latency_us else None), busy]


def _microseconds(time_us: float | None) -> str:
    return "-" if time_us is None else format_duration(time_us / 1e6)


def _columns(unit: LoadUnit, number: str, cells: Sequence[str]) -> str:
    padded = [f"{cell:<{width}}" for (width, _), cell in zip(_COLUMNS[unit], cells, strict=True)]
    return f"  {number:>5}   {' '.join(padded)}".rstrip()


def _margin(record: Record) -> str:
    return format_margin(record.margin_pct) if record.margin_pct is not None else "-"


def _cut(text: str, width: int) -> str:
    """Shorten a text to `width` columns, visibly."""
    flat = one_line(text) if "\n" in text else printable(text)  # what is indented stays so
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _indented(text: str, by: int) -> str:
    """Break a sentence into lines that fit, each indented."""
    lines, line = [], ""
    for word in printable(text).split():
        if line and by + len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {_cut(word, WIDTH - by)}".strip()
    return "\n".join(" " * by + part for part in [*lines, line])

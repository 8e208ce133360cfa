"""What the console shows while a test works, when it ends, and when the run ends. Pure functions of records.

Every line fits 120 columns.
"""

from collections.abc import Sequence

from ctbench.results.record import Record, ThresholdResult, TrialRecord, Word
from ctbench.units import format_count, format_duration, format_margin, format_rate, format_ratio

WIDTH = 120
_TRIAL = "  {:>5}   {:<12} {:<12} {:<9} {:<11} {:<12} {:<9} {}"
_ROW = "{:<56}  {:>12}  {:>20}  {:>10}  {}"
_WORDS: dict[Word, str] = {"met": "MET", "missed": "MISSED", "not measured": "NOT MEASURED"}
_RATES = {"cps": "", "pps": " packets"}


def heading(test: str, topology: str, version: str) -> str:
    """The line over a test's trials: its name, `ovs-dpdk/conntrack/1cpu-1rxq`, the version of the DUT."""
    right = f"{topology}  {version}".rstrip()
    return f"{_cut(test, WIDTH - len(right) - 2):<50}  {right}"


def trial_heading() -> str:
    """The names of the columns of `trial_line`."""
    return _TRIAL.format("trial", "offered", "completed", "loss", "packets/s", "set-up p99", "verdict", "left").rstrip()


def trial_line(number: int, made: TrialRecord, left_s: float) -> str:
    """One trial as it ends; `left_s` is the time that the result probably takes still. Why a trial was
    invalid is said in a second line: it is nothing that the figures show."""
    trial = made.trial
    set_up = format_duration(trial.setup_time_us.p99 / 1e6) if trial.setup_time_us else "-"
    line = _TRIAL.format(
        number,
        format_rate(trial.load_cps),
        format_rate(trial.cps),
        format_ratio(max(0.0, trial.loss_ratio)),
        format_count(trial.pps),
        set_up,
        made.state,
        f"~{left_s:.0f} s" if left_s > 0 else "",
    ).rstrip()
    doubts = [made.reason] if made.state == "invalid" else []
    doubts += [problem.text for problem in made.problems if problem.text not in made.reason]
    return "\n".join([line, *(_cut(f"          {doubt}", WIDTH) for doubt in doubts)])


def verdict_line(record: Record) -> str:
    """The result of a test: capacity, floor, margin, verdict; a second line with the reason unless it is met."""
    word = _WORDS[record.verdict]
    floor = floor_text(record)
    margin = f"   margin {_margin(record)}" if record.margin_pct is not None else ""
    line = f"  {_capacity(record)}   floor {floor}{margin}   {word}"
    return line if record.verdict == "met" else f"{line}\n{_indented(record.verdict_reason, 4)}"


def summary(records: Sequence[Record]) -> str:
    """The table at the end of a run, and a line that counts the verdicts."""
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
    lines += ["-" * WIDTH, total or "no test measured anything"]
    return "\n".join(lines)


def _capacity(record: Record) -> str:
    """Say what was found, and how far the next load was that did not hold."""
    if record.measured is None:
        return "no result"
    what = "floor tried:" if record.limited_by == "floor" else "capacity"
    width = ""
    if record.upper_bound_cps is not None and record.measured.cps > 0:
        width = f" ± {(record.upper_bound_cps / record.measured.cps - 1) * 100:.1f} %"
    return f"{what} {measured_text(record)}{width}"


def _deciding(record: Record) -> ThresholdResult | None:
    """The rate whose margin is the worst: the one to show. Where neither was measured, the first."""
    rates = [threshold for threshold in record.thresholds if threshold.metric in _RATES]
    known = [threshold for threshold in rates if threshold.margin_pct is not None]
    failing = [threshold for threshold in known if not threshold.met]
    # Connections are what people ask for: packets are shown only where they alone fail.
    return next(iter(failing or known or rates), None)


def floor_text(record: Record) -> str:
    shown = _deciding(record)
    if shown is None:
        return record.floors.cps.removeprefix(">=").strip()
    return format_rate(shown.limit) if shown.metric == "cps" else f"{format_count(shown.limit)} pps"


def measured_text(record: Record) -> str:
    shown = _deciding(record)
    if record.measured is None or shown is None or shown.measured is None:
        return "-"
    least = "at least " if record.limited_by in ("generator", "range") and record.verdict != "missed" else ""
    text = format_rate(shown.measured) if shown.metric == "cps" else f"{format_count(shown.measured)} pps"
    return f"{least}{text}"


def _margin(record: Record) -> str:
    return format_margin(record.margin_pct) if record.margin_pct is not None else "-"


def _cut(text: str, width: int) -> str:
    """Shorten a text to `width` columns, visibly."""
    flat = " ".join(text.split()) if "\n" in text else text
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _indented(text: str, by: int) -> str:
    """Break a sentence into lines that fit, each indented."""
    lines, line = [], ""
    for word in text.split():
        if line and by + len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {_cut(word, WIDTH - by)}".strip()
    return "\n".join(" " * by + part for part in [*lines, line])

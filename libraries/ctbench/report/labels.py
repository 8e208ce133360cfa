"""The words and signs of a page, and the limits to how much of everything it shows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from ctbench.base.units import format_margin, plural, thousands
from ctbench.results.metrics import RATE_OF
from ctbench.traffic.generator import LoadUnit

#: Stands where there is no figure: an en dash.
DASH = "\u2013"
#: Classes of the style sheet for good news, bad news and what is not known.
Tone = Literal["met", "missed", "unmeasured", "skipped"]
#: Tones from the worst news on.
WORST_FIRST: tuple[Tone, ...] = ("missed", "unmeasured", "met", "skipped")


class Shown(NamedTuple):
    """The presentation of an outcome."""

    word: str
    #: Stands next to the word, so that no verdict depends on its colour.
    sign: str
    tone: Tone
    #: What it is in junit.xml: `failure`, `error`, `skipped`; empty for a test that passed.
    case: str


#: Every outcome of a test, with and without a record, of a gate as a whole, and of a file that is not a record; the
#: verdicts first.
OUTCOMES: dict[str, Shown] = {
    "met": Shown("met", "✓", "met", ""),
    "missed": Shown("missed", "✗", "missed", "failure"),
    "not measured": Shown("not measured", "?", "unmeasured", "error"),
    "met, failed": Shown("met, failed", "✗", "missed", "failure"),
    "no slower seen": Shown("no slower seen", DASH, "skipped", "skipped"),
    "left open": Shown("left open", DASH, "skipped", "skipped"),
    "missed, accepted": Shown("accepted", "✗", "unmeasured", "skipped"),
    "skipped": Shown("skipped", DASH, "skipped", "skipped"),
    "nightly only": Shown("nightly only", DASH, "skipped", "skipped"),
    "no floor yet": Shown("no floor yet", DASH, "skipped", "skipped"),
    "failed": Shown("failed, no record", "!", "unmeasured", "error"),
    "not begun": Shown("not begun", "!", "unmeasured", "error"),
    "gate not measured": Shown("gate not measured", "?", "unmeasured", "error"),
    "unreadable": Shown("unreadable", "!", "unmeasured", "error"),
}


#: Charts of a section, bars of a chart; values of one fact, sentences of one list: more are counted.
MOST_CHARTS, MOST_BARS, MOST_VALUES = 60, 24, 20
#: Characters of a name, of a sentence.
_LONGEST_NAME, _LONGEST_SENTENCE = 200, 1000


def name(text: str) -> str:
    """Return a name, cut to the length that a page shows."""
    return _cut(text, _LONGEST_NAME)


def sentence(text: str) -> str:
    """Return a sentence, cut to the length that a page shows."""
    return _cut(text, _LONGEST_SENTENCE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def once(values: Iterable[str]) -> list[str]:
    """Return the texts that are not empty, each once, in their order."""
    return list(dict.fromkeys(filter(None, values)))


def some(values: Sequence[str]) -> tuple[str, ...]:
    """Return the first values, cut as sentences, and how many more there are."""
    shown = [sentence(value) for value in values[:MOST_VALUES]]
    return (*shown, *([f"and {thousands(len(values) - MOST_VALUES)} more"] if len(values) > MOST_VALUES else []))


def thrown_away(count: int, trials: int) -> str:
    """Return the count of invalid trials: `1 of 3 trials thrown away`; empty where there are none."""
    return f"{count} of {plural(trials, 'trial')} thrown away" if count else ""


def moment(when: datetime) -> str:
    """Return a time in UTC: `2026-11-21 19:31 UTC`."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def span(first: datetime, last: datetime) -> str:
    """Return the time from one moment to another; the day stands once where both have the same."""
    if f"{first:%Y-%m-%d}" == f"{last:%Y-%m-%d}":
        return f"{first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC"
    return f"{first:%Y-%m-%d %H:%M} to {moment(last)}"


def length(seconds: float) -> str:
    """Return a duration: `45 s`, `6 min`, `2 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def rate(value: float, unit: LoadUnit) -> str:
    """Return a load, in connections or packets per second."""
    return RATE_OF[unit].format(value)


def margin(percent: float | None) -> str:
    """Return a margin with a true minus sign; a dash where there is none."""
    return DASH if percent is None else format_margin(percent).replace("-", "\u2212")


def cpus_and_queues(cpus: int, queues: int) -> str:
    """Return CPUs and RX queues in words: `2 CPUs, 1 queue`."""
    return f"{plural(cpus, 'CPU')}, {plural(queues, 'queue')}"

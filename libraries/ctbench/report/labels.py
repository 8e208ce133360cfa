"""How texts read on a page, and how much of everything a page shows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ctbench.base.units import format_margin
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Word
from ctbench.traffic.generator import LoadUnit

#: Stands where there is no figure: an en dash.
DASH = "\u2013"
#: Tones from the worst news on.
WORST_FIRST = ("missed", "unmeasured", "met", "skipped")
#: The sign next to each word, so that no verdict depends on its colour.
SIGNS: dict[Word, str] = {"met": "✓", "missed": "✗", "not measured": "?"}


@dataclass(frozen=True)
class Limits:
    """How much a page shows. A run has some sixty tests; of thousands the rest is counted, and is in the files next to
    the page."""

    #: Tests in the table of results.
    results: int = 1000

    #: Of them, those on the first screen.
    nearest: int = 3
    #: Lines of a table, tests listed with their reasons, files that are not records.
    rows: int = 100
    #: Charts of a section, and bars of a chart.
    charts: int = 60
    bars: int = 24
    #: Values of one fact, sentences of one list.
    values: int = 20
    #: Searches shown in full, and runs whose files are listed.
    searches: int = 4
    runs: int = 10
    #: Rows of sla.md: a merge request takes 65 536 characters.
    merge_request: int = 200
    #: Characters of a name, of a sentence.
    name: int = 200
    sentence: int = 1000


LIMITS = Limits()


def name(text: str) -> str:
    """A name as a page shows it."""
    return _cut(text, LIMITS.name)


def sentence(text: str) -> str:
    """A sentence as a page shows it."""
    return _cut(text, LIMITS.sentence)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def once(values: Iterable[str]) -> list[str]:
    """Each text once, in their order; what is empty is left out."""
    return list(dict.fromkeys(filter(None, values)))


def some(values: Sequence[str], most: int) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    shown = [sentence(value) for value in values[:most]]
    return (*shown, *([f"and {thousands(len(values) - most)} more"] if len(values) > most else []))


def more(count: int, what: str, where: str) -> str:
    """How many of something are not on the page, and where they are; empty where all are."""
    return f"{plural(count, f'more {what}')}: {where}." if count > 0 else ""


def plural(count: int, singular: str, many: str = "") -> str:
    """`1 test`, `2 tests`, `1 200 tests`."""
    return f"{thousands(count)} {singular if count == 1 else many or singular + 's'}"


def thrown_away(count: int, trials: int) -> str:
    """`1 of 3 trials thrown away`; empty where none was."""
    return f"{count} of {plural(trials, 'trial')} thrown away" if count else ""


def thousands(count: int) -> str:
    """A whole number with thin spaces between its thousands: `1 234 567`."""
    return f"{count:,}".replace(",", "\u202f")


def moment(when: datetime) -> str:
    """`2026-11-21 19:31 UTC`."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def span(first: datetime, last: datetime) -> str:
    """From one moment to another, the day said once where it is the same."""
    if f"{first:%Y-%m-%d}" == f"{last:%Y-%m-%d}":
        return f"{first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC"
    return f"{first:%Y-%m-%d %H:%M} to {moment(last)}"


def length(seconds: float) -> str:
    """`45 s`, `6 min`, `2 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def rate(value: float, unit: LoadUnit) -> str:
    """A load of a profile that counts these."""
    return RATE_OF[unit].format(value)


def margin(percent: float | None) -> str:
    """With a true minus sign; a dash where there is none."""
    return DASH if percent is None else format_margin(percent).replace("-", "\u2212")


def cpus_and_queues(cpus: int, queues: int) -> str:
    """`2 CPUs, 1 queue`."""
    return f"{plural(cpus, 'CPU')}, {plural(queues, 'queue')}"

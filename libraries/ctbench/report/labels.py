"""How figures of a record read on a page. Pure functions; the units are those of `ctbench.base.units`."""

from collections.abc import Sequence
from datetime import datetime

from ctbench.base.units import format_duration, format_margin
from ctbench.report import figures
from ctbench.results.metrics import METRICS, RATE_OF
from ctbench.results.record import Record, Word
from ctbench.traffic.generator import LoadUnit

#: Stands where there is no figure: an en dash.
DASH = "\u2013"

#: The sign next to each word, so that no verdict depends on its colour.
SIGNS: dict[Word, str] = {"met": "✓", "missed": "✗", "not measured": "?"}
#: The class that a verdict has in the style sheet.
CLASSES: dict[Word, str] = {"met": "met", "missed": "missed", "not measured": "unmeasured"}


def plural(count: int, singular: str, many: str = "") -> str:
    """`1 test`, `2 tests`, `1 200 tests`."""
    return f"{thousands(count)} {singular if count == 1 else many or singular + 's'}"


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


def times(median_us: float, p99_us: float, longest_us: float) -> str:
    """`p50 210 us, p99 4.1 ms, at most 8.0 ms`."""
    middle, most, longest = (format_duration(each / 1e6) for each in (median_us, p99_us, longest_us))
    return f"p50 {middle}, p99 {most}, at most {longest}"


def rate(value: float, unit: LoadUnit) -> str:
    """A load of a profile that counts these."""
    return RATE_OF[unit].format(value)


def floor(record: Record) -> str:
    """The promise that decides."""
    return figures.floor(record) or DASH


def measured(record: Record) -> str:
    """What was measured of it."""
    return figures.measured(record) or DASH


def measured_of(record: Record) -> str:
    """The metric of these two where it is not the load that the profile counts; empty where it is."""
    shown = figures.deciding(record)
    if shown and shown.kind != "absolute":
        return f"of {shown.other}"
    metric = METRICS[shown.metric] if shown else figures.metric_of(record)
    return "" if metric is RATE_OF[record.profile.kind] else metric.title


def margin(percent: float | None) -> str:
    """With a true minus sign; a dash where there is none."""
    return DASH if percent is None else format_margin(percent).replace("-", "\u2212")


def cpus_and_queues(cpus: int, queues: int) -> str:
    """`2 CPUs, 1 queue`."""
    return f"{plural(cpus, 'CPU')}, {plural(queues, 'queue')}"


def common_start(suites: Sequence[str]) -> str:
    """The parts that the long names of all suites begin with, with a dot: nothing on the page needs them."""
    parts = [suite.split(".")[:-1] for suite in suites]
    shared: list[str] = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "".join(f"{part}." for part in shared)

"""What a chart shows: figures with their words, and where each of them is, in percent of the width and the height.
The templates draw it (`templates/charts.html.j2`)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ctbench.base.units import format_count
from ctbench.results.record import Word

#: How values of an axis are placed. `loss`: no loss at the low end, then logarithmic up to everything; `share`: from a
#: bit below the least to a bit above the most; `seconds`: up to the last; `labels`: beside each other.
Scale = Literal["linear", "log", "loss", "share", "seconds", "labels"]
Mark = Literal["dot", "cross", "ring"]

#: Mark and class of the style sheet of what was judged.
RUN_MARKS: dict[Word, tuple[Mark, str]] = {
    "met": ("dot", "run-met"),
    "missed": ("cross", "run-missed"),
    "not measured": ("ring", "run-unmeasured"),
}
#: The least loss that has a place of its own, and where none is.
_LEAST_LOSS, _NO_LOSS = 1e-5, 1e-6
#: Of numbers below this, the digits that are counted with are not enough.
_SMALL = 0.1
#: Labels along an axis at most: words are wide.
_MOST_LABELS = 5


@dataclass(frozen=True)
class LegendItem:
    """One line of a legend: what is drawn, in which class of the style sheet, and what it stands for."""

    kind: Literal["bar", "line"] | Mark
    style: str
    text: str


@dataclass(frozen=True)
class Bar:
    """One bar."""

    value: float
    #: The sentence that explains it, and its class in the style sheet.
    hint: str
    style: str


@dataclass(frozen=True)
class BarRow:
    """A label with its bar."""

    label: str
    #: The figure of the row in words.
    text: str
    bar: Bar
    #: The floor, and what perfect scaling would give; None where there is none.
    floor: float | None = None
    ideal: float | None = None


@dataclass(frozen=True)
class Bars:
    """Horizontal bars on one scale, which begins at 0."""

    title: str
    #: One sentence on what is seen, or what the bars count.
    caption: str
    legend: tuple[LegendItem, ...]
    rows: tuple[BarRow, ...]

    def percent(self, value: float) -> float:
        """Where a value is."""
        return round(100 * value / self._whole, 2)

    @cached_property
    def _whole(self) -> float:
        """What is as long as the chart is wide."""
        values = [value for row in self.rows for value in (row.floor, row.ideal, row.bar.value)]
        return max(value or 0.0 for value in values) or 1.0


@dataclass(frozen=True)
class Point:
    """A point of a series."""

    x: float
    y: float
    hint: str = ""


@dataclass(frozen=True)
class Series:
    """Points of one kind, marked or joined by a line."""

    points: tuple[Point, ...]
    style: str
    mark: Mark | None = None
    joined: bool = False


@dataclass(frozen=True)
class Guide:
    """A line across the whole chart at a value of the x or y axis; a word on it stands in the legend."""

    along: Literal["x", "y"]
    value: float
    text: str
    style: str


def short_count(value: float) -> str:
    """A round number without needless zeros: `50 k`, `1.5 M`, `0.0005`."""
    if 0 < abs(value) < _SMALL:
        return f"{value:g}"
    number, _, unit = format_count(value).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{number} {unit}".rstrip()


def short_share(value: float) -> str:
    """A share in percent; of a loss, none is a word."""
    return f"{value * 100:g} %" if value else "none"


@dataclass(frozen=True)
class Axis:
    """An axis: its name, how values are placed, and how they read."""

    name: str
    scale: Scale = "linear"
    words: Callable[[float], str] = short_count
    #: Of `labels`: text of 0, 1, 2 …
    labels: tuple[str, ...] = ()

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """The ends that show all values: of a linear axis 0 and a round number, of a logarithmic one a bit beyond."""
        low, high = min(values, default=0.0), max(values, default=0.0) or 1.0
        match self.scale:
            case "labels":
                return -0.5, len(self.labels) - 0.5
            case "loss":
                return _NO_LOSS, 1.0
            case "log":
                return min((value for value in values if value > 0), default=1.0) / 1.3, high * 1.3
            case "share":
                room = max(high - low, 0.01 * high) * 0.15
                return max(0.0, low - room), high + room
            case "seconds":
                return 0.0, high
        step = _nice_step(high * 1.08)
        return 0.0, math.ceil(high * 1.02 / step) * step


@dataclass(frozen=True)
class Placed:
    """An axis with its ends."""

    axis: Axis
    low: float
    high: float

    def percent(self, value: float) -> float:
        """0 at the low end of the axis, 100 at its high end; what is beyond stays at the end."""
        low, high = self.low, self.high
        if self.axis.scale == "loss" and value > 0:
            value = max(value, _LEAST_LOSS)
        if self.axis.scale in ("log", "loss"):
            value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Values to write along the axis, with their words."""
        if self.axis.scale == "labels":
            labels = self.axis.labels
            each = max(1, math.ceil(len(labels) / _MOST_LABELS))
            return [(number, labels[number]) for number in range(0, len(labels), each)]
        if self.axis.scale == "loss":
            values = [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
        elif self.axis.scale == "log":
            values = _decades(self.low, self.high)
        else:
            values = _steps(self.low, self.high)
        return [(value, self.axis.words(value)) for value in values]


@dataclass(frozen=True)
class XyChart:
    """Points over two axes."""

    title: str
    caption: str
    x: Axis
    y: Axis
    legend: tuple[LegendItem, ...]
    series: tuple[Series, ...]
    guides: tuple[Guide, ...] = ()

    @cached_property
    def across(self) -> Placed:
        """The x axis."""
        return self._placed(self.x, [point.x for each in self.series for point in each.points], "x")

    @cached_property
    def up(self) -> Placed:
        """The y axis."""
        return self._placed(self.y, [point.y for each in self.series for point in each.points], "y")

    def _placed(self, axis: Axis, values: Sequence[float], along: str) -> Placed:
        return Placed(axis, *axis.ends([*values, *(each.value for each in self.guides if each.along == along)]))

    def down(self, value: float) -> float:
        """Where a value of the y axis is, in percent from the top."""
        return round(100 - self.up.percent(value), 2)


@dataclass(frozen=True)
class Span:
    """A label with a value, the interval that it lies in, and how it was judged."""

    label: str
    #: The figure of the row in words.
    text: str
    value: float
    low: float
    high: float
    verdict: Word


@dataclass(frozen=True)
class Spans:
    """Values with their intervals below each other, on one scale around zero."""

    title: str
    #: One sentence on what is seen.
    caption: str
    legend: tuple[LegendItem, ...]
    spans: tuple[Span, ...]
    #: The least that is promised; None where nothing is of all of them.
    floor: float | None = None

    def percent(self, value: float) -> float:
        """Where a value is: 50 is zero."""
        return round(50 + 48 * value / self._reach, 2)

    @cached_property
    def _reach(self) -> float:
        """The farthest value in either direction."""
        return max(abs(value) for each in self.spans for value in (each.low, each.high, self.floor or 0.0)) or 1.0


Chart = Bars | Spans | XyChart


def _nice_step(length: float, about: int = 4) -> float:
    """A round step (1, 2 or 5 times a power of ten) that divides a length into about as many parts."""
    raw = length / about
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if raw <= factor * power * 1.0000001)


def _steps(low: float, high: float) -> list[float]:
    """Round values within the ends, equally far from each other."""
    step = _nice_step(high - low)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten within the ends, or fewer of them where they would be too many; between ends
    that are so near that one is left at most, equal steps."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        within = [value for value in values if low <= value <= high]
        if len(within) <= 6:
            return within if len(within) > 1 else _steps(low, high)
    return within[:: math.ceil(len(within) / 6)]

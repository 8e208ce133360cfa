"""The models of charts: figures with their words, each with its position in percent of the width and the height. The
templates draw them (`templates/charts.html.j2`)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ctbench.base.units import format_count
from ctbench.results.verdict import Word

#: How values of an axis are placed. `loss`: no loss at the low end, then logarithmic up to everything; `share`: from a
#: bit below the least to a bit above the most; `labels`: next to each other.
Scale = Literal["linear", "log", "loss", "share", "labels"]
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
    """An entry of a legend: the shape, its class of the style sheet, and its meaning."""

    kind: Literal["bar", "line"] | Mark
    style: str
    text: str


@dataclass(frozen=True)
class Bar:
    """A label with its figure: a bar that begins at 0; around zero, a mark with its interval."""

    label: str
    #: The figure in words.
    text: str
    value: float
    #: The sentence that explains it, and its class in the style sheet.
    hint: str = ""
    style: str = "measured"
    #: The floor, and what perfect scaling would give; None where there is none.
    floor: float | None = None
    ideal: float | None = None
    #: Around zero: the interval, and how the figure was judged.
    low: float = 0.0
    high: float = 0.0
    verdict: Word = "met"


@dataclass(frozen=True)
class Bars:
    """Figures below each other on one scale, which begins at 0 or has it in its middle."""

    title: str
    #: One sentence on what is seen, or what the bars count.
    caption: str
    legend: tuple[LegendItem, ...]
    rows: tuple[Bar, ...]
    around_zero: bool = False
    #: What their scale counts, which is drawn below them; empty: they have none.
    scale: str = ""

    def percent(self, value: float) -> float:
        """Return the position of a value, in percent; around zero, 50 is zero."""
        return round(50 + 48 * value / self._most if self.around_zero else 100 * value / self._most, 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values to write along the scale, with their words."""
        return [(value, short_count(value)) for value in _steps(0.0, self._most)]

    @cached_property
    def _most(self) -> float:
        """The largest distance of a value from 0."""
        values = [value for row in self.rows for value in (row.floor, row.ideal, row.value, row.low, row.high)]
        return max(abs(value or 0.0) for value in values) or 1.0


@dataclass(frozen=True)
class Point:
    """A point of a series."""

    x: float
    y: float
    hint: str = ""


@dataclass(frozen=True)
class Points:
    """Points of one kind, each with a mark, or joined by a line."""

    points: tuple[Point, ...]
    style: str
    mark: Mark | None = None


@dataclass(frozen=True)
class Guide:
    """A line across the whole chart at a value of the x or y axis; its text stands in the legend."""

    along: Literal["x", "y"]
    value: float
    text: str
    style: str


def short_count(value: float) -> str:
    """Return a round number without needless zeros: `50 k`, `1.5 M`, `0.0005`."""
    if 0 < abs(value) < _SMALL:
        return f"{value:g}"
    number, _, unit = format_count(value).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{number} {unit}".rstrip()


def short_share(value: float) -> str:
    """Return a share in percent; no loss is `none`."""
    return f"{value * 100:g} %" if value else "none"


@dataclass(frozen=True)
class Axis:
    """An axis: its name, its scale, the format of its values, and the values that it has to show."""

    name: str
    scale: Scale = "linear"
    words: Callable[[float], str] = short_count
    #: Of `labels`: text of 0, 1, 2 …
    labels: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The ends that show all values: for a linear axis 0 and a round number, for a logarithmic one somewhat more
        than the range of the values."""
        low, high = min(self.values, default=0.0), max(self.values, default=0.0) or 1.0
        match self.scale:
            case "labels":
                return -0.5, len(self.labels) - 0.5
            case "loss":
                return _NO_LOSS, 1.0
            case "log":
                return min((value for value in self.values if value > 0), default=1.0) / 1.3, high * 1.3
            case "share":
                room = max(high - low, 0.01 * high) * 0.15
                return max(0.0, low - room), high + room
        step = _nice_step(high * 1.08)
        return 0.0, math.ceil(high * 1.02 / step) * step

    def percent(self, value: float) -> float:
        """Return the position of a value: 0 at the low end of the axis, 100 at its high end. A value beyond an end is
        put there."""
        low, high = self.ends
        if self.scale == "loss" and value > 0:
            value = max(value, _LEAST_LOSS)
        if self.scale in ("log", "loss"):
            value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Values to write along the axis, with their words."""
        if self.scale == "labels":
            each = max(1, math.ceil(len(self.labels) / _MOST_LABELS))
            return [(number, self.labels[number]) for number in range(0, len(self.labels), each)]
        if self.scale == "loss":
            values = [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
        elif self.scale == "log":
            values = _decades(*self.ends)
        else:
            values = _steps(*self.ends)
        return [(value, self.words(value)) for value in values]


@dataclass(frozen=True)
class XyChart:
    """A chart of points over two axes."""

    title: str
    caption: str
    x: Axis
    y: Axis
    legend: tuple[LegendItem, ...]
    series: tuple[Points, ...]
    guides: tuple[Guide, ...] = ()

    def __post_init__(self) -> None:
        points = [point for each in self.series for point in each.points]
        for along, values in (("x", [point.x for point in points]), ("y", [point.y for point in points])):
            values += [guide.value for guide in self.guides if guide.along == along]
            object.__setattr__(self, along, replace(getattr(self, along), values=tuple(values)))

    def down(self, value: float) -> float:
        """Return the position of a value of the y axis, in percent from the top."""
        return round(100 - self.y.percent(value), 2)


Chart = Bars | XyChart


def _nice_step(length: float) -> float:
    """Return a round step (1, 2 or 5 times a power of ten) that divides a length into about four parts."""
    raw = length / 4
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if raw <= factor * power * 1.0000001)


def _steps(low: float, high: float) -> list[float]:
    """Return round values within the ends, at equal distances."""
    step = _nice_step(high - low)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten within the ends, thinned out where they are too many. Where the ends
    are so near that at most one is within, return equal steps."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    within = [value for value in values if low <= value <= high]
    return within[:: math.ceil(len(within) / 6)] if len(within) > 1 else _steps(low, high)

"""What a chart shows, before anything is drawn: series of figures with their words."""

from dataclasses import dataclass
from typing import Literal

#: How values of an axis are placed. `loss`: a band for no loss at all, then logarithmic up to everything.
Scale = Literal["linear", "log", "loss"]
Mark = Literal["dot", "cross", "ring"]


@dataclass(frozen=True)
class LegendItem:
    """One line of a legend: what is drawn, in which class of the style sheet, and what it stands for."""

    kind: Literal["bar", "line"] | Mark
    style: str
    text: str


@dataclass(frozen=True)
class Bar:
    """One bar, or one piece of a bar that is made of several."""

    value: float
    #: The sentence that explains it, and its class in the style sheet.
    hint: str
    style: str


@dataclass(frozen=True)
class BarRow:
    """A label with its bars."""

    label: str
    #: The figure of the row in words.
    text: str
    bars: tuple[Bar, ...]
    #: The floor, and what perfect scaling would give; None where there is none.
    floor: float | None = None
    ideal: float | None = None
    #: Stands below the bars.
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Horizontal bars on one scale, which begins at 0."""

    title: str
    #: One sentence on what is seen.
    caption: str
    legend: tuple[LegendItem, ...]
    rows: tuple[BarRow, ...]
    #: Whether the bars of a row are pieces of one bar, from the left to the right; else they are below each other.
    stacked: bool = False
    #: What the bars count, where no text has the unit.
    axis: str = ""


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
class Axis:
    """An axis: its name, how values are placed, and how they read."""

    name: str
    scale: Scale = "linear"
    #: Words for a value: `rate`, `count`, `seconds`, `microseconds`, `loss`, `share`; `label` takes those of `labels`.
    words: Literal["count", "seconds", "microseconds", "loss", "share", "label"] = "count"
    #: For `label`: text of 0, 1, 2 …
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guide:
    """A line across the whole chart at a value of the x or y axis, with a word on it."""

    along: Literal["x", "y"]
    value: float
    text: str
    style: str


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


Chart = Bars | XyChart

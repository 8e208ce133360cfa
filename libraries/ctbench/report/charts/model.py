"""What a chart shows, before anything is drawn: series of figures with their words."""

from dataclasses import dataclass
from typing import Literal

#: How values of an axis are placed. `loss`: a band for no loss at all, then logarithmic up to everything.
Scale = Literal["linear", "log", "loss"]
Mark = Literal["dot", "cross", "ring", "diamond"]


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
    #: The figure on it, and the sentence that explains it.
    text: str
    hint: str
    #: Class in the style sheet.
    style: str


@dataclass(frozen=True)
class Category:
    """Bars that stand side by side over one label."""

    #: A line for each name in `BarChart.labels`.
    label: tuple[str, ...]
    bars: tuple[Bar | None, ...]
    #: The floor, and what perfect scaling would give; None where there is none.
    floor: float | None = None
    ideal: float | None = None


@dataclass(frozen=True)
class BarChart:
    """Groups of bars, with the floor across each group and a line of perfect scaling."""

    title: str
    #: One sentence on what is seen.
    caption: str
    #: What the bars count.
    axis: str
    #: What the lines of a label below the bars are.
    labels: tuple[str, ...]
    legend: tuple[LegendItem, ...]
    categories: tuple[Category, ...]


@dataclass(frozen=True)
class SharePart:
    """A part of a horizontal bar."""

    share: float
    hint: str
    style: str


@dataclass(frozen=True)
class Share:
    """One horizontal bar: a share of the first one."""

    label: str
    #: The rate, a ratio of the baseline's, and both in words.
    share: float
    text: str
    hint: str
    style: str
    #: The least share that is promised; None where nothing is.
    floor: float | None = None
    #: What it is made of, from the left to the right; where that is empty, it is of one piece.
    parts: tuple[SharePart, ...] = ()
    #: What stands below the bar, where anything does.
    note: str = ""


@dataclass(frozen=True)
class ShareChart:
    """Horizontal bars: what is left of the first one's rate."""

    title: str
    caption: str
    legend: tuple[LegendItem, ...]
    shares: tuple[Share, ...]


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


@dataclass(frozen=True)
class Panels:
    """Charts above each other that share their x axis: what happened at the same time is in one line."""

    title: str
    caption: str
    legend: tuple[LegendItem, ...]
    charts: tuple[XyChart, ...]


@dataclass(frozen=True)
class HeatCell:
    """A figure of a heat table."""

    #: The figure, and lines below it.
    text: str
    notes: tuple[str, ...]
    hint: str
    #: Class in the style sheet: `heat-0` (the least) to `heat-4`.
    style: str


@dataclass(frozen=True)
class HeatTable:
    """Figures by two properties, the darker the larger."""

    title: str
    caption: str
    legend: tuple[LegendItem, ...]
    columns: tuple[str, ...]
    #: Each with its label, and a cell for each column; None where there is no figure.
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


Chart = BarChart | ShareChart | XyChart | Panels | HeatTable

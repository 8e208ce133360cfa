"""Charts as static SVG, for a page without scripts and without inline styles: presentation attributes and classes only.
Text is sized by the style sheet, so that it can be read on a phone too."""

import math
from collections.abc import Callable, Sequence
from typing import Literal
from xml.etree import ElementTree as ET

from ctbench.base.text import printable
from ctbench.base.units import format_margin
from ctbench.report.charts.model import BarRow, Bars, Chart, LegendItem, XyChart
from ctbench.report.charts.scale import Placed, fit

Anchor = Literal["start", "middle", "end"]

WIDTH = 440.0
_HEIGHT = 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 12.0, 22.0, 44.0
#: Room for a word next to an upright line.
_WORD = 115.0
#: Height of a row of bars without them, thickness of a bar alone and of one among several, and where they begin.
_ROW, _BAR, _THIN_BAR, _BAR_LEFT = 28.0, 12.0, 8.0, 4.0
#: Room for a line below them.
_NOTE = 16.0
#: Half the size of a mark.
_MARK = 4.0


class Drawing:
    """An inline SVG that is made shape by shape. Lengths are in units of its view box; y grows downwards."""

    def __init__(self, width: float, height: float, words: str, style: str = "chart") -> None:
        """`words` says in a sentence what is drawn, for those who cannot see it."""
        box = f"0 0 {_number(width)} {_number(height)}"
        self._root = ET.Element("svg", {"viewBox": box, "class": style, "role": "img", "aria-label": printable(words)})

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """Draw a straight line."""
        self._add("line", style, x1=x1, y1=y1, x2=x2, y2=y2)

    def bar(self, x: float, y: float, width: float, height: float, style: str, hint: str = "") -> None:
        """A rectangle from its upper left corner; never thinner than can be seen."""
        made = self._add("rect", style, x=x, y=y, width=max(width, 0.8), height=max(height, 0.8), rx=1.5)
        _hint(made, hint)

    def text(self, x: float, y: float, words: str, style: str, anchor: Anchor = "start") -> None:
        """A line of text, y is that of its baseline."""
        made = self._add("text", style, x=x, y=y)
        made.set("text-anchor", anchor)
        made.text = printable(words)

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """A line from point to point."""
        made = ET.SubElement(self._root, "polyline", {"class": style, "fill": "none"})
        made.set("points", " ".join(f"{_number(x)},{_number(y)}" for x, y in points))

    def mark(self, kind: str, x: float, y: float, style: str, hint: str = "") -> None:
        """A mark whose shape alone tells it from others: `dot`, `ring` or `cross`."""
        if kind == "cross":
            arms = f"M{_number(x - _MARK)} {_number(y - _MARK)}l8 8m0 -8l-8 8"
            made = ET.SubElement(self._root, "path", {"class": f"{style} cross", "d": arms, "fill": "none"})
        else:
            made = self._add("circle", f"{style} {kind}", cx=x, cy=y, r=_MARK)
        _hint(made, hint)

    def markup(self) -> str:
        """The element as HTML has it."""
        return ET.tostring(self._root, encoding="unicode")

    def _add(self, name: str, style: str, **numbers: float) -> ET.Element:
        attributes = {"class": style} | {key: _number(value) for key, value in numbers.items()}
        return ET.SubElement(self._root, name, attributes)


def _hint(element: ET.Element, words: str) -> None:
    """What is shown when the pointer rests on a shape."""
    if words:
        ET.SubElement(element, "title").text = printable(words)


def _number(value: float) -> str:
    """At most one decimal: a page does not need more, and the same record gives the same bytes everywhere."""
    return f"{round(value, 1) + 0.0:g}"  # of -0.0, the sum is 0.0


def draw(chart: Chart) -> str:
    """The SVG of a chart."""
    return _bars(chart) if isinstance(chart, Bars) else _xy(chart)


def margin_bar(percent: float, tone: str) -> str:
    """A bar from the floor to what was measured, to compare rows at a glance: doublings, from
    less than half of the floor to eight times it."""
    floor_at, doubling, most = 22.0, 18.0, 76.0
    ratio = max(1 + percent / 100, 0.01)
    at = min(most, max(0.0, floor_at + doubling * math.log2(ratio)))
    drawing = Drawing(most, 10, f"{format_margin(percent)} against the floor", "margin-bar")
    drawing.bar(0, 3, most, 4, "track")
    drawing.bar(min(at, floor_at), 3, abs(at - floor_at), 4, f"fill-{tone}")
    drawing.line(floor_at, 0, floor_at, 10, "floor")
    return drawing.markup()


def samples_strip(
    base: Sequence[float],
    candidate: Sequence[float],
    written: Callable[[float], str],
    title: str = "samples of the base above those of the candidate",
) -> str:
    """Samples of two kinds as dots on one scale, the base above; `written` is how a sample is shown."""
    width, edge = 150.0, 8.0
    low, high = min(*base, *candidate), max(*base, *candidate)
    scale = (width - 2 * edge) / (high - low) if high > low else 0.0
    drawing = Drawing(width, 32, title, "strip")
    for y, style, values in ((8.0, "published-1", base), (24.0, "measured", candidate)):
        drawing.line(edge, y, width - edge, y, "grid")
        for value in values:
            drawing.mark("dot", edge + (value - low) * scale, y, style, written(value))
    return drawing.markup()


def swatch(item: LegendItem) -> str:
    """The little picture of a line of the legend."""
    drawing = Drawing(22, 12, item.text, "swatch")
    if item.kind == "bar":
        drawing.bar(3, 1, 16, 10, item.style)
    elif item.kind == "line":
        drawing.line(1, 6, 21, 6, item.style)
    else:
        drawing.mark(item.kind, 11, 6, item.style)
    return drawing.markup()


def _bars(chart: Bars) -> str:
    note = _NOTE if any(row.note for row in chart.rows) else 0.0
    heights = [_ROW + note + _thickness(chart, len(row.bars)) for row in chart.rows]
    top = 22.0 if chart.axis else 6.0
    drawing = Drawing(WIDTH, top + 4 + sum(heights), f"{chart.title}. {chart.caption}")
    if chart.axis:
        drawing.text(_BAR_LEFT, 11, chart.axis, "name")
    whole = max(value for row in chart.rows for value in _values_of(row, stacked=chart.stacked)) or 1.0
    scale = (WIDTH - _BAR_LEFT * 2) / whole
    for row, height in zip(chart.rows, heights, strict=True):
        thick = _thickness(chart, len(row.bars))
        drawing.text(_BAR_LEFT, top + 11, row.label, "label")
        drawing.text(WIDTH - _BAR_LEFT, top + 11, row.text, "value", "end")
        drawing.bar(_BAR_LEFT, top + 17, scale * whole, thick, "track")
        left, down = _BAR_LEFT, top + 17
        for bar in row.bars:
            drawing.bar(left, down, scale * bar.value, _BAR if thick == _BAR else _THIN_BAR, bar.style, bar.hint)
            left, down = (left + scale * bar.value, down) if chart.stacked else (left, down + _THIN_BAR)
        if row.note:
            drawing.text(_BAR_LEFT, top + 42, row.note, "tick")
        for value, style in ((row.floor, "floor"), (row.ideal, "ideal")):
            if value is not None:
                x = _BAR_LEFT + scale * value
                drawing.line(x, top + 14, x, top + 20 + thick, style)
        top += height
    return drawing.markup()


def _thickness(chart: Bars, bars: int) -> float:
    """Of all bars of a row."""
    return _BAR if chart.stacked or bars < 2 else _THIN_BAR * bars


def _values_of(row: BarRow, *, stacked: bool) -> list[float]:
    """Everything that has to fit into the chart."""
    bars = [bar.value for bar in row.bars]
    return [*([sum(bars)] if stacked else bars), row.floor or 0.0, row.ideal or 0.0]


def _xy(chart: XyChart) -> str:
    drawing = Drawing(WIDTH, _HEIGHT, f"{chart.title}. {chart.caption}")
    points = [point for series in chart.series for point in series.points]
    x = fit(chart.x, [*(point.x for point in points), *_guided(chart, "x")])
    y = fit(chart.y, [*(point.y for point in points), *_guided(chart, "y")])
    uprights = sorted((guide for guide in chart.guides if guide.along == "x"), key=lambda guide: guide.value)
    ats = [_LEFT + (WIDTH - _LEFT - _RIGHT) * x.place(guide.value) for guide in uprights]
    rows = _upright_rows(ats)
    top = _TOP + 13.0 * max((row + 1 for row in rows), default=0)
    bottom, width = _HEIGHT - _BOTTOM, WIDTH - _LEFT - _RIGHT
    height = bottom - top
    _grid(drawing, y, bottom, top)
    _below(drawing, x, bottom)
    drawing.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, "axis")
    for guide, at, row in zip(uprights, ats, rows, strict=True):
        drawing.line(at, top - 13 * row, at, bottom, guide.style)
        # The word is on the side where there is room, a little away from the line, which may go on past it.
        room = at < WIDTH * 0.6
        drawing.text(at + (4 if room else -4), top - 4 - 13 * row, guide.text, "note", "start" if room else "end")
    for guide in chart.guides:
        if guide.along == "y":
            down = bottom - height * y.place(guide.value)
            drawing.line(_LEFT, down, WIDTH - _RIGHT, down, guide.style)
            drawing.text(WIDTH - _RIGHT, down - 6, guide.text, "note", "end")
    for series in chart.series:
        places = [(_LEFT + width * x.place(point.x), bottom - height * y.place(point.y)) for point in series.points]
        if series.joined:
            drawing.path(places, series.style)
        if series.mark:
            for (across, down), point in zip(places, series.points, strict=True):
                drawing.mark(series.mark, across, down, series.style, point.hint)
    return drawing.markup()


def _guided(chart: XyChart, along: str) -> list[float]:
    return [guide.value for guide in chart.guides if guide.along == along]


def _grid(drawing: Drawing, axis: Placed, bottom: float, top: float) -> None:
    """Horizontal lines with their values, and the axis' name above them."""
    height = bottom - top
    for value, words in axis.ticks():
        y = bottom - height * axis.place(value)
        drawing.line(_LEFT, y, WIDTH - _RIGHT, y, "grid")
        drawing.text(_LEFT - 6, y + 4, words, "tick", "end")
    drawing.text(2, 11, axis.axis.name, "name")


def _below(drawing: Drawing, axis: Placed, bottom: float) -> None:
    """Ticks below the x axis with their values, as far as they do not touch, and the axis' name."""
    width, ticks = WIDTH - _LEFT - _RIGHT, axis.ticks()
    most = 5 if axis.axis.words == "label" else 7  # words are wider than numbers
    for value, text in ticks[:: max(1, math.ceil(len(ticks) / most))]:
        x = _LEFT + width * axis.place(value)
        drawing.line(x, bottom, x, bottom + 4, "axis")
        drawing.text(x, bottom + 16, text, "tick", "middle")
    drawing.text(WIDTH - _RIGHT, bottom + 34, axis.axis.name, "name", "end")


def _upright_rows(ats: Sequence[float]) -> list[int]:
    """The row above the chart of each upright guide's word, from left to right: the next one where it would touch its
    neighbour's."""
    rows: list[int] = []
    for number, at in enumerate(ats):
        rows.append(rows[-1] + 1 if number and at - ats[number - 1] < _WORD * 2 else 0)
    return rows

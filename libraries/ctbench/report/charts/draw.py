"""Charts as SVG. Text is sized by the style sheet, so that it can be read on a phone too."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctbench.base.units import format_margin
from ctbench.report.charts.model import (
    Axis,
    BarChart,
    Category,
    Chart,
    Guide,
    HeatTable,
    LegendItem,
    Panels,
    ShareChart,
    SharePart,
    XyChart,
)
from ctbench.report.charts.scale import Placed, fit
from ctbench.report.charts.svg import Anchor, Drawing

WIDTH = 440.0
_HEIGHT = 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 12.0, 22.0, 44.0
#: Room for a word next to an upright line.
_WORD = 115.0
#: Height of a horizontal bar with its label, and where the bars begin.
_ROW, _BAR_LEFT = 40.0, 4.0
#: Room for a line below it.
_NOTE = 16.0
#: Stands where there is no figure: an en dash.
NOTHING = "\u2013"
#: Height of a row of a heat table: its label, and a cell with three lines.
_HEAT_ROW = 70.0
#: Height of a panel without its x axis' words, and the room below it.
_PANEL, _PANEL_BOTTOM = 135.0, 10.0


def draw(chart: Chart) -> str:
    """The SVG of a chart; of panels, one after the other."""
    if isinstance(chart, BarChart):
        return _bars(chart)
    if isinstance(chart, ShareChart):
        return _shares(chart)
    if isinstance(chart, Panels):
        return _panels(chart)
    if isinstance(chart, HeatTable):
        return _heat(chart)
    return _xy(chart)


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


def _bars(chart: BarChart) -> str:
    drawing = Drawing(WIDTH, _HEIGHT, f"{chart.title}. {chart.caption}")
    values = [value for category in chart.categories for value in _values_of(category)]
    axis = fit(Axis(chart.axis), values)
    bottom, height = _HEIGHT - _BOTTOM, _HEIGHT - _TOP - _BOTTOM
    _grid(drawing, axis, bottom)
    step = (WIDTH - _LEFT - _RIGHT) / len(chart.categories)
    ideals: list[tuple[float, float]] = []
    figures: list[tuple[float, float, str]] = []
    for number, category in enumerate(chart.categories):
        middle = _LEFT + step * (number + 0.5)
        width = min(step * 0.82 / len(category.bars), 46.0)
        left = middle - width * len(category.bars) / 2
        for place, bar in enumerate(category.bars):
            if bar is None:
                continue
            tall = height * axis.place(bar.value)
            drawing.bar(left + width * place + 0.75, bottom - tall, width - 1.5, tall, bar.style, bar.hint)
            figures += [(left + width * (place + 0.5), bottom - tall - 4, bar.text)] if bar.text else []
        if category.floor is not None:
            y = bottom - height * axis.place(category.floor)
            drawing.line(left - 3, y, left + width * len(category.bars) + 3, y, "floor")
        if category.ideal is not None:
            ideals.append((middle, bottom - height * axis.place(category.ideal)))
        for line, words in enumerate(category.label):
            drawing.text(middle, bottom + 16 + 14 * line, words, "label", "middle")
    for line, words in enumerate(chart.labels):
        drawing.text(_LEFT - 6, bottom + 16 + 14 * line, words, "tick", "end")
    if len(ideals) > 1:
        drawing.path(ideals, "ideal")
    for x, y, text in figures:  # in front of everything
        drawing.text(x, y, text, "value", "middle")
    drawing.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, "axis")
    return drawing.markup()


def _values_of(category: Category) -> list[float]:
    """Everything that has to fit into the chart."""
    found = [bar.value for bar in category.bars if bar]
    return found + ([category.floor] if category.floor else []) + ([category.ideal] if category.ideal else [])


def _shares(chart: ShareChart) -> str:
    row = _ROW + (_NOTE if any(share.note for share in chart.shares) else 0.0)
    height = 10 + row * len(chart.shares)
    drawing = Drawing(WIDTH, height, f"{chart.title}. {chart.caption}")
    whole = max([1.0, *(share.share for share in chart.shares)])
    scale = (WIDTH - _BAR_LEFT * 2) / whole
    for number, share in enumerate(chart.shares):
        top, left = 6 + row * number, _BAR_LEFT
        drawing.text(_BAR_LEFT, top + 11, share.label, "label")
        drawing.text(WIDTH - _BAR_LEFT, top + 11, share.text, "value", "end")
        drawing.bar(_BAR_LEFT, top + 17, scale * whole, 12, "track")
        for part in share.parts or (SharePart(share.share, share.hint, share.style),):
            drawing.bar(left, top + 17, scale * part.share, 12, part.style, part.hint)
            left += scale * part.share
        if share.note:
            drawing.text(_BAR_LEFT, top + 42, share.note, "tick")
        if share.floor is not None:
            x = _BAR_LEFT + scale * share.floor
            drawing.line(x, top + 14, x, top + 32, "floor")
    return drawing.markup()


def _heat(chart: HeatTable) -> str:
    """A row of cells below each label, so that a label may be long."""
    drawing = Drawing(WIDTH, 16 + _HEAT_ROW * len(chart.rows), f"{chart.title}. {chart.caption}")
    wide = WIDTH / max(1, len(chart.columns))
    for place, words in enumerate(chart.columns):
        drawing.text(wide * (place + 0.5), 11, words, "tick", "middle")
    for number, (label, cells) in enumerate(chart.rows):
        top = 16 + _HEAT_ROW * number
        drawing.text(_BAR_LEFT, top + 13, label, "label")
        for place, cell in enumerate(cells):
            if cell is None:
                drawing.text(wide * (place + 0.5), top + 46, NOTHING, "tick", "middle")
                continue
            drawing.bar(wide * place + 1, top + 18, wide - 2, _HEAT_ROW - 20, cell.style, cell.hint)
            for line, words in enumerate((cell.text, *cell.notes)):
                style = "tick" if line else "value"
                drawing.text(wide * (place + 0.5), top + 33 + 14 * line, words, style, "middle")
    return drawing.markup()


def _panels(chart: Panels) -> str:
    """A drawing for each panel; the words of the x axis are below the last."""
    x = fit(chart.charts[0].x, [value for panel in chart.charts for value in _across(panel)])
    upper = [_xy(panel, x, _PANEL, _PANEL_BOTTOM) for panel in chart.charts[:-1]]
    return "".join([*upper, _xy(chart.charts[-1], x, _PANEL - _PANEL_BOTTOM + _BOTTOM)])


def _xy(chart: XyChart, x: Placed | None = None, tall: float = _HEIGHT, below: float = _BOTTOM) -> str:
    """`x`: the axis that it shares with others; `tall`: its height with everything, `below`: of that, the room below
    the chart, in which the x axis has its words if they fit."""
    drawing = Drawing(WIDTH, tall, f"{chart.title}. {chart.caption}")
    x = x or fit(chart.x, _across(chart))
    y = fit(chart.y, [*(point.y for series in chart.series for point in series.points), *_guided(chart, "y")])
    uprights = _uprights(chart, x)
    top = _TOP + 13.0 * max((upright.row + 1 for upright in uprights), default=0)
    bottom, height, width = tall - below, tall - below - top, WIDTH - _LEFT - _RIGHT
    _grid(drawing, y, bottom, top)
    _below(drawing, x, bottom, words=below >= _BOTTOM)
    drawing.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, "axis")
    for upright in uprights:
        drawing.line(upright.at, top - 13 * upright.row, upright.at, bottom, upright.guide.style)
        drawing.text(upright.word_at, top - 4 - 13 * upright.row, upright.guide.text, "note", upright.anchor)
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


def _across(chart: XyChart) -> list[float]:
    """Everything that has to fit along the x axis."""
    return [*(point.x for series in chart.series for point in series.points), *_guided(chart, "x")]


def _guided(chart: XyChart, along: str) -> list[float]:
    return [guide.value for guide in chart.guides if guide.along == along]


def _grid(drawing: Drawing, axis: Placed, bottom: float, top: float = _TOP) -> None:
    """Horizontal lines with their values, and the axis' name above them."""
    height = bottom - top
    for value, words in axis.ticks():
        y = bottom - height * axis.place(value)
        drawing.line(_LEFT, y, WIDTH - _RIGHT, y, "grid")
        drawing.text(_LEFT - 6, y + 4, words, "tick", "end")
    drawing.text(2, 11, axis.axis.name, "name")


def _below(drawing: Drawing, axis: Placed, bottom: float, *, words: bool) -> None:
    """Ticks below the x axis; with `words`, their values as far as they do not touch, and its name."""
    width = WIDTH - _LEFT - _RIGHT
    ticks = axis.ticks()
    # Words are wider than numbers.
    for value, text in ticks[:: _every(len(ticks), 5 if axis.axis.words == "label" else 7)]:
        x = _LEFT + width * axis.place(value)
        drawing.line(x, bottom, x, bottom + 4, "axis")
        if words:
            drawing.text(x, bottom + 16, text, "tick", "middle")
    if words:
        drawing.text(WIDTH - _RIGHT, bottom + 34, axis.axis.name, "name", "end")


def _every(count: int, most: int) -> int:
    """Every how many labels are shown, so that there are at most `most`."""
    return max(1, -(-count // most))


@dataclass(frozen=True)
class _Upright:
    """An upright guide, with its word above the chart."""

    guide: Guide
    at: float
    #: Rows above the chart: the next one where the word would touch its neighbour's.
    row: int

    @property
    def anchor(self) -> Anchor:
        """Words are on the side where there is room."""
        return "start" if self.at < WIDTH * 0.6 else "end"

    @property
    def word_at(self) -> float:
        """A little away from the line where that goes on past the word."""
        return self.at + (4 if self.anchor == "start" else -4)


def _uprights(chart: XyChart, x: Placed) -> list[_Upright]:
    """The upright guides from left to right."""
    found: list[_Upright] = []
    for guide in sorted((guide for guide in chart.guides if guide.along == "x"), key=lambda guide: guide.value):
        at = _LEFT + (WIDTH - _LEFT - _RIGHT) * x.place(guide.value)
        row = found[-1].row + 1 if found and at - found[-1].at < _WORD * 2 else 0
        found.append(_Upright(guide, at, row))
    return found

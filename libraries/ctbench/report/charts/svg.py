"""Static SVG for a page without scripts and without inline styles: presentation attributes and classes only."""

from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree as ET

from ctbench.base.plain_text import printable

Anchor = Literal["start", "middle", "end"]

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
        """A mark whose shape alone tells it from others: `dot`, `ring`, `cross` or `diamond`."""
        if kind == "cross":
            arms = f"M{_number(x - _MARK)} {_number(y - _MARK)}l8 8m0 -8l-8 8"
            made = ET.SubElement(self._root, "path", {"class": f"{style} cross", "d": arms, "fill": "none"})
        elif kind == "diamond":
            sides = f"M{_number(x)} {_number(y - 5)}l5 5l-5 5l-5 -5z"
            made = ET.SubElement(self._root, "path", {"class": style, "d": sides})
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
    text = f"{value:.1f}"
    return text.removesuffix(".0").replace("-0", "0") if text in ("-0.0", "0.0") else text.removesuffix(".0")

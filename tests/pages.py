"""A page of a report taken apart, independently of the code that made it: tables, links, and what a policy forbids."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

#: Elements without an end.
_EMPTY = {"meta", "link", "br", "img", "hr", "input"}


@dataclass
class Element:
    """An element with its children and texts in their order."""

    name: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below it, spaces flattened."""
        return " ".join(" ".join(child if isinstance(child, str) else child.text for child in self.children).split())

    @property
    def own_text(self) -> str:
        """The text that stands directly in it."""
        return " ".join(" ".join(child for child in self.children if isinstance(child, str)).split())

    def all(self, name: str = "", style: str = "") -> list["Element"]:
        """Elements below it by name and class, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if name in ("", child.name) and (not style or style in child.attributes.get("class", "").split()):
                    found.append(child)
                found += child.all(name, style)
        return found

    def one(self, name: str = "", style: str = "") -> "Element":
        """The first of them."""
        return self.all(name, style)[0]

    def by_id(self, ident: str) -> "Element":
        """The element with an id."""
        return next(each for each in self.all() if each.attributes.get("id") == ident)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(made)
        if tag not in _EMPTY:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert closed.name == tag, f"<{closed.name}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(html: str) -> Element:
    """Take a page apart. Every element has to be closed by its own end."""
    reader = _Reader()
    reader.feed(html)
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is never closed"
    return reader.root


def rows_of(page: Element) -> list[dict[str, str]]:
    """The results: `test`, `topology`, `profile`, `record`, `id`, `verdict`, and each figure by its name."""
    rows = []
    for row in page.by_id("results").all("details", "test"):
        line, more = row.one("summary"), row.one("div", "more")
        figures = {
            each.attributes["data-name"]: each.text for each in line.all("span") if "data-name" in each.attributes
        }
        rows.append(
            figures
            | {
                "subject": line.one("span", "subject").text,
                "verdict": line.one("span", "badge").own_text,
                "test": more.one("b", "name").text,
                "topology": more.one("code").text,
                "profile": more.one("span", "profile").text,
                "record": more.one("a").attributes["href"],
                "id": more.attributes["id"],
            }
        )
    return rows

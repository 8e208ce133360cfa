"""How much of everything a page shows. A run has some sixty tests; a page of thousands would be none that opens, so
the rest is counted, and is in the pages and files next to it."""

from collections.abc import Iterable

from ctbench.report import labels
from ctbench.report.page import Fact

#: Rows of the table of results on one page.
ROWS = 500
#: Tests listed with their reasons, files that are no records, reasons why tests left none.
PROBLEMS = 100
SUITES = 300
#: Charts of a gallery, and bars of a chart of shares.
CHARTS = 60
BARS = 24
#: Values of one fact, sentences of one list.
VALUES = 20
#: Letters of a name, of a sentence.
NAME = 200
SENTENCE = 1000


def name(text: str) -> str:
    """A name as a page shows it."""
    return _cut(text, NAME)


def sentence(text: str) -> str:
    """A sentence as a page shows it."""
    return _cut(text, SENTENCE)


def fact(title: str, values: Iterable[str]) -> Fact:
    """Each value once, in the order of the records."""
    return Fact(title, some(once(values), VALUES))


def once(values: Iterable[str]) -> list[str]:
    """Each text once, in their order; what is empty is left out."""
    return list(dict.fromkeys(value for value in values if value))


def some(values: list[str], most: int) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    shown = [sentence(value) for value in values[:most]]
    return (*shown, *([f"and {labels.thousands(len(values) - most)} more"] if len(values) > most else []))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"

"""What is on the page of a report, before it is HTML or Markdown: sentences, tables, charts, facts. Texts are made for
people; the templates only place them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ctbench.report.charts.chart import Chart

#: Classes of the style sheet for good news, bad news and what is not known.
Tone = Literal["met", "missed", "unmeasured", "skipped"]


#: What is known by its name: each value once.
Facts = Mapping[str, tuple[str, ...]]

#: Names of the parts of a report, and of the columns of its results.
NEAREST = "What matters most"
UNSEEN = "What this run says nothing of"
NOT_RUN = "What was not run"
RESULTS = ("Topology and traffic", "Minimum", "Measured", "Margin", "Verdict")
#: Instead of minimum, measured and margin, of a candidate and its base.
COMPARED = ("Base", "Candidate", "Difference")


@dataclass(frozen=True)
class Count:
    """How many tests had one outcome."""

    number: int
    #: `met`, `missed`, `not measured`, `skipped`, `nightly only`, `no floor yet`, `failed`, `unreadable`.
    word: str
    sign: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Link:
    """A file next to the page."""

    text: str
    href: str
    #: What is in it.
    about: str = ""


@dataclass(frozen=True)
class Cell:
    """One place of a table: a text with a link, or a key of a topology before it, and smaller lines below it."""

    text: str
    href: str = ""
    code: str = ""
    notes: tuple["Cell", ...] = ()
    #: Of a verdict: a badge with this sign, in this tone.
    sign: str = ""
    tone: Tone = "skipped"
    #: Class in the style sheet, the darker the larger the figure: `heat-0` to `heat-4`.
    shade: str = ""
    #: More links, after the text.
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    #: Figures are on the right.
    right: bool = True
    strong: bool = False


@dataclass(frozen=True)
class Line:
    """A line of a table: a cell for each column. The first one names it."""

    cells: tuple[Cell, ...]
    #: Class of the style sheet: a tone.
    style: str = ""


@dataclass(frozen=True)
class Table:
    """A table. `style` is its class in the style sheet."""

    columns: tuple[Column, ...]
    #: Lines that belong together, by what they have in common; empty where these are all.
    groups: Mapping[str, Sequence[Line]]
    style: str = "plain"
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One test: its record in a line."""

    #: Of what opens below the line; empty where the test is beyond what the results show.
    anchor: str
    test: str
    suite: str
    #: What was set up, what it did and was offered, in words: `1 CPU, 1 queue, connection tracking, short-lived`.
    subject: str
    #: `ovs-dpdk/conntrack/1cpu-1rxq`, and what was offered to it.
    topology: str
    profile: str
    verdict: str
    sign: str
    tone: Tone
    minimum: str
    measured: str
    margin: str
    margin_pct: float | None
    #: What stands between topology and verdict: minimum, measured and margin; or base, candidate and difference.
    line: dict[str, str]
    reason: str
    #: Opens below the line.
    details: Facts
    record: Link
    #: What the DUT said of its failure; None where nothing failed.
    capture: Link | None

    @property
    def head(self) -> tuple[str, ...]:
        """The names of its columns."""
        return (RESULTS[0], *self.line, RESULTS[-1])

    @property
    def href(self) -> str:
        """Link to the row, else to the record."""
        return f"#{self.anchor}" if self.anchor else self.record.href


@dataclass(frozen=True)
class NotRun:
    """Tests that were not run for one need: `8 CPUs`, with each reason and the tests that it is of."""

    need: str
    outcome: str
    number: int
    reasons: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A piece of a section: charts, a table, or both; of one test where `row` is there."""

    row: Row | None = None
    intro: str = ""
    charts: tuple[Chart, ...] = ()
    table: Table | None = None


@dataclass(frozen=True)
class Section:
    """A section between the results and the environment."""

    anchor: str
    title: str
    intro: str
    parts: tuple[Part, ...]
    #: How many more charts, lines or tables there are; empty where these are all.
    more: str = ""


@dataclass(frozen=True)
class Page:
    """Everything on the page, from top to bottom."""

    title: str
    tone: Tone
    #: The verdict in one sentence, and what has to be known with it.
    sentence: str
    details: tuple[str, ...]
    counts: tuple[Count, ...]
    facts: Facts
    #: What this run says nothing of.
    unseen: tuple[str, ...]
    #: The three tests that matter most: missed, not measured, nearest to their floors.
    nearest: tuple[Row, ...]
    #: One for each test, in the order in which they ran.
    rows: tuple[Row, ...]
    #: Those that the page shows, by suite.
    results: dict[str, list[Row]]
    more_results: str
    sections: tuple[Section, ...]
    environment: Facts
    methodology: tuple[str, ...]
    #: Where the campaigns fall short of the standards; None where they do not.
    deviations: Table | None
    #: Sentences of the records, and of how many tests each is said.
    sources: dict[str, str]
    notes: dict[str, str]
    links: tuple[Link, ...]
    #: The runs that the page was made from, and how many more there are.
    runs: tuple[Link, ...]
    more_runs: str
    #: Tests that left no record, by what they need; what failed comes first.
    not_run: tuple[NotRun, ...]
    unreadable: tuple[str, ...]

    def section(self, anchor: str) -> Section | None:
        """A section by its anchor; None where the page does not have it."""
        return next((section for section in self.sections if section.anchor == anchor), None)

"""The model of a report's page before it is HTML or Markdown: sentences, tables, charts, facts. Its texts are written
for people; the templates only place them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ctbench.report.charts.chart import Chart
from ctbench.report.labels import Shown, Tone

#: What is known by its name: each value once.
Fields = Mapping[str, tuple[str, ...]]

#: Names of the parts of a report, and of the columns of its results.
NEAREST = "What matters most"
UNSEEN = "What this run says nothing of"
KNOWN = "Known misses"
NOT_RUN = "What was not run"
RESULTS = ("Topology and traffic", "Floor", "Measured", "Margin", "Verdict")
#: Instead of floor, measured and margin, of a candidate and its base.
COMPARED = ("Base", "Candidate", "Difference")


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The row of one test in a table: its record in a line."""

    #: Of what opens below the line.
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
    floor: str
    measured: str
    margin: str
    margin_pct: float | None
    #: What stands between topology and verdict: floor, measured and margin; or base, candidate and difference.
    line: dict[str, str]
    reason: str
    #: Opens below the line.
    details: Fields
    #: Links to the record, and to what the DUT said of its failure; empty where nothing failed.
    record: str
    capture: str

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the row's columns."""
        return (RESULTS[0], *self.line, RESULTS[-1])


@dataclass(frozen=True)
class KnownMiss:
    """A test whose miss an SLA file accepts, or accepted in an older run."""

    row: ReportRow
    ticket: str
    #: Its root cause.
    because: str
    #: By whom and until when.
    accepted: str
    #: How each release did, the newest first.
    became: tuple[str, ...]

    @property
    def href(self) -> str:
        """The URL of the ticket; empty where the ticket is not a web address."""
        return self.ticket if re.fullmatch(r"https?://[^\s\"<>\\]+", self.ticket) else ""


@dataclass(frozen=True)
class NotRun:
    """The tests without a record that share a need, such as `8 CPUs`: each reason with its tests."""

    need: str
    outcome: str
    number: int
    reasons: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Article:
    """The evidence for the result of one test: its charts and its trials."""

    row: ReportRow
    intro: str
    charts: tuple[Chart, ...]
    #: Of each trial the columns of its table; `State` and `Reason` stand last, in one.
    trials: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class Page:
    """The whole content of the page, from top to bottom."""

    title: str
    tone: Tone
    #: The verdict in one sentence, or where all is met the first answer.
    sentence: str
    #: What each set-up sustains, holds and costs, a line for each.
    answers: tuple[str, ...]
    #: What has to be known with it; where all is met, how many SLAs that is comes last.
    details: tuple[str, ...]
    #: How many tests had each outcome.
    counts: tuple[tuple[int, Shown], ...]
    facts: Fields
    #: What this run says nothing of.
    unseen: tuple[str, ...]
    known: tuple[KnownMiss, ...]
    #: The answers as a picture, and how the first of them changed over the runs.
    setups: tuple[Chart, ...]
    #: The three tests that matter most: missed, not measured, and where there are no answers those nearest to their
    #: floors.
    nearest: tuple[ReportRow, ...]
    #: One for each test, in the order in which they ran; and by suite.
    rows: tuple[ReportRow, ...]
    results: dict[str, list[ReportRow]]
    #: Charts of several tests, and how many more there are.
    charts: tuple[Chart, ...]
    more: str
    searches: tuple[Article, ...]
    environment: Fields
    methodology: tuple[str, ...]
    #: Where the campaigns fall short of the standards: what each standard asks for, and what this run did.
    deviations: tuple[tuple[str, str, str], ...]
    #: Sentences of the records, and of how many tests each is said.
    sources: dict[str, str]
    notes: dict[str, str]
    #: Files and folders of the runs: what they are called, their link, and what is in them.
    links: tuple[tuple[str, str, str], ...]
    #: The runs that the page was made from.
    runs: tuple[tuple[str, str], ...]
    #: Tests that left no record, by what they need; what failed comes first.
    not_run: tuple[NotRun, ...]
    unreadable: tuple[str, ...]

    @property
    def headline(self) -> tuple[str, ...]:
        """The opening sentences of page, console and merge request."""
        return (self.sentence, *self.answers, *self.details)

"""What is on the page of a report, before it is HTML: sentences, rows, charts, facts. Texts are made here, for
people; the templates only place them."""

from dataclasses import dataclass
from typing import Literal

from ctbench.report.charts.model import Chart
from ctbench.report.mobile import MobileLine
from ctbench.report.remarks import Deviation, Note

#: Classes of the style sheet for good news, bad news and what is not known.
Tone = Literal["met", "missed", "unmeasured", "skipped"]


@dataclass(frozen=True)
class Count:
    """How many tests came to one end."""

    number: int
    #: `met`, `missed`, `not measured`, `skipped`, `left for the night`, `failed`, `unreadable`.
    word: str
    sign: str
    tone: Tone


@dataclass(frozen=True)
class Fact:
    """A name with what is known of it: each value once."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """A file next to the page."""

    text: str
    href: str
    #: What is in it.
    about: str = ""


@dataclass(frozen=True)
class Row:
    """One test: its record in a line."""

    anchor: str
    test: str
    #: `ovs-dpdk/conntrack/1cpu-1rxq`, and what was offered to it.
    topology: str
    profile: str
    verdict: str
    sign: str
    tone: Tone
    floor: str
    measured: str
    #: The metric of these two where it is not the load that the profile counts: `latency (p99)`.
    measured_of: str
    #: What has to be known of the floor: `smoke test`, `made on …`; empty where nothing has.
    kind: str
    #: How it compares with something else, where that is not what is shown as measured.
    compared: str
    margin: str
    #: The same in percent, for its little bar; None where there is none.
    margin_pct: float | None
    #: `± 5.0 %` and `one search`, or `3.1 %` and `over 5 searches`.
    spread: str
    spread_of: str
    #: Difference from the figure that it is compared with, and what that is; empty without such a figure.
    against: str
    against_what: str
    reason: str
    record: Link
    #: What the DUT said of its failure; None where nothing failed.
    capture: Link | None
    #: How long the test took, and how many of its trials were thrown away; empty where none was.
    took: str
    thrown_away: str
    #: When the test began, month to minute, UTC, where the page has several runs.
    run: str = ""
    #: File of the page that has the row; empty for this one.
    page: str = ""

    @property
    def href(self) -> str:
        """Link to the row."""
        return f"{self.page}#{self.anchor}"


@dataclass(frozen=True)
class Group:
    """The rows of one suite."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Suite:
    """A suite in a line, where the rows are too many for one page."""

    name: str
    #: Tests, met, missed, not measured.
    counts: tuple[str, ...]
    tone: Tone
    href: str


@dataclass(frozen=True)
class Part:
    """A page of rows, where they are too many for one."""

    #: Name of its file.
    file: str
    #: `Tests 501 to 1 000`.
    title: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Reasons:
    """Tests that left no record for the same reason."""

    outcome: str
    reason: str
    #: How many tests, and their names as far as there is room.
    number: int
    tests: tuple[str, ...]


@dataclass(frozen=True)
class TrialRow:
    """One trial of a search, in words."""

    number: str
    phase: str
    offered: str
    completed: str
    loss: str
    packets: str
    waited: str
    state: str
    tone: Tone
    reason: str


@dataclass(frozen=True)
class Search:
    """How one result came about."""

    row: Row
    #: What a search of RFC 9971 has to report; empty for other searches.
    goal: str
    charts: tuple[Chart, ...]
    #: `connect p99` or `latency p99`.
    waited_name: str
    trials: tuple[TrialRow, ...]


@dataclass(frozen=True)
class Saturation:
    """What the DUT served in a closed loop in one test: no SLA figure."""

    row: Row
    rate: str
    #: The other side of its pair, and its rate; empty where there was none.
    other: str
    other_rate: str


@dataclass(frozen=True)
class ControlRow:
    """What the control plane did in one test, and how long it took."""

    row: Row
    #: `dump of the connection table, 10.0 k entries`, and how often.
    what: str
    number: str
    #: Mean, standard deviation, median, 99th percentile, longest.
    times: tuple[str, ...]
    #: What the load lost meanwhile, and how long it waited (p99).
    lost: str
    waited: str


@dataclass(frozen=True)
class TimeTable:
    """Where the time of a thread that forwards went, beside what was published of others."""

    row: Row
    #: How it was sampled, and what that cost.
    intro: str
    #: What was measured: this run, then others.
    columns: tuple[str, ...]
    #: Of each column the functions by their rank, and at last what locks have in all.
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Gallery:
    """Charts that belong together."""

    anchor: str
    title: str
    intro: str
    charts: tuple[Chart, ...]
    #: How many more there are; empty where these are all.
    more: str = ""


@dataclass(frozen=True)
class PublishedRow:
    """One line of a published table, or of the run below it."""

    name: str
    cps: str
    active: str
    throughput: str
    pps: str
    difference: str
    #: Whether this is the run and not a published figure.
    ours: bool
    record: Link | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A published table with the run's own line."""

    title: str
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class Page:
    """Everything on the page, from top to bottom."""

    title: str
    tone: Tone
    #: The verdict in one sentence, and what has to be known with it.
    sentence: str
    details: tuple[str, ...]
    counts: tuple[Count, ...]
    facts: tuple[Fact, ...]
    #: Tests that are missed or not measured.
    problems: tuple[Row, ...]
    #: How many more there are; empty where all are listed.
    more_problems: str
    without_record: tuple[Reasons, ...]
    unreadable: tuple[str, ...]
    #: All rows; none where they are in `parts`, and the page has a line for each of the `suites` instead.
    groups: tuple[Group, ...]
    suites: tuple[Suite, ...]
    more_suites: str
    parts: tuple[Part, ...]
    #: What the rows are compared with; empty where nothing is.
    reference: str
    galleries: tuple[Gallery, ...]
    #: Where the time of threads that forward went, and how many more such tables there are.
    times: tuple[TimeTable, ...]
    more_times: str
    #: What was reached while so many connections were open.
    mobile: tuple[MobileLine, ...]
    more_mobile: str
    #: What the control plane did, and how many more lines of that there are.
    control: tuple[ControlRow, ...]
    more_control: str
    #: Apart from the rates that the SLA is about.
    saturation: tuple[Saturation, ...]
    more_saturation: str
    published: tuple[PublishedTable, ...]
    published_note: str
    searches: tuple[Search, ...]
    environment: tuple[Fact, ...]
    methodology: tuple[str, ...]
    deviations: tuple[Deviation, ...]
    sources: tuple[Note, ...]
    notes: tuple[Note, ...]
    links: tuple[Link, ...]
    #: The runs that the page was made from, and how many more there are.
    runs: tuple[Link, ...]
    more_runs: str

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, of this page and of its parts, in their order there."""
        groups = [*self.groups, *(group for part in self.parts for group in part.groups)]
        return tuple(row for group in groups for row in group.rows)

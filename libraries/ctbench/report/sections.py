"""The sections of the page between the results and the environment. Each says which records it is about, the columns of
its table and its charts; the page loops over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.base.paths import REFERENCES
from ctbench.base.units import format_count, format_duration, format_ratio, format_share
from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.report import candidate, figures, labels
from ctbench.report.charts import bars, lines
from ctbench.report.charts.chart import Chart
from ctbench.report.labels import LIMITS
from ctbench.report.page import Cell, Column, Line, Part, Row, Section, Table, Tone
from ctbench.report.runs import RunSet
from ctbench.results.evidence import ControlRecord, ProfileRecord, TrialRecord
from ctbench.results.metrics import METRICS
from ctbench.results.published import Published, read_published
from ctbench.results.record import Record
from ctbench.results.store import Stored, read_whole
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile


@dataclass(frozen=True)
class Shown:
    """What the sections are made from: the runs, and the row of each of the newest records."""

    runs: RunSet
    rows: Sequence[Row]

    @property
    def tests(self) -> list[tuple[Stored, Row]]:
        """Each test with its row."""
        return list(zip(self.runs.newest, self.rows, strict=True))

    @property
    def records(self) -> list[Record]:
        """The record that counts of each test."""
        return [each.record for each in self.runs.newest]


@dataclass(frozen=True)
class Figure:
    """A column of a section's table: its name, and the text of an item of a record."""

    name: str
    text: Callable[[Record, Any], str]
    right: bool = True


@dataclass(frozen=True)
class Declared:
    """A section as it is declared. What has neither items nor charts nor parts is not on the page."""

    anchor: str
    title: str
    intro: str
    charts: Callable[[Shown], Sequence[Chart]] = lambda _: ()
    #: What a record has for the table, a line for each; and the columns besides that of the test.
    items: Callable[[Record], Sequence[Any]] = lambda _: ()
    columns: tuple[Figure, ...] = ()
    #: Pieces that are more than charts and that table.
    parts: Callable[[Shown], Sequence[Part]] = lambda _: ()


def sections(shown: Shown) -> tuple[Section, ...]:
    """The sections that have something to show, in the order of the page."""
    return tuple(section for each in SECTIONS if (section := _section(each, shown)).parts)


def _section(declared: Declared, shown: Shown) -> Section:
    charts, parts, found = declared.charts(shown), declared.parts(shown), []
    if declared.columns:
        found = [
            Line((Cell(row.test, row.href), *(Cell(column.text(each.record, item)) for column in declared.columns)))
            for each, row in shown.tests
            for item in declared.items(each.record)
        ]
    beyond, what = max(len(charts), len(parts)) - LIMITS.charts, "chart" if charts else "table"
    own: list[Part] = []
    if charts:
        own.append(Part(charts=tuple(charts[: LIMITS.charts])))
    if found:
        columns = (Column("Test", right=False), *(Column(each.name, each.right) for each in declared.columns))
        own.append(Part(table=Table(columns, {"": found[: LIMITS.rows]})))
        beyond, what = len(found) - LIMITS.rows, "line"
    return Section(
        declared.anchor,
        declared.title,
        declared.intro,
        (*own, *parts[: LIMITS.charts]),
        labels.more(beyond, what, "see the records, or make a report of fewer tests"),
    )


def _metric(name: str, title: str = "") -> Figure:
    """The column of a metric: its figure, or a dash; of the metric that was looked for, with what bounds it."""
    metric = METRICS[name]

    def text(record: Record, _: Any) -> str:
        value = record.values.get(name)
        if value is None:
            return labels.DASH
        said = figures.written(metric, value)
        return f"{metric.bound} {said}" if record.says_at_least and metric is figures.metric_of(record) else said

    return Figure(title or f"{metric.title[:1].upper()}{metric.title[1:]}", text)


def _time(name: str, value: Callable[[ControlRecord], float]) -> Figure:
    return Figure(name, lambda _, done: METRICS[done.metric].format(value(done)))


def _open_at_once(record: Record) -> list[Record]:
    """Tests whose profile says how many connections are open at once."""
    profile = record.profile
    return [record] if isinstance(profile, ConnectionProfile) and profile.open_at_once and record.figures else []


def _what_was_done(_: Record, done: ControlRecord) -> str:
    remark = f"; {labels.name(done.remark)}" if done.remark else ""
    return f"{METRICS[done.metric].title}, {format_count(done.size)} {labels.name(done.sizes)}{remark}"


def _waited(record: Record, _: Any) -> str:
    known = (_metric(name).text(record, None) for name in ("connect_time_meanwhile", "latency_meanwhile"))
    return next((text for text in known if text != labels.DASH), labels.DASH)


def _counted(record: Record, _: Any) -> str:
    """What the DUT said at the moments of the test."""
    return ", ".join(f"{each.moment} {labels.thousands(each.found)}" for each in record.evidence.table) or labels.DASH


def _of_the_table(shown: Shown) -> list[Chart]:
    """The entries of each test that watched the table over time, whose series are read again."""
    charts: list[Chart] = []
    for each in shown.runs.newest:
        metric = METRICS[each.record.metric]
        if metric.of_table and metric.name != "held_connections" and len(charts) <= LIMITS.charts:
            name = f"{registry.title(each.record.topology.datapath)}, {registry.what_it_does(each.record.topology)}"
            found = lines.series_charts(read_whole(each.path))
            charts += [replace(chart, title=f"{chart.title}: {name}") for chart in found]
    return charts


# Where the time of a thread went.

#: Functions that are shown.
_FUNCTIONS = 15
_LOCKS = METRICS["mutex_share"]


def _time_tables(shown: Shown) -> list[Part]:
    """A table for each thread that was sampled: its first functions next to those that were published of others."""
    found = [(profile, row) for each, row in shown.tests for profile in each.record.evidence.profiles]
    others = _published_functions() if found else []
    return [Part(row, _how_sampled(profile), table=_functions(profile, others)) for profile, row in found]


def _published_functions() -> list[Published]:
    """The published figures that have functions."""
    found: list[Published] = []
    for folder in sorted(REFERENCES.glob("*/")):
        try:
            found += read_published(folder)
        except ConfigError:  # a folder of the user's own
            continue
    return [each for each in found if each.functions]


def _functions(profile: ProfileRecord, others: Sequence[Published]) -> Table:
    whole = max(1, profile.samples)
    ours = [_share(labels.name(each.name), each.samples / whole) for each in profile.functions[:_FUNCTIONS]]
    theirs = [[_share(name, share) for name, share in list(each.functions.items())[:_FUNCTIONS]] for each in others]
    by_rank = [
        Line(tuple(map(Cell, (str(rank), *texts))))
        for rank, texts in enumerate(zip_longest(ours, *theirs, fillvalue=labels.DASH), 1)
    ]
    locks = [_LOCKS.format(profile.locks / whole)]
    locks += [
        _LOCKS.format(each.figures[_LOCKS.name]) if _LOCKS.name in each.figures else labels.DASH for each in others
    ]
    names = ("Rank", "this run", *(f"{each.source.dut}, {each.source.place.partition(',')[0]}" for each in others))
    columns = tuple(Column(name, right=False) for name in names)
    return Table(columns, {"": [*by_rank, Line(tuple(map(Cell, ("Locks", *locks))))]})


def _share(name: str, share: float) -> str:
    return f"{_LOCKS.format(share)} {name}"


def _how_sampled(profile: ProfileRecord) -> str:
    cost = ""
    if profile.rate_before:
        cost = (
            f" Meanwhile {profile.rate / profile.rate_before * 100:.0f} % of what the trial before, without samples, "
            "served was served."
        )
    return (
        f"CPU {profile.cpu}: {labels.thousands(profile.samples)} samples in {profile.seconds:.1f} s "
        f"({labels.name(profile.how)}, {profile.hz} per second).{cost}"
    )


# How results came about.

_STATES: dict[str, Tone] = {"good": "met", "bad": "missed", "invalid": "unmeasured"}


def _searches(shown: Shown) -> list[Part]:
    """The searches of tests that are missed or not measured, and of the one that is nearest to its floor."""
    pairs = [(each, row) for each, row in shown.tests if each.sustain_s or each.record.evidence.pairs]
    doubtful = [pair for pair in pairs if pair[1].verdict != "met"]
    met = [pair for pair in pairs if pair[1].verdict == "met" and pair[1].margin_pct is not None]
    chosen = sorted(doubtful, key=lambda pair: pair[1].verdict)[: LIMITS.searches - 1]
    chosen += [min(met, key=lambda pair: pair[1].margin_pct or 0.0)] if met else []
    return [_search(read_whole(each.path), row) for each, row in chosen]


def _search(record: Record, row: Row) -> Part:
    made = (*lines.pair_charts(record), lines.search_chart(record), *lines.series_charts(record))
    trials = tuple(_trial(number, each) for number, each in enumerate(record.evidence.trials, 1))
    waited = "Connect p99" if record.profile.kind == "connections" else "Latency p99"
    columns = (
        Column("No."),
        Column("Phase", right=False),
        *map(Column, ("Offered", "Completed", "Loss", "Packets/s", waited)),
        Column("State", right=False),
    )
    table = Table(columns, {"": trials}, "trials", "Trials in their order") if trials else None
    return Part(row, figures.goal(record), tuple(chart for chart in made if chart), table)


def _trial(number: int, made: TrialRecord) -> Line:
    trial, times = made.trial, made.waited
    reasons = dict.fromkeys([made.reason, *(problem.text for problem in made.problems)])
    reason = labels.sentence("; ".join(reasons).strip("; "))
    texts = (
        str(number),
        labels.name(made.phase),
        labels.rate(trial.load, trial.unit),
        labels.rate(trial.rate, trial.unit),
        format_ratio(max(0.0, trial.loss_ratio)),
        format_count(trial.pps),
        format_duration(times.p99 / 1e6) if times else labels.DASH,
    )
    state = Cell(made.state, notes=(Cell(reason),) if reason else (), tone=_STATES[made.state])
    return Line((*map(Cell, texts), state))


# What the fields cost that the rules of Open vSwitch match.

#: Tag of a test that is in the table.
_TAG = "match-fields"
#: Shades, the darkest for the highest rate of a table.
_SHADES = 5
_PPS = METRICS["pps"]
#: A test of a table, with its row among the results.
_Tested = tuple[Record, Row]


def _match_tables(shown: Shown) -> list[Part]:
    """A table for each datapath, number of CPUs, and setting of the caches; those of a datapath and its CPUs have the
    same shades. What was not measured for certain is not there."""
    groups: dict[tuple[str, str], dict[str, list[_Tested]]] = {}
    for each, row in shown.tests:
        record, made = each.record, each.record.topology
        if _TAG in record.tags and _pps(record) and record.verdict != "not measured":
            groups.setdefault((made.datapath, made.label), {}).setdefault(_caches(made), []).append((record, row))
    return [
        _match_table(caches, group, [_pps(record) for some in settings.values() for record, _ in some])
        for settings in groups.values()
        for caches, group in settings.items()
    ]


def _match_table(caches: str, group: Sequence[_Tested], rates: Sequence[float]) -> Part:
    """`rates`: all that have the same shades."""
    by_place = {(tested[0].topology.ruleset, _flows(tested[0])): tested for tested in group}
    rulesets, flows = list(dict.fromkeys(each for each, _ in by_place)), sorted({count for _, count in by_place})
    lines = tuple(
        Line((Cell(_fields(ruleset)), *(_rate(by_place.get((ruleset, count)), rates) for count in flows)))
        for ruleset in rulesets[: LIMITS.rows]
    )
    columns = (Column("Fields", right=False), *(Column(labels.plural(count, "flow")) for count in flows))
    title = f"{registry.title(group[0][0].topology.datapath)}: {caches}"
    return Part(table=Table(columns, {"": lines}, caption=title))


def _rate(tested: _Tested | None, rates: Sequence[float]) -> Cell:
    if tested is None:
        return Cell(labels.DASH)
    (record, row), least, most = tested, min(rates), max(rates)
    share = (_pps(record) - least) / (most - least) if most > least else 1.0
    promised, known = record.threshold("ratio"), record.floor.reference
    notes = [f"ratio {format_share(promised.measured)}"] if promised and promised.measured is not None else []
    notes += [f"2017: {format_count(known.figures[_PPS.name])}"] if known and _PPS.name in known.figures else []
    return Cell(
        f"{'≥ ' if record.is_lower_bound else ''}{format_count(_pps(record))}",
        row.href,
        notes=tuple(map(Cell, notes)),
        shade=f"heat-{min(_SHADES - 1, int(share * _SHADES))}",
    )


def _fields(ruleset: str) -> str:
    title = registry.ruleset_title(ruleset)
    what = title.partition(", ")[2] or title
    return f"{what[:1].upper()}{what[1:]}"


def _caches(made: Topology) -> str:
    return {None: "exact match cache as it comes", 0: "no exact match cache"}.get(
        made.emc_insert_inv_prob, f"one in {made.emc_insert_inv_prob} packets into the exact match cache"
    )


def _flows(record: Record) -> int:
    return record.profile.flows if isinstance(record.profile, PacketProfile) else 0


def _pps(record: Record) -> float:
    return record.values.get(_PPS.name, 0.0)


#: In the order of the page.
SECTIONS = (
    Declared(
        "candidate",
        "The candidate against its base",
        "How much more or less the candidate serves than its base, side by side, and the interval that it lies in.",
        lambda shown: candidate.charts(shown.records, [each.record for each in shown.runs.stored]),
    ),
    Declared(
        "rates",
        "Rates by topology",
        "Connections (CPS) and packets (pps) per second by what the device under test does and by its CPUs and queues.",
        lambda shown: bars.rate_charts(shown.records),
    ),
    Declared(
        "cost",
        "What a feature costs",
        "The rate that is left with connection tracking, NAT and the like, with the same profile on the same machine.",
        lambda shown: bars.share_charts(shown.records),
    ),
    Declared(
        "instructions",
        "What packets and connections cost in instructions",
        "Counted in an emulated machine, the same on every host, net of the wires and the traffic alone. Caches, locks "
        "and several CPUs are not in it.",
        lambda shown: bars.instruction_charts(shown.records),
    ),
    Declared(
        "match-fields",
        "What match fields cost",
        "Packets per second with connection tracking, by the fields that rules match and by the number of flows, the "
        "darker the more. Below a rate: its ratio to what it is compared with, side by side, and what was published in "
        "2017, of other hardware. A dash: not measured.",
        parts=_match_tables,
    ),
    Declared(
        "table",
        "The connection table",
        "How many connections are held, by the count of the traffic generator and of the device under test; and "
        "entries over time.",
        _of_the_table,
        items=lambda record: [record] if record.metric == "held_connections" and record.result else [],
        columns=(
            _metric("held_connections", "Held at once"),
            _metric("table_entry_bytes", "Memory of each"),
            Figure("Counted by the device under test", _counted, right=False),
        ),
    ),
    Declared(
        "history",
        "History over the runs",
        "Tests that were measured in more than one of the runs on this page.",
        lambda shown: lines.history_charts([[each.record for each in test] for test in shown.runs.by_test.values()]),
    ),
    Declared(
        "mobile",
        "Mobile traffic",
        "What was reached while so many connections were open, of which as many began as ended. Latency is that of one "
        "message, one way (RFC 1242, section 3.8), in the direction where it is the worse one; jitter is the mean "
        "difference from one message to the next (RFC 4689, section 3.2.5). The traffic generator's own polling is in "
        "both.",
        items=_open_at_once,
        columns=(
            _metric("cps"),
            _metric("active_connections", "Open at once"),
            *map(_metric, ("pps", "bps", "cycles_per_packet", "latency_p50", "latency_p99", "latency_jitter")),
        ),
    ),
    Declared(
        "control-plane",
        "The control plane under a load",
        "What the control plane was made to do again and again while traffic passed, and how long each time took. The "
        "same load was offered alone before, and held. Waited is the TCP connect time, of packets the latency.",
        items=lambda record: record.evidence.control,
        columns=(
            Figure("What was done", _what_was_done, right=False),
            Figure("Times", lambda _, done: labels.thousands(done.number)),
            _time("Mean", lambda done: done.mean),
            _time("SD", lambda done: done.sd),
            _time("Median", lambda done: done.median),
            _time("p99", lambda done: done.p99),
            _time("Longest", lambda done: done.most),
            _metric("loss_meanwhile", "Load lost"),
            Figure("Load waited (p99)", _waited),
        ),
    ),
    Declared(
        "time",
        "Where the time of a thread goes",
        "Samples of one thread that forwards, at the highest load, in a trial that nothing else is judged by. "
        "Functions without a name are given by where they begin: packages with symbols (dbgsym) name them. Published "
        "samples are from other hardware, with eight threads.",
        parts=_time_tables,
    ),
    Declared(
        "searches",
        "How results came about",
        "The trials of what is missed or not measured, and of what is met with the least margin. Every other test has "
        "its trials in its record.",
        parts=_searches,
    ),
)

"""How the rate grows with CPUs and queues, as figures 2 and 3 of the 2022 article show it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctbench.base.units import parse_number
from ctbench.dut import registry
from ctbench.report import enough, labels
from ctbench.report.charts.model import Bar, BarChart, Category, LegendItem
from ctbench.report.charts.scale import three_digits
from ctbench.report.reference import Figure, References
from ctbench.results.record import Record
from ctbench.traffic.generator import LoadUnit

#: Setups that a chart has at least: one alone shows no scaling.
_LEAST_SETUPS = 2
#: Bars of references beside the measured one, at most.
_MOST_REFERENCES = 2
#: Name of the references that the SLA file itself has beside its floors.
_OF_THE_SLA = "Published"

Rate = Callable[[Record], float]
Setup = tuple[int, int]


@dataclass(frozen=True)
class _Kind:
    """What one chart counts: connections or packets."""

    unit: LoadUnit
    axis: str
    rate: Rate
    floor: Callable[[Record], str | None]
    published: Callable[[Figure], float | None]


_CPS = _Kind(
    "connections",
    "new connections per second",
    lambda record: record.measured.rate if record.measured else 0.0,
    lambda record: record.floors.cps,
    lambda figure: figure.cps,
)
_PPS = _Kind(
    "packets",
    "packets per second, both directions",
    lambda record: record.measured.pps if record.measured else 0.0,
    lambda record: record.floors.pps,
    lambda figure: figure.pps,
)


def scaling_charts(records: Sequence[Record], references: References) -> list[BarChart]:
    """A chart for each datapath, ruleset and profile that was measured, or published, with several numbers of CPUs or
    queues: connections and packets per second, or packets alone."""
    groups: dict[tuple[str, str, str, str, int], list[Record]] = {}
    for record in records:
        if record.measured and record.topology.datapath != "cable":
            made = record.topology
            key = (made.datapath, made.ruleset, made.ports, record.profile.name, made.mtu)
            groups.setdefault(key, []).append(record)
    charts = []
    for group in groups.values():
        kinds = (_CPS, _PPS) if group[0].profile.kind == "connections" else (_PPS,)
        charts += [_chart(group, kind, references) for kind in kinds]
    return [chart for chart in charts if len(chart.categories) >= _LEAST_SETUPS]


def _chart(group: Sequence[Record], kind: _Kind, references: References) -> BarChart:
    by_setup = {_setup(record): record for record in group}  # the newest counts
    one = group[0]
    ideal = _ideal(by_setup, kind)
    columns = {name: _reference_bars(one, kind, name, references, by_setup) for name in _names(one, references)}
    columns = {name: bars for name, bars in columns.items() if bars}
    categories = []
    for setup in sorted({*by_setup, *(setup for bars in columns.values() for setup in bars)}):
        record = by_setup.get(setup)
        promised = kind.floor(record) if record else None
        categories.append(
            Category(
                label=(str(setup[0]), str(setup[1])),
                bars=(_bar(record, kind), *(bars.get(setup) for bars in columns.values())),
                floor=parse_number(promised.removeprefix(">=").strip()) if promised else None,
                ideal=ideal * setup[0] if ideal else None,
            )
        )
    legend = [LegendItem("bar", "measured", "measured in this run")]
    legend += [
        LegendItem("bar", f"published-{number}", f"{name} (other hardware)") for number, name in enumerate(columns, 1)
    ]
    legend += [LegendItem("line", "floor", "floor of the SLA")]
    legend += [LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs")] if ideal else []
    return BarChart(
        title=f"{registry.title(one.topology.datapath)}, {registry.what_it_does(one.topology).lower()}: "
        f"{one.profile.name}, {kind.unit} per second",
        caption=_caption(by_setup, kind),
        axis=kind.axis,
        labels=("CPUs", "queues"),
        legend=tuple(legend),
        categories=tuple(categories[: enough.BARS]),
    )


def _bar(record: Record | None, kind: _Kind) -> Bar | None:
    if record is None or record.measured is None:
        return None
    value = kind.rate(record)
    unsure = record.verdict == "not measured"
    hint = f"{enough.name(record.test)}: {labels.rate(value, kind.unit)}, {record.verdict}"
    least = "≥ " if labels.at_least(record) else ""
    return Bar(value, f"{least}{three_digits(value)}", hint, "measured unsure" if unsure else "measured")


def _names(one: Record, references: References) -> list[str]:
    return list(references.series)[:_MOST_REFERENCES] or [_OF_THE_SLA]


def _reference_bars(
    one: Record, kind: _Kind, name: str, references: References, by_setup: dict[Setup, Record]
) -> dict[Setup, Bar]:
    """The bars of one reference, by setup."""
    figures: dict[Setup, Figure] = {}
    if name in references.series:
        for setup in [*by_setup, *_published_setups(one, references)]:
            like = one.topology.model_copy(update={"cpus": setup[0], "rx_queues": setup[1]})
            for profile in _profiles(one):
                figure = references.series[name].get((like.key, profile))
                if figure:
                    figures.setdefault(setup, figure)
    else:
        for setup, record in by_setup.items():
            if figure := References({}).find(record):
                figures[setup] = figure
    bars = {}
    for setup, figure in figures.items():
        # Connections of another length are no comparison; their packets are.
        value = kind.published(figure) if kind is _PPS or figure.profile == one.profile.name else None
        if value:
            number = _names(one, references).index(name) + 1
            hint = f"{figure.label}: {labels.rate(value, kind.unit)}, other hardware"
            bars[setup] = Bar(value, "", hint, f"published-{number}")
    return bars


def _published_setups(one: Record, references: References) -> list[Setup]:
    """CPUs and queues of the published figures for this datapath, ruleset and profile."""
    setups = []
    for figure in references.published:
        made = figure.topology
        same = (made.datapath, made.ruleset) == (one.topology.datapath, one.topology.ruleset)
        if same and figure.profile in _profiles(one) and made.cpus and made.rx_queues:
            setups.append((made.cpus, made.rx_queues))
    return setups


def _profiles(one: Record) -> list[str]:
    derived = one.profile.derived_from if one.profile.kind == "connections" else ""
    return [one.profile.name, *([derived] if derived else [])]


def _ideal(by_setup: dict[Setup, Record], kind: _Kind) -> float | None:
    """The rate of one CPU with the fewest queues, which perfect scaling multiplies; None where nothing scales."""
    if len({cpus for cpus, _ in by_setup}) < _LEAST_SETUPS:
        return None
    single = min((setup for setup in by_setup if setup[0] == 1), default=None)
    return kind.rate(by_setup[single]) if single else None


def _caption(by_setup: dict[Setup, Record], kind: _Kind) -> str:
    """The least and the most, in one sentence."""
    ordered = sorted(by_setup, key=lambda setup: kind.rate(by_setup[setup]))
    least, most = ordered[0], ordered[-1]
    low, high = (f"{_at_least(by_setup[setup])}{labels.rate(kind.rate(by_setup[setup]), kind.unit)}"
                 for setup in (least, most))  # fmt: skip
    if least == most:
        return f"{labels.cpus_and_queues(*most)}: {high}."
    return f"From {low} with {labels.cpus_and_queues(*least)} to {high} with {labels.cpus_and_queues(*most)}."


def _at_least(record: Record) -> str:
    return "at least " if labels.at_least(record) else ""


def _setup(record: Record) -> Setup:
    return record.topology.cpus, record.topology.rx_queues

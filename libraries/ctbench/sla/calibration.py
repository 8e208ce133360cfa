"""Calibration: an SLA file for one machine, whose floors are tolerance bounds of several runs on it. It extends the SLA
file of these runs, and holds nothing but these floors.

The logarithms of the rates of its runs are taken to be normal: a machine that others use multiplies a rate by what it
takes away. The bound is a one-sided tolerance bound: 95 % of further runs are better, with 95 % confidence. It is a
lower bound of a rate, an upper one of a time.

An emulated machine counts the same every time, so one run of it is enough. Only the seed of the kernel's hash functions
moves a figure, and the floors leave room for another seed.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import mean, median, stdev
from typing import Any

import yaml

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.text import one_line
from ctbench.base.units import format_ratio, plural
from ctbench.results.floor import parse, promise
from ctbench.results.metrics import (
    COSTS,
    HELD,
    METRICS,
    RATE_OF,
    RATES,
    SATURATION_OF,
    SERVED,
    Metric,
    kind_of,
)
from ctbench.results.record import Record
from ctbench.results.statistics import tolerance_factor
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import ConnectionProfile


@dataclass(frozen=True)
class Figures:
    """The figures of several runs, of one topology, profile and metric."""

    key: str
    profile: str
    #: The profile of which this one is the substitute; empty for others.
    derived_from: str
    #: What was looked for, and its value of each run.
    metric: Metric
    results: tuple[float, ...]
    #: How far the load that did not hold was above the highest that did (ratio), in the median; 0 where none is known.
    resolution: float
    #: Runs that tried it and measured nothing.
    without: int
    #: false: something else was the limit of all runs, so the DUT may do better.
    judged: bool
    #: By metric, the conditions of a good trial as the SLA file that was measured with has them. What was measured was
    #: measured within them, so the floors have them too.
    conditions: Mapping[str, str]


def gather(records: Sequence[Record]) -> list[Figures]:
    """Return figures by topology, profile and metric, in the order of the tests. Runs without a figure are counted
    apart. Left out are ratios, which hold on any machine or on none, instructions, which do not scatter and hold for an
    image, not for a machine, and metrics of the connection table."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        promised = METRICS[record.metric].role == "promise" and kind_of(record.metric) == "absolute"
        if promised and record.metric not in COSTS and not METRICS[record.metric].of_table:
            groups[record.topology.key, record.profile.name, record.metric].append(record)
        if record.metric in RATES:
            served = SATURATION_OF[record.profile.kind].name
            groups[record.topology.key, record.profile.name, served].append(record)
    made = [_figures(group, METRICS[metric]) for (_, _, metric), group in groups.items()]
    # A generator without a closed loop finds out nothing of what is served, which is not said of each test.
    return [each for each in made if each.results or each.metric.name not in SERVED]


def _figures(group: Sequence[Record], metric: Metric) -> Figures:
    first = group[0]
    judged = [record for record in group if record.verdict != "not measured"]
    # A rate that is too close to its floor to call, or is below a floor of another machine, is a rate all the same.
    # Floors that are beyond the generator leave nothing but what it reached, which holds as well.
    known = [record for record in group if record in judged or (record.limited_by == "dut" and _is_found(record))]
    held = [record for record in known or filter(_is_found, group) if _held(record)]
    served = metric.name in SERVED
    if served:  # it stands on closed loops, whatever became of the search
        valid = [record for record in group if record.limited_by != "fault" and _counts(record)]
        known = held = [record for record in valid if metric.name in record.figures]
    profile = first.profile
    return Figures(
        key=first.topology.key,
        profile=profile.name,
        derived_from=(profile.derived_from or "") if isinstance(profile, ConnectionProfile) else "",
        metric=metric,
        results=tuple(record.figures[metric.name].value for record in held),
        resolution=0.0 if served else _resolution(held),
        without=len(group) - len(held),
        judged=bool(known),
        conditions={
            each.metric: each.written
            for each in first.thresholds
            if METRICS[each.metric].role == "condition" and not served
        },
    )


def _resolution(records: Sequence[Record]) -> float:
    """Return the median width (ratio) of the last search step of a rate; 0 for other metrics, which no search finds."""
    widths = [
        upper / result.value - 1
        for record in records
        if record.metric == RATE_OF[record.profile.kind].name
        and (upper := record.evidence.upper_bound)
        and (result := record.result)
        and result.value > 0
    ]
    return max(0.0, median(widths)) if widths else 0.0


def _held(record: Record) -> bool:
    """Return True where a record has a figure; False for a 0 where higher is better: not even the lowest load held."""
    return record.result is not None and (record.result.value > 0 or METRICS[record.metric].better == "lower")


def _is_found(record: Record) -> bool:
    """Return True where a test that is *not measured* still found a value that was held: a lower bound."""
    most, found = record.campaign.max_spread or math.inf, record.result
    apart = found is not None and found.spread is not None and found.spread > most
    searched = record.limited_by not in ("fault", "floor")
    return searched and not apart and _counts(record)


def _counts(record: Record) -> bool:
    """Return True where the testbed judges rates, and its threads share no CPUs."""
    testbed = record.environment.testbed
    return bool(testbed.rates.get("judged", True)) and not testbed.oversubscribe


def runs_of(records: Sequence[Record]) -> int:
    """Return the number of runs that made the records."""
    return len({record.run_id for record in records})


CONTENT = CONFIDENCE = 0.95
#: No scatter (standard deviation, ratio) is taken to be less: searches that begin at the same hint try the same loads,
#: so their results are alike without being exact.
LEAST_SCATTER = 0.015
#: With fewer runs a bound is so far off that it says nothing.
LEAST_RUNS = 5


@dataclass(frozen=True)
class ToleranceBound:
    """The tolerance bound of a test's figures."""

    median: float
    #: Standard deviation (ratio) of a run: of the figures, with what the search cannot tell apart.
    scatter: float
    #: What 95 % of further figures are better than.
    value: float

    @property
    def width(self) -> float:
        """The distance of the bound from the median (ratio)."""
        return abs(self.value / self.median - 1)


def scatters(figures: Figures) -> tuple[float, float]:
    """Return two standard deviations (ratios) of the runs: between the runs, and within the last step of their search
    (a uniform distribution's)."""
    return stdev(map(math.log, figures.results)), math.log1p(figures.resolution) / math.sqrt(12)


def scatter_text(figures: Figures, bound: ToleranceBound) -> str:
    """Return the scatter of the runs with its two parts."""
    runs, steps = map(format_ratio, scatters(figures))
    return f"{format_ratio(bound.scatter)} (between runs {runs}, within a step of the search {steps})"


def bound_of(figures: Figures) -> ToleranceBound | None:
    """Return the tolerance bound of the figures; None for fewer than two figures, or a figure of 0."""
    values = figures.results
    if len(values) < 2 or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    scatter = max(LEAST_SCATTER, math.hypot(*scatters(figures)))
    away = tolerance_factor(len(values), CONTENT, CONFIDENCE) * scatter
    worse = -away if figures.metric.better == "higher" else away
    return ToleranceBound(median(values), scatter, math.exp(mean(logs) + worse))


def enough(figures: Sequence[Figures], runs: int, widest: float) -> bool:
    """Return True where the runs are enough: `LEAST_RUNS` or more, and each measured test has a bound within
    `widest`."""
    if runs < LEAST_RUNS:
        return False
    bounds = [bound_of(found) for found in figures if found.results]
    return all(bound is not None and bound.width <= widest for bound in bounds)


@dataclass(frozen=True)
class Stock:
    """The SLA file that the runs were measured with, which the new one extends. Without a name, tests without a floor
    are skipped."""

    name: str
    #: What it holds (`ctbench.base.yaml_files.contents`).
    data: Mapping[str, Any]
    #: Its path, where it does not ship.
    path: str = ""

    def entry(self, key: str, profile: str) -> Mapping[str, Any]:
        """Return the entry of a topology and a profile; empty where there is none."""
        found: Mapping[str, Any] = self.data.get(key, {}).get(profile, {})
        return found


@dataclass(frozen=True)
class Calibrated:
    """A test that runs tried: its floor, or why it has none."""

    figures: Figures
    bound: ToleranceBound | None
    #: As the file has it; empty where it has none.
    threshold: str
    #: Why it has no floor, a sentence without its full stop; empty where it has one.
    refused: str = ""


def calibrate(records: Sequence[Record], widest: float) -> list[Calibrated]:
    """Return the floor of each test that the runs tried. Raises `MissingResource` when the records have no figure,
    `ConfigError` when they are not of one machine, testbed and campaign, or have nothing but ratios."""
    _check_alike(records, _ALIKE, "one machine, made alike")
    gathered = gather(records)
    if not gathered and any(kind_of(record.metric) != "absolute" for record in records):
        raise ConfigError(
            "These runs have ratios only, which calibrate cannot use: they hold on every machine.\n  Expected runs of "
            "tests that promise a rate or a time, as ./run calibrate makes them without --from."
        )
    found = [_calibrated(each, widest) for each in gathered]
    _require(any(each.figures.results for each in found))
    return found


def _require(measured: bool) -> None:
    if not measured:
        raise MissingResource("These runs measured nothing that a floor could be made of; their logs say why.")


def _calibrated(figures: Figures, widest: float) -> Calibrated:
    bound = bound_of(figures)
    runs = plural(len(figures.results), "run")
    if bound is None:
        why = f"{runs} measured it, and two are the least that scatter" if len(figures.results) < 2 else "it is 0"
        return Calibrated(figures, None, "", why if figures.results else "no run measured it")
    if bound.width > widest:
        worse = "below" if figures.metric.better == "higher" else "above"
        return Calibrated(figures, bound, "", (
            f"its {runs} scatter by {scatter_text(figures, bound)}, so a floor that holds would "
            f"be {format_ratio(bound.width)} {worse} the median of {figures.metric.format(bound.median)}, and "
            f"{format_ratio(widest)} is the widest"
        ))  # fmt: skip
    made = _threshold(figures.metric, bound.value)
    unit = figures.metric.unit
    why = f"an SLA can promise from {unit.least} to {unit.most}, and it is {unit.write(_round(bound.value))}"
    return Calibrated(figures, bound, made, "" if made else why)


def sla_file(name: str, records: Sequence[Record], widest: float, stock: Stock) -> str:
    """Return an SLA file whose rates are tolerance bounds of the records, for this machine only. It extends `stock`,
    which has all else. Raises as `calibrate` does."""
    tests = calibrate(records, widest)
    first, runs = records[0], plural(runs_of(records), "run")
    duts = [record.environment.dut for record in records]
    products = ", ".join(dict.fromkeys(dut.product for dut in duts if dut.product))
    memories = ", ".join(dict.fromkeys(str(dut.memory.get("kind", "")) for dut in duts if dut.memory))
    machine = next(filter(None, (dut.machine for dut in duts)), first.environment.machine)
    comments = [
        f"Floors for one machine (./run calibrate), of {runs}. What is promised is a one-sided tolerance bound:",
        "95 % of further runs reach it, with 95 % confidence, if the logarithms are normal.",
        f"A test whose bound would be more than {format_ratio(widest)} worse than its median has no such floor.",
        f"Machine: {machine.cpu_model or 'unknown'}, {len(machine.usable_cpus)} CPUs, "
        f"{machine.virtualisation or 'unknown'} (hypervisor), kernel {machine.kernel or 'unknown'}",
        f"Measured: {products or 'unknown'}; memory {memories or 'unknown'}; campaign {first.campaign.name}, "
        f"testbed {first.environment.testbed.name or 'unknown'}",
    ]
    head: dict[str, Any] = {
        "description": "What 95 % of the runs of this machine reach, by its own scatter when it was calibrated.",
        "source": one_line(f"{runs} on {machine.cpu_model or 'this machine'}"),
    }
    if machine.cpu_model:
        # Not its kernel: that may be what is tested.
        facts = {"cpu_model": machine.cpu_model, "cpus": len(machine.usable_cpus), "hypervisor": machine.virtualisation}
        known = {key: fact for key, fact in facts.items() if fact}
        head["machine"] = {key: one_line(fact)[:200] if isinstance(fact, str) else fact for key, fact in known.items()}
    else:
        comments.append("This machine does not tell what CPU it has, so its floors hold wherever they are used.")
    return _written(name, comments, head, tests, stock)


def _written(
    name: str, comments: Sequence[str], head: Mapping[str, Any], tests: Sequence[Calibrated], stock: Stock
) -> str:
    """Return the whole file: comments for its reader, then the floors."""
    floors: dict[str, dict[str, Any]] = {}
    said = []
    for test in tests:
        found = test.figures
        said.append(f"{found.key}: {found.profile}: {found.metric.title}: {_remark(test)}")
        if test.threshold:
            entry = floors.setdefault(found.key, {}).setdefault(found.profile, {})
            entry[found.metric.name] = test.threshold
            entry |= _conditions(found, stock)
    lines = [f"# {one_line(text)}" for text in (*comments, f"{datetime.now(UTC):%Y-%m-%d}", *said)]
    others = {"extends": stock.path or stock.name} if stock.name else {"others": "skipped"}
    document = {**others, "name": name, **head, **floors}
    return "\n".join([*lines, yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True)])


def _conditions(figures: Figures, stock: Stock) -> dict[str, Any]:
    """Return the conditions that the figures were measured within. Where `stock` has no entry for a substitute profile,
    add what it promises of the original profile, except the rates."""
    known = stock.entry(figures.key, figures.profile)
    stands_for = stock.entry(figures.key, figures.derived_from) if not known else {}
    rest = {key: said for key, said in stands_for.items() if key not in {*HELD, *SERVED, "source", "smoke"}}
    own = {
        metric: text
        for metric, text in figures.conditions.items()
        if metric not in known and text != stock.data.get(metric)
    }
    return own | rest


def _remark(test: Calibrated) -> str:
    """Return the remark on a floor, or why the floor is missing."""
    found, bound = test.figures, test.bound
    if found.metric.name in COSTS:
        ends = dict.fromkeys(f"{end(found.results):,.1f}" for end in (min, max))
        return f"{' to '.join(ends)}, {len(found.results)} seeds"
    if test.refused or bound is None:
        return f"no floor of this machine: {test.refused}."
    low, high = (found.metric.unit.write(_round(end(found.results))) for end in (min, max))
    runs = plural(len(found.results), "run")
    missing = f"; {plural(found.without, 'run')} measured nothing" if found.without else ""
    beyond = "" if found.judged else f"; {found.metric.bound}, as something else was the limit"
    return (
        f"median {found.metric.unit.write(_round(bound.median))}, {low} to {high} in {runs}, "
        f"scatter {scatter_text(found, bound)}; the floor is {format_ratio(bound.width)} worse than the "
        f"median{missing}{beyond}"
    )


def _threshold(metric: Metric, value: float) -> str:
    """Return a threshold at a value, as a file has it; empty where the value is out of the metric's range."""
    with suppress(ValueError):
        return parse(promise(metric, _worse(metric, value)).written, metric).written
    return ""


def _check_alike(records: Sequence[Record], facts: Mapping[str, Callable[[Record], object]], expected: str) -> None:
    """Raise `ConfigError` for runs that differ in one of these facts, so that they cannot be pooled."""
    for what, fact_of in facts.items():
        names = list(dict.fromkeys(one_line(str(fact_of(record) or "unknown")) for record in records))
        if len(names) > 1:
            raise ConfigError(f"These runs are of several {what}: {', '.join(names)}.\n  Expected runs of {expected}.")


#: Facts of runs whose scatter says something.
_ALIKE: dict[str, Callable[[Record], object]] = {
    "testbeds": lambda record: record.environment.testbed.name,
    "machines": lambda record: record.environment.dut_machine.cpu_model,
    "campaigns": lambda record: record.campaign.name,
}


def _worse(metric: Metric, value: float) -> float:
    """Three digits of a bound, on the side that promises less: the other side would be beyond what the runs tell."""
    scale = 10.0 ** (2 - math.floor(math.log10(value))) if value > 0 else 1.0
    rounded = math.floor if metric.better == "higher" else math.ceil
    return rounded(round(value * scale, 6)) / scale


def _round(value: float) -> float:
    """Round a value to three digits: a measurement is no more precise."""
    return float(f"{value:.3g}")


#: Room for a seed and a host that were not tried, as a share of the figure, of packets and of new connections: five
#: seeds are less far apart than that (docs/evidence/emulated-states.csv), and so are two hosts.
ROOM: Mapping[LoadUnit, float] = {"packets": 0.002, "connections": 0.005}


def most_of(seeds: Sequence[float], room: float) -> int:
    """Return the most instructions that a test may cost, whole ones: above the largest count by the range of the seeds,
    or by the share `room` of that count, whichever is more."""
    low, high = min(seeds), max(seeds)
    return math.ceil(high + max(high - low, room * high))


def only_counts(records: Sequence[Record]) -> bool:
    """Return True where only instructions were measured: one run is enough then."""
    return bool(records) and all(record.metric in COSTS for record in records)


def ceilings(records: Sequence[Record], room: float | None = None) -> list[Calibrated]:
    """Return the floor of each test whose instructions were counted, from its last record, with `room` (a ratio) above
    it; None: the room for another seed. Raises `ConfigError` for records of several images."""
    _check_alike(records, {"emulated machines": lambda record: record.environment.dut.image}, "one image")
    counted = {(record.topology.key, record.profile.name): record for record in records if record.result}
    return [_counted(record, record.result.repetitions, room) for record in counted.values() if record.result]


def _counted(record: Record, seeds: Sequence[float], room: float | None) -> Calibrated:
    metric, most = METRICS[record.metric], most_of(seeds, ROOM[record.profile.kind] if room is None else room)
    figures = Figures(record.topology.key, record.profile.name, "", metric, tuple(seeds), 0.0, 0, True, {})
    return Calibrated(figures, None, f"<= {most}")


def counts_file(name: str, records: Sequence[Record], stock: Stock, image: str = "", room: float | None = None) -> str:
    """Return an SLA file of instruction counts, bound to their image, or to another `image` that is judged by them. It
    extends `stock`, which has all else. `room`: as in `ceilings`. Raises `MissingResource` where nothing was counted,
    `ConfigError` where `stock` has instructions of another image."""
    found, dut = ceilings(records, room), records[0].environment.dut
    _require(bool(found))
    if stock.data.get("image", dut.image) != dut.image:
        raise ConfigError(
            f"SLA {stock.name} has instructions of image {stock.data['image']}, and {dut.image} was measured.\n"
            "  Expected --sla with another file, such as local."
        )
    said = "0.2 % (new connections 0.5 %)" if room is None else format_ratio(room)
    comments = [
        "Instructions in an emulated machine. What is promised is above what every seed of the kernel's hash functions",
        f"counted: by as much as the seeds are apart, or by {said}.",
        f"Machine: {dut.product}",
        "Another image is not judged by these figures.",
    ]
    head = {
        "description": "What packets and connections cost in one emulated machine.",
        "source": f"counted in image {dut.image}",
        "image": image or str(dut.image),
    }
    return _written(name, comments, head, found, stock)

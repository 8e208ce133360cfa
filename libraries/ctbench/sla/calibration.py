"""Calibration: an SLA file for one machine, whose floors are tolerance bounds of what several runs of it measured. It
extends the file that was measured with, and holds nothing but these floors.

An emulated machine counts the same every time, so one run of it is enough. What moves a figure is the seed of the
kernel's hash functions: its floors have room for another one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.text import one_line
from ctbench.base.units import format_ratio
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import COSTS, HELD, METRICS, SERVED, Metric, kind_of
from ctbench.results.record import Record
from ctbench.sla.calibration_figures import Bound, Figures, bound_of, gather, runs_of, scatter_text
from ctbench.sla.floor import Threshold, parse, promise
from ctbench.traffic.generator import LoadUnit


@dataclass(frozen=True)
class Stock:
    """The SLA file that was measured with, which the new one extends."""

    name: str
    #: What it holds (`ctbench.base.yaml_files.contents`).
    data: Mapping[str, Any]
    #: Its path, where it does not ship.
    path: str = ""

    def entry(self, key: str, profile: str) -> Mapping[str, Any]:
        """What it has of a topology and a profile; nothing where it has none."""
        found: Mapping[str, Any] = self.data.get(key, {}).get(profile, {})
        return found

    @property
    def entries(self) -> list[tuple[str, str]]:
        """Topology and profile of each of its entries."""
        return [(key, profile) for key, profiles in self.data.items() if "/" in str(key) for profile in profiles]


def yaml_lines(data: Mapping[str, Any]) -> list[str]:
    """As YAML has it."""
    return yaml.safe_dump(dict(data), sort_keys=False, width=10_000, allow_unicode=True).splitlines() if data else []


def scalar(text: str) -> str:
    """A text as YAML has it, in quotes only where it would be read as something else (`on`, `2024`, `a: b`)."""
    return yaml.safe_dump(text, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")


def line_of(value: object) -> str:
    """A fact of a record for a comment, which ends with its line."""
    return one_line(str(value or "unknown"))


def count(number: int, thing: str) -> str:
    """`1 run`, `5 runs`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


class NothingMeasured(CtbenchError):
    """No run measured anything that a floor could be made of."""

    exit_status: ClassVar[int] = 6


@dataclass(frozen=True)
class Calibrated:
    """A test of which something was measured: its floor, or why it has none."""

    figures: Figures
    bound: Bound | None
    #: As the file has it; None where it has none.
    threshold: Threshold | None
    #: Why it has no floor, a sentence without its full stop; empty where it has one.
    refused: str = ""


def calibrate(records: Sequence[Record], widest: float) -> list[Calibrated]:
    """The floor of each test that the runs tried. Raises `NothingMeasured` when the records have no figure,
    `ConfigError` when they are not of one machine."""
    _check_alike(records)
    gathered = gather(records)
    if not gathered and any(kind_of(record.metric) != "absolute" for record in records):
        raise ConfigError(
            "These runs have ratios only, which calibrate cannot use: they hold on every machine.\n  Expected runs of "
            "tests that promise a rate or a time, as ./run calibrate makes them without --from."
        )
    found = [_calibrated(each, widest) for each in gathered]
    if not any(each.figures.results for each in found):
        raise NothingMeasured("These runs measured nothing that a floor could be made of; their logs say why.")
    return found


def _calibrated(figures: Figures, widest: float) -> Calibrated:
    bound = bound_of(figures)
    if bound is None:
        runs = len(figures.results)
        why = f"{count(runs, 'run')} measured it, and two are the least that scatter" if runs < 2 else "it is 0"
        return Calibrated(figures, None, None, why if runs else "no run measured it")
    if bound.width > widest:
        worse = "below" if figures.metric.better == "higher" else "above"
        return Calibrated(figures, bound, None, (
            f"its {count(bound.runs, 'run')} scatter by {scatter_text(figures, bound)}, so a floor that holds would "
            f"be {format_ratio(bound.width)} {worse} the median of {figures.metric.format(bound.median)}, and "
            f"{format_ratio(widest)} is the widest"
        ))  # fmt: skip
    made = _threshold(figures.metric, bound.value)
    unit = figures.metric.unit
    why = f"an SLA can promise from {unit.least} to {unit.most}, and it is {unit.write(_round(bound.value))}"
    return Calibrated(figures, bound, made, "" if made else why)


def sla_file(name: str, records: Sequence[Record], widest: float, stock: Stock) -> str:
    """An SLA file whose rates are tolerance bounds of what was measured, for this machine only. All else is that of
    `stock`, which it extends. Raises as `calibrate` does."""
    tests = calibrate(records, widest)
    first, runs = records[0], runs_of(records)
    duts = [record.environment.dut for record in records]
    products = dict.fromkeys(dut.product for dut in duts if dut.product)
    memories = dict.fromkeys(str(dut.memory.get("kind", "")) for dut in duts if dut.memory)
    machine = next(filter(None, (dut.machine for dut in duts)), first.environment.machine)
    lines = [
        f"# Floors for one machine (./run calibrate), of {count(runs, 'run')}. What is promised is a one-sided",
        "# tolerance bound: 95 % of further runs reach it, with 95 % confidence, if the logarithms are normal.",
        f"# A test whose bound would be more than {format_ratio(widest)} worse than its median has no such floor.",
        f"# Machine: {line_of(machine.cpu_model)}, {len(machine.usable_cpus)} CPUs,"
        f" {line_of(machine.virtualisation)} (hypervisor), kernel {line_of(machine.kernel)}",
        f"# Measured: {line_of(', '.join(products))}; memory {line_of(', '.join(memories))};"
        f" campaign {line_of(first.campaign.name)}, testbed {line_of(first.environment.testbed.name)}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"extends: {scalar(stock.path or stock.name)}",
        f"name: {scalar(name)}",
        "description: What 95 % of the runs of this machine reach, by its own scatter when it was calibrated.",
        f"source: {scalar(count(runs, 'run') + ' on ' + line_of(machine.cpu_model or 'this machine'))}",
    ]
    return _written([*map(one_line, lines), *_machine(machine)], tests, stock)


def _machine(machine: MachineFacts) -> list[str]:
    """The machine that the floors bind to. Not its kernel: that may be what is tested."""
    facts: dict[str, Any] = {"cpu_model": one_line(machine.cpu_model)[:200]} if machine.cpu_model else {}
    if not facts:
        return ["# This machine does not tell what CPU it has, so its floors hold wherever they are used."]
    facts |= {"cpus": len(machine.usable_cpus)} if machine.usable_cpus else {}
    facts |= {"hypervisor": one_line(machine.virtualisation)[:200]} if machine.virtualisation else {}
    return ["machine:", *(f"  {line}" for line in yaml_lines(facts))]


def _written(head: Sequence[str], tests: Sequence[Calibrated], stock: Stock) -> str:
    """The whole file."""
    lines = list(head)
    for key in dict.fromkeys(test.figures.key for test in tests):
        lines += _topology(key, [test for test in tests if test.figures.key == key], stock)
    return "\n".join(lines) + "\n"


def _topology(key: str, tests: Sequence[Calibrated], stock: Stock) -> list[str]:
    """The floors of one topology, and why tests have none."""
    entries: list[str] = []
    comments: list[str] = []
    for profile in dict.fromkeys(test.figures.profile for test in tests):
        own = [test for test in tests if test.figures.profile == profile]
        made = [test for test in own if test.threshold]
        said = [_said(test) for test in own]
        if not made:
            comments += [f"{scalar(profile)}: {each}" for each in said]
            continue
        entries += [f"  {scalar(profile)}:", *(f"    # {each}" for each in said)]
        entries += [f'    {test.figures.metric.name}: "{test.threshold}"' for test in made]
        entries += _conditions(made[0].figures, stock)
    if not entries:
        return ["", *(f"# {key}: {comment}" for comment in comments)] if comments else []
    return ["", f"{scalar(key)}:", *(f"  # {comment}" for comment in comments), *entries]


def _conditions(figures: Figures, stock: Stock) -> list[str]:
    """What was measured was measured within these conditions. Of a substitute, what is promised of the profile that it
    stands for, but for its rates, as `stock` has nothing of the substitute itself."""
    known = stock.entry(figures.key, figures.profile)
    stands_for = stock.entry(figures.key, figures.derived_from) if not known else {}
    rates = {*HELD, *SERVED, "source", "smoke"}
    rest = {name: said for name, said in stands_for.items() if name not in rates}
    conditions = {
        metric: text
        for metric, text in figures.conditions.items()
        if metric not in known and metric not in rest and text != stock.data.get(metric)
    }
    return [f"    {line}" for line in yaml_lines({**conditions, **rest})]


def _said(test: Calibrated) -> str:
    """What a reader has to know of a floor, or of why it is missing."""
    found, bound = test.figures, test.bound
    if found.metric.name in COSTS:
        ends = dict.fromkeys(f"{end(found.results):,.1f}" for end in (min, max))
        return f"{found.metric.title}: {' to '.join(ends)}, {len(found.results)} seeds"
    if test.refused or bound is None:
        return f"{found.metric.title}: no floor of this machine: {test.refused}."
    low, high = (found.metric.unit.write(_round(end(found.results))) for end in (min, max))
    missing = f"; {count(found.without, 'run')} measured nothing" if found.without else ""
    beyond = "" if found.judged else f"; {found.metric.bound}, as something else was the limit"
    return (
        f"{found.metric.title}: median {found.metric.unit.write(_round(bound.median))}, {low} to {high} in "
        f"{count(bound.runs, 'run')}, scatter {scatter_text(found, bound)}; the floor is "
        f"{format_ratio(bound.width)} worse than the median{missing}{beyond}"
    )


def _threshold(metric: Metric, value: float) -> Threshold | None:
    """A threshold at a value; None where that is out of the metric's range."""
    made = promise(metric, _round(value))
    with suppress(ValueError):
        return parse(made.text, metric)
    return None


def _check_alike(records: Sequence[Record]) -> None:
    """Refuse runs whose scatter would say nothing: of several testbeds, machines or campaigns."""
    for what, name_of in _ALIKE.items():
        names = list(dict.fromkeys(line_of(name_of(record)) for record in records))
        if len(names) > 1:
            raise ConfigError(
                f"These runs are of several {what}: {', '.join(names)}.\n  Expected runs of one machine, made alike."
            )


_ALIKE: dict[str, Callable[[Record], object]] = {
    "testbeds": lambda record: record.environment.testbed.name,
    "machines": lambda record: record.environment.machine.cpu_model,
    "campaigns": lambda record: record.campaign.name,
}


def _round(value: float) -> float:
    """Three digits say all that a measurement knows."""
    return float(f"{value:.3g}")


#: Room for a seed that was not tried, as a share of the figure, of packets and of new connections: five seeds are less
#: far apart than that (docs/evidence/emulated-states.csv).
ROOM: Mapping[LoadUnit, float] = {"packets": 0.0005, "connections": 0.005}


def most_of(seeds: Sequence[float], kind: LoadUnit) -> int:
    """The most that a test may cost, whole instructions: above all seeds by as much as these are apart, or by the room
    for another one, whichever is more."""
    low, high = min(seeds), max(seeds)
    return math.ceil(high + max(high - low, ROOM[kind] * high))


def only_counts(records: Sequence[Record]) -> bool:
    """Whether nothing but instructions was measured: one run says it all."""
    return bool(records) and all(record.metric in COSTS for record in records)


def ceilings(records: Sequence[Record]) -> list[Calibrated]:
    """The floor of each test that was counted, by its last record. Raises `ConfigError` where they are of several
    images."""
    images = list(dict.fromkeys(line_of(record.environment.dut.image) for record in records))
    if len(images) > 1:
        raise ConfigError(
            f"These runs are of several emulated machines: {', '.join(images)}.\n  Expected runs of one image."
        )
    counted = {(record.topology.key, record.profile.name): record for record in records if record.result}
    return [_counted(record, record.result.repetitions) for record in counted.values() if record.result]


def _counted(record: Record, seeds: Sequence[float]) -> Calibrated:
    metric, most = METRICS[record.metric], most_of(seeds, record.profile.kind)
    figures = Figures(record.topology.key, record.profile.name, "", metric, tuple(seeds), 0.0, 0, True, {})
    return Calibrated(figures, None, Threshold(metric, most, f"<= {most}"))


def counts_file(name: str, records: Sequence[Record], stock: Stock) -> str:
    """An SLA file with what was counted, bound to its image; all else is that of `stock`, which it extends.
    `ConfigError` where that has instructions of another image."""
    found, dut = ceilings(records), records[0].environment.dut
    if stock.data.get("image", dut.image) != dut.image:
        raise ConfigError(
            f"SLA {stock.name} has instructions of image {stock.data['image']}, and {dut.image} was measured.\n"
            "  Expected --sla with another file, such as local."
        )
    lines = [
        "# Instructions in one emulated machine (./run calibrate). What is promised is above what every seed of the",
        "# kernel's hash functions counted: by as much as the seeds are apart, or by 0.05 % (new connections 0.5 %).",
        f"# Machine: {line_of(dut.product)}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"extends: {scalar(stock.path or stock.name)}",
        f"name: {scalar(name)}",
        "description: What packets and connections cost in one emulated machine, whatever the host.",
        f"source: {scalar(f'counted in image {dut.image}')}",
        "# Another image is not judged by these figures.",
        f"image: {scalar(str(dut.image))}",
    ]
    return _written([*map(one_line, lines)], found, stock)

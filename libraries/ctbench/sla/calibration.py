"""Calibration: an SLA file for one machine, whose floors are tolerance bounds of what several runs of it measured.

An emulated machine counts the same every time, so one run of it is enough. What moves a figure is the seed of the
kernel's hash functions: its floors have room for another one.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.text import one_line
from ctbench.base.units import format_ratio
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import COSTS, HELD, METRICS, RATES, Metric, kind_of
from ctbench.results.record import Record
from ctbench.sla.calibration_figures import Bound, Figures, bound_of, gather, runs_of, scatter_text
from ctbench.sla.floor import Threshold, parse, promise
from ctbench.traffic.generator import LoadUnit

#: The entries of an SLA file as YAML has them: by topology key, then by profile.
Entries = Mapping[str, Mapping[str, Mapping[str, Any]]]

#: What a whole SLA file promises of every floor, and the new one as well.
_OF_ALL = ("loss_ratio", "packet_loss_ratio", "connect_time_p99", "of_build")


@dataclass(frozen=True)
class Stock:
    """The SLA file that was measured with. What no floor of this machine replaces stays as it is there."""

    name: str
    of_all: Mapping[str, Any]
    entries: Entries

    @classmethod
    def read(cls, name: str, text: str) -> "Stock":
        """Take the entries from the text of an SLA file that is known to be valid (`load` has read it before)."""
        data = yaml.safe_load(text)
        floors = data.get("floors") or {key: value for key, value in data.items() if "/" in str(key)}
        source = {"source": data["source"]} if "source" in data else {}
        return cls(
            name,
            {key: data[key] for key in _OF_ALL if key in data},
            {key: {profile: source | entry for profile, entry in profiles.items()} for key, profiles in floors.items()},
        )


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


#: What is said of a promise in its entry, and not of another one in its place.
_ABOUT_RATES = ("source", "smoke")
#: What is said of a promise in the place of a figure: an entry with nothing else promises nothing.
_ABOUT = {"source", "reference", "smoke"}


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
    """An SLA file whose rates are tolerance bounds of what was measured, for this machine only. What they do not
    replace is as in `stock`. Raises as `calibrate` does."""
    tests = calibrate(records, widest)
    first, runs = records[0], runs_of(records)
    duts = [record.environment.dut for record in records]
    products = dict.fromkeys(dut.product for dut in duts if dut.product)
    memories = dict.fromkeys(dut.memory.kind for dut in duts if dut.memory)
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
        f"name: {scalar(name)}",
        "description: What 95 % of the runs of this machine reach, by its own scatter when it was calibrated.",
        f"source: {scalar(count(runs, 'run') + ' on ' + line_of(machine.cpu_model or 'this machine'))}",
    ]
    lines = [*map(one_line, lines), *_machine(machine), *yaml_lines(stock.of_all)]
    return _written(lines, tests, stock, _left)


def _machine(machine: MachineFacts) -> list[str]:
    """The machine that the floors bind to. Not its kernel: that may be what is tested."""
    facts: dict[str, Any] = {"cpu_model": one_line(machine.cpu_model)[:200]} if machine.cpu_model else {}
    if not facts:
        return ["# This machine does not tell what CPU it has, so its floors hold wherever they are used."]
    facts |= {"cpus": len(machine.usable_cpus)} if machine.usable_cpus else {}
    facts |= {"hypervisor": one_line(machine.virtualisation)[:200]} if machine.virtualisation else {}
    return ["machine:", *(f"  {line}" for line in yaml_lines(facts))]


#: What an entry says besides the floors that were made for it, by their metrics.
Left = Callable[[Mapping[str, Any], Collection[str]], dict[str, Any]]


def _written(head: Sequence[str], tests: Sequence[Calibrated], stock: Stock, left: Left) -> str:
    """The whole file."""
    lines = list(head)
    for key in dict.fromkeys([*(test.figures.key for test in tests), *stock.entries]):
        lines += _topology(key, [test for test in tests if test.figures.key == key], stock, left)
    return "\n".join(lines) + "\n"


def _topology(key: str, tests: Sequence[Calibrated], stock: Stock, left: Left) -> list[str]:
    """The entries of one topology: what was measured, and what `stock` has besides."""
    entries: list[str] = []
    comments: list[str] = []
    stays = stock.entries.get(key, {})
    for profile in dict.fromkeys([*(test.figures.profile for test in tests), *stays]):
        own = [test for test in tests if test.figures.profile == profile]
        known = stays.get(profile) or stays.get(own[0].figures.derived_from if own else "") or {}
        made = {test.figures.metric.name: test for test in own if test.threshold}
        said = [_said(test) for test in own]
        if not made and profile not in stays:
            # A substitute without a floor of its own follows from the profile that it stands for.
            comments += [f"{scalar(profile)}: {each}" for each in said]
            continue
        rest = left(known, made)
        if not made and rest.keys() <= _ABOUT:
            continue
        entries += [f"  {scalar(profile)}:", *(f"    # {each}" for each in said)]
        entries += [f'    {name}: "{test.threshold}"' for name, test in made.items()]
        entries += _conditions([*made.values()], rest, stock) if made else []
        if rest:
            entries += [f"    # as in SLA {stock.name}", *(f"    {line}" for line in yaml_lines(rest))]
    if not entries:
        return ["", *(f"# {key}: {comment}" for comment in comments)] if comments else []
    return ["", f"{scalar(key)}:", *(f"  # {comment}" for comment in comments), *entries]


def _left(entry: Mapping[str, Any], made: Collection[str]) -> dict[str, Any]:
    """What an entry says besides what was calibrated: all where nothing was."""
    if not made:
        return dict(entry)
    replaced = {*made, *(HELD if HELD & set(made) else ()), *(_ABOUT_RATES if set(made) & set(RATES) else ())}
    return {name: promised for name, promised in entry.items() if name not in replaced}


def _conditions(tests: Sequence[Calibrated], rest: Mapping[str, Any], stock: Stock) -> list[str]:
    """What was measured was measured within these conditions."""
    return [
        f'    {metric}: "{text}"'
        for metric, text in tests[0].figures.conditions.items()
        if metric not in rest and text != stock.of_all.get(metric)
    ]


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
    """An SLA file with what was counted, bound to its image; what is not replaced is as in `stock`."""
    found, dut = ceilings(records), records[0].environment.dut
    lines = [
        "# Instructions in one emulated machine (./run calibrate). What is promised is above what every seed of the",
        "# kernel's hash functions counted: by as much as the seeds are apart, or by 0.05 % (new connections 0.5 %).",
        f"# Machine: {line_of(dut.product)}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"name: {scalar(name)}",
        "description: What packets and connections cost in one emulated machine, whatever the host.",
        f"source: {scalar(f'counted in image {dut.image}')}",
        "# Another image is not judged by these figures.",
        f"image: {scalar(str(dut.image))}",
    ]
    return _written([*map(one_line, lines), *yaml_lines(stock.of_all)], found, stock, _left_uncounted)


def _left_uncounted(entry: Mapping[str, Any], made: Collection[str]) -> dict[str, Any]:
    """The same of an image: nothing that was counted in another one."""
    replaced = {*COSTS, *(_ABOUT_RATES if made else ())}
    return {name: promised for name, promised in entry.items() if name not in replaced}

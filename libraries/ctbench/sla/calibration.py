"""Calibration: an SLA file for one machine, whose floors are tolerance bounds of what several runs of it measured."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_ratio
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import RATES, Metric, kind_of
from ctbench.results.record import Record
from ctbench.sla.calibration_bound import Bound, bound_of
from ctbench.sla.calibration_figures import Figures, gather, runs_of
from ctbench.sla.calibration_text import Stock, count, line_of, scalar, yaml_lines
from ctbench.sla.threshold import Threshold, parse, promise

#: What is said of a promise in its entry, and not of another one in its place.
_ABOUT_RATES = ("source", "smoke")


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
    refused: str


def calibrate(records: Sequence[Record], widest: float) -> list[Calibrated]:
    """The floor of each test that the runs tried. Raises `NothingMeasured` when the records have no figure,
    `ConfigError` when they are not of one machine."""
    _check_alike(records)
    found = [_calibrated(each, widest) for each in gather(records)]
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
            f"its {count(bound.runs, 'run')} scatter by {format_ratio(bound.scatter)}, so a floor that holds would be "
            f"{format_ratio(bound.width)} {worse} the median of {figures.metric.format(bound.median)}, and "
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
    floors: dict[str, list[Calibrated]] = defaultdict(list)
    for test in tests:
        floors[test.figures.key].append(test)
    for key in dict.fromkeys([*floors, *stock.entries]):
        lines += _topology(key, floors[key], stock)
    return "\n".join(lines) + "\n"


def _machine(machine: MachineFacts) -> list[str]:
    """The machine that the floors bind to. Not its kernel: that may be what is tested."""
    facts: dict[str, Any] = {"cpu_model": one_line(machine.cpu_model)[:200]} if machine.cpu_model else {}
    if not facts:
        return ["# This machine does not tell what CPU it has, so its floors hold wherever they are used."]
    facts |= {"cpus": len(machine.usable_cpus)} if machine.usable_cpus else {}
    facts |= {"hypervisor": one_line(machine.virtualisation)[:200]} if machine.virtualisation else {}
    return ["machine:", *(f"  {line}" for line in yaml_lines(facts))]


def _topology(key: str, tests: Sequence[Calibrated], stock: Stock) -> list[str]:
    """The entries of one topology: what was measured, and what `stock` has besides."""
    entries: list[str] = []
    comments: list[str] = []
    left = dict(stock.entries.get(key, {}))
    for profile in dict.fromkeys([*(test.figures.profile for test in tests), *left]):
        own = [test for test in tests if test.figures.profile == profile]
        derived_from = own[0].figures.derived_from if own else ""
        known = left.get(profile) or left.get(derived_from) or {}
        made = {test.figures.metric.name: test for test in own if test.threshold}
        said = [f"    # {_said(test)}" for test in own]
        if not made and profile not in left:
            # A substitute without a floor of its own follows from the profile that it stands for.
            comments += [f"  # {scalar(profile)}: {line.strip().removeprefix('# ')}" for line in said]
            continue
        rest = _left(known, made)
        entries += [f"  {scalar(profile)}:", *said]
        entries += [f"    {_promise(test)}" for test in made.values()]
        entries += _conditions(own, rest, stock) if made else []
        if rest:
            entries += [f"    # as in SLA {stock.name}", *(f"    {line}" for line in yaml_lines(rest))]
    if not entries:
        return ["", *(f"# {key}: {line.strip().removeprefix('# ')}" for line in comments)] if comments else []
    return ["", f"{scalar(key)}:", *comments, *entries]


def _left(entry: Mapping[str, Any], made: Mapping[str, Calibrated]) -> dict[str, Any]:
    """What an entry says besides what was calibrated: all where nothing was."""
    if not made:
        return dict(entry)
    rates = {name for name in RATES if kind_of(name) == "absolute"} if set(made) & set(RATES) else set()
    replaced = {*made, *rates, *(_ABOUT_RATES if rates else ())}
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
    if test.refused or bound is None:
        return f"{found.metric.title}: no floor of this machine: {test.refused}."
    low, high = (found.metric.unit.write(_round(end(found.results))) for end in (min, max))
    missing = f"; {count(found.without, 'run')} measured nothing" if found.without else ""
    beyond = "" if found.judged else f"; {found.metric.bound}, as something else was the limit"
    return (
        f"{found.metric.title}: median {found.metric.unit.write(_round(bound.median))}, {low} to {high} in "
        f"{count(bound.runs, 'run')}, scatter {format_ratio(bound.scatter)}; the floor is {format_ratio(bound.width)} "
        f"worse than the median{missing}{beyond}"
    )


def _promise(test: Calibrated) -> str:
    return f'{test.figures.metric.name}: "{test.threshold}"'


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

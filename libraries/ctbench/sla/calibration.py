"""Calibration: floors for one machine, a stated margin worse than the median of what several runs of it measured."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_ratio
from ctbench.results.metrics import METRICS, RATES, Metric
from ctbench.results.record import Record
from ctbench.results.statistics import spread
from ctbench.sla.calibration_figures import RATIO, Figures, gather, runs_of
from ctbench.sla.threshold import Threshold, parse, promise

#: The entries of an SLA file as YAML has them: by topology key, then by profile.
Entries = Mapping[str, Mapping[str, Mapping[str, Any]]]

#: What every floor of the file permits.
_LOSS_RATIO = "<= 0.02%"


class NothingMeasured(CtbenchError):
    """No run measured anything that a floor could be made of."""

    exit_status: ClassVar[int] = 6


@dataclass(frozen=True)
class Stock:
    """The SLA file that was measured with. What was not measured keeps its floors."""

    name: str
    entries: Entries

    @classmethod
    def read(cls, name: str, text: str) -> "Stock":
        """Take the entries from the text of an SLA file that is known to be valid (`load` has read it before)."""
        data = yaml.safe_load(text)
        floors = data.get("floors") or {key: value for key, value in data.items() if "/" in str(key)}
        own = {key: data[key] for key in ("loss_ratio", "source") if key in data}
        return cls(
            name,
            {key: {profile: own | entry for profile, entry in profiles.items()} for key, profiles in floors.items()},
        )


def sla_file(name: str, records: Sequence[Record], margin: float, stock: Stock | None = None) -> str:
    """An SLA file whose floors are `margin` (a ratio) worse than the medians, with the spread as comments. What the
    runs did not measure has the floors of `stock`.

    Raises `NothingMeasured` when the records have no figure, `ConfigError` when they are not of one machine.
    """
    _check_alike(records)
    figures = [found for found in gather(records) if found.results]
    if not figures:
        raise NothingMeasured("These runs measured nothing that a floor could be made of; their logs say why.")
    first = records[0]
    machine = first.environment.machine
    duts = [record.environment.dut for record in records]
    products = dict.fromkeys(dut.product for dut in duts if dut.product)
    memories = dict.fromkeys(dut.memory.kind for dut in duts if dut.memory)
    runs = runs_of(records)
    median = f"median of {_count(runs, 'run')}"
    lines = [
        f"# Floors for one machine: {format_ratio(margin)} worse than the {median} (./run calibrate).",
        f"# Machine: {_line(machine.cpu_model)}, {len(machine.usable_cpus)} CPUs,"
        f" {_line(machine.virtualisation)} (hypervisor), kernel {_line(machine.kernel)}",
        f"# Measured: {_line(', '.join(products))}; memory {_line(', '.join(memories))};"
        f" campaign {_line(first.campaign.name)}, testbed {_line(first.environment.testbed.name)}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"name: {_scalar(name)}",
        f"description: {format_ratio(margin)} worse than what this machine did when it was calibrated.",
        f"source: {_scalar(f'{median} on ' + _line(machine.cpu_model or 'this machine'))}",
        f'loss_ratio: "{_LOSS_RATIO}"',
    ]
    lines = [one_line(line) for line in lines]
    kept = kept_floors(figures, stock)
    for key in dict.fromkeys([*(found.key for found in figures), *kept]):
        lines += ["", f"{_scalar(key)}:"]
        here, left = [found for found in figures if found.key == key], kept.get(key, {})
        for profile in dict.fromkeys([*(found.profile for found in here), *left]):
            lines.append(f"  {_scalar(profile)}:")
            if measured := [found for found in here if found.profile == profile]:
                lines += _entry(measured, margin, runs)
            if profile in left:
                lines += _kept(left[profile], stock.name if stock else "")
    return "\n".join(lines) + "\n"


def kept_floors(figures: Sequence[Figures], stock: Stock | None) -> Entries:
    """What of the entries of `stock` none of `figures` replaces."""
    measured: dict[tuple[str, str], list[Figures]] = defaultdict(list)
    for found in figures:
        if found.results:
            measured[found.key, found.profile].append(found)
    kept = {
        key: {
            profile: left for profile, entry in profiles.items() if (left := _left(entry, measured.get((key, profile))))
        }
        for key, profiles in (stock.entries if stock else {}).items()
    }
    return {key: profiles for key, profiles in kept.items() if profiles}


def _left(entry: Mapping[str, Any], measured: Sequence[Figures] | None) -> Mapping[str, Any]:
    """What an entry promises of tests that were not measured: all that it says where none was."""
    if not measured:
        return entry
    replaced = {name for found in measured for name in found.promised}
    if any(found.metric.name in RATES for found in measured):
        replaced |= set(RATES)
    return {
        name: promised
        for name, promised in entry.items()
        if name in METRICS and METRICS[name].role == "promise" and name not in replaced
    }


def _check_alike(records: Sequence[Record]) -> None:
    """Refuse runs whose median would say nothing: of several testbeds, machines or campaigns."""
    for what, name_of in _ALIKE.items():
        names = list(dict.fromkeys(_line(name_of(record)) for record in records))
        if len(names) > 1:
            raise ConfigError(
                f"These runs are of several {what}: {', '.join(names)}.\n  Expected runs of one machine, made alike."
            )


_ALIKE: dict[str, Callable[[Record], object]] = {
    "testbeds": lambda record: record.environment.testbed.name,
    "machines": lambda record: record.environment.machine.cpu_model,
    "campaigns": lambda record: record.campaign.name,
}


def _entry(of_profile: Sequence[Figures], margin: float, runs: int) -> list[str]:
    """The promises of a topology with a profile: of each procedure what it looked for, and what else its trials say."""
    lines, written = [], {found.metric.name for found in of_profile}
    for found in of_profile:
        lines.append(f"    # {_spread(found, runs)}")
        for name, values in found.promised.items():
            # What another procedure looked for is promised by what that one found.
            if name == found.metric.name or name not in written:
                written.add(name)
                lines.append(f"    {_promise(METRICS[name], values, margin, name)}")
    lines += [f'    {metric}: "{text}"' for metric, text in of_profile[0].conditions.items() if text != _LOSS_RATIO]
    related = next((found for found in of_profile if found.shares), None)
    if related:
        if _threshold(RATIO, related.shares, margin):
            lines += ["    ratio:", f"      to: {_scalar(related.relative_to)}"]
        lines.append(f"      {_promise(RATIO, related.shares, margin, 'rate')}")
    return lines


def _spread(found: Figures, runs: int) -> str:
    """How far the results of the runs are apart, and what a reader has to know of them."""
    apart = spread(found.results)
    said = f"spread {format_ratio(apart)} over " if apart is not None else ""
    of = f"{len(found.results)} of {runs} runs" if len(found.results) < runs else _count(runs, "run")
    missing = f"; {_count(found.without, 'run')} measured nothing" if found.without else ""
    beyond = "" if found.judged else f"; {found.metric.bound}, the generator was the limit"
    return f"{found.metric.title}: {said}{of}{missing}{beyond}"


def _kept(entry: Mapping[str, Any], stock: str) -> list[str]:
    text = yaml.safe_dump(dict(entry), sort_keys=False, width=1000, allow_unicode=True)
    return [f"    {line}" for line in [f"# was not measured: as in SLA {stock}", *text.splitlines()]]


def _scalar(text: str) -> str:
    """A text as YAML has it, in quotes only where it would be read as something else (`on`, `2024`, `a: b`)."""
    return yaml.safe_dump(text, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")


def _line(value: object) -> str:
    """A fact of a record for a comment, which ends with its line."""
    return one_line(str(value or "unknown"))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _promise(metric: Metric, values: Sequence[float], margin: float, key: str) -> str:
    """The line of a promise, with the median and the range as a comment; only the comment where there can be none."""
    low, middle, high = (metric.unit.write(_round(end(values))) for end in (min, statistics.median, max))
    seen, threshold = f"median {middle}, {low} to {high}", _threshold(metric, values, margin)
    if threshold is None:
        return f"# {key}: {seen}; an SLA can promise from {metric.unit.least} to {metric.unit.most}"
    return f'{key}: "{threshold}" # {seen}'


def _threshold(metric: Metric, values: Sequence[float], margin: float) -> Threshold | None:
    """A threshold that is a margin worse than the median; None where that is out of the metric's range."""
    worse = 1 - margin if metric.better == "higher" else 1 + margin
    made = promise(metric, _round(statistics.median(values) * worse))
    with suppress(ValueError):
        return parse(made.text, metric)
    return None


def _round(value: float) -> float:
    """Three digits say all that a measurement knows."""
    return float(f"{value:.3g}")

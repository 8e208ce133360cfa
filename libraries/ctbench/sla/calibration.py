"""Calibration: floors for one machine, a stated margin below the median of what several runs of it measured."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_ratio, write_number, write_ratio
from ctbench.results.record import Record
from ctbench.traffic.generator import LoadUnit

#: The entries of an SLA file as YAML has them: by topology key, then by profile.
Entries = Mapping[str, Mapping[str, Mapping[str, Any]]]

#: What every floor of the file permits, and what a floor may permit or ask for beside its rate: capacities were found
#: within it, so it holds for them too.
_LOSS_RATIO = "<= 0.02%"
_LIMITS = ("loss_ratio", "setup_time_p99", "latency_p99")


class NothingMeasured(CtbenchError):
    """No run measured anything that a floor could be made of."""

    exit_status: ClassVar[int] = 6


@dataclass(frozen=True)
class Figures:
    """What several runs measured of one topology and profile."""

    key: str
    profile: str
    unit: LoadUnit
    #: Connections or packets per second, and packets per second in any case, of each run.
    rates: tuple[float, ...]
    pps: tuple[float, ...]
    #: Share of another topology's rate in each run that compared, and that topology's key.
    shares: tuple[float, ...]
    relative_to: str
    #: Runs that tried it and measured nothing.
    without: int
    #: false: no run could say whether the floors are met that it was measured with, as they are beyond the generator.
    judged: bool
    #: The limits of a good trial, as the SLA file that was measured with has them.
    limits: Mapping[str, str]

    @property
    def spread(self) -> float:
        """Largest minus smallest rate, relative to the median."""
        return (max(self.rates) - min(self.rates)) / statistics.median(self.rates)


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


def gather(records: Sequence[Record]) -> list[Figures]:
    """Figures by topology and profile, in the order of the tests. What was not measured is counted apart."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.topology.key, record.profile.name].append(record)
    found = []
    for (key, profile), group in groups.items():
        # Floors that are beyond the generator leave nothing measured by them; what it did reach holds all the same.
        judged = [record for record in group if record.verdict != "not measured"]
        valid = judged or [record for record in group if _reached_something(record)]
        held = [record.measured for record in valid if record.measured and record.measured.rate > 0]
        compared = [each.measured for record in valid for each in record.thresholds if each.metric == "relative"]
        found.append(
            Figures(
                key=key,
                profile=profile,
                unit=group[0].profile.kind,
                rates=tuple(figures.rate for figures in held),
                pps=tuple(figures.pps for figures in held),
                shares=tuple(share for share in compared if share),
                relative_to=group[0].floors.relative_to or "",
                without=len(group) - len(held),
                judged=bool(judged),
                limits={metric: text for metric in _LIMITS if (text := getattr(group[0].floors, metric))},
            )
        )
    return found


def _reached_something(record: Record) -> bool:
    """Whether a test that is *not measured* found a rate that held nevertheless: the least that the DUT does."""
    apart = record.spread is not None and record.spread > (record.campaign.get("max_spread") or math.inf)
    shared = bool(record.environment.testbed.get("oversubscribe"))
    found = statistics.median_low(record.capacities) if record.capacities else 0.0
    return found > 0 and record.limited_by != "fault" and not apart and not shared


def runs_of(records: Sequence[Record]) -> int:
    """How many runs the records are of."""
    return len({record.run_id for record in records})


def sla_file(name: str, records: Sequence[Record], margin: float, stock: Stock | None = None) -> str:
    """An SLA file whose floors are `margin` (a ratio) below the medians, with the spread as comments. What the runs
    did not measure has the floors of `stock`.

    Raises `NothingMeasured` when the records have no rate, `ConfigError` when they are not of one machine.
    """
    _check_alike(records)
    figures = [found for found in gather(records) if found.rates]
    if not figures:
        raise NothingMeasured("These runs measured nothing that a floor could be made of; their logs say why.")
    first = records[0]
    machine = first.environment.machine
    ovs = next((record.environment.dut for record in records if "version" in record.environment.dut), {})
    runs = runs_of(records)
    median = f"median of {_count(runs, 'run')}"
    memory = ovs.get("memory", {})
    lines = [
        f"# Floors for one machine: {format_ratio(margin)} below the {median} (./run calibrate).",
        f"# Machine: {_line(machine.get('cpu_model'))}, {len(machine.get('usable_cpus', ()))} CPUs,"
        f" {_line(machine.get('virtualisation'))} (hypervisor), kernel {_line(machine.get('kernel'))}",
        f"# Open vSwitch {_line(ovs.get('version'))}, memory {_line(memory.get('kind'))};"
        f" campaign {_line(first.campaign.get('name'))}, testbed {_line(first.environment.testbed.get('name'))}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"name: {_scalar(name)}",
        f"description: {format_ratio(margin)} below what this machine did when it was calibrated.",
        f"source: {_scalar(f'{median} on ' + _line(machine.get('cpu_model') or 'this machine'))}",
        f'loss_ratio: "{_LOSS_RATIO}"',
    ]
    lines = [one_line(line) for line in lines]
    kept = kept_floors(figures, stock)
    for key in dict.fromkeys([*(found.key for found in figures), *kept]):
        lines += ["", f"{_scalar(key)}:"]
        for found in figures:
            if found.key == key:
                lines += _entry(found, margin, runs)
        for profile, entry in kept.get(key, {}).items():
            lines += _kept(profile, entry, stock.name if stock else "")
    return "\n".join(lines) + "\n"


def kept_floors(figures: Sequence[Figures], stock: Stock | None) -> Entries:
    """The entries of `stock` that none of `figures` replaces."""
    measured = {(found.key, found.profile) for found in figures if found.rates}
    kept = {
        key: {profile: entry for profile, entry in profiles.items() if (key, profile) not in measured}
        for key, profiles in (stock.entries if stock else {}).items()
    }
    return {key: profiles for key, profiles in kept.items() if profiles}


def _check_alike(records: Sequence[Record]) -> None:
    """Refuse runs whose median would say nothing: of several testbeds, machines or campaigns."""
    for what, name_of in _ALIKE.items():
        names = list(dict.fromkeys(_line(name_of(record)) for record in records))
        if len(names) > 1:
            raise ConfigError(
                f"These runs are of several {what}: {', '.join(names)}.\n  Expected runs of one machine, made alike."
            )


_ALIKE: dict[str, Callable[[Record], object]] = {
    "testbeds": lambda record: record.environment.testbed.get("name"),
    "machines": lambda record: record.environment.machine.get("cpu_model"),
    "campaigns": lambda record: record.campaign.get("name"),
}


def _entry(found: Figures, margin: float, runs: int) -> list[str]:
    of = f"{len(found.rates)} of {runs} runs" if len(found.rates) < runs else _count(runs, "run")
    missing = f"; {_count(found.without, 'run')} measured nothing" if found.without else ""
    beyond = "" if found.judged else "; at least, the generator was the limit"
    lines = [f"  {_scalar(found.profile)}:", f"    # spread {format_ratio(found.spread)} over {of}{missing}{beyond}"]
    if found.unit == "connections":
        lines.append(f"    cps: {_promise(found.rates, margin, write_number)}")
    lines.append(f"    pps: {_promise(found.pps, margin, write_number)}")
    lines += [f'    {metric}: "{text}"' for metric, text in found.limits.items() if text != _LOSS_RATIO]
    if found.shares:
        lines.append("    relative:")
        lines.append(f"      to: {_scalar(found.relative_to)}")
        lines.append(f"      rate: {_promise(found.shares, margin, write_ratio)}")
    return lines


def _kept(profile: str, entry: Mapping[str, Any], stock: str) -> list[str]:
    text = yaml.safe_dump(dict(entry), sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True)
    lines = [f"  {_scalar(profile)}:", f"    # was not measured: as in SLA {stock}"]
    return lines + [f"    {line}" for line in text.splitlines()]


def _scalar(text: str) -> str:
    """A text as YAML has it, in quotes only where it would be read as something else (`on`, `2024`, `a: b`)."""
    return yaml.safe_dump(text, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")


def _line(value: object) -> str:
    """A fact of a record for a comment, which ends with its line."""
    return one_line(str(value or "unknown"))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _promise(values: Sequence[float], margin: float, write: Callable[[float], str]) -> str:
    """A threshold a margin below the median, with the spread as a comment."""
    low, middle, high = (write(_round(f(values))) for f in (min, statistics.median, max))
    floor = write(_round(statistics.median(values) * (1 - margin)))
    return f'">= {floor}" # median {middle}, {low} to {high}'


def _round(value: float) -> float:
    """Three digits say all that a measurement knows."""
    return float(f"{value:.3g}")

"""Calibration: floors for one machine, a stated margin below the median of what several runs of it measured."""

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctbench.base.plain_text import one_line, printable
from ctbench.errors import CtbenchError
from ctbench.results.record import Record
from ctbench.sla.floors import topology_key
from ctbench.traffic.generator import LoadUnit
from ctbench.units import format_ratio, write_number, write_ratio


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
    #: Runs that measured nothing.
    without: int

    @property
    def spread(self) -> float:
        """Largest minus smallest rate, relative to the median."""
        return (max(self.rates) - min(self.rates)) / statistics.median(self.rates)


def gather(records: Sequence[Record]) -> list[Figures]:
    """Figures by topology and profile, in the order of the tests. What was not measured is counted apart."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[topology_key(record.topology), record.profile.name].append(record)
    found = []
    for (key, profile), group in groups.items():
        valid = [record for record in group if record.verdict != "not measured"]
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
            )
        )
    return found


def sla_file(name: str, records: Sequence[Record], margin: float) -> str:
    """An SLA file whose floors are `margin` (a ratio) below the medians, with the spread as comments.

    Raises `CtbenchError` when the records measured nothing.
    """
    figures = [found for found in gather(records) if found.rates]
    if not figures:
        raise CtbenchError("These runs measured nothing that a floor could be made of; their logs say why.")
    first = records[0]
    machine = first.environment.machine
    ovs = next((record.environment.dut for record in records if "version" in record.environment.dut), {})
    runs = len({record.run_id for record in records})
    memory = ovs.get("memory", {})
    lines = [
        f"# Floors for one machine: {format_ratio(margin)} below the median of {runs} runs (./run calibrate).",
        f"# Machine: {machine.get('cpu_model', 'unknown')}, {len(machine.get('usable_cpus', ()))} CPUs,"
        f" {machine.get('virtualisation', 'unknown')} (hypervisor), kernel {machine.get('kernel', 'unknown')}",
        f"# Open vSwitch {ovs.get('version', 'unknown')}, memory {memory.get('kind', 'unknown')};"
        f" campaign {first.campaign.get('name')}, testbed {first.environment.testbed.get('name')}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"name: {name}",
        f"description: {format_ratio(margin)} below what this machine did when it was calibrated.",
        f"source: {_scalar(f'median of {runs} runs on ' + machine.get('cpu_model', 'this machine'))}",
        'loss_ratio: "<= 0.02%"',
    ]
    lines = [one_line(line) for line in lines]
    for key in dict.fromkeys(found.key for found in figures):
        lines += ["", f"{_scalar(key)}:"]
        for found in figures:
            if found.key == key:
                lines += _entry(found, margin)
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """A text as YAML has it: plain where it can be."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9 ()@./_-]*", text)
    return text if plain else json.dumps(printable(text), ensure_ascii=False)


def _entry(found: Figures, margin: float) -> list[str]:
    missing = f"; {found.without} runs measured nothing" if found.without else ""
    lines = [f"  {found.profile}:", f"    # spread {format_ratio(found.spread)} over {len(found.rates)} runs{missing}"]
    if found.unit == "connections":
        lines.append(f"    cps: {_promise(found.rates, margin, write_number)}")
    lines.append(f"    pps: {_promise(found.pps, margin, write_number)}")
    if found.shares:
        lines.append("    relative:")
        lines.append(f"      to: {_scalar(found.relative_to)}")
        lines.append(f"      rate: {_promise(found.shares, margin, write_ratio)}")
    return lines


def _promise(values: Sequence[float], margin: float, write: Callable[[float], str]) -> str:
    """A threshold a margin below the median, with the spread as a comment."""
    low, middle, high = (write(_round(f(values))) for f in (min, statistics.median, max))
    floor = write(_round(statistics.median(values) * (1 - margin)))
    return f'">= {floor}" # median {middle}, {low} to {high}'


def _round(value: float) -> float:
    """Three digits say all that a measurement knows."""
    return float(f"{value:.3g}")

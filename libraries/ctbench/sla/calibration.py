"""Calibration: floors for one machine, a stated margin below the median of what several runs of it measured."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctbench.errors import CtbenchError
from ctbench.results.record import Record
from ctbench.sla.floors import topology_key
from ctbench.units import format_ratio, write_number


@dataclass(frozen=True)
class Figures:
    """What several runs measured of one topology and profile: connections and packets per second of each."""

    key: str
    profile: str
    cps: tuple[float, ...]
    pps: tuple[float, ...]
    #: Runs that measured nothing.
    without: int

    @property
    def spread(self) -> float:
        """Largest minus smallest connection rate, relative to the median."""
        return (max(self.cps) - min(self.cps)) / statistics.median(self.cps)


def gather(records: Sequence[Record]) -> list[Figures]:
    """Figures by topology and profile, in the order of the tests. What was not measured is counted apart."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[topology_key(record.topology), record.profile.name].append(record)
    found = []
    for (key, profile), group in groups.items():
        measured = [record.measured for record in group if record.verdict != "not measured" and record.measured]
        held = [figures for figures in measured if figures.cps > 0]
        found.append(
            Figures(
                key,
                profile,
                tuple(figures.cps for figures in held),
                tuple(figures.pps for figures in held),
                len(group) - len(held),
            )
        )
    return found


def sla_file(name: str, records: Sequence[Record], margin: float) -> str:
    """An SLA file whose floors are `margin` (a ratio) below the medians, with the spread as comments.

    Raises `CtbenchError` when the records measured nothing.
    """
    figures = [found for found in gather(records) if found.cps]
    if not figures:
        raise CtbenchError("These runs measured nothing that a floor could be made of; their logs say why.")
    first = records[0]
    machine, dut = first.environment.machine, next((r.environment.dut for r in records if r.environment.dut), {})
    version = next((r.environment.dut["version"] for r in records if "version" in r.environment.dut), "unknown")
    runs = len({record.run_id for record in records})
    memory = dut.get("memory", {})
    lines = [
        f"# Floors for one machine: {format_ratio(margin)} below the median of {runs} runs (./run calibrate).",
        f"# Machine: {machine.get('cpu_model', 'unknown')}, {len(machine.get('usable_cpus', ()))} CPUs,"
        f" {machine.get('virtualisation', 'unknown')} (hypervisor), kernel {machine.get('kernel', 'unknown')}",
        f"# Open vSwitch {version}, memory {memory.get('kind', 'unknown')}; campaign {first.campaign.get('name')},"
        f" testbed {first.environment.testbed.get('name')}",
        f"# {datetime.now(UTC):%Y-%m-%d}",
        f"name: {name}",
        f"description: {format_ratio(margin)} below what this machine did when it was calibrated.",
        f"source: median of {runs} runs on {machine.get('cpu_model', 'this machine')}",
        'loss_ratio: "<= 0.02%"',
    ]
    for key in dict.fromkeys(found.key for found in figures):
        lines += ["", f"{key}:"]
        for found in figures:
            if found.key == key:
                lines += _entry(found, margin)
    return "\n".join(lines) + "\n"


def _entry(found: Figures, margin: float) -> list[str]:
    def spread(values: Sequence[float]) -> str:
        low, middle, high = (write_number(_round(f(values))) for f in (min, statistics.median, max))
        return f"median {middle}, {low} to {high}"

    def floor(values: Sequence[float]) -> str:
        return write_number(_round(statistics.median(values) * (1 - margin)))

    missing = f"; {found.without} runs measured nothing" if found.without else ""
    return [
        f"  {found.profile}:",
        f"    # spread {format_ratio(found.spread)} over {len(found.cps)} runs{missing}",
        f'    cps: ">= {floor(found.cps)}" # {spread(found.cps)}',
        f'    pps: ">= {floor(found.pps)}" # {spread(found.pps)}',
    ]


def _round(value: float) -> float:
    """Three digits say all that a measurement knows."""
    return float(f"{value:.3g}")

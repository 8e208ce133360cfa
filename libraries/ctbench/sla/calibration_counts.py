"""Calibration of instructions: an SLA file for one emulated machine, whose figures do not scatter.

The same machine counts the same every time, so one run is enough. What moves a figure is the seed of the kernel's hash
functions: the floor has room for another one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.base.plain_text import one_line
from ctbench.results.figure import Figure
from ctbench.results.metrics import COSTS, METRICS, Metric
from ctbench.results.record import Record
from ctbench.sla.calibration_text import Stock, line_of, scalar, yaml_lines
from ctbench.traffic.generator import LoadUnit

#: Room for a seed that was not tried, as a share of the figure, of packets and of new connections: five seeds are less
#: far apart than that (docs/evidence/emulated.md).
ROOM: Mapping[LoadUnit, float] = {"packets": 0.0005, "connections": 0.005}


@dataclass(frozen=True)
class Ceiling:
    """The most that a test may cost."""

    metric: Metric
    figure: Figure
    #: What is promised, whole instructions.
    most: int

    @classmethod
    def of(cls, metric: Metric, figure: Figure, kind: LoadUnit) -> "Ceiling":
        """Above all seeds by as much as these are apart, or by the room for another one, whichever is more."""
        low, high = min(figure.repetitions), max(figure.repetitions)
        return cls(metric, figure, math.ceil(high + max(high - low, ROOM[kind] * high)))


#: What is said of a promise in the place of a figure.
_ABOUT = {"source", "reference", "smoke"}


def only_counts(records: Sequence[Record]) -> bool:
    """Whether nothing but instructions was measured: one run says it all."""
    return bool(records) and all(record.metric in COSTS for record in records)


def ceilings(records: Sequence[Record]) -> dict[tuple[str, str], Ceiling]:
    """By topology and profile, of each test that was counted. Raises `ConfigError` where they are of several images."""
    images = list(dict.fromkeys(line_of(record.environment.dut.image) for record in records))
    if len(images) > 1:
        raise ConfigError(
            f"These runs are of several emulated machines: {', '.join(images)}.\n  Expected runs of one image."
        )
    return {
        (record.topology.key, record.profile.name): Ceiling.of(METRICS[record.metric], found, record.profile.kind)
        for record in records
        if (found := record.figures.get(record.metric)) is not None
    }


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
    lines = [*map(one_line, lines), *yaml_lines(stock.of_all)]
    for key in dict.fromkeys([*(key for key, _ in found), *stock.entries]):
        lines += _topology(key, {profile: each for (own, profile), each in found.items() if own == key}, stock)
    return "\n".join(lines) + "\n"


def _topology(key: str, made: Mapping[str, Ceiling], stock: Stock) -> list[str]:
    """The entries of one topology."""
    known, lines = stock.entries.get(key, {}), list[str]()
    for profile in dict.fromkeys([*made, *known]):
        entry = list(_entry(made.get(profile), known.get(profile, {}), stock.name))
        lines += [f"  {scalar(profile)}:", *entry] if entry else []
    return ["", f"{scalar(key)}:", *lines] if lines else []


def _entry(made: Ceiling | None, known: Mapping[str, Any], stock: str) -> Iterable[str]:
    """A promise of the image, and what the entry says besides: nothing that was counted in another image."""
    replaced = {*COSTS, "source", "smoke"} if made else COSTS
    rest = {name: promised for name, promised in known.items() if name not in replaced}
    if not made and rest.keys() <= _ABOUT:
        return
    if made:
        seeds = made.figure.repetitions
        ends = dict.fromkeys(f"{end(seeds):,.1f}" for end in (min, max))
        yield f"    # {made.metric.title}: {' to '.join(ends)}, {len(seeds)} seeds"
        yield f'    {made.metric.name}: "<= {made.most}"'
    if rest:
        yield from [f"    # as in SLA {stock}", *(f"    {line}" for line in yaml_lines(rest))]

"""What several runs measured of each test: the figures that a calibration makes floors of."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctbench.results.metrics import METRICS, RATES, Metric
from ctbench.results.record import Record

#: Promised with the key of the other topology, so it is kept apart from the other figures.
RATIO = METRICS["ratio"]


@dataclass(frozen=True)
class Figures:
    """What several runs measured of one topology and profile, by one procedure."""

    key: str
    profile: str
    #: What was looked for, and its value of each run.
    metric: Metric
    results: tuple[float, ...]
    #: By metric, what can be promised of it: the value of each run.
    promised: Mapping[str, tuple[float, ...]]
    #: Share of another topology's rate in each run that compared, and that topology's key.
    shares: tuple[float, ...]
    relative_to: str
    #: Runs that tried it and measured nothing.
    without: int
    #: false: no run could say whether the floors are met that it was measured with, as they are beyond the generator.
    judged: bool
    #: By metric, the conditions of a good trial as the SLA file that was measured with has them. What was measured was
    #: measured within them, so the floors have them too.
    conditions: Mapping[str, str]


def gather(records: Sequence[Record]) -> list[Figures]:
    """Figures by topology, profile and metric, in the order of the tests. What was not measured is counted apart."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.topology.key, record.profile.name, record.metric].append(record)
    return [_figures(group) for group in groups.values()]


def _figures(group: Sequence[Record]) -> Figures:
    first = group[0]
    # Floors that are beyond the generator leave nothing measured by them; what it did reach holds all the same.
    judged = [record for record in group if record.verdict != "not measured"]
    valid = judged or [record for record in group if _reached_something(record)]
    held = [record for record in valid if _held(record)]
    ratios = [found for record in valid if (found := record.threshold(RATIO.name))]
    return Figures(
        key=first.topology.key,
        profile=first.profile.name,
        metric=METRICS[first.metric],
        results=tuple(record.result.value for record in held if record.result),
        promised=_promised(held),
        shares=tuple(ratio.measured for ratio in ratios if ratio.measured),
        relative_to=next((ratio.to for ratio in ratios if ratio.to), ""),
        without=len(group) - len(held),
        judged=bool(judged),
        conditions={each.metric: each.written for each in first.thresholds if METRICS[each.metric].role == "condition"},
    )


def _promised(records: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    """The figures that an SLA can promise of such a test, by metric in the order of the registry. A `ratio` needs more
    than its value: it is kept apart."""
    found = {
        metric.name: tuple(
            record.figures[metric.name].value
            for record in records
            if metric.name in record.figures and record.profile.kind in metric.profiles and _finds_out(record, metric)
        )
        for metric in METRICS.values()
        if metric.role == "promise" and metric != RATIO
    }
    return {name: values for name, values in found.items() if values}


def _finds_out(record: Record, metric: Metric) -> bool:
    """Whether a figure says what the DUT can do: where no rate was looked for, rates are those that were offered."""
    return metric.name not in RATES or record.metric in RATES


def _held(record: Record) -> bool:
    """Whether there is a figure. Of what is better the higher it is, 0 means that not even the lowest load held."""
    return record.result is not None and (record.result.value > 0 or METRICS[record.metric].better == "lower")


def _reached_something(record: Record) -> bool:
    """Whether a test that is *not measured* found a value that held nevertheless: the least that the DUT does."""
    most, found = record.campaign.max_spread or math.inf, record.result
    apart = found is not None and found.spread is not None and found.spread > most
    searched = record.limited_by not in ("fault", "floor")
    return _held(record) and searched and not apart and not record.environment.testbed.oversubscribe


def runs_of(records: Sequence[Record]) -> int:
    """How many runs the records are of."""
    return len({record.run_id for record in records})

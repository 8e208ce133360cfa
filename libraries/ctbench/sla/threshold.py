"""Thresholds as in k6: a comparison and a number, `>= 48.2k`, `<= 0.02%`, `<= 5ms`, `>= 60%`."""

import re
from dataclasses import dataclass

from ctbench.base.units import parse_number, quoted
from ctbench.results.metrics import Metric

_EXAMPLE = 'Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'


@dataclass(frozen=True)
class Threshold:
    """A limit for one metric, in its unit."""

    metric: Metric
    limit: float
    #: As the file has it.
    text: str

    def holds(self, measured: float) -> bool:
        """Whether the measured value keeps the promise. Exactly at the limit it does."""
        return self.metric.keeps(measured, self.limit)

    def __str__(self) -> str:
        return self.text


def promise(metric: Metric, limit: float) -> Threshold:
    """A threshold that no file has, written as one would have it."""
    return Threshold(metric, limit, f"{metric.operator} {metric.unit.write(limit)}")


def parse(value: object, metric: Metric) -> Threshold:
    """Read a threshold of a file, which has to be one that can be kept and can be broken.

    Raises `ValueError` with what was found and what was expected.
    """
    match = re.fullmatch(r"(>=|<=)\s*(\S.*)", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {_EXAMPLE}")
    unit, expected = (
        metric.unit,
        f'Expected {metric.bound} a value, for example "{metric.operator} {metric.unit.example}"',
    )
    try:
        limit = unit.parse(match[2])
    except ValueError:
        # A plain number has the general example; of others it is the unit that is most likely missing.
        hint = _EXAMPLE if unit.parse is parse_number else f"{expected}."
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {hint}") from None
    if match[1] != metric.operator:
        why = f"{metric.better} is better"
        raise ValueError(f"{quoted(value)} points the wrong way: {why}.\n  {expected}.")
    if not unit.parse(unit.least) <= limit <= unit.parse(unit.most):
        raise ValueError(f"{quoted(value)} promises nothing.\n  {expected}, from {unit.least} to {unit.most}.")
    return Threshold(metric, limit, str(value).strip())

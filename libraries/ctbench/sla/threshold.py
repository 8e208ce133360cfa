"""Thresholds as in k6: a comparison and a number, `>= 48.2k`, `<= 0.02%`, `<= 5ms`, `>= 60%`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator

from ctbench.base.bounds import MOST
from ctbench.base.units import (
    format_bits,
    format_duration,
    format_rate,
    format_ratio,
    format_share,
    parse_duration,
    parse_number,
    parse_ratio,
    parse_share,
    quoted,
)

#: `rate`: connections or packets per second; `bits`: bits per second; `share`: of another topology's rate.
Unit = Literal["rate", "bits", "ratio", "share", "time"]
Comparison = Literal[">=", "<="]

_PARSE: dict[Unit, Callable[[object], float]] = {
    "rate": parse_number,
    "bits": parse_number,
    "ratio": parse_ratio,
    "share": parse_share,
    "time": parse_duration,
}
_FORMAT: dict[Unit, Callable[[float], str]] = {
    "rate": format_rate,
    "bits": format_bits,
    "ratio": format_ratio,
    "share": format_share,
    "time": format_duration,
}
_EXAMPLE = 'Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'
#: What is promised of each unit, and how that is written.
_PROMISE: dict[Unit, tuple[Comparison, str]] = {
    "rate": (">=", 'Expected a rate promised from below, for example ">= 48.2k".'),
    "bits": (">=", 'Expected bits per second promised from below, for example ">= 2G".'),
    "ratio": ("<=", 'Expected a percentage promised from above, for example "<= 0.02%".'),
    "share": (">=", 'Expected a percentage promised from below, for example ">= 60%".'),
    "time": ("<=", 'Expected a time promised from above, for example "<= 5ms".'),
}

#: What a file may promise: less is kept by anything, more by nothing (of a ratio and a time the other way round).
_RANGE: dict[Unit, tuple[str, str]] = {
    "rate": ("1", "1G"),
    "bits": ("1", "10000G"),
    "ratio": ("0%", "50%"),
    "share": ("1%", "10000%"),
    "time": ("1us", "60s"),
}


@dataclass(frozen=True)
class Threshold:
    """A limit for one metric. `limit` is per second, a ratio or share, or seconds, by `unit`."""

    comparison: Comparison
    limit: float
    unit: Unit
    #: As the file has it.
    text: str

    def holds(self, measured: float) -> bool:
        """Whether the measured value keeps the promise. Exactly at the limit it does."""
        return measured >= self.limit if self.comparison == ">=" else measured <= self.limit

    def margin_pct(self, measured: float) -> float | None:
        """How much better than promised, in percent: +100 is twice as good, -50 is half as good.

        The same scale for both comparisons: `measured/limit - 1` for `>=`, `limit/measured - 1` for `<=`.
        None where nothing can be compared with (a limit of 0, or nothing measured against a `<=`); at most `MOST`.
        """
        of, by = (measured, self.limit) if self.comparison == ">=" else (self.limit, measured)
        return min((of / by - 1) * 100, MOST) if by > 0 else None

    def show(self, value: float) -> str:
        """Format a value of this metric for people."""
        return _FORMAT[self.unit](value)

    def __str__(self) -> str:
        return self.text


def parse(value: object, unit: Unit) -> Threshold:
    """Read a threshold. Raises `ValueError` with what was found and what was expected."""
    if isinstance(value, Threshold):
        return value
    match = re.fullmatch(r"(>=|<=)\s*(\S.*)", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {_EXAMPLE}")
    comparison, expected = _PROMISE[unit]
    try:
        limit = _PARSE[unit](match[2])
    except ValueError:
        # The example of design.md for anything that is no number at all; else what this metric takes.
        hint = _EXAMPLE if unit == "rate" else expected
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {hint}") from None
    if match[1] != comparison:
        raise ValueError(f"{quoted(value)} points the wrong way.\n  {expected}")
    return Threshold(comparison, limit, unit, str(value).strip())


def _promised(value: object, unit: Unit) -> Threshold:
    """Read a threshold of a file, which has to be one that can be kept and can be broken."""
    found = parse(value, unit)
    least, most = _RANGE[unit]
    if not _PARSE[unit](least) <= found.limit <= _PARSE[unit](most):
        raise ValueError(f"{quoted(value)} promises nothing.\n  {_PROMISE[unit][1][:-1]}, from {least} to {most}.")
    return found


def _field(unit: Unit) -> tuple[PlainValidator, PlainSerializer]:
    return PlainValidator(lambda value: _promised(value, unit)), PlainSerializer(str, return_type=str)


AtLeastRate = Annotated[Threshold, *_field("rate")]
AtLeastBits = Annotated[Threshold, *_field("bits")]
AtLeastShare = Annotated[Threshold, *_field("share")]
AtMostRatio = Annotated[Threshold, *_field("ratio")]
AtMostTime = Annotated[Threshold, *_field("time")]

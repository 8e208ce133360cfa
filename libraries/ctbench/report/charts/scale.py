"""Axes: where a value is between the ends of an axis, and which values are written along it. Pure arithmetic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ctbench.base.units import format_count
from ctbench.report.charts.model import Axis

#: Of an axis of losses: the share of its length that stands for no loss at all, and the least loss after it.
_NO_LOSS = 0.16
_LEAST_LOSS = 1e-5
#: Of numbers below this, the digits that are counted with are not enough.
_SMALL = 0.1
#: Microseconds of each unit, the longest first.
_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3))


@dataclass(frozen=True)
class Placed:
    """An axis with its ends."""

    axis: Axis
    low: float
    high: float

    def place(self, value: float) -> float:
        """0 at the low end of the axis, 1 at its high end; what is beyond stays at the end."""
        if self.axis.scale == "loss":
            return _place_loss(value)
        if self.axis.scale == "log":
            value, low, high = math.log(max(value, self.low)), math.log(self.low), math.log(self.high)
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def ticks(self) -> list[tuple[float, str]]:
        """Values to write along the axis, with their words."""
        if self.axis.scale == "loss":
            values = [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
        elif self.axis.words == "label":
            values = [float(number) for number in range(len(self.axis.labels))]
        elif self.axis.scale == "log":
            values = _decades(self.low, self.high)
        else:
            values = _steps(self.low, self.high)
        return [(value, self._words(value)) for value in values]

    def _words(self, value: float) -> str:
        match self.axis.words:
            case "label":
                return self.axis.labels[round(value)]
            case "seconds":
                return f"{value:g} s"
            case "microseconds":
                return _time(value)
            case "share":
                return f"{value * 100:g} %"
            case "loss":
                return "none" if value == 0 else f"{value * 100:g} %"
            case _:
                return short_count(value)


def fit(axis: Axis, values: Sequence[float]) -> Placed:
    """The ends that show all values: of a linear axis 0 and a round number (of times, their end), of a logarithmic one
    a bit beyond; of shares a bit below the least and above the most, as what matters is how they lie to each other."""
    if axis.words == "label":
        return Placed(axis, -0.5, len(axis.labels) - 0.5)
    if axis.scale == "loss":
        return Placed(axis, 0.0, 1.0)
    if axis.scale == "log":
        some = [value for value in values if value > 0] or [1.0]
        return Placed(axis, min(some) / 1.3, max(some) * 1.3)
    if axis.words == "share" and values:
        low, high = min(values), max(values)
        room = max(high - low, 0.01 * high) * 0.15 or 1.0
        return Placed(axis, max(0.0, low - room), high + room)
    high = max(values, default=0.0) or 1.0
    if axis.words == "seconds":
        return Placed(axis, 0.0, high)
    step = nice_step(high * 1.08)
    return Placed(axis, 0.0, math.ceil(high * 1.02 / step) * step)


def nice_step(length: float, about: int = 4) -> float:
    """A round step (1, 2 or 5 times a power of ten) that divides a length into about as many parts."""
    raw = length / about
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if raw <= factor * power * 1.0000001)


def short_count(value: float) -> str:
    """A round number without needless zeros: `50 k`, `1.5 M`, `0.0005`."""
    if 0 < abs(value) < _SMALL:
        return f"{value:g}"
    number, _, unit = format_count(value).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{number} {unit}".rstrip()


def three_digits(value: float) -> str:
    """As short as it may be on a narrow bar: `148 k`, `1.03 M`, `92.5`."""
    return short_count(float(f"{value:.3g}"))


def _place_loss(ratio: float) -> float:
    if ratio <= 0:
        return _NO_LOSS / 2
    decades = -math.log10(_LEAST_LOSS)
    above = (math.log10(max(ratio, _LEAST_LOSS)) + decades) / decades
    return _NO_LOSS + (1 - _NO_LOSS) * min(1.0, above)


def _time(microseconds: float) -> str:
    """A round time without needless zeros: `200 ns`, `50 us`, `2 ms`."""
    unit, size = next((each for each in _UNITS if microseconds >= each[1] * 0.999), _UNITS[-1])
    return f"{microseconds / size:g} {unit}"


def _steps(low: float, high: float) -> list[float]:
    """Round values within the ends, equally far from each other."""
    step = nice_step(high - low)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten within the ends, or fewer of them where they would be too many; between ends
    that are so near that one is left at most, equal steps."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        within = [value for value in values if low <= value <= high]
        if len(within) <= 6:
            return within if len(within) > 1 else _steps(low, high)
    return within[:: math.ceil(len(within) / 6)]

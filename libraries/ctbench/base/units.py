"""Numbers with units as people write and read them: `48.2k`, `0.02%`, `250us`; `381.0 k/s`, `0.020 %`, `+690 %`.

Parsing is exact (decimal arithmetic: `334.9k` is 334900, not 334899.99…) and raises `ValueError`, whose text
says what was found and what was expected. Inside the project there are only floats: per second, ratios
(0.0002, not 0.02 %) and seconds.
"""

import difflib
import math
import re
import sys
from collections.abc import Sequence
from decimal import Decimal

from ctbench.base.text import brief

_FACTORS = {"": 0, "k": 3, "M": 6, "G": 9}
_SECONDS = {"ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
            "s": Decimal(1), "min": Decimal(60)}  # fmt: skip
#: Digits, not `\d`: that would accept the digits of every script. As many as the smallest float needs, no more.
_NUMBER = r"([0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?)"
_COUNT = re.compile(rf"{_NUMBER} ?([kMG]?)")
_PERCENT = re.compile(rf"{_NUMBER} ?%")
_DURATION = re.compile(rf"{_NUMBER} ?(ns|us|µs|ms|s|min)")

EXPECTED_NUMBER = "Expected a number, with k, M or G if you like, for example 48200 or 48.2k."
EXPECTED_DURATION = 'Expected a number and a unit (ns, us, ms, s, min), for example "250us" or "1.5s".'


def parse_number(value: object) -> float:
    """Turn `48.2k`, `1.8M`, `1e6` or a plain number into a float of at least 0. Refuse a boolean (`yes` in YAML)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value <= sys.float_info.max:  # compared, not converted: an int may be larger than any float
            return abs(float(value))  # -0.0 is 0.0
    elif isinstance(value, str) and (match := _COUNT.fullmatch(value.strip())):
        return _finite(Decimal(match[1]).scaleb(_FACTORS[match[2]]), value, "a number", EXPECTED_NUMBER)
    raise ValueError(f"{quoted(value)} is not a number.\n  {EXPECTED_NUMBER}")


def parse_whole(value: object, least: int, most: int) -> int:
    """Turn the text `4` into a whole number from `least` to `most`."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip()) and least <= int(value) <= most:
        return int(value)
    raise ValueError(f"{quoted(value)} is not a number for this.\n  Expected a whole number from {least} to {most}.")


def parse_ratio(value: object) -> float:
    """Turn `0.02%` into 0.0002. The percent sign is required: a bare 0.02 could mean either."""
    return _parse_percentage(value, 1, 'Expected a percentage from 0% to 100%, for example "0.02%".')


def parse_share(value: object) -> float:
    """Turn `60%` into 0.6. Unlike a ratio, a share of something else may exceed 100 %."""
    return _parse_percentage(value, math.inf, 'Expected a percentage, for example "60%".')


def _parse_percentage(value: object, most: float, expected: str) -> float:
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value.strip())):
        ratio = _finite(Decimal(match[1]).scaleb(-2), value, "a percentage", expected)
        if ratio <= most:
            return ratio
    raise ValueError(f"{quoted(value)} is not a percentage.\n  {expected}")


def parse_duration(value: object) -> float:
    """Turn `250us`, `4ms` or `1.5s` into seconds. The unit is required."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return _finite(Decimal(match[1]) * _SECONDS[match[2]], value, "a duration", EXPECTED_DURATION)
    raise ValueError(f"{quoted(value)} is not a duration.\n  {EXPECTED_DURATION}")


def write_number(value: float) -> str:
    """Write a number as YAML files have it, `48.2k`; `parse_number` gives exactly the same float back."""
    for unit in ("G", "M", "k"):
        if value >= 10 ** _FACTORS[unit]:
            return _plain(Decimal(repr(float(value))).scaleb(-_FACTORS[unit])) + unit
    return _plain(Decimal(repr(float(value))))


def write_ratio(ratio: float) -> str:
    """Write a ratio as YAML files have it, `0.02%`; `parse_ratio` gives exactly the same float back."""
    return _plain(Decimal(repr(float(ratio))).scaleb(2)) + "%"


def write_duration(seconds: float) -> str:
    """Write seconds as YAML files have them, `250us`; `parse_duration` gives exactly the same float back."""
    for unit in ("s", "ms", "us"):
        if Decimal(repr(float(seconds))) >= _SECONDS[unit]:
            return _plain(Decimal(repr(float(seconds))) / _SECONDS[unit]) + unit
    return _plain(Decimal(repr(float(seconds))) / _SECONDS["ns"]) + "ns"


def format_count(value: float) -> str:
    """Format a count for people: `2.71 M`, `334.9 k`, `959`, `12.5`. One that changes may be below zero."""
    size = abs(value)
    few = 0 if value == 0 or size >= 100 else 1 if size >= 1 else 3  # 12.5 connections a second are not 12
    for unit, digits in (("", few), ("k", 1), ("M", 2), ("G", 2)):
        scaled = value / 10 ** _FACTORS[unit]
        # The rounded value decides: 999 960 is 1.00 M, not 1000.0 k.
        if abs(round(scaled, digits)) < 1000 or unit == "G":
            text = f"{scaled:.{digits}f}"
            return f"{text} {unit}" if unit else text
    raise AssertionError("not reached: G takes everything")


def format_rate(per_second: float) -> str:
    """Format a rate for people: `381.0 k/s`, `959/s`."""
    return f"{format_count(per_second)}/s"


def format_bits(per_second: float) -> str:
    """Format a throughput for people: `2.71 Gbit/s`, `959 bit/s`."""
    number, _, prefix = format_count(per_second).partition(" ")
    return f"{number} {prefix}bit/s"


def format_share(share: float) -> str:
    """Format a share in percent for people: `64.2 %`, `104 %`."""
    percent = share * 100
    return f"{percent:.{0 if percent >= 100 else 1}f} %"


def format_interval(value: float, low: float, high: float) -> str:
    """Format the interval of a share for people: `± 2.3 %`, or `(53.4 to 96.1 %)` where one end is more than three
    times as far from the value as the other: one width would not show that."""
    below, above = value - low, high - value
    if max(below, above) <= 3 * min(below, above) or max(below, above) < 0.0005:
        return f"± {format_share(max(below, above))}"
    return f"({format_share(low).removesuffix(' %')} to {format_share(high)})"


def format_duration(seconds: float) -> str:
    """Format seconds for people: `310 ns`, `210 us`, `4.1 ms`, `1.5 s`."""
    if 0 < seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    if round(seconds * 1e6) < 1000:
        return f"{seconds * 1e6:.0f} us"
    if round(seconds * 1e3, 1) < 1000:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.1f} s"


def format_ratio(ratio: float) -> str:
    """Format a ratio in percent for people: `0.020 %`, `3.21 %`, `26.5 %`. A ratio above zero never reads `0.000 %`."""
    percent = ratio * 100
    if 0 < percent < 0.0005:
        return "<0.001 %"
    return f"{percent:.{1 if percent >= 10 else 2 if percent >= 1 else 3}f} %"


def format_margin(percent: float) -> str:
    """Format a margin in percent for people: `+690 %`, `-12.3 %`, `-0.04 %`. A miss never reads as zero."""
    size = abs(percent)
    if 0 < size < 0.005:
        return f"{'+' if percent > 0 else '-'}<0.01 %"
    return f"{percent:+.{0 if size >= 100 else 1 if size >= 1 else 2}f} %"


def quoted(value: object) -> str:
    """Show a value from a file in a message: texts in quotes, long or nested values by their kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping of keys"
    if isinstance(value, list | tuple | set | frozenset):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of some {int(value.bit_length() * 0.30103)} digits"
    text = brief(str(value), 60)
    return f'"{text}"' if isinstance(value, str) else text


def _finite(number: Decimal, value: object, kind: str, expected: str) -> float:
    """Turn a decimal into a float, refuse one that a float cannot hold."""
    result = float(number)
    if math.isinf(result):
        raise ValueError(f"{quoted(value)} is too large for {kind}.\n  {expected}")
    if number and not result:
        raise ValueError(f"{quoted(value)} is too small for {kind}.\n  {expected}")
    return result


def _plain(number: Decimal) -> str:
    """Write a decimal with no exponent and no needless zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """Return ` Did you mean "x"?` with the choice that is closest to `word`, else an empty text."""
    if len(word) > 100:  # too long for a typing mistake
        return ""
    close = difflib.get_close_matches(word, choices, n=1)
    return f" Did you mean {quoted(close[0])}?" if close else ""


def plural(count: int, singular: str, many: str = "") -> str:
    """Return a count with its noun: `1 test`, `2 tests`, `1 200 tests`."""
    return f"{thousands(count)} {singular if count == 1 else many or singular + 's'}"


def thousands(count: int) -> str:
    """Return a whole number with narrow spaces between its thousands: `1 234 567`."""
    return f"{count:,}".replace(",", "\u202f")

"""Numbers with units: what people write is understood exactly, what they read is near enough."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base import units

#: How each quantity is read, and written; what it may be at the most.
NUMBER = units.parse_number, units.write_number, 1e15
RATIO = units.parse_ratio, units.write_ratio, 1
DURATION = units.parse_duration, units.write_duration, 1e6


@pytest.mark.parametrize(
    ("parse", "read"),
    [
        (units.parse_number, {"48.2k": 48_200, "1.8M": 1_800_000, "334.9k": 334_900, "2G": 2e9, "959": 959, "1e6": 1e6,
                              "48.2 k": 48_200, 100: 100, 0.5: 0.5, 0: 0}),
        (units.parse_ratio, {"0.02%": 0.0002, "100 %": 1, "0%": 0}),
        (units.parse_share, {"60%": 0.6, "120 %": 1.2, "0.5%": 0.005}),
        (units.parse_duration, {"250us": 0.00025, "250µs": 0.00025, "4ms": 0.004, "1.5s": 1.5, "2 min": 120,
                                "10ns": 1e-8}),
    ],
)  # fmt: skip
def test_a_quantity_is_read_exactly(parse: Callable[[object], float], read: dict[object, float]) -> None:
    assert {text: parse(text) for text in read} == read


@pytest.mark.parametrize(
    ("parse", "texts", "said"),
    [
        (units.parse_number, ["48.2q", "", "k", "-1", "1.2.3", "48,2k", "0x10", "1_000", "٣", True, None, [1], -1,
                              math.nan, math.inf, "1e999", "48.2K"], "(not a number|too large).*48.2k"),
        # Without its sign it could mean either.
        (units.parse_ratio, ["0.02", 0.02, "101%", "-1%", "%", None, True], "not a percentage.*0.02%"),
        (units.parse_share, ["60", "0.6", 0.6, "-5%", None], "not a percentage.*60%"),
        (units.parse_duration, ["5", 5, "5 m", "ms", "-1s", None, "1e999s"], "Expected a number and a unit"),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_an_example(
    parse: Callable[[object], float], texts: list[object], said: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=f"(?s){said}"):
            parse(text)


@pytest.mark.parametrize(("parse", "write", "most"), [NUMBER, RATIO, DURATION])
@given(share=st.floats(min_value=0, max_value=1))
def test_a_written_quantity_is_read_back_the_same(
    parse: Callable[[object], float], write: Callable[[float], str], most: float, share: float
) -> None:
    assert parse(write(share * most)) == share * most


@pytest.mark.parametrize(
    ("shows", "texts"),
    [
        (units.format_rate, {381_000: "381.0 k/s", 959: "959/s", 999.6: "1.0 k/s", 12.5: "12.5/s", 0: "0/s",
                             999_960: "1.00 M/s", 1_500_000: "1.50 M/s", 0.25: "0.250/s"}),
        (units.format_duration, {210e-6: "210 us", 0.0041: "4.1 ms", 1.5: "1.5 s", 0.9999999: "1.0 s", 0: "0 us"}),
        # A small loss never reads as none, a miss never as zero.
        (units.format_ratio, {0.0002: "0.020 %", 0: "0.000 %", 0.265: "26.5 %", 0.0321: "3.21 %", 1e-7: "<0.001 %"}),
        (units.format_margin, {690.4: "+690 %", -12.34: "-12.3 %", -0.04: "-0.04 %", -0.001: "-<0.01 %", 0: "+0.00 %"}),
        (units.format_bits, {2.5e9: "2.50 Gbit/s", 126.9e6: "126.90 Mbit/s", 959: "959 bit/s", 0: "0 bit/s"}),
        (units.format_share, {0.6: "60.0 %", 0.6418: "64.2 %", 1.204: "120 %"}),
    ],
)  # fmt: skip
def test_a_quantity_is_formatted_for_people(shows: Callable[[float], str], texts: dict[float, str]) -> None:
    assert {value: shows(value) for value in texts} == texts


@given(st.floats(min_value=1, max_value=9e11))
def test_a_formatted_count_is_within_half_of_its_last_digit(value: float) -> None:
    text = units.format_count(value)
    assert units.parse_number(text) == pytest.approx(value, rel=0.0051 if "." not in text or "M" in text else 0.06)
    assert len(text) <= 8


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [(0.642, 0.631, 0.653, "± 1.1 %"), (1.01, 0.99, 1.02, "± 2.0 %"), (0.865, 0.534, 0.961, "(53.4 to 96.1 %)"),
     (2.86, 2.77, 3.643, "(277 to 364 %)"),
     (1.0, 0.9999, 1.0, "± 0.0 %"), (1.0, 1.0, 1.0, "± 0.0 %")],
)  # fmt: skip
def test_an_interval_with_one_long_end_is_shown_by_its_ends(value: float, low: float, high: float, text: str) -> None:
    assert units.format_interval(value, low, high) == text

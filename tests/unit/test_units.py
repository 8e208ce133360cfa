"""Numbers with units: what people write is understood exactly, what they read is near enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base import units

FLOATS = st.floats(min_value=0, max_value=1e15, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "number"),
    [("48.2k", 48_200), ("1.8M", 1_800_000), ("334.9k", 334_900), ("2G", 2e9), ("959", 959), ("1e6", 1e6),
     ("48.2 k", 48_200), (100, 100), (0.5, 0.5), (0, 0)],
)  # fmt: skip
def test_a_number_is_read_exactly(text: object, number: float) -> None:
    assert units.parse_number(text) == number


@pytest.mark.parametrize("text", ["48.2q", "", "k", "-1", "1.2.3", "48,2k", "0x10", "1_000", "٣", True, None, [1], -1,
                                  float("nan"), float("inf"), "1e999", "48.2K"])  # fmt: skip
def test_what_is_no_number_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)is (not a number|too large).*Expected a number.*48\.2k"):
        units.parse_number(text)


def test_a_percentage_becomes_a_ratio() -> None:
    assert units.parse_ratio("0.02%") == 0.0002
    assert units.parse_ratio("100 %") == 1
    assert units.parse_ratio("0%") == 0


@pytest.mark.parametrize("text", ["0.02", 0.02, "101%", "-1%", "%", None, True])
def test_a_ratio_without_its_percent_sign_is_refused_because_it_could_mean_either(text: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)is not a percentage.*0\.02%"):
        units.parse_ratio(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250us", 0.00025), ("250µs", 0.00025), ("4ms", 0.004), ("1.5s", 1.5), ("2 min", 120), ("10ns", 1e-8)],
)
def test_a_duration_becomes_seconds(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["5", 5, "5 m", "ms", "-1s", None, "1e999s"])
def test_a_duration_without_its_unit_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"(?s)Expected a number and a unit"):
        units.parse_duration(text)


@given(FLOATS)
def test_a_written_number_is_read_back_the_same(value: float) -> None:
    assert units.parse_number(units.write_number(value)) == value


@given(st.floats(min_value=0, max_value=1))
def test_a_written_ratio_is_read_back_the_same(value: float) -> None:
    assert units.parse_ratio(units.write_ratio(value)) == value


@given(st.floats(min_value=0, max_value=1e6))
def test_a_written_duration_is_read_back_the_same(value: float) -> None:
    assert units.parse_duration(units.write_duration(value)) == value


@given(st.floats(min_value=1, max_value=9e11))
def test_a_formatted_count_is_within_half_of_its_last_digit(value: float) -> None:
    text = units.format_count(value)
    assert units.parse_number(text) == pytest.approx(value, rel=0.0051 if "." not in text or "M" in text else 0.06)
    assert len(text) <= 8


@given(st.floats(min_value=1e-6, max_value=1e4))
def test_a_formatted_duration_reads_back_near_the_value(value: float) -> None:
    assert units.parse_duration(units.format_duration(value)) == pytest.approx(value, rel=0.51)


@pytest.mark.parametrize(
    ("value", "text"),
    [(381_000, "381.0 k/s"), (959, "959/s"), (999.6, "1.0 k/s"), (12.5, "12.5/s"), (0, "0/s"), (999_960, "1.00 M/s"),
     (1_500_000, "1.50 M/s"), (0.25, "0.250/s")],
)  # fmt: skip
def test_a_rate_is_formatted_for_people(value: float, text: str) -> None:
    assert units.format_rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(210e-6, "210 us"), (0.0041, "4.1 ms"), (1.5, "1.5 s"), (0.9999999, "1.0 s"), (0, "0 us")]
)
def test_a_duration_is_formatted_for_people(value: float, text: str) -> None:
    assert units.format_duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0002, "0.020 %"), (0, "0.000 %"), (0.265, "26.5 %"), (0.0321, "3.21 %"), (1e-7, "<0.001 %")]
)
def test_a_ratio_is_formatted_for_people_and_a_small_loss_never_reads_as_none(value: float, text: str) -> None:
    assert units.format_ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(690.4, "+690 %"), (-12.34, "-12.3 %"), (-0.04, "-0.04 %"), (-0.001, "-<0.01 %"), (0, "+0.00 %")],
)
def test_a_margin_is_formatted_with_its_sign_and_a_miss_never_reads_as_zero(value: float, text: str) -> None:
    assert units.format_margin(value) == text


def test_a_share_may_exceed_the_whole() -> None:
    assert (units.parse_share("60%"), units.parse_share("120 %"), units.parse_share("0.5%")) == (0.6, 1.2, 0.005)
    assert [units.format_share(share) for share in (0.6, 0.6418, 1.204)] == ["60.0 %", "64.2 %", "120 %"]


@pytest.mark.parametrize("text", ["60", "0.6", 0.6, "-5%", None])
def test_a_share_without_its_percent_sign_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r'is not a percentage\.\n  Expected a percentage, for example "60%"'):
        units.parse_share(text)


@pytest.mark.parametrize(
    ("value", "text"), [(2.5e9, "2.50 Gbit/s"), (126.9e6, "126.90 Mbit/s"), (959, "959 bit/s"), (0, "0 bit/s")]
)
def test_a_throughput_is_formatted_for_people(value: float, text: str) -> None:
    assert units.format_bits(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [(0.642, 0.631, 0.653, "± 1.1 %"), (1.01, 0.99, 1.02, "± 2.0 %"), (0.865, 0.534, 0.961, "(53.4 to 96.1 %)"),
     (2.86, 2.77, 3.643, "(277 to 364 %)"),
     (1.0, 0.9999, 1.0, "± 0.0 %"), (1.0, 1.0, 1.0, "± 0.0 %")],
)  # fmt: skip
def test_an_interval_with_one_long_end_is_shown_by_its_ends(value: float, low: float, high: float, text: str) -> None:
    assert units.format_interval(value, low, high) == text

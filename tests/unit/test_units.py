"""Numbers with units, metrics, and the statistics of few samples, compared with counting by hand and their
definitions."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base import units
from ctbench.results import statistics
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record_model import Estimate
from tools.floors import prediction_bounds

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
def test_what_is_no_quantity_gets_an_example(parse: Callable[[object], float], texts: list[object], said: str) -> None:
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
                             999_960: "1.00 M/s", 1_500_000: "1.50 M/s", 0.25: "0.250/s",
                             -3000: "-3.0 k/s", -12.5: "-12.5/s", -2e6: "-2.00 M/s"}),
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


def test_an_estimate_of_a_ratio_says_its_interval_and_the_end_that_decides_where_it_is_hardly_known() -> None:
    near, wide = Estimate(1.036, "ratio", 1.02, 1.052), Estimate(0.865, "ratio", 0.534, 0.961)
    assert (near.as_share(0.97), near.as_share(0.97, tenths=True)) == ("104 % ± 1.6 %", "103.6 % ± 1.6 %")
    assert near.difference == "+3.6 % ± 1.6 %"
    assert Estimate(0.9997, "ratio", 0.9977, 1.0017).difference == "+0.0 % ± 0.2 %"  # not -0.0
    assert (near.deciding_end(0.97), wide.deciding_end(0.97)) == ("", "at most 96.1 %")
    assert wide.as_share(0.5) == "at least 53.4 % (86.5 % (53.4 to 96.1 %))"
    assert (wide.as_share(0.6), Estimate(0.642).as_share(0.6)) == ("86.5 % (53.4 to 96.1 %)", "64.2 %")


HIGHER, LOWER = METRICS["cps"], METRICS["connect_time_p99"]


def test_twice_as_good_is_plus_100_percent_in_either_direction() -> None:
    assert HIGHER.margin_pct(200_000, 100_000) == pytest.approx(100)
    assert LOWER.margin_pct(0.005, 0.010) == pytest.approx(100)
    assert HIGHER.margin_pct(50_000, 100_000) == pytest.approx(-50)
    assert LOWER.margin_pct(0.020, 0.010) == pytest.approx(-50)
    # Against nothing there is none.
    assert METRICS["loss_ratio"].margin_pct(0, 0.0002) is None
    assert HIGHER.margin_pct(5, 0) is None


@pytest.mark.parametrize("metric", [HIGHER, LOWER], ids=lambda metric: metric.better)
@given(limit=st.floats(min_value=1, max_value=1e9), value=st.floats(min_value=1, max_value=1e9))
def test_the_margin_is_negative_exactly_when_the_promise_is_broken(metric: Metric, limit: float, value: float) -> None:
    margin = metric.margin_pct(value, limit)
    assert metric.keeps(value, limit) == (margin >= 0)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_what_an_sla_has_of_a_metric_is_read_and_written_alike(metric: Metric) -> None:
    for text in (metric.unit.least, metric.unit.example, metric.unit.most):
        value = metric.unit.parse(text)
        assert metric.unit.parse(metric.unit.write(value)) == value
        assert metric.format(value)
    assert metric.unit.parse(metric.unit.least) < metric.unit.parse(metric.unit.most)


def test_factors_of_other_contents_are_those_of_the_textbooks() -> None:
    assert statistics.tolerance_factor(10, 0.99, 0.95) == pytest.approx(3.981, abs=0.002)
    # And its example in section 7.2.6.3.
    assert statistics.tolerance_factor(10, 0.90, 0.99) == pytest.approx(3.048, abs=0.003)
    assert statistics.tolerance_factor(43, 0.90, 0.99) == pytest.approx(1.8752, abs=0.002)


def test_the_spread_is_the_range_by_the_median() -> None:
    assert Estimate(100.0, samples=(95.0, 100.0, 110.0)).spread == pytest.approx(0.15)
    assert {Estimate(1.0, samples=some).spread for some in ((), (42.0,), (0.0, 0.0, 5.0))} == {None}


@pytest.mark.parametrize(("count", "cut"), [(1, 0), (7, 0), (8, 0), (10, 0), (12, 1), (20, 3), (50, 15), (100, 36)])
def test_the_interval_leaves_out_what_the_binomial_distribution_allows(count: int, cut: int) -> None:
    # Tables of the 99 % interval of a median, for example in Conover, Practical Nonparametric Statistics.
    values = [float(value) for value in range(count)]
    assert statistics.median_interval(values) == (cut, count - 1 - cut)


#: Natrella, Experimental Statistics (NBS Handbook 91, 1963), table A-7: content 95 %, confidence 95 %.
@pytest.mark.parametrize(
    ("samples", "factor"),
    [(3, 7.655), (4, 5.145), (5, 4.202), (6, 3.707), (7, 3.399), (8, 3.188), (9, 3.031), (10, 2.911), (12, 2.736),
     (15, 2.566), (20, 2.396), (30, 2.220), (50, 2.065)],
)  # fmt: skip
def test_the_factors_are_those_of_the_handbook(samples: int, factor: float) -> None:
    assert statistics.tolerance_factor(samples) == pytest.approx(factor, abs=0.0021)


def test_a_prediction_bound_is_that_of_students_t_with_the_scatter_that_all_rows_have_in_common() -> None:
    # One row: t(2) = 6.965 of the tables, mean - t s sqrt(1 + 1/3) of the logarithms -0.1, 0, 0.1.
    row = [math.exp(value) for value in (-0.1, 0.0, 0.1)]
    (alone,) = prediction_bounds([row])
    assert math.log(alone) == pytest.approx(-6.965 * 0.1 * math.sqrt(4 / 3), abs=0.001)
    # With a second one, at twice the level, there are twice the degrees of freedom: t(4) = 3.747.
    bounds = prediction_bounds([row, [2 * value for value in row]])
    assert [math.log(each) for each in bounds] == pytest.approx([-0.4327, math.log(2) - 0.4327], abs=0.001)

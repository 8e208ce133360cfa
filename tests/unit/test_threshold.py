"""Thresholds: what is promised, from which side, and by how much it is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from ctbench.sla.threshold import AtLeastRate, Threshold, parse


def test_each_kind_of_threshold_is_read() -> None:
    assert parse(">= 48.2k", "rate") == Threshold(">=", 48_200, "rate", ">= 48.2k")
    assert parse("<=0.02%", "ratio").limit == 0.0002
    assert parse(" <= 5ms ", "time").limit == 0.005
    assert parse(">= 2G", "bits").limit == 2e9
    assert parse(">= 120%", "share").limit == 1.2
    assert str(parse(" <= 5ms ", "time")) == "<= 5ms"


@pytest.mark.parametrize("text", [">= 48.2q", "48.2k", ">=", "== 5", "> 5", "", None, 5, [">= 5"]])
def test_what_is_no_threshold_is_refused_as_in_the_design(text: object) -> None:
    with pytest.raises(ValueError, match="is not a threshold") as error:
        parse(text, "rate")
    assert str(error.value).endswith('Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".')


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("<= 48.2k", "rate", "promised from below"),
        (">= 0.02%", "ratio", "promised from above"),
        (">= 5ms", "time", "promised from above"),
        ("<= 0.02", "ratio", 'percentage promised from above, for example "<= 0.02%"'),
        ("<= 2G", "bits", 'bits per second promised from below, for example ">= 2G"'),
        ("<= 60%", "share", 'percentage promised from below, for example ">= 60%"'),
        (">= 60", "share", 'percentage promised from below, for example ">= 60%"'),
        ("<= 5", "time", 'time promised from above, for example "<= 5ms"'),
    ],
)
def test_a_threshold_of_the_wrong_side_or_without_its_unit_is_refused(text: str, unit: str, said: str) -> None:
    with pytest.raises(ValueError, match="Expected") as error:
        parse(text, unit)  # type: ignore[arg-type]
    assert said in str(error.value)


def test_exactly_the_limit_keeps_the_promise_and_a_little_beyond_breaks_it() -> None:
    floor, limit = parse(">= 48.2k", "rate"), parse("<= 0.02%", "ratio")
    assert floor.holds(48_200)
    assert not floor.holds(48_199.9)
    assert limit.holds(0.0002)
    assert not limit.holds(0.00021)


def test_twice_as_good_is_plus_100_percent_on_either_side() -> None:
    assert parse(">= 100k", "rate").margin_pct(200_000) == pytest.approx(100)
    assert parse("<= 10ms", "time").margin_pct(0.005) == pytest.approx(100)
    assert parse(">= 100k", "rate").margin_pct(50_000) == pytest.approx(-50)
    assert parse("<= 10ms", "time").margin_pct(0.020) == pytest.approx(-50)


def test_a_margin_against_nothing_is_none() -> None:
    assert parse("<= 0.02%", "ratio").margin_pct(0) is None
    assert parse(">= 0", "rate").margin_pct(5) is None


@given(st.floats(min_value=1, max_value=1e9), st.floats(min_value=1, max_value=1e9))
def test_the_margin_is_negative_exactly_when_the_promise_is_broken(limit: float, measured: float) -> None:
    for threshold in (Threshold(">=", limit, "rate", ""), Threshold("<=", limit, "time", "")):
        margin = threshold.margin_pct(measured)
        assert margin is not None
        assert threshold.holds(measured) == (margin >= 0)


def test_a_threshold_in_a_model_is_written_back_as_it_was_read() -> None:
    class Promise(BaseModel):
        cps: AtLeastRate

    assert Promise.model_validate({"cps": ">= 48.2k"}).model_dump(mode="json") == {"cps": ">= 48.2k"}
    with pytest.raises(ValidationError):
        Promise.model_validate({"cps": "<= 48.2k"})

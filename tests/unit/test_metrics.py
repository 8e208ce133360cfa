"""Metrics: a name, a unit, a direction; everything else looks them up here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record_model import ThresholdRecord

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
    assert margin is not None
    assert metric.keeps(value, limit) == (margin >= 0)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_what_an_sla_has_of_a_metric_is_read_and_written_alike(metric: Metric) -> None:
    for text in (metric.unit.least, metric.unit.example, metric.unit.most):
        value = metric.unit.parse(text)
        assert metric.unit.parse(metric.unit.write(value)) == value
        assert metric.format(value)
    assert metric.unit.parse(metric.unit.least) < metric.unit.parse(metric.unit.most)


def test_a_record_names_no_metric_that_is_unknown() -> None:
    with pytest.raises(ValueError, match="is not a metric"):
        ThresholdRecord(metric="cpss", operator=">=", limit=1, written=">= 1")

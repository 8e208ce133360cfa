"""Thresholds: what is promised, from which side, and by how much it is kept."""

import pytest

from ctbench.results.metrics import METRICS
from ctbench.sla.threshold import Threshold, parse, promise


def test_each_kind_of_threshold_is_read() -> None:
    assert parse(">= 48.2k", METRICS["cps"]) == Threshold(METRICS["cps"], 48_200, ">= 48.2k")
    assert parse("<=0.02%", METRICS["loss_ratio"]).limit == 0.0002
    assert parse(" <= 5ms ", METRICS["connect_time_p99"]).limit == 0.005
    assert parse(">= 2G", METRICS["bps"]).limit == 2e9
    assert parse(">= 120%", METRICS["ratio"]).limit == 1.2
    assert str(parse(" <= 5ms ", METRICS["connect_time_p99"])) == "<= 5ms"


@pytest.mark.parametrize("text", [">= 48.2q", "48.2k", ">=", "== 5", "> 5", "", None, 5, [">= 5"]])
def test_what_is_no_threshold_is_refused_as_in_the_design(text: object) -> None:
    with pytest.raises(ValueError, match="is not a threshold") as error:
        parse(text, METRICS["cps"])
    assert str(error.value).endswith('Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".')


@pytest.mark.parametrize(
    ("text", "metric", "said"),
    [
        ("<= 48.2k", "cps", "points the wrong way: higher is better"),
        (">= 0.02%", "loss_ratio", "points the wrong way: lower is better"),
        (">= 5ms", "connect_time_p99", "points the wrong way: lower is better"),
        ("<= 0.02", "loss_ratio", 'Expected at most a value, for example "<= 0.02%"'),
        ("<= 2G", "bps", 'Expected at least a value, for example ">= 2G"'),
        ("<= 60%", "ratio", 'Expected at least a value, for example ">= 60%"'),
        (">= 60", "ratio", 'Expected at least a value, for example ">= 60%"'),
        ("<= 5", "latency_p99", 'Expected at most a value, for example "<= 5ms"'),
        (">= 0", "cps", "promises nothing"),
        ("<= 90%", "loss_ratio", "from 0% to 50%"),
    ],
)
def test_a_threshold_of_the_wrong_side_or_without_its_unit_is_refused(text: str, metric: str, said: str) -> None:
    with pytest.raises(ValueError, match="Expected") as error:
        parse(text, METRICS[metric])
    assert said in str(error.value)


def test_exactly_the_limit_keeps_the_promise_and_a_little_beyond_breaks_it() -> None:
    floor, limit = parse(">= 48.2k", METRICS["cps"]), parse("<= 0.02%", METRICS["loss_ratio"])
    assert floor.holds(48_200)
    assert not floor.holds(48_199.9)
    assert limit.holds(0.0002)
    assert not limit.holds(0.00021)


def test_a_threshold_that_no_file_has_is_written_as_one_would_have_it() -> None:
    made = promise(METRICS["cps"], 48_200)
    assert made == parse(">= 48.2k", METRICS["cps"])
    assert str(promise(METRICS["connect_time_p99"], 0.005)) == "<= 5ms"

"""Trials over time on the golden run's page: every point is where its record says, read off the axes as people do."""

import math
import re
from typing import Any

import pytest
from pages import Element

from .test_report_golden import page, reads, record_of, rows_of

pytestmark = pytest.mark.unit

_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "us": 1.0, "ms": 1e3, "s": 1e6}


def trial_of(article: Element, title: str) -> dict[str, Any]:
    """The trial that a chart's title names, from the record that the search links to."""
    rows = {row["id"]: record_of(row) for row in rows_of(page())}
    record = rows[article.one("a").attributes["href"].lstrip("#")]
    number = int(title.rpartition("trial ")[2])
    trial: dict[str, Any] = record["trials"][number - 1]["trial"]
    return trial


def panels() -> list[tuple[dict[str, Any], Element]]:
    """The figures with open connections and their set-up time, each with its trial."""
    return [
        (trial_of(article, figure.one("h3").text), figure)
        for article in page().by_id("searches").all("article")
        for figure in article.all("figure")
        if figure.one("h3").text.startswith("Open connections and their connect time")
    ]


def ticks(chart: Element, anchor: str) -> list[tuple[float, float]]:
    """Values written along the y axis (`end`) or the x axis (`middle`), and where they stand."""
    found = []
    for text in chart.all("text", "tick"):
        if text.attributes["text-anchor"] == anchor:
            number, _, unit = text.text.partition(" ")
            place = float(text.attributes["x"]) if anchor == "middle" else float(text.attributes["y"]) - 4
            found.append((float(number) * _UNITS[unit], place))
    assert len(found) > 1, "an axis with one value says nothing"
    return found


def places(chart: Element, style: str) -> list[tuple[float, float]]:
    """The points of a line and its dots, in the order of time."""
    found = []
    for each in chart.all(style=style):
        if each.name == "polyline":
            pairs = [place.split(",") for place in each.attributes["points"].split()]
        else:
            pairs = [[each.attributes["cx"], each.attributes["cy"]]]
        found += [(float(x), float(y)) for x, y in pairs]
    return found


def between(value: float, first: tuple[float, float], last: tuple[float, float]) -> float:
    """Where a value stands, from two values whose places are known."""
    return first[1] + (value - first[0]) / (last[0] - first[0]) * (last[1] - first[1])


def test_open_connections_and_connect_times_are_drawn_where_the_record_says() -> None:
    assert panels(), "the golden run has to have a trial with its connect time over time"
    for trial, figure in panels():
        above, below = figure.all("svg", "chart")
        seconds = ticks(below, "middle")
        for chart, style, key, scale in (
            (above, "line-active", "timeline_active", float),
            (below, "wait-mean", "timeline_setup_mean_us", math.log10),
            (below, "wait-max", "timeline_setup_max_us", math.log10),
        ):
            upright = [(scale(value), place) for value, place in ticks(chart, "end")]
            expected = [
                (
                    between((number + 1) * trial["timeline_step_s"] * 1e6, seconds[0], seconds[-1]),
                    between(scale(value), upright[0], upright[-1]),
                )
                for number, value in enumerate(trial[key])
                if value is not None
            ]
            drawn = places(chart, style)
            assert len(drawn) == len(expected) > 1
            for (x, y), (expected_x, expected_y) in zip(drawn, expected, strict=True):
                # Places are written to a tenth.
                assert (x, y) == (pytest.approx(expected_x, abs=0.21), pytest.approx(expected_y, abs=0.21)), style


def test_the_numbers_in_the_words_of_a_trial_over_time_are_those_of_the_record() -> None:
    for trial, figure in panels():
        words = figure.one("p").text
        found = re.fullmatch(
            r"Trial \d+, (.+)/s offered: (.+) open in the mean, (.+) at most\."
            r" TCP connect time: p50 (.+), p99 (.+), at most (.+)\.",
            words,
        )
        assert found, words
        times = trial["setup_time_us"]
        assert reads(found[1], trial["load"])
        assert reads(found[2], trial["active_mean"])
        assert reads(found[3], trial["active_max"])
        for text, time in zip(found.groups()[3:], (times["p50"], times["p99"], times["max"]), strict=True):
            number, unit = text.split(" ")
            half = 0.5 / 10 ** len(number.partition(".")[2])
            assert abs(float(number) - time / _UNITS[unit]) <= half * 1.001, text

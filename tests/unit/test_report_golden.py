"""A run of this project as it really was, and the report that has to come of it: the page to the byte, and every number
of its files.

The page is taken apart and held against the JSON of the records, not against the code that made it.
"""

import csv
import io
import json
import math
import re
import statistics
import xml.etree.ElementTree as ET
from functools import cache
from typing import Any

import pytest
from golden import GOLDEN, ROOT, render
from pages import Element, read_page, rows_of

from ctbench.report.write import STYLE_SHEET

pytestmark = pytest.mark.unit

#: Stands where there is no figure: an en dash.
DASH = "\u2013"
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SIGNED = str.maketrans({"\u2212": "-", "\u202f": ""})


@cache
def page() -> Element:
    return read_page(texts()["report.html"])


@cache
def texts() -> dict[str, str]:
    """The files of the report."""
    return render()


def record_of(row: dict[str, str]) -> dict[str, Any]:
    """What the file holds that a row links to."""
    document: dict[str, Any] = json.loads((GOLDEN / row["record"]).read_text(encoding="utf-8"))
    return document


def rate_of(record: dict[str, Any]) -> dict[str, Any]:
    """The figure that the procedure looked for; empty where there is none."""
    figure: dict[str, Any] = record["figures"].get(record["metric"], {})
    return figure


def all_records() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((GOLDEN / "records").glob("*.json"))
            if path.stem != "broken"]  # fmt: skip


def reads(text: str, value: float | None) -> bool:
    """Whether a text is this number, to its own precision: `381.0 k/s`, `+690 %`, `7.0 ms`; a dash is none."""
    if value is None:
        return text == DASH
    match = re.search(r"([+-]?[0-9]+(?:\.([0-9]+))?) ?([kMG]?)", text.translate(_SIGNED))
    assert match, text
    factor = _FACTORS[match[3]]
    half = 0.5 * factor / 10 ** len(match[2] or "")
    return abs(float(match[1]) * factor - value) <= half * 1.001


def test_the_page_of_the_golden_run_is_the_same_to_the_byte() -> None:
    page = (GOLDEN / "report.html").read_bytes().decode()
    assert texts()["report.html"] == page, "it differs; where that is meant, see tests/golden.py"


def test_every_record_has_a_row_and_every_row_a_record() -> None:
    newest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in sorted(all_records(), key=lambda record: record["started"]):
        newest[record["suite"], record["test"], record["environment"]["testbed"]["name"]] = record
    rows = rows_of(page())
    assert len(rows) == len(newest)
    for row in rows:
        record = record_of(row)
        assert record in newest.values()
        assert row["test"] == record["test"]
        assert row["Verdict"].endswith(record["verdict"])
        made = record["topology"]
        assert row["topology"] == (f"{made['datapath']}/{made['ruleset']}/{made['cpus']}cpu-{made['rx_queues']}rxq")
        assert row["profile"] == record["profile"]["name"]


def test_the_counts_and_the_sentence_are_those_of_the_records() -> None:
    verdicts = [record_of(row)["verdict"] for row in rows_of(page())]
    without = json.loads((GOLDEN / "without-record.json").read_text())["tests"]
    expected = {
        "met": verdicts.count("met"),
        "missed": verdicts.count("missed"),
        "not measured": verdicts.count("not measured"),
        "skipped": len(without),
        "unreadable": 1,
    }
    tiles = page().one("ul", "counts").all("li")
    shown = {tile.one("span", "word").own_text: int(tile.one("span", "number").text) for tile in tiles}
    assert shown == expected
    assert min(expected.values()) > 0, "the golden run has to have something of everything"
    sentence = page().one("h1").text
    assert sentence.startswith(f"{expected['missed']} of {len(verdicts)} SLAs")


def test_floor_measured_and_margin_of_every_row_are_those_of_its_record() -> None:
    for row in rows_of(page()):
        record = record_of(row)
        pairs: list[tuple[float, float | None]] = []
        for threshold in record["thresholds"]:
            if threshold["metric"] in ("cps", "pps", "bps"):
                pairs.append((threshold["limit"], threshold["measured"]))
            elif threshold["metric"] == "ratio" and threshold["measured"]:
                pairs.append((threshold["limit"] * 100, threshold["measured"] * 100))
        if not record["figures"]:
            assert row["Measured"] == DASH
        else:
            assert any(reads(row["Floor"], limit) and reads(row["Measured"], found) for limit, found in pairs), row
            at_least = record["limited_by"] in ("generator", "range") and record["verdict"] != "missed"
            assert row["Measured"].startswith("at least") == (at_least and " % of " not in row["Measured"]), row
        assert reads(row["Margin"], record["margin_pct"]), row


def test_the_spread_of_every_row_follows_from_its_record() -> None:
    for row in rows_of(page()):
        record = record_of(row)
        evidence = record["evidence"]
        capacities, upper = rate_of(record).get("samples", []), evidence["upper_bound"]
        thrown = sum(made["state"] == "invalid" for made in evidence["trials"])
        said = f" {thrown} of {len(evidence['trials'])} trial{'s' if len(evidence['trials']) > 1 else ''} thrown away"
        if thrown:
            assert row["Spread"].endswith(said)
            row["Spread"] = row["Spread"].removesuffix(said)
        assert "thrown away" not in row["Spread"]
        if len(capacities) > 1:
            width = (max(capacities) - min(capacities)) / statistics.median(capacities)
            assert reads(row["Spread"], width * 100), row
        elif rate_of(record) and upper:
            assert reads(row["Spread"].removeprefix("± "), (upper / rate_of(record)["value"] - 1) * 100), row
        else:
            assert row["Spread"] == DASH


def test_the_column_of_the_reference_follows_from_the_published_figures() -> None:
    published = {}
    for path in (ROOT / "results" / "reference" / "ovs-3.0.0").glob("*.json"):
        figure = json.loads(path.read_text())
        made = figure["topology"]
        key = f"{made['datapath']}/{made['ruleset']}/{made['cpus']}cpu-{made['rx_queues']}rxq"
        published[key, figure["profile"]] = figure["figures"]
    compared = 0
    for row in rows_of(page()):
        record = record_of(row)
        name = record["profile"]["name"]
        theirs = published.get((row["topology"], name)) or _beside_the_floor(record)
        if theirs and rate_of(record):
            metric = "pps" if record["profile"].get("kind") == "packets" else "cps"
            expected = (rate_of(record)["value"] / theirs[metric] - 1) * 100
        elif rate_of(record) and (theirs := published.get((row["topology"], "long-lived"))) and "long" in name:
            expected = (record["figures"]["pps"]["value"] / theirs["pps"] - 1) * 100
        else:
            assert row["Against reference"] == DASH
            continue
        assert reads(row["Against reference"], expected), row
        assert row["Against reference"].endswith("other hardware")
        compared += 1
    assert compared


def test_what_is_missed_or_not_measured_is_listed_with_its_reason() -> None:
    rows = {row["id"]: record_of(row) for row in rows_of(page())}
    articles = page().by_id("problems").all("article")
    listed = [article.one("a").attributes["href"].lstrip("#") for article in articles]
    assert sorted(listed) == sorted(ident for ident, record in rows.items() if record["verdict"] != "met")
    for article, ident in zip(articles, listed, strict=True):
        reason = rows[ident]["verdict_reason"]
        assert reason[1:].rstrip(".") in article.text
        assert article.one("span", "badge").text.endswith(rows[ident]["verdict"])


def test_every_number_in_the_tables_of_trials_is_that_of_its_trial() -> None:
    rows = {row["id"]: record_of(row) for row in rows_of(page())}
    checked = 0
    for article in page().by_id("searches").all("article"):
        record = rows[article.one("a").attributes["href"].lstrip("#")]
        lines = article.one("table", "trials").one("tbody").all("tr")
        assert len(lines) == len(record["evidence"]["trials"])
        for line, made in zip(lines, record["evidence"]["trials"], strict=True):
            cells = {cell.attributes["data-name"]: cell.text for cell in line.all("td")}
            trial = made["trial"]
            loss = (trial["intended"] - trial["completed"]) / trial["intended"]
            times = trial["connect_time_us"] or made["latency_us"]
            waited = next(text for name, text in cells.items() if name.endswith("p99"))
            assert reads(cells["Offered"], trial["load"])
            assert reads(cells["Completed"], trial["completed"] / trial["duration_s"])
            assert reads(cells["Packets/s"], sum(trial["rx_packets"].values()) / trial["duration_s"])
            assert reads(cells["Loss"], loss * 100) or cells["Loss"] == "<0.001 %"
            assert cells["State"].startswith(made["state"])
            assert made["reason"] in cells["State"]
            assert times is None or reads(waited, times["p99"] * (1 if " us" in waited else 1e-3))
            checked += 1
    assert checked


def test_the_bars_of_the_charts_are_the_rates_of_the_records() -> None:
    bars = [title.text for title in page().by_id("scaling").all("title")]
    records = [record for record in map(record_of, rows_of(page())) if record["figures"]]
    rates = [rate for record in records for rate in (rate_of(record)["value"], record["figures"]["pps"]["value"])]
    ours = [bar for bar in bars if "other hardware" not in bar]
    assert ours
    for bar in ours:
        test, _, figure = bar.rpartition(": ")
        assert test in {record["test"] for record in records}
        assert any(reads(figure, rate) for rate in rates), bar


def test_the_costs_are_the_records_divided_by_plain_forwarding() -> None:
    by_test = {(record["topology"]["datapath"], record["test"]): record for record in map(record_of, rows_of(page()))}
    checked = 0
    for figure in page().by_id("cost").all("figure"):
        for title in figure.all("title"):
            found = re.fullmatch(r"(.+): (?:at least )?([0-9.]+ %) of plain forwarding", title.text)
            if not found:
                continue
            (record,) = [record for (_, test), record in by_test.items() if test == found[1]]
            made, name = record["topology"], record["profile"]["name"]
            like = made | {"ruleset": "forward"}
            others = [other for other in by_test.values() if other["topology"] == like]
            (plain,) = [
                other for other in others if other["profile"]["name"] == name and other["verdict"] != "not measured"
            ]
            assert reads(found[2], rate_of(record)["value"] / rate_of(plain)["value"] * 100), title.text
            checked += 1
    assert checked


def test_this_runs_lines_in_the_published_tables_are_those_of_its_records() -> None:
    lines = [line for line in page().by_id("published").all("tr", "ours") if line.all("a")]
    assert lines
    for line in lines:
        record = json.loads((GOLDEN / line.one("a").attributes["href"]).read_text())
        cells = {cell.attributes["data-name"]: cell.text for cell in line.all("td")}
        found = record["figures"]
        assert reads(cells["Connection rate"], found["cps"]["value"])
        assert reads(cells["Active connections"], found["active_connections"]["value"])
        assert reads(cells["Packet rate"], found["pps"]["value"])
        assert reads(cells["Bandwidth"], found["bps"]["value"])


def test_every_link_leads_somewhere() -> None:
    ids = {each.attributes["id"] for each in page().all() if "id" in each.attributes}
    links = [link.attributes["href"] for link in page().all("a")]
    assert any(link.startswith("records/") for link in links)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert link in texts() or (GOLDEN / link).exists(), link


def test_nothing_on_the_page_is_forbidden_by_jenkins() -> None:
    for each in page().all():
        assert each.name not in ("script", "style", "iframe", "object", "img"), each
        assert not any(name == "style" or name.startswith("on") for name in each.attributes), each
    sheets = [link.attributes["href"] for link in page().all("link")]
    assert sheets == ["report.css"]
    style = STYLE_SHEET.read_text()
    assert "url(" not in style and "@import" not in style


def test_the_environment_and_the_deviations_are_those_of_the_records() -> None:
    text = page().by_id("environment").text
    for record in all_records():
        assert str(record["environment"]["dut"].get("version", "")) in text
        assert record["environment"]["machine"]["kernel"] in text
        assert record["run_id"] in text
    method = page().by_id("methodology").text
    assert "RFC 9411, 7.2" in method and "RFC 2544, 24" in method
    for record in all_records():
        assert all(note in method for note in record["notes"])


def test_junit_has_a_case_for_every_test_with_the_properties_of_its_row() -> None:
    root = ET.fromstring(texts()["junit.xml"])
    cases = {(case.get("name"), _property(case, "Record")): case for case in root.iter("testcase")}
    for row in rows_of(page()):
        case = cases[row["test"], row["record"]]
        for name in ("Floor", "Measured", "Margin"):
            assert row[name].startswith(_property(case, name))
        assert _property(case, "Verdict") in row["Verdict"]
        verdict = record_of(row)["verdict"]
        assert (case.find("failure") is not None) == (verdict == "missed")
        assert (case.find("error") is not None) == (verdict == "not measured")
    skipped = json.loads((GOLDEN / "without-record.json").read_text())["tests"]
    assert len(list(root.iter("skipped"))) == len(skipped)
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))


def test_summary_and_csv_have_the_numbers_of_the_records_unrounded() -> None:
    summary = json.loads(texts()["summary.json"])
    lines = list(csv.DictReader(io.StringIO(texts()["results.csv"])))
    assert len(summary["tests"]) == len(lines) == len(rows_of(page()))
    for test, line in zip(summary["tests"], lines, strict=True):
        record = json.loads((GOLDEN / test["record"]).read_text())
        assert test["measured"] == rate_of(record).get("value")
        assert test["margin_pct"] == record["margin_pct"]
        assert line["measured"] == ("" if test["measured"] is None else str(test["measured"]))
        found = record["figures"]
        assert [test["figures"].get(name) for name in ("pps", "bps", "loss_ratio")] == [
            found.get(name, {}).get("value") for name in ("pps", "bps", "loss_ratio")
        ]
        assert [line[name] for name in test["figures"]] == [str(value) for value in test["figures"].values()]
        limits = [promise["limit"] for promise in test["thresholds"]]
        assert limits and limits == [each["limit"] for each in record["thresholds"]]
        assert (line["test"], line["verdict"]) == (record["test"], record["verdict"])


def test_the_page_for_a_merge_request_has_every_row() -> None:
    text = texts()["report.md"]
    for row in rows_of(page()):
        assert f"| {row['test']} | `{row['topology']}` |" in text
    assert page().one("h1").text in text


def _beside_the_floor(record: dict[str, Any]) -> dict[str, float] | None:
    """The figure that the SLA file itself has for a test."""
    own = record["floor"]["reference"]
    return dict(own["figures"]) if own else None


def _property(case: ET.Element, name: str) -> str:
    found = case.find(f"properties/property[@name='{name}']")
    return "" if found is None else found.get("value", "")


# Trials over time: every point is where its record says, read off the axes as people do.

_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "us": 1.0, "ms": 1e3, "s": 1e6}


def trial_of(article: Element, title: str) -> dict[str, Any]:
    """The trial that a chart's title names, from the record that the search links to."""
    rows = {row["id"]: record_of(row) for row in rows_of(page())}
    record = rows[article.one("a").attributes["href"].lstrip("#")]
    number = int(title.rpartition("trial ")[2])
    trial: dict[str, Any] = record["evidence"]["trials"][number - 1]["trial"]
    return trial


def over_time() -> list[tuple[dict[str, Any], Element, Element]]:
    """The figures of open connections and of their connect time, with their trial."""
    found = []
    for article in page().by_id("searches").all("article"):
        by_title = {figure.one("h3").text: figure for figure in article.all("figure")}
        for title, waited in by_title.items():
            if title.startswith("TCP connect time, over trial"):
                active = by_title[title.replace("TCP connect time", "Connections open at the same time")]
                found.append((trial_of(article, title), active, waited))
    return found


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
    assert over_time(), "the golden run has to have a trial with its connect time over time"
    for trial, *drawings in over_time():
        above, below = (figure.one("svg", "chart") for figure in drawings)
        for chart, style, key, scale in (
            (above, "line-active", "timeline_active", float),
            (below, "wait-mean", "timeline_connect_mean_us", math.log10),
            (below, "wait-max", "timeline_connect_max_us", math.log10),
        ):
            seconds = ticks(chart, "middle")
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
    for trial, figure, _ in over_time():
        words = figure.one("p").text
        found = re.fullmatch(
            r"Trial \d+, (.+)/s offered: (.+) open in the mean, (.+) at most\."
            r" TCP connect time: p50 (.+), p99 (.+), at most (.+)\.",
            words,
        )
        assert found, words
        times = trial["connect_time_us"]
        assert reads(found[1], trial["load"])
        assert reads(found[2], trial["active_mean"])
        assert reads(found[3], trial["active_max"])
        for text, time in zip(found.groups()[3:], (times["p50"], times["p99"], times["max"]), strict=True):
            number, unit = text.split(" ")
            half = 0.5 / 10 ** len(number.partition(".")[2])
            assert abs(float(number) - time / _UNITS[unit]) <= half * 1.001, text

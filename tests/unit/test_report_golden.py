"""A run of this project as it really was, and the report that has to come of it: byte by byte, and number by number.

The page is taken apart and held against the JSON of the records, not against the code that made it.
"""

import csv
import io
import json
import re
import statistics
import xml.etree.ElementTree as ET
from functools import cache
from typing import Any

import pytest
from golden import GOLDEN, ROOT, render
from pages import Element, read_page, rows_of

from ctbench.report.html import STYLE_SHEET

pytestmark = pytest.mark.unit

#: Stands where there is no figure: an en dash.
DASH = "\u2013"
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SIGNED = str.maketrans({"\u2212": "-", "\u202f": ""})


@cache
def page() -> Element:
    return read_page((GOLDEN / "report.html").read_text(encoding="utf-8"))


def record_of(row: dict[str, str]) -> dict[str, Any]:
    """What the file holds that a row links to."""
    document: dict[str, Any] = json.loads((GOLDEN / row["record"]).read_text(encoding="utf-8"))
    return document


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


def test_the_report_of_the_golden_run_is_the_same_to_the_byte() -> None:
    for name, text in render().items():
        assert text == (GOLDEN / name).read_bytes().decode(), (
            f"{name} differs; where that is meant, see tests/golden.py"
        )


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
        assert row["topology"] == (f"{made['datapath']}/{made['ruleset']}/{made['pmd_cpus']}cpu-{made['rx_queues']}rxq")
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
            elif threshold["metric"] == "relative" and threshold["measured"]:
                pairs.append((threshold["limit"] * 100, threshold["measured"] * 100))
        if record["measured"] is None:
            assert row["Measured"] == DASH
        else:
            assert any(reads(row["Floor"], limit) and reads(row["Measured"], found) for limit, found in pairs), row
            at_least = record["limited_by"] in ("generator", "range") and record["verdict"] != "missed"
            assert row["Measured"].startswith("at least") == (at_least and " % of " not in row["Measured"]), row
        assert reads(row["Margin"], record["margin_pct"]), row


def test_the_spread_of_every_row_follows_from_its_record() -> None:
    for row in rows_of(page()):
        record = record_of(row)
        capacities, upper = record["capacities"], record["upper_bound"]
        thrown = sum(made["state"] == "invalid" for made in record["trials"])
        said = f" {thrown} of {len(record['trials'])} trial{'s' if len(record['trials']) > 1 else ''} thrown away"
        if thrown:
            assert row["Spread"].endswith(said)
            row["Spread"] = row["Spread"].removesuffix(said)
        assert "thrown away" not in row["Spread"]
        if len(capacities) > 1:
            width = (max(capacities) - min(capacities)) / statistics.median(capacities)
            assert reads(row["Spread"], width * 100), row
        elif record["measured"] and upper:
            assert reads(row["Spread"].removeprefix("± "), (upper / record["measured"]["rate"] - 1) * 100), row
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
        if theirs and record["measured"]:
            metric = "pps" if record["profile"].get("kind") == "packets" else "cps"
            expected = (record["measured"]["rate"] / theirs[metric] - 1) * 100
        elif record["measured"] and (theirs := published.get((row["topology"], "long-lived"))) and "long" in name:
            expected = (record["measured"]["pps"] / theirs["pps"] - 1) * 100
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
        assert len(lines) == len(record["trials"])
        for line, made in zip(lines, record["trials"], strict=True):
            cells = {cell.attributes["data-name"]: cell.text for cell in line.all("td")}
            trial = made["trial"]
            loss = (trial["intended"] - trial["completed"]) / trial["intended"]
            times = trial["setup_time_us"] or made["latency_us"]
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
    records = [record for record in map(record_of, rows_of(page())) if record["measured"]]
    rates = [record["measured"][key] for record in records for key in ("rate", "pps")]
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
            plain = [
                other for other in others if other["profile"]["name"] == name and other["verdict"] != "not measured"
            ]
            whole = plain[0]["measured"]["rate"] if plain else record["baseline"]["rate"]
            assert reads(found[2], record["measured"]["rate"] / whole * 100), title.text
            checked += 1
    assert checked


def test_this_runs_lines_in_the_published_tables_are_those_of_its_records() -> None:
    lines = [line for line in page().by_id("published").all("tr", "ours") if line.all("a")]
    assert lines
    for line in lines:
        record = json.loads((GOLDEN / line.one("a").attributes["href"]).read_text())
        cells = {cell.attributes["data-name"]: cell.text for cell in line.all("td")}
        found = record["measured"]
        assert reads(cells["Connection rate"], found["rate"])
        assert reads(cells["Active connections"], found["active_connections"])
        assert reads(cells["Packet rate"], found["pps"])
        assert reads(cells["Bandwidth"], found["bps"])


def test_every_link_leads_somewhere() -> None:
    ids = {each.attributes["id"] for each in page().all() if "id" in each.attributes}
    links = [link.attributes["href"] for link in page().all("a")]
    assert any(link.startswith("records/") for link in links)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert (GOLDEN / link).exists(), link


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
    root = ET.fromstring((GOLDEN / "junit.xml").read_text())
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
    summary = json.loads((GOLDEN / "summary.json").read_text())
    lines = list(csv.DictReader(io.StringIO((GOLDEN / "results.csv").read_text())))
    assert len(summary["tests"]) == len(lines) == len(rows_of(page()))
    for test, line in zip(summary["tests"], lines, strict=True):
        record = json.loads((GOLDEN / test["record"]).read_text())
        assert test["measured"] == (record["measured"] or {}).get("rate")
        assert test["margin_pct"] == record["margin_pct"]
        assert line["measured"] == ("" if test["measured"] is None else str(test["measured"]))
        found = record["measured"] or {}
        assert [test["figures"].get(name) for name in ("pps", "bps", "loss_ratio")] == [
            found.get(name) for name in ("pps", "bps", "loss_ratio")
        ]
        assert [line[name] for name in test["figures"]] == [str(value) for value in test["figures"].values()]
        limits = [promise["limit"] for promise in test["thresholds"]]
        # Where nothing was compared, a record of version 1 has its promises in `floors` only.
        assert limits
        assert not record["thresholds"] or limits == [each["limit"] for each in record["thresholds"]]
        assert (line["test"], line["verdict"]) == (record["test"], record["verdict"])


def test_the_page_for_a_merge_request_has_every_row() -> None:
    text = (GOLDEN / "report.md").read_text()
    for row in rows_of(page()):
        assert f"| {row['test']} | `{row['topology']}` |" in text
    assert page().one("h1").text in text


def _beside_the_floor(record: dict[str, Any]) -> dict[str, float] | None:
    """The figure that the SLA file itself has for a test."""
    own = record["floors"]["reference"]
    return {name: own[name] for name in ("cps", "pps")} if own else None


def _property(case: ET.Element, name: str) -> str:
    found = case.find(f"properties/property[@name='{name}']")
    return "" if found is None else found.get("value", "")

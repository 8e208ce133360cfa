"""The page of a run as it really was: taken apart and held against the JSON of the records, not against the code that
made it."""

import json
import re
from functools import cache
from typing import Any

from golden import GOLDEN, render
from pages import Element, read_page, rows_of

from ctbench.report.write import STYLE_SHEET

#: Stands where there is no figure: an en dash.
DASH = "\u2013"
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SIGNED = str.maketrans({"\u2212": "-", "\u202f": ""})


@cache
def page() -> Element:
    return read_page(render()["sla.html"])


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
        assert row["verdict"] == record["verdict"]
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
        "unreadable": 1,
    }
    not_run = [each.one("summary").own_text for each in page().by_id("not-run").all("details")]
    assert sum(int(re.findall(r": (\d+) tests?", text)[0]) for text in not_run) == len(without)
    tiles = page().one("ul", "counts").all("li")
    shown = {tile.one("span", "word").own_text: int(tile.one("span", "number").text) for tile in tiles}
    assert shown == expected
    assert min(expected.values()) > 0, "the golden run has to have something of everything"
    sentence = page().one("h1").text
    assert sentence.startswith(f"{expected['missed']} of {len(verdicts)} SLAs")


def test_floor_measured_and_margin_of_every_row_are_those_of_its_record() -> None:
    for row in rows_of(page()):
        record = record_of(row)
        promised = {each["metric"]: each for each in record["thresholds"] if each["measured"]}
        rates = [[promised[name][key] for name in ("cps", "pps") if name in promised] for key in ("limit", "measured")]
        if not record["figures"]:
            assert row["Measured"] == DASH
        else:
            if "%" in row["Floor"]:
                ratio = promised["ratio"]
                assert reads(row["Floor"], ratio["limit"] * 100) and reads(row["Measured"], ratio["measured"] * 100)
                ours, theirs = row["Measured"].partition("(")[2].split(" of ")
                assert reads(ours, promised["pps"]["measured"]) and reads(
                    theirs, promised["pps"]["measured"] / ratio["measured"]
                )
            else:
                for name, values in zip(("Floor", "Measured"), rates, strict=True):
                    assert all(reads(*pair) for pair in zip(row[name].split(", "), values, strict=True)), row
            held = [made["trial"]["duration_s"] for made in record["evidence"]["trials"] if made["state"] == "good"
                    and made["trial"]["load"] >= record["figures"][record["metric"]]["value"]]  # fmt: skip
            if held and "%" not in row["Floor"]:
                assert row["Measured"].endswith(f" for {max(held):g} s"), row
                assert max(held) < 40 and "at least" not in row["Measured"], "a trial so short tells of itself alone"
        assert reads(row["Margin"], record["margin_pct"]), row


def test_what_is_missed_or_not_measured_is_open_with_its_reason_and_the_worst_three_are_on_the_first_screen() -> None:
    rows = {row["id"]: record_of(row) for row in rows_of(page())}
    opened = [each for each in page().by_id("results").all("details") if "open" in each.attributes]
    shown = {each.one("div", "more").attributes["id"]: each.one("p", "why").text for each in opened}
    assert shown.keys() == {ident for ident, record in rows.items() if record["verdict"] != "met"}
    assert all(rows[ident]["verdict_reason"][1:].rstrip(".") in text for ident, text in shown.items())
    nearest = [rows[each.one("a").attributes["href"].lstrip("#")] for each in page().by_id("nearest").all("article")]
    assert [record["verdict"] for record in nearest] == ["missed", "missed", "not measured"]
    assert nearest[0]["margin_pct"] < nearest[1]["margin_pct"]


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


def test_every_section_of_a_run_of_ovs_and_a_router_is_there_with_its_charts_and_tables() -> None:
    sections = {each.attributes["id"]: each for each in page().all("section")}
    assert list(sections) == ["nearest", "unseen", "results", "charts", "searches", "method"]
    drawn = {name for name, section in sections.items() if section.all("figure")}
    assert drawn == {"nearest", "charts", "searches"}


def test_every_link_leads_somewhere() -> None:
    ids = {each.attributes["id"] for each in page().all() if "id" in each.attributes}
    links = [link.attributes["href"] for link in page().all("a")]
    assert any(link.startswith("records/") for link in links)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert link in render() or (GOLDEN / link).exists(), link


def test_nothing_on_the_page_is_forbidden_by_jenkins() -> None:
    for each in page().all():
        assert each.name not in ("script", "style", "iframe", "object", "img"), each
        assert not any(name == "style" or name.startswith("on") for name in each.attributes), each
    sheets = [link.attributes["href"] for link in page().all("link")]
    assert sheets == ["report.css"]
    style = STYLE_SHEET.read_text()
    assert "url(" not in style and "@import" not in style


def test_the_environment_and_the_deviations_are_those_of_the_records() -> None:
    text = page().by_id("method").text
    for record in all_records():
        assert str(record["environment"]["dut"].get("version", "")) in text
        assert record["environment"]["machine"]["kernel"] in text
        assert record["run_id"] in text
        assert all(note in text for note in record["notes"])
    assert "RFC 9411, 7.2" in text and "RFC 2544, 24" in text

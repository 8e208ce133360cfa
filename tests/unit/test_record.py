"""Records: valid by their published schema when written and when read; whole files only, none written over another;
whatever lies among them is named, skipped and counted, and ends nothing."""

import html
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import commands
import jsonschema
import pytest
from pydantic import ValidationError
from whole_records import read_all

from ctbench.base.errors import CtbenchError
from ctbench.results.environment import DutFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import SCHEMA_FILE, Record, RecordError, from_json, schema_text
from ctbench.results.store import read_stored, slug, write
from ctbench.run.exit_status import read_verdicts

from .records import CONTENTS, GOLDEN_FILES, document, record
from .simulated import made_up_record, run_of, with_environment


def test_the_published_schema_is_up_to_date_and_names_what_is_asked_for() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run: PYTHONPATH=libraries python -m ctbench.results.record"
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    asked = {
        "schema_version", "test", "tags", "procedure", "topology", "profile", "figures", "thresholds", "verdict",
        "verdict_reason", "margin_pct", "evidence", "environment",
    }  # fmt: skip
    assert asked <= set(schema["required"])
    assert set(schema["properties"]["figures"]["propertyNames"]["enum"]) == set(METRICS)


def test_a_record_is_read_back_the_same_with_or_without_a_measurement() -> None:
    whole = record()
    assert from_json(whole.to_json(), "x.json") == whole
    assert next(iter(json.loads(whole.to_json()))) == "schema_version"
    evidence = {"trials": []}
    whole = record(figures={}, margin_pct=None, verdict="not measured", limited_by="fault", evidence=evidence)
    assert whole.result is None
    assert from_json(whole.to_json(), "x.json") == whole


def test_times_are_utc_and_a_time_without_a_zone_is_refused() -> None:
    fields = record().model_dump() | {"started": datetime(2025, 1, 2, 5, 0, tzinfo=timezone(timedelta(hours=2)))}
    there = Record(**fields)
    assert there.started == datetime(2025, 1, 2, 3, 0, tzinfo=UTC)
    assert '"started": "2025-01-02T03:00:00Z"' in there.to_json()
    with pytest.raises(ValidationError):
        Record(**fields | {"started": datetime(2025, 1, 2)})


def test_facts_that_json_cannot_hold_do_not_cost_a_measurement() -> None:
    odd: dict[str, Any] = {
        "name": "\ud800x\udcff",
        "rate": float("inf"),
        "where": Path("/x"),
        "odd": object(),
        "cpus": {1},
    }
    parts = {"testbed": TestbedFacts(**odd | {"name": "x"}), "dut": DutFacts(**odd), "generator": odd}
    text = with_environment(record(), **parts).to_json()
    text.encode()
    facts = from_json(text, "x.json").environment.dut.model_extra
    assert (facts["name"], facts["rate"], facts["where"]) == ("?x?", None, "/x")


@pytest.mark.parametrize("name", CONTENTS)
def test_whatever_a_file_holds_it_is_one_sentence(name: str) -> None:
    content, said = CONTENTS[name]
    with pytest.raises(RecordError) as error:
        from_json(content, "x.json")
    first, expected = str(error.value).split("\n")
    assert first.startswith("x.json: ") and said in first and first.isprintable() and len(first) < 700
    assert expected.startswith("  Expected ")


def test_what_is_written_is_valid_by_the_published_schema() -> None:
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
    for path in GOLDEN_FILES:
        schema.validate(json.loads(from_json(path.read_bytes(), path.name).to_json()))
    schema.validate(document())


def files(output: Path) -> list[str]:
    return sorted(path.name for path in (output / "records").iterdir())


def test_names_become_file_names_and_a_record_is_written_under_them_with_nothing_else(tmp_path: Path) -> None:
    path = write(record(), tmp_path)
    assert path == tmp_path / "records/ovs-dpdk-with-conntrack.1-cpu-1-queue-short-lived-connections.json"
    assert files(tmp_path) == [path.name]
    assert read_stored(tmp_path / "none") == ([], []), "a run without records"
    assert path.stat().st_mode & 0o777 == 0o644
    assert read_all(tmp_path) == ([record()], [])
    assert slug("", "Ünïcode / ../etc: 100 %") == "n-code-etc-100"
    assert slug("", "///") == "unnamed"
    assert len(slug("s" * 500, "t" * 500)) <= 201


def test_a_second_record_gets_a_suffix_and_rows_of_two_suites_do_not_meet(tmp_path: Path) -> None:
    years = {"a": 2026, "b": 2024, "c": 2025}
    paths = [write(record(run_id=run, started=f"{year}-01-01T00:00:00Z"), tmp_path) for run, year in years.items()]
    assert [path.stem.removeprefix(paths[0].stem) for path in paths] == ["", "-2", "-3"]
    assert [each.run_id for each in read_all(tmp_path)[0]] == ["b", "c", "a"], "the oldest first"
    write(record(suite="With Conntrack"), tmp_path / "suites")
    write(record(suite="With NAT"), tmp_path / "suites")
    assert [name.split(".")[0] for name in files(tmp_path / "suites")] == ["with-conntrack", "with-nat"]


def test_a_write_that_fails_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("ctbench.results.store.unwritten", [])  # of a process: no run of a later test failed to write
    with pytest.raises(CtbenchError, match=r"(?s)could not be written: No space left.*Expected"):
        write(record(), tmp_path)
    assert files(tmp_path) == []


def _run(folder: Path) -> Path:
    """A run of two good records."""
    return run_of(folder, made_up_record(), made_up_record(test="Another", verdict="missed"))


def _page_of(run: Path) -> str:
    assert commands.status("report", [str(run)]) == 0
    return (run / "sla.html").read_text()


@pytest.fixture
def littered(tmp_path: Path) -> Path:
    """A run of two good records with all kinds of files among them."""
    run = _run(tmp_path)
    for number, (content, _) in enumerate(CONTENTS.values()):
        (run / "records" / f"odd-{number:03}.json").write_bytes(content)
    return run


def test_files_that_are_no_records_are_named_skipped_and_counted(littered: Path) -> None:
    page, number = _page_of(littered), len(CONTENTS)
    summary = json.loads((littered / "summary.json").read_text())
    assert summary["counts"] | {"met": 1, "missed": 1, "unreadable": number} == summary["counts"]
    assert summary["unreadable"] == [f"records/odd-{each:03}.json" for each in range(number)]
    assert f"{number} files are not records and are not counted." in page
    listed = re.findall(r'<li class="reason">records/odd-(\d+)\.json: (.*?)</li>', page, re.DOTALL)
    assert listed and all(len(text) < 700 for _, text in listed)
    for each, text in listed:
        assert list(CONTENTS.values())[int(each)][1] in html.unescape(text)
    assert "odd-000.json" in (littered / "junit.xml").read_text() and "odd-" in (littered / "sla.md").read_text()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**9)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "is a folder"),
    "a pipe": (_pipe, "is a pipe"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot be read (Too many levels of symbolic links)"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "a gigabyte": (_sparse, "is larger than 32 MB"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_ordinary_file_is_not_opened_and_named(name: str, tmp_path: Path) -> None:
    make, said = KINDS[name]
    run = _run(tmp_path)
    make(run / "records" / "odd.json")
    assert f"records/odd.json: {said}" in _page_of(run)
    assert read_verdicts(run).total() == 3

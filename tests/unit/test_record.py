"""Records: valid by their published schema when written and when read, and by the models alike; whole files only, none
written over another; whatever lies among them is named, skipped and counted, and ends nothing."""

import copy
import html
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from whole_records import read_all

from ctbench.base.errors import CtbenchError
from ctbench.cli import calibrate, report
from ctbench.results.environment import DutFacts, GeneratorFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import SCHEMA_FILE, Record, RecordError, from_json, schema_text
from ctbench.results.record_model import Figure, ThresholdRecord
from ctbench.results.store import read_stored, slug, write
from ctbench.run.exit_status import read_verdicts
from ctbench.sla.calibration import Stock, sla_file

from .records import CONTENTS, GOLDEN_FILES, document, record
from .simulated import made_up_record


def test_the_published_schema_is_up_to_date_and_names_what_is_asked_for() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run: PYTHONPATH=libraries python -m ctbench.results.record"
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    asked = {
        "schema_version", "test", "tags", "procedure", "topology", "profile", "figures", "thresholds", "verdict",
        "verdict_reason", "margin_pct", "evidence", "environment",
    }  # fmt: skip
    assert asked <= set(schema["required"])
    assert set(schema["properties"]["figures"]["properties"]) == set(METRICS)


def test_a_record_is_read_back_the_same_with_or_without_a_measurement() -> None:
    whole = record()
    assert from_json(whole.to_json(), "x.json") == whole
    assert next(iter(json.loads(whole.to_json()))) == "schema_version"
    evidence = {"trials": []}
    whole = record(figures={}, margin_pct=None, verdict="not measured", limited_by="fault", evidence=evidence)
    assert whole.result is None
    assert from_json(whole.to_json(), "x.json") == whole


def test_a_figure_knows_its_repetitions_and_their_spread() -> None:
    found = record().result
    assert found is not None and found.repetitions == (381_000, 385_000.5)
    assert found.spread == pytest.approx(4000.5 / 383_000.25)
    alone = Figure(value=5.0, unit="s")
    assert (alone.repetitions, alone.spread) == ((5.0,), None)


def test_times_are_utc_and_a_time_without_a_zone_is_refused() -> None:
    fields = record().model_dump() | {"started": datetime(2025, 1, 2, 5, 0, tzinfo=timezone(timedelta(hours=2)))}
    there = Record(**fields)
    assert there.started == datetime(2025, 1, 2, 3, 0, tzinfo=UTC)
    assert '"started": "2025-01-02T03:00:00Z"' in there.to_json()
    with pytest.raises(ValidationError):
        Record(**fields | {"started": datetime(2025, 1, 2)})


def test_facts_that_json_cannot_hold_do_not_cost_a_measurement() -> None:
    odd: dict[str, Any] = {
        "name": "\ud800x\udcff", "rate": float("inf"), "where": Path("/x"), "odd": object(), "cpus": {1},
    }  # fmt: skip
    parts = {"testbed": TestbedFacts(**odd | {"name": "x"}), "dut": DutFacts(**odd), "generator": GeneratorFacts(**odd)}
    environment = record().environment.model_copy(update=parts)
    text = record().model_copy(update={"environment": environment}).to_json()
    text.encode()
    facts = from_json(text, "x.json").environment.dut.model_extra
    assert (facts["name"], facts["rate"], facts["where"]) == ("?x?", None, "/x")


def test_what_a_ratio_compares_with_is_said_with_its_interval() -> None:
    promised: dict[str, Any] = {"metric": "ratio", "operator": ">=", "limit": 0.6, "written": ">= 60%"}
    ratio = ThresholdRecord(**promised, to="ovs-dpdk/forward/1cpu-1rxq", measured=0.642, low=0.631, high=0.65)
    assert ratio.relation == "64.2 % ± 1.1 % of ovs-dpdk/forward/1cpu-1rxq, at least 60 % promised"
    wide = replace(ratio, high=0.9, low=0.61)
    assert (wide.deciding_end, replace(wide, limit=0.7).deciding_end) == ("at least 61.0 %", "")
    assert wide.relation.startswith("at least 61.0 % (64.2 % (61.0 to 90.0 %)) of ovs-dpdk/forward/1cpu-1rxq, at least")
    assert replace(wide, limit=0.95).deciding_end == "at most 90.0 %"
    assert ratio.kind == "ratio"  # of records that do not say it
    assert ThresholdRecord(**promised, to="x").relation == ""
    promised |= {"metric": "of_build", "measured": 1.012}
    assert ThresholdRecord(**promised, to="distribution").other == "the packaged build"
    assert ThresholdRecord(**promised, to="/opt/ovs").other == "the build in /opt/ovs"


@pytest.mark.parametrize("name", CONTENTS)
def test_whatever_a_file_holds_it_is_one_sentence(name: str) -> None:
    content, said = CONTENTS[name]
    with pytest.raises(RecordError) as error:
        from_json(content, "x.json")
    first, expected = str(error.value).split("\n")
    assert first.startswith("x.json: ") and said in first and first.isprintable() and len(first) < 700
    assert expected.startswith("  Expected ")


VALUES: list[Any] = [None, True, 0, -1, 10**19, 1.5, -0.5, 1e300, "", "text", "5", [], ["text"], {}, {"name": "text"}]
#: What only the models know: a date, an address, what fits together.
BEYOND_THE_SCHEMA = ("started", "ended", "profile")


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


@cache
def documents() -> list[dict[str, Any]]:
    golden = [json.loads(from_json(path.read_bytes(), path.name).to_json()) for path in GOLDEN_FILES]
    return [_short(each) for each in [*golden, document()]]


def _short(whole: dict[str, Any]) -> dict[str, Any]:
    """With few trials and short timelines, so that each key comes up."""
    trials = whole["evidence"]["trials"]
    del trials[1:]
    for made in trials:
        for name, value in made["trial"].items():
            if name.startswith("timeline_") and isinstance(value, list):
                made["trial"][name] = value[:1]
    return whole


def places(part: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value in a document, and in each mapping to one more."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield (*before, key)
        yield from places(value, (*before, key))
    if isinstance(part, dict):
        yield (*before, "colour")


def accepts(whole: dict[str, Any]) -> bool:
    try:
        from_json(json.dumps(whole), "x.json")
    except RecordError:
        return False
    return True


def changed(original: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """With another value at a place, or without it (`...`)."""
    whole = copy.deepcopy(original)
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    if value is not ...:
        part[place[-1]] = value
    elif place[-1] != "colour":
        del part[place[-1]]
    return whole


def test_both_take_what_is_written() -> None:
    for each in documents():
        validator().validate(each)
        assert accepts(each)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.data())
def test_a_change_that_one_refuses_the_other_one_refuses_too(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(documents()))
    place = data.draw(st.sampled_from(list(places(original))))
    value = data.draw(st.sampled_from([..., *VALUES]))
    odd = changed(original, place, value)
    by_schema, by_models = validator().is_valid(odd), accepts(odd)
    if place[0] in BEYOND_THE_SCHEMA or _in_the_environment(place) or _a_bound(place):
        assert by_schema or not by_models, (place, value)
    else:
        assert by_schema == by_models, (place, value)


def _in_the_environment(place: tuple[Any, ...]) -> bool:
    """Facts without a name in the schema are of any kind there; the models bound their numbers."""
    return place[0] in ("environment", "campaign")


def _a_bound(place: tuple[Any, ...]) -> bool:
    """That `low` is not above `high`, the models know."""
    return place[0] == "figures" and place[-1] in ("low", "high")


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


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_src: Path, _dst: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    first, second = write(record(), tmp_path), write(record(), tmp_path)
    assert files(tmp_path) == sorted([first.name, second.name])


def test_a_year_of_records_is_held_without_trials_and_what_they_have_in_common_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(record(run_id=name), tmp_path)
    (first, second), broken = read_stored(tmp_path)
    assert broken == [] and first.sustain_s == (1.0, 1.0)
    whole, light = record(run_id="a"), first.record
    assert (light.figures, light.thresholds, light.topology) == (whole.figures, whole.thresholds, whole.topology)
    assert (light.evidence.trials, light.evidence.series) == ([], [])
    assert light.evidence.ceiling == whole.evidence.ceiling
    assert light.environment.machine == whole.environment.machine
    assert light.environment.dut.product == "Open vSwitch 3.1.0" and light.environment.dut.model_extra == {}
    assert light.environment.dut.machine == whole.environment.dut.machine
    for part in ("topology", "profile", "campaign", "floor", "tags", "pool", "notes"):
        assert getattr(light, part) is getattr(second.record, part), part
    for part in ("testbed", "dut", "generator", "machine"):
        assert getattr(light.environment, part) is getattr(second.record.environment, part), part
    facts = record().environment.model_dump()
    for version in ("3.1.0", "3.2.0"):
        write(
            record(run_id=version, environment=facts | {"dut": facts["dut"] | {"version": version}}), tmp_path / "two"
        )
    assert [each.record.environment.dut.version for each in read_stored(tmp_path / "two")[0]] == ["3.1.0", "3.2.0"]


def _run(folder: Path) -> Path:
    """A run of two good records."""
    write(made_up_record(), folder)
    write(made_up_record(test="Another", verdict="missed"), folder)
    return folder


def _page_of(run: Path) -> str:
    assert report.main([str(run)]) == 0
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


def test_they_end_no_calibration(littered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = littered
    assert "scatter" in sla_file("x", calibrate.records_of([run]), 0.25, Stock("none", {}))
    said = capsys.readouterr().err
    assert all(f"odd-{number:03}.json" in said for number in range(len(CONTENTS)))
    assert read_verdicts(run).total == 2 + len(CONTENTS)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**9)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "is a folder"),
    "a pipe": (_pipe, "is a pipe"),
    "a socket": (_socket, "is a socket"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot be read (Too many levels of symbolic links)"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "a link to a pipe": (lambda path: (_pipe(path.with_suffix(".x")), path.symlink_to(f"{path.stem}.x")), "is a pipe"),
    "a gigabyte": (_sparse, "is larger than 32 MB"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_ordinary_file_is_not_opened_and_named(name: str, tmp_path: Path) -> None:
    make, said = KINDS[name]
    run = _run(tmp_path)
    make(run / "records" / "odd.json")
    assert f"records/odd.json: {said}" in _page_of(run)
    assert read_verdicts(run).total == 3


def test_a_file_name_that_is_no_text_is_shown_with_its_bytes(tmp_path: Path) -> None:
    run = _run(tmp_path / os.fsdecode(b"r\xffn"))
    (run / "records" / os.fsdecode(b"od\xe4.json")).write_text("{}")
    good = next((run / "records").glob("*another.json"))
    good.rename(good.with_name(os.fsdecode(b"100%\xff#.json")))
    page = _page_of(run)
    assert "records/od\\xe4.json: schema_version: missing is not known." in page
    assert 'href="records/100%25%FF%23.json"' in page
    assert json.loads((run / "summary.json").read_text())["unreadable"] == ["records/od\\xe4.json"]

"""Whatever lies among the records of a run: it is named, skipped and counted, and ends nothing."""

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctbench.cli import calibrate, report
from ctbench.compare.judge import compare
from ctbench.compare.side import read_runs
from ctbench.report.runs import RunSet
from ctbench.results import store
from ctbench.results.record import RecordError, from_json
from ctbench.results.store import write
from ctbench.run.exit_status import read_verdicts
from ctbench.sla.calibration import sla_file
from ctbench.sla.reference import read_reference

from .simulated import made_up_record

pytestmark = pytest.mark.unit


def _document(path: str, value: Any) -> bytes:
    """A record with another value at a place such as `environment.dut.version`."""
    document = json.loads(made_up_record(test="Odd").to_json())
    *parents, key = path.split(".")
    part = document
    for parent in parents:
        part = part[int(parent)] if isinstance(part, list) else part.setdefault(parent, {})
    part[int(key) if isinstance(part, list) else key] = value
    return json.dumps(document).encode()


def _raw(path: str, text: str) -> bytes:
    """The same with a value that Python does not write."""
    return _document(path, "PLACE").replace(b'"PLACE"', text.encode())


#: Name, content, and what the page says of it.
CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not JSON"),
    "bytes": (b"\xff\xfe\x00", "is not JSON"),
    "deep lists": (b"[" * 100_000, "is not JSON (recursion limit exceeded"),
    "deep mappings": (b'{"a":' * 100_000, "is not JSON (recursion limit exceeded"),
    "deep facts": (_raw("environment.dut.x", "[" * 5000 + "]" * 5000), "recursion limit exceeded"),
    "a list": (b"[]", "the record: [] is not of type 'object'"),
    "a number": (b"1", "the record: 1 is not of type 'object'"),
    "another version": (_document("schema_version", 2), "schema_version: 2 is not known"),
    "a version of a million digits": (_raw("schema_version", "9" * 1_000_000), "is not JSON"),
    "the first year, east of UTC": (_document("started", "0001-01-01T00:00:00+14:00"), "beyond the years 1 to 9999"),
    "the last year, west of UTC": (_document("ended", "9999-12-31T23:59:59-14:00"), "beyond the years 1 to 9999"),
    "a naive date": (_document("started", "2025-01-01T00:00:00"), "started: "),
    "no date": (_document("started", None), "started: "),
    "half a surrogate pair": (_raw("test", '"\\ud800"'), "is not JSON"),
    "infinity": (_raw("measured.rate", "1e999"), "measured.rate: "),
    "infinity by name": (_raw("measured.pps", "Infinity"), "measured.pps: "),
    "no number": (_raw("trials.0.trial.load", "NaN"), "trials.0.trial.load: "),
    "no number in a fact": (_raw("environment.dut.x", "NaN"), "environment.dut: "),
    "infinity in a campaign": (_raw("campaign.settle", "1e999"), "campaign: "),
    "the largest float": (_document("measured.rate", 1e308), "measured.rate: "),
    "the least float": (_document("margin_pct", -1e308), "margin_pct: "),
    "a large fact": (_document("environment.machine.memory", 1e308), "environment.machine: "),
    "5000 digits": (_raw("trials.0.trial.intended", "9" * 5000), "is not JSON"),
    "4000 digits": (_raw("trials.0.trial.intended", "9" * 4000), "trials.0.trial.intended: "),
    "a negative count": (_document("trials.0.trial.completed", -1), "trials.0.trial.completed: "),
    "a negative rate": (_document("measured.rate", -1.0), "measured.rate: "),
    "a trial without length": (_document("trials.0.trial.duration_s", 0), "trials.0.trial.duration_s: "),
    "a number as text": (_document("measured.rate", "1000"), "measured.rate: "),
    "a truth as number": (_document("trials.0.trial.completed", True), "trials.0.trial.completed: "),
    "DUT a list": (_document("environment.dut", []), "environment.dut: "),
    "DUT nothing": (_document("environment.dut", None), "environment.dut: "),
    "version a mapping": (_document("environment.dut.version", {"a": 1}), "environment.dut.version"),
    "kernel nothing": (_document("environment.machine.kernel", None), "environment.machine.kernel: "),
    "CPUs a number": (_document("environment.machine.usable_cpus", 2), "environment.machine.usable_cpus: "),
    "hugepages of words": (_document("environment.machine.hugepages", ["a"]), "environment.machine.hugepages.0: "),
    "hugepages without size": (_document("environment.machine.hugepages", [{"total": 1}]), "hugepages.0: "),
    "machine of the DUT a text": (_document("environment.dut.machine", "x"), "environment.dut.machine: "),
    "memory a list": (_document("environment.dut.memory", [1]), "environment.dut.memory: "),
    "placement of words": (_document("environment.dut.placement", {"pmd": "1"}), "environment.dut.placement.pmd: "),
    "DUTs of the testbed a number": (_document("environment.testbed.duts", 3), "environment.testbed.duts: "),
    "a campaign without words": (_document("campaign.description", None), "campaign.description: "),
    "stand-ins a list": (_document("campaign.profiles", ["a"]), "campaign.profiles: "),
    "a loss of a text": (_document("campaign.loss_ratio", "0"), "campaign.loss_ratio: "),
    "a floor that is none": (_document("floors.cps", ">= many"), "floors.cps: "),
    "a limit that is none": (_document("floors.loss_ratio", "<= 2"), "floors.loss_ratio: "),
    "an unknown key": (_document("colour", "red"), "'colour' was unexpected"),
    "an unknown key of 5000 letters": (_document("k" * 5000, 1), "was unexpected"),
    "an escape in a key": (_document("\x1b[31m", 1), "\\x1b[31m"),
}


def _run(folder: Path) -> Path:
    """A run of two good records."""
    write(made_up_record(), folder)
    write(made_up_record(test="Another", verdict="missed"), folder)
    return folder


def _page_of(run: Path) -> str:
    assert report.main([str(run)]) == 0
    return (run / "report.html").read_text()


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_no_record_is_named_skipped_and_counted(name: str, tmp_path: Path) -> None:
    content, said = CONTENTS[name]
    run = _run(tmp_path)
    (run / "records" / "odd.json").write_bytes(content)
    page = _page_of(run)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["counts"] | {"met": 1, "missed": 1, "unreadable": 1} == summary["counts"]
    assert summary["unreadable"] == ["records/odd.json"]
    assert "1 file is no record and is not counted." in page
    listed = re.search(r'<li class="reason">(records/odd\.json: .*?)</li>', page, re.DOTALL)
    assert listed and len(listed[1]) < 700
    assert said in listed[1].replace("&#39;", "'").replace("&gt;", ">")
    assert "odd.json" in (run / "junit.xml").read_text() and "odd.json" in (run / "report.md").read_text()


@pytest.mark.parametrize("name", CONTENTS)
def test_it_ends_neither_a_comparison_nor_a_calibration_nor_a_reference_nor_a_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    (run / "records" / "odd.json").write_bytes(CONTENTS[name][0])
    side = read_runs(str(run))
    assert compare(side, side).base.records == 2 and len(side.broken) == 1
    assert "cps" in sla_file("x", calibrate.records_of([run]), 0.2)
    assert "odd.json" in capsys.readouterr().err
    assert len(read_reference(str(run)).rates) == 1
    assert read_verdicts(run / "records").total == 3


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
    "a link to nothing": (lambda path: path.symlink_to("nothing"), "is a link that leads nowhere"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "a link to a pipe": (lambda path: (_pipe(path.with_suffix(".x")), path.symlink_to(f"{path.stem}.x")), "is a pipe"),
    "a gigabyte": (_sparse, "is larger than 32 MB"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_ordinary_file_is_not_opened_and_named(name: str, tmp_path: Path) -> None:
    make, said = KINDS[name]
    run = _run(tmp_path)
    make(run / "records" / "odd.json")
    assert f"records/odd.json: {said}" in _page_of(run) or said in _page_of(run)
    assert read_verdicts(run / "records").total == (2 if name == "a link to nothing" else 3)
    assert len(read_runs(str(run)).broken) == 1


def test_a_file_name_that_is_no_text_is_shown_with_its_bytes(tmp_path: Path) -> None:
    run = _run(tmp_path / os.fsdecode(b"r\xffn"))
    (run / "records" / os.fsdecode(b"od\xe4.json")).write_text("{}")
    good = next((run / "records").glob("*another.json"))
    good.rename(good.with_name(os.fsdecode(b"100%\xff#.json")))
    page = _page_of(run)
    assert "records/od\\xe4.json: schema_version: missing is not known." in page
    assert 'href="records/100%25%FF%23.json"' in page
    assert json.loads((run / "summary.json").read_text())["unreadable"] == ["records/od\\xe4.json"]


def test_a_file_that_goes_between_listing_and_reading_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path)
    names = os.listdir(run / "records")  # noqa: PTH208  as the store has it
    monkeypatch.setattr(os, "listdir", lambda _folder: ["gone.json", *names])
    stored, broken = store.read_stored(run)
    assert (len(stored), broken) == (2, [])


def test_a_record_that_passes_and_cannot_be_shown_is_named_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path)
    of = RunSet.by_test

    def stumble(runs: RunSet) -> Any:
        assert all(each.record.test != "Another" for each in runs.stored), "a mistake of ours"
        return of(runs)

    monkeypatch.setattr(RunSet, "by_test", stumble)
    page = _page_of(run)
    assert "cannot be shown (AssertionError: a mistake of ours" in page
    assert "The SLA that was measured is met." in page


def test_a_mistake_that_no_record_causes_is_not_blamed_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def break_once(_runs: RunSet) -> Any:
        calls.append(1)
        raise ZeroDivisionError

    run = _run(tmp_path)
    first = RunSet.by_test
    monkeypatch.setattr(RunSet, "by_test", lambda runs: first(runs) if calls else break_once(runs))
    with pytest.raises(ZeroDivisionError):
        report.main([str(run)])


def test_facts_that_json_cannot_hold_do_not_cost_a_measurement() -> None:
    environment = made_up_record().environment.model_copy(
        update={
            "dut": {
                "name": "\ud800x\udcff",
                "rate": float("inf"),
                "count": 10**5000,
                "where": Path("/x"),
                "deep": json.loads("[" * 100 + "]" * 100),
            }
        }
    )
    text = made_up_record(environment=environment).to_json()
    facts = from_json(text, "x.json").environment.dut
    assert (facts["name"], facts["rate"], facts["where"]) == ("\\ud800x\\xff", None, "/x")
    assert facts["count"].startswith("0x")
    text.encode()


def test_the_same_test_twice_in_a_run_and_a_key_twice_in_a_record_are_no_matter(tmp_path: Path) -> None:
    run = _run(tmp_path)
    write(made_up_record(), run)
    text = made_up_record(test="Twice").to_json()
    (run / "records" / "twice.json").write_text(text.replace("{", '{"test": "Other", ', 1))
    assert "1 of 3 SLAs" in _page_of(run)


def test_a_record_of_the_first_year_and_one_of_the_last_are_shown(tmp_path: Path) -> None:
    for number, moment in enumerate(("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")):
        document = json.loads(made_up_record().to_json()) | {"started": moment, "ended": moment}
        (tmp_path / "records").mkdir(exist_ok=True)
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document))
    assert "9999-12-31" in _page_of(tmp_path)


def test_numbers_at_the_ends_of_what_is_allowed_are_shown(tmp_path: Path) -> None:
    for number, value in enumerate((5e-324, 1e-30, 1e18)):
        document = json.loads(made_up_record(test=f"Test {number}").to_json())
        document["measured"] |= {"rate": value, "pps": value, "bps": value, "active_connections": value}
        document |= {"capacities": [value], "upper_bound": value, "margin_pct": value, "ceiling": value}
        for made in document["trials"]:
            made["trial"] |= {"load": value, "duration_s": max(value, 1e-6), "wall_s": value}
        (tmp_path / "records").mkdir(exist_ok=True)
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document))
    assert "All 3 SLAs" in _page_of(tmp_path)


def test_a_text_of_a_megabyte_is_refused_with_a_short_sentence() -> None:
    with pytest.raises(RecordError) as error:
        from_json(_document("verdict", "x" * 1_000_000), "x.json")
    assert len(str(error.value)) < 300

"""Whatever lies among the records of a run: it is named, skipped and counted, and ends nothing."""

import html
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
from ctbench.results.store import write
from ctbench.run.exit_status import read_verdicts
from ctbench.sla.calibration import Stock, sla_file
from ctbench.sla.reference import read_reference

from .odd_records import CONTENTS
from .simulated import made_up_record

pytestmark = pytest.mark.unit


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
    assert said in html.unescape(listed[1])
    assert "odd.json" in (run / "junit.xml").read_text() and "odd.json" in (run / "report.md").read_text()


@pytest.mark.parametrize("name", CONTENTS)
def test_it_ends_neither_a_comparison_nor_a_calibration_nor_a_reference_nor_a_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    (run / "records" / "odd.json").write_bytes(CONTENTS[name][0])
    side = read_runs(str(run))
    assert compare(side, side).base.records == 2 and len(side.broken) == 1
    assert "scatter" in sla_file("x", calibrate.records_of([run]), 0.25, Stock("none", {}, {}))
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
        for figure in document["figures"].values():
            figure |= {"value": value, "low": value, "high": value, "samples": [value, value]}
        document |= {"margin_pct": value}
        document["evidence"] |= {"upper_bound": value, "ceiling": value}
        for made in document["evidence"]["trials"]:
            made["trial"] |= {"load": value, "duration_s": max(value, 1e-6), "wall_s": value}
        (tmp_path / "records").mkdir(exist_ok=True)
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document))
    assert "All 3 SLAs" in _page_of(tmp_path)

"""Whatever lies among the records of a run: it is named, skipped and counted, and ends nothing."""

import html
import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ctbench.cli import calibrate, report
from ctbench.compare.judge import compare
from ctbench.compare.sides import read_runs
from ctbench.results.store import write
from ctbench.run.exit_status import read_verdicts
from ctbench.sla.calibration import Stock, sla_file
from ctbench.sla.reference import read_reference

from .records import CONTENTS
from .simulated import made_up_record


def _run(folder: Path) -> Path:
    """A run of two good records."""
    write(made_up_record(), folder)
    write(made_up_record(test="Another", verdict="missed"), folder)
    return folder


def _page_of(run: Path) -> str:
    assert report.main([str(run)]) == 0
    return (run / "report.html").read_text()


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
    assert "odd-000.json" in (littered / "junit.xml").read_text() and "odd-" in (littered / "report.md").read_text()


def test_they_end_neither_a_comparison_nor_a_calibration_nor_a_reference_nor_a_run(
    littered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = littered
    side = read_runs(str(run))
    assert compare(side, side).base.records == 2 and len(side.broken) == len(CONTENTS)
    assert "scatter" in sla_file("x", calibrate.records_of([run]), 0.25, Stock("none", {}, {}))
    said = capsys.readouterr().err
    assert all(f"odd-{number:03}.json" in said for number in range(len(CONTENTS)))
    assert len(read_reference(str(run)).rates) == 1
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

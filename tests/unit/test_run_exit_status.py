"""The exit status of `./run sla` follows from the records and Robot Framework's return code."""

from pathlib import Path

import pytest

from ctbench.base.errors import ExitStatus
from ctbench.results.store import write
from ctbench.run.exit_status import (
    MISTAKES_FILE,
    Verdicts,
    exit_status,
    note_mistake,
    read_verdicts,
    record_files,
    sentence,
)

from .simulated import made_up_record


def leave(folder: Path, *verdicts: str) -> None:
    for verdict in verdicts:
        write(made_up_record(verdict=verdict), folder)


@pytest.mark.parametrize(
    ("robot_rc", "verdicts", "expected"),
    [
        (0, Verdicts(met=3), ExitStatus.MET),
        (1, Verdicts(met=3, missed=1), ExitStatus.MISSED),
        (2, Verdicts(met=3, missed=1, not_measured=1), ExitStatus.MISSED),
        (0, Verdicts(missed=1), ExitStatus.MISSED),
        (1, Verdicts(met=3, not_measured=1), ExitStatus.NOT_MEASURED),
        (0, Verdicts(met=3, broken=("a.json: empty",)), ExitStatus.NOT_MEASURED),
        (1, Verdicts(met=3), ExitStatus.TESTBED),
        (4, Verdicts(), ExitStatus.TESTBED),
        (255, Verdicts(met=3), ExitStatus.TESTBED),
        (0, Verdicts(), ExitStatus.NOTHING_MEASURED),
        (252, Verdicts(), ExitStatus.CONFIGURATION),
        (253, Verdicts(met=1), ExitStatus.INTERRUPTED),
        (251, Verdicts(), ExitStatus.MET),
    ],
)
def test_the_worst_news_decides(robot_rc: int, verdicts: Verdicts, expected: ExitStatus) -> None:
    assert exit_status(robot_rc, verdicts) is expected


@pytest.mark.parametrize(("robot_rc", "expected"), [(0, 0), (1, 4), (252, 4)])
def test_a_dry_run_needs_no_records(robot_rc: int, expected: int) -> None:
    assert exit_status(robot_rc, Verdicts(), dry_run=True) == expected


def test_a_mistake_in_a_file_explains_a_test_without_a_record_and_hides_no_verdict() -> None:
    assert exit_status(1, Verdicts(), mistakes=True) is ExitStatus.CONFIGURATION
    assert exit_status(1, Verdicts(met=3), mistakes=True) is ExitStatus.CONFIGURATION
    assert exit_status(2, Verdicts(missed=1), mistakes=True) is ExitStatus.MISSED
    assert exit_status(2, Verdicts(not_measured=1), mistakes=True) is ExitStatus.NOT_MEASURED


def test_mistakes_are_noted_one_after_the_other_and_never_raise(tmp_path: Path) -> None:
    note_mistake(tmp_path, "a.yaml: x: is missing.")
    note_mistake(tmp_path, "b.yaml: y: is missing.")
    assert (tmp_path / MISTAKES_FILE).read_text() == "a.yaml: x: is missing.\nb.yaml: y: is missing.\n"
    note_mistake(tmp_path / "nowhere", "lost")


def test_verdicts_are_counted(tmp_path: Path) -> None:
    leave(tmp_path, "met", "met", "missed", "not measured")
    assert read_verdicts(tmp_path) == Verdicts(met=2, missed=1, not_measured=1)
    assert read_verdicts(tmp_path / "nowhere") == Verdicts()


def test_records_of_an_older_run_in_the_same_folder_do_not_count(tmp_path: Path) -> None:
    leave(tmp_path, "missed")
    before = record_files(tmp_path)
    leave(tmp_path, "met")
    assert read_verdicts(tmp_path, before) == Verdicts(met=1)


@pytest.mark.parametrize("status", ExitStatus)
def test_every_status_has_a_sentence(status: ExitStatus) -> None:
    assert sentence(status, Verdicts(met=1)).endswith(".")

"""The folder of records: whole files only, none written over another, broken ones named."""

import os
from pathlib import Path

import pytest
from whole_records import read_all

from ctbench.base.errors import CtbenchError
from ctbench.results.store import read_stored, slug, write

from .records import record


def files(output: Path) -> list[str]:
    return sorted(path.name for path in (output / "records").iterdir())


def test_a_record_is_written_under_its_suite_and_test_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = write(record(), tmp_path)
    assert path == tmp_path / "records/ovs-dpdk-with-conntrack.1-cpu-1-queue-short-lived-connections.json"
    assert files(tmp_path) == [path.name]
    assert read_stored(tmp_path / "none") == ([], []), "a run without records"
    assert path.stat().st_mode & 0o777 == 0o644
    assert read_all(tmp_path) == ([record()], [])


def test_a_second_record_of_the_same_test_gets_a_suffix(tmp_path: Path) -> None:
    years = {"a": 2026, "b": 2024, "c": 2025}
    paths = [write(record(run_id=run, started=f"{year}-01-01T00:00:00Z"), tmp_path) for run, year in years.items()]
    assert [path.stem.removeprefix(paths[0].stem) for path in paths] == ["", "-2", "-3"]
    assert [each.run_id for each in read_all(tmp_path)[0]] == ["b", "c", "a"], "the oldest first"


def test_rows_of_the_same_name_in_two_suites_do_not_meet(tmp_path: Path) -> None:
    write(record(suite="With Conntrack"), tmp_path)
    write(record(suite="With NAT"), tmp_path)
    assert [name.split(".")[0] for name in files(tmp_path)] == ["with-conntrack", "with-nat"]


def test_names_become_file_names_whatever_they_hold() -> None:
    assert slug("", "Ünïcode / ../etc: 100 %") == "n-code-etc-100"
    assert slug("", "///") == "unnamed"
    assert len(slug("s" * 500, "t" * 500)) <= 201


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


def test_what_differs_is_not_taken_for_the_same(tmp_path: Path) -> None:
    facts = record().environment.model_dump()
    for version in ("3.1.0", "3.2.0"):
        write(record(run_id=version, environment=facts | {"dut": facts["dut"] | {"version": version}}), tmp_path)
    assert [each.record.environment.dut.version for each in read_stored(tmp_path)[0]] == ["3.1.0", "3.2.0"]

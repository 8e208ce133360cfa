"""The runs that a report is made from: their records, and the files that could not be read."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from ctbench.base.errors import ConfigError
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.results.store import SUFFIX, Broken, Stored, WithoutRecord, read_stored

#: Where pabot keeps the output folders of its processes, below its own.
PABOT_RESULTS = "pabot_results"

Identity = tuple[str, ...]


@dataclass(frozen=True)
class RunSet:
    """All records and tests found in the folders of the runs."""

    #: The folders as they were asked for, those of pabot's processes in their places.
    folders: tuple[Path, ...]
    #: Oldest first.
    stored: tuple[Stored, ...]
    broken: tuple[Broken, ...]
    #: Tests that were skipped or failed before they measured anything, and that neither their run nor a later one
    #: measured.
    without_record: tuple[WithoutRecord, ...]

    @cached_property
    def newest(self) -> tuple[Stored, ...]:
        """The record that counts for each test: the newest one. In the order of `by_test`."""
        return tuple(each[-1] for each in self.by_test.values())

    @cached_property
    def by_test(self) -> dict[Identity, list[Stored]]:
        """All records of each test, oldest first. Tests are in the order in which they ran; those of a pool in the
        order in which one testbed would have run them."""
        tests: dict[Identity, list[Stored]] = {}
        for each in self.stored:
            tests.setdefault(identity(each.record), []).append(each)

        def turn(test: tuple[Identity, list[Stored]]) -> tuple[int, datetime]:
            newest = test[1][-1].record
            return newest.pool.suite if newest.pool else 0, newest.started

        return dict(sorted(tests.items(), key=turn))


def named(record: Record) -> dict[str, str]:
    """Return the columns that identify the test of a record, the same in all runs."""
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "campaign": record.campaign.name,
        "testbed": record.environment.testbed.name,
    }


def identity(record: Record) -> Identity:
    """Return what makes two records of one test: what it is `named`, and the metric."""
    return *named(record).values(), record.metric


def read_runs(folders: Sequence[Path]) -> RunSet:
    """Read runs, each with the runs of pabot's processes below it. Raise `ConfigError` for a folder that holds none."""
    run_of = {place: folder for folder in folders for place in _places(folder)}
    stored, broken = read_stored(*run_of)
    noted: list[tuple[Path, WithoutRecord]] = []
    for place, run in run_of.items():
        tests, unreadable = store.read_without_record(place)
        broken += unreadable
        noted += [(run, test) for test in tests]
    measured: dict[tuple[str, str], list[tuple[Path, datetime]]] = {}
    for each in stored:
        name = each.record.suite, each.record.test
        measured.setdefault(name, []).append((run_of[each.path.parent.parent], each.record.started))
    left: dict[tuple[str, str], WithoutRecord] = {}
    for run, test in sorted(noted, key=lambda each: _outlives(each[1])):
        name = test.suite, test.test
        if not any(its == run or started > _outlives(test) for its, started in measured.get(name, ())):
            left[name] = test
    # A folder that is given twice, by `latest` or as a copy, is one run.
    once = {(identity(each.record), each.record.run_id, each.record.started): each for each in stored}
    return RunSet(
        folders=tuple(run_of), stored=tuple(once.values()), broken=tuple(broken), without_record=tuple(left.values())
    )


def _outlives(test: WithoutRecord) -> datetime:
    """Return the moment up to which records of other runs are older than what is noted of a test. A test that was left
    out has none: whichever run measured it tells more."""
    ended = test.outcome in ("failed", "not begun")
    return test.noted if ended and test.noted else datetime.min.replace(tzinfo=UTC)


def _places(folder: Path) -> list[Path]:
    """Return the folders with records in and below a run's folder. Raise `ConfigError` where there are none."""
    below = sorted((folder / PABOT_RESULTS).glob("*"))
    known = ("records", store.WITHOUT_RECORD_FILE)
    found = [place for place in [folder, *below] if any(os.path.lexists(place / name) for name in known)]
    if not found:
        raise ConfigError(
            f"{folder}: holds no run.\n  Expected a folder that ./run sla wrote, with records/ in it, "
            "for example results/latest."
        )
    return found


def href(path: Path, output: Path) -> str:
    """Return the relative link from the page to a file, percent-encoded, so that no character of a name acts in the
    URL."""
    return quote(os.fsencode(relative(path, output)))


def relative(path: Path, output: Path) -> str:
    """Return the path of a file, or of a run's folder, from another folder. Symbolic links are resolved, except a
    record."""
    if path.suffix == SUFFIX:
        return os.path.normpath(f"{relative(path.parent, output)}/{path.name}")
    return os.path.relpath(os.path.realpath(path), os.path.realpath(output))

"""How far a run got: which of its tests have a record."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.results.record import Record
from ctbench.results.store import Stored, read_stored
from ctbench.traffic.profiles import load_profile

#: Suite and test, by their full names.
TestKey = tuple[str, str]


def own_records(output: Path, earlier: Iterable[str]) -> list[Stored]:
    """The records of a run, oldest first. `earlier`: names of the files of another run in this folder."""
    others = set(earlier)
    return [each for each in read_stored(output)[0] if each.path.name not in others]


def put_aside(output: Path, earlier: Iterable[str]) -> list[str]:
    """Rename the files of a run that are no records, so that their tests are measured again and nothing counts them;
    returns a sentence for each."""
    others, said = set(earlier), []
    for each in read_stored(output)[1]:
        if each.path.name not in others:
            aside = _free(each.path.with_name(f"{each.path.name}.broken"))
            each.path.rename(aside)
            said.append(f"{each.reason}\n  It is now called {aside.name}, and its test is measured again.")
    for part in (output / "records").glob("*.tmp"):  # of a record that was being written
        part.unlink()
    return said


def _free(path: Path) -> Path:
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{path.name.rpartition('.broken')[0]}.broken-{number}")
    return path


def key(record: Record) -> TestKey:
    """The test of a record."""
    return record.suite, record.test


def require_same_profiles(records: Sequence[Record]) -> None:
    """Raise `ConfigError` where a profile says something else than when it was offered."""
    offered = {record.profile.name: record for record in records}
    for name, record in offered.items():
        try:
            now = load_profile(name)
        except ConfigError:  # it has a path, which the record does not know
            continue
        if now.model_dump(mode="json") != record.profile.model_dump(mode="json"):
            raise ConfigError(
                f"Profile {name} is not the same as when {record.test} was measured with it.\n  Expected the file of "
                "that time, or a new run."
            )


def left(selected: Sequence[TestKey], records: Sequence[Record]) -> list[TestKey]:
    """The tests without a record, in the order of the run. Of several with one name as many as have none."""
    measured = Counter(map(key, records))
    found = []
    for test in selected:
        if measured[test]:
            measured[test] -= 1
        else:
            found.append(test)
    return found


def below(suite: str, uppermost: str) -> str:
    """A suite's full name without that of the uppermost suite, which `--name` changes."""
    return suite[len(uppermost) :].lstrip(".")


def write_list(tests: Iterable[TestKey], uppermost: str, path: Path) -> None:
    """Write tests down for another process, each by its suite below the `uppermost` one, and its name."""
    path.write_text(json.dumps([(below(suite, uppermost), test) for suite, test in tests]) + "\n", encoding="utf-8")


def read_list(path: Path) -> list[TestKey]:
    """What `write_list` wrote."""
    return [(suite, test) for suite, test in json.loads(path.read_text(encoding="utf-8"))]

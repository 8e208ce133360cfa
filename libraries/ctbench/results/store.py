"""The folder of a run: records, tests without a record, and captures of DUTs that failed. A record is written whole or
not at all.

The keyword library notes tests that left no record (skipped, or failed before they measured anything) as they end, so
that the report, which reads no output.xml, can count them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import to_json

from ctbench.base.errors import OutputError
from ctbench.base.files import UnreadableFile, read_regular, write_whole
from ctbench.base.quantities import MOST_RECORD_BYTES
from ctbench.base.text import printable
from ctbench.results.evidence import conntrack_of, of_port_pairs, thrown_away
from ctbench.results.record import Record, RecordError, from_json
from ctbench.results.record_model import RecordModel, first_mistake

SUFFIX = ".json"
#: Parts of a record that runs have in common, besides their environment.
_IN_COMMON = ("tool_version", "run_id", "suite", "test", "topology", "profile", "campaign", "floor", "tags", "pool",
              "notes")  # fmt: skip
#: Facts of a DUT without a name of their own by which pages, comparisons and histories of runs tell builds apart.
_TELL_APART = {"packages", "qemu", "seeds", "vswitchd"}
#: What `write` raised in this process. Robot Framework does not hand on why a test failed.
unwritten: list[str] = []


@dataclass(frozen=True)
class Broken:
    """A file or a folder of a run that cannot be read."""

    path: Path
    #: One sentence that names the file.
    reason: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A record without its trials, and its file."""

    path: Path
    #: Without its trials, which are nearly all of it and which few readers need: `read_whole` has them.
    record: Record
    #: Shortest and longest sustain phase of its trials, seconds; None without trials.
    sustain_s: tuple[float, float] | None = None
    #: How many trials it has, and how many of them were invalid and thrown away.
    trials: int = 0
    thrown_away: int = 0
    #: What conntrack(8) tells of them, where it is not zero.
    conntrack: Mapping[str, int] = field(default_factory=dict)
    #: What each of several pairs of ports did.
    port_pairs: tuple[str, ...] = ()


def write(record: Record, output: Path) -> Path:
    """Write a record to `<output>/records/<suite>.<test>.json` and return that path.

    The file appears only when it is complete and on the disk, so a run that is killed keeps the records it had.
    A second record of the same test gets the suffix `-2` and so on.
    Raises `OutputError` when the folder cannot be written.
    """
    folder, name = output / "records", slug(record.suite, record.test)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = next(path for path in _numbered(folder, name, SUFFIX) if not os.path.lexists(path))
        write_whole(path, record.to_json())
    return path


def rewrite(record: Record, path: Path) -> None:
    """Replace a record's file by a record that says more. Raises `OutputError` when it cannot be written."""
    with _writing(path.parent):
        write_whole(path, record.to_json())


def set_aside(earlier: Iterable[Stored]) -> None:
    """Let the records of a test that is measured again step aside, as `NAME.earlier`, `NAME-2.earlier` and so on: no
    reader takes them for records. Raises `OutputError` where they cannot."""
    for stored in earlier:
        with _writing(stored.path.parent):
            names = _numbered(stored.path.parent, stored.path.stem, ".earlier")
            stored.path.rename(next(path for path in names if not os.path.lexists(path)))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        unwritten.append(
            f"{folder}: a record could not be written: {error.strerror}.\n  Expected a folder that you may write "
            "to, on a disk with space left."
        )
        raise OutputError(unwritten[-1]) from None


def read_stored(*outputs: Path) -> tuple[list[Stored], list[Broken]]:
    """Read the records of one or more runs, oldest first, each with its file. Trials are dropped, so that a year of
    records fits into memory. Files that are not records are named in the second list, not fatal."""
    found: list[Stored] = []
    broken: list[Broken] = []
    held: dict[tuple[type, str | bytes], Any] = {}
    for path in (path for output in outputs for path in _listed(output / "records", broken)):
        try:
            found.append(_slim(path, read_whole(path), held))
        except FileNotFoundError:  # it went since it was listed
            continue
        except RecordError as error:
            broken.append(Broken(path, str(error)))
    return sorted(found, key=lambda each: each.record.started), broken


def _slim(path: Path, record: Record, held: dict[tuple[type, str | bytes], Any]) -> Stored:
    """Strip a record of its trials, series and rounds, and of the DUT's facts that neither have a name nor tell builds
    apart. The record itself is changed: nothing else refers to it. Parts that many records share are kept once, in
    `held`."""

    def once(part: Any) -> Any:
        key = part if isinstance(part, str) else to_json(part, inf_nan_mode="constants") if part else b""
        return held.setdefault((type(part), key), part)

    evidence, around, trials = record.evidence, record.environment, record.evidence.trials
    _ = record.held_s  # it is cached, and known of the trials alone
    vars(evidence).update(trials=[], series=[])
    for pair in evidence.pairs:
        vars(pair).update(ratios=[])
    others = around.dut.model_extra or {}
    for name in others.keys() - _TELL_APART:
        del others[name]
    for each in (record, evidence):
        each.model_fields_set.clear()  # a third of what is left
    vars(record).update((name, once(getattr(record, name))) for name in _IN_COMMON)
    vars(around).update((name, once(part)) for name, part in around)
    lengths = [made.trial.duration_s for made in trials]
    sustain_s = (min(lengths), max(lengths)) if lengths else None
    said = conntrack_of(trials), of_port_pairs(trials)
    return Stored(path, record, sustain_s, len(trials), thrown_away(trials), *said)


def _listed(folder: Path, broken: list[Broken]) -> list[Path]:
    """Return the files with the name of a record, in the order of their names. A folder that cannot be listed is added
    to `broken`."""
    try:
        return sorted((path for path in folder.iterdir() if path.suffix == SUFFIX), key=lambda path: path.stem)
    except FileNotFoundError:
        return []
    except OSError as error:
        broken.append(Broken(folder, f"{printable(str(folder))}: cannot be listed ({error.strerror})."))
        return []


def read_whole(path: Path) -> Record:
    """Read one record with its trials. Raises `RecordError`, which names the file and the mistake, and
    `FileNotFoundError` where the file is missing."""
    try:
        content = read_regular(path, MOST_RECORD_BYTES)
    except UnreadableFile as error:
        raise RecordError(f"{printable(str(path))}: {error}.\n  Expected the JSON file of a record.") from None
    return from_json(content, str(path))


def of_other_runs(suite: str, test: str, output: Path) -> Iterator[Record]:
    """Yield the records whose file name begins as a test's does, from the run folders next to `output`, this run's own
    included. Files that are not records are skipped."""
    for path in output.absolute().parent.glob(f"*/records/{slug(suite, test)}*{SUFFIX}"):
        with suppress(FileNotFoundError, RecordError):
            yield read_whole(path)


def slug(suite: str, test: str) -> str:
    """Return the file name of a record without its ending: suite and test, because suites have rows of the same
    name."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:100] for part in (suite, test))
    return ".".join(part for part in parts if part) or "unnamed"


def _numbered(folder: Path, name: str, ending: str = "") -> Iterator[Path]:
    """Yield the paths `name`, `name-2` and so on."""
    yield folder / f"{name}{ending}"
    yield from (folder / f"{name}-{number}{ending}" for number in count(2))


#: In the output folder of a run, next to `records/`.
WITHOUT_RECORD_FILE = "without-record.json"


#: `nightly only`: the testbed has what the test needs, and the campaign no time for it; `skipped`: it lacks
#: something; `no floor yet`: too few machines have measured it; `not begun`: the run was stopped before.
Ending = Literal["failed", "not begun", "skipped", "nightly only", "no floor yet"]


class WithoutRecord(RecordModel):
    """A test that ended without a record."""

    suite: str
    test: str
    outcome: Ending
    #: Why, as Robot Framework shows it.
    reason: str
    #: When that was written; None in files of versions that did not keep it.
    noted: datetime | None = None


class _Document(RecordModel):
    schema_version: Literal[1] = 1
    tests: list[WithoutRecord]


def note_without_record(tests: Sequence[WithoutRecord], output: Path) -> None:
    """Write all tests of a run that left no record so far. A folder that cannot be written is ignored: Robot
    Framework's log has each of them."""
    now = datetime.now(UTC)
    noted = [test.model_copy(update={"noted": test.noted or now}) for test in tests]
    text = _Document(tests=noted).model_dump_json(indent=1) + "\n"
    with suppress(OSError):
        write_whole(output / WITHOUT_RECORD_FILE, text)


def read_without_record(output: Path) -> tuple[list[WithoutRecord], list[Broken]]:
    """Read the tests of a run without a record; none where nothing was noted. A broken file is named in the second
    list."""
    path = output / WITHOUT_RECORD_FILE
    try:
        return _Document.model_validate_json(read_regular(path, MOST_RECORD_BYTES), strict=True).tests, []
    except FileNotFoundError:
        return [], []
    except UnreadableFile as error:
        reason = f"{path}: {error}."
    except ValidationError as errors:
        reason = f"{path}: {first_mistake(errors)}.\n  Expected a list of tests without a record."
    return [], [Broken(path, printable(reason))]


#: Next to `records/`.
CAPTURES = "captures"


def write_capture(texts: Mapping[str, str], output: Path, name: str) -> str:
    """Write each text to `captures/<name>/<its name>.txt` below `output`; a second failure of the same test gets the
    suffix `-2` and so on. Returns the folder, relative to `output`. Raises `OutputError` where it cannot be written."""
    try:
        for folder in _numbered(output / CAPTURES, name):
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                break
        for each, text in texts.items():
            (folder / f"{each}.txt").write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{output / CAPTURES}: what the DUT said of its failure could not be written: {error.strerror}."
        ) from None
    return str(folder.relative_to(output))

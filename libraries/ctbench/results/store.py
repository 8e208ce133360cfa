"""The folder of a run's records: written whole or not at all, never over one another."""

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ctbench.base.bounds import MOST_RECORD_BYTES
from ctbench.base.errors import OutputError
from ctbench.base.in_two import in_two
from ctbench.base.plain_text import printable
from ctbench.base.regular_file import UnreadableFile, read_regular
from ctbench.results.environment import Reading
from ctbench.results.light import Shared, no_collection
from ctbench.results.record import Record, RecordError, from_json

SUFFIX = ".json"
#: What `write` raised in this process. Robot Framework does not hand on why a test failed.
unwritten: list[str] = []


@dataclass(frozen=True)
class Broken:
    """A file among the records that is none."""

    path: Path
    #: One sentence that names the file.
    reason: str


@dataclass(frozen=True)
class Stored:
    """A record and the file that it stands in."""

    path: Path
    #: Without its trials, which are nearly all of it and which few readers need: `read_whole` has them.
    record: Record
    #: Shortest and longest sustain phase of its trials, seconds; None without trials.
    sustain_s: tuple[float, float] | None = None
    #: How many trials it has, and how many of them were invalid and thrown away.
    trials: int = 0
    thrown_away: int = 0


def write(record: Record, output: Path) -> Path:
    """Write a record to `<output>/records/<suite>.<test>.json` and return that path.

    The file appears only when it is complete and on the disk, so a run that is killed keeps the records it had.
    A second record of the same test gets the suffix `-2` and so on.
    Raises `OutputError` when the folder cannot be written.
    """
    text = record.to_json()
    folder = output / "records"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".tmp", delete=False) as file:
            part = Path(file.name)
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                part.chmod(0o644)  # tempfile makes it private; reports are read by others
                path = _place(part, folder, slug(record.suite, record.test))
            finally:
                part.unlink(missing_ok=True)
        _sync_folder(folder)
    except OSError as error:
        unwritten.append(
            f"{folder}: a record could not be written: {error.strerror}.\n  Expected a folder that you may write "
            "to, on a disk with space left."
        )
        raise OutputError(unwritten[-1]) from None
    return path


def read_all(output: Path) -> tuple[list[Record], list[Broken]]:
    """Read the records of a run, oldest first; files that are no records are named, not fatal."""
    paths, broken = _listed(output / "records")
    reading = Reading()
    found = [each for path in paths for each in _read(path, reading)]
    records = [each for each in found if isinstance(each, Record)]
    broken += [each for each in found if isinstance(each, Broken)]
    return sorted(records, key=lambda record: record.started), broken


def read_stored(*outputs: Path) -> tuple[list[Stored], list[Broken]]:
    """The records of one or more runs, each with its file and without its trials: there is room for a year of them.
    Oldest first."""
    listed = [_listed(output / "records") for output in outputs]
    broken = [each for _, unlisted in listed for each in unlisted]
    found = in_two(_stored, [path for paths, _ in listed for path in paths])
    stored = [each for each in found if isinstance(each, Stored)]
    broken += [each for each in found if isinstance(each, Broken)]
    return sorted(stored, key=lambda each: each.record.started), broken


def _stored(paths: Sequence[Path]) -> list[Stored | Broken]:
    shared = Shared()
    with no_collection():
        return [_light(path, each, shared) for path in paths for each in _read(path, shared)]


def _light(path: Path, each: Record | Broken, shared: Shared) -> Stored | Broken:
    if isinstance(each, Broken):
        return each
    trials = each.evidence.trials
    lengths = [made.trial.duration_s for made in trials]
    thrown_away = sum(made.state == "invalid" for made in trials)
    sustain_s = (min(lengths), max(lengths)) if lengths else None
    return Stored(path, shared.light(each), sustain_s, len(trials), thrown_away)


def _read(path: Path, reading: Reading) -> list[Record | Broken]:
    """What is in a file; nothing where it went since it was listed."""
    try:
        return [read_whole(path, reading)]
    except FileNotFoundError:
        return [Broken(path, f"{printable(str(path))}: is a link that leads nowhere.")] if path.is_symlink() else []
    except RecordError as error:
        return [Broken(path, str(error))]


def _listed(folder: Path) -> tuple[list[Path], list[Broken]]:
    """What is named like a record, in the order of the names. A folder that cannot be listed is named as broken."""
    try:
        listed = os.listdir(folder)  # noqa: PTH208  a year of names, of which none has to be a path
        names = sorted((name for name in listed if name.endswith(SUFFIX)), key=lambda name: name[:-5])
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [Broken(folder, f"{printable(str(folder))}: cannot be listed ({error.strerror}).")]
    return [folder / name for name in names], []


def read_whole(path: Path, reading: Reading | None = None) -> Record:
    """Read one record with its trials. `RecordError` names the file and what is wrong with it; `FileNotFoundError`
    where there is none."""
    try:
        content = read_regular(path, MOST_RECORD_BYTES)
    except UnreadableFile as error:
        raise RecordError(f"{printable(str(path))}: {error}.\n  Expected the JSON file of a record.") from None
    return from_json(content, str(path), reading)


def slug(suite: str, test: str) -> str:
    """File name of a record without its ending: suite and test, because suites have rows of the same name."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:100] for part in (suite, test))
    return ".".join(part for part in parts if part) or "unnamed"


def _place(part: Path, folder: Path, name: str) -> Path:
    """Give the finished file its name. A hard link never replaces a file, not even one of another process."""
    for number in count(1):
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            os.link(part, path)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            if path.exists():
                continue
            part.rename(path)
        return path
    raise AssertionError("not reached: count has no end")


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

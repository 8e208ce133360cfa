"""The folder of a run's records: written whole or not at all, never over one another."""

import os
import re
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ctbench.errors import OutputError
from ctbench.results.record import Record, RecordError, from_json

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
    record: Record


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
                path = _place(part, folder, slug(record))
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
    stored, broken = read_stored(output)
    return [each.record for each in stored], broken


def read_stored(output: Path) -> tuple[list[Stored], list[Broken]]:
    """Like `read_all`, each record with its file."""
    stored: list[Stored] = []
    broken: list[Broken] = []
    for path in sorted((output / "records").glob("*.json"), key=lambda path: path.stem):
        try:
            stored.append(Stored(path, from_json(path.read_text(encoding="utf-8"), str(path))))
        except RecordError as error:
            broken.append(Broken(path, str(error)))
        except (OSError, UnicodeDecodeError) as error:
            broken.append(Broken(path, f"{path}: cannot be read ({error})."))
    return sorted(stored, key=lambda each: each.record.started), broken


def slug(record: Record) -> str:
    """File name of a record without its ending: suite and test, because suites have rows of the same name."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:100] for part in (record.suite, record.test))
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

"""The tests of a run that left no record, because they were skipped or failed before they measured anything.

The keyword library notes them as they end, so that the report, which reads no output.xml, can count them.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ctbench.base.bounds import MOST_RECORD_BYTES
from ctbench.base.plain_text import printable
from ctbench.base.regular_file import UnreadableFile, read_regular
from ctbench.results.part import Part
from ctbench.results.store import Broken

#: In the output folder of a run, next to `records/`.
WITHOUT_RECORD_FILE = "without-record.json"


#: `left for the night`: the testbed has what the test needs, and the campaign no time for it; `skipped`: it lacks
#: something.
Outcome = Literal["failed", "skipped", "left for the night"]


class WithoutRecord(Part):
    """A test that ended without a record."""

    suite: str
    test: str
    outcome: Outcome
    #: Why, as Robot Framework shows it.
    reason: str


class _Document(Part):
    schema_version: Literal[1] = 1
    tests: list[WithoutRecord]


def note(tests: Sequence[WithoutRecord], output: Path) -> None:
    """Write all tests of a run that left no record so far. A folder that cannot be written is no reason to fail once
    more: Robot Framework's log has each of them."""
    text = _Document(tests=list(tests)).model_dump_json(indent=1) + "\n"
    part = output / f".{WITHOUT_RECORD_FILE}-{os.getpid()}"
    with suppress(OSError):
        part.write_text(text, encoding="utf-8")
        part.replace(output / WITHOUT_RECORD_FILE)


def read(output: Path) -> tuple[list[WithoutRecord], list[Broken]]:
    """The tests of a run without a record; none where nothing was noted. A file that is broken is named."""
    path = output / WITHOUT_RECORD_FILE
    try:
        return _Document.model_validate_json(read_regular(path, MOST_RECORD_BYTES), strict=True).tests, []
    except FileNotFoundError:
        return [], []
    except UnreadableFile as error:
        reason = f"{path}: {error}."
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:200] or "the file"
        reason = f"{path}: {where}: {first['msg']}.\n  Expected a list of skipped tests."
    return [], [Broken(path, printable(reason))]

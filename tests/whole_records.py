"""The records of a run as they were written, with their trials."""

from pathlib import Path

from ctbench.results import store
from ctbench.results.record import Record
from ctbench.results.store import Broken


def read_all(output: Path) -> tuple[list[Record], list[Broken]]:
    """All records of a run, oldest first, and the files that are none."""
    stored, broken = store.read_stored(output)
    return [store.read_whole(each.path) for each in stored], broken

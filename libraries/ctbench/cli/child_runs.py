"""Runs of the suites that `./run compare` and `./run calibrate` make: each in a process and a folder of its own, and
none of them twice where the command goes on after it was stopped."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctbench.base.paths import PROGRAM
from ctbench.hosts.local import run_child

#: In the folder of a run that has ended: the exit status of ./run sla.
STATUS_FILE = "exit-status"


@dataclass(frozen=True)
class ChildRun:
    """One run of the suites."""

    folder: Path

    @property
    def done(self) -> bool:
        return (self.folder / STATUS_FILE).exists()

    def make(self, arguments: Sequence[str]) -> int:
        """Run the suites and return what ./run sla ended with. What a run that was broken off left is set aside: it
        does not count."""
        if self.folder.exists():
            aside = len(list(self.folder.parent.glob(f"{self.folder.name}-broken-off*"))) + 1
            self.folder.rename(self.folder.with_name(f"{self.folder.name}-broken-off-{aside}"))
        self.folder.mkdir(parents=True)
        return run_child([*PROGRAM, "sla", "--outputdir", str(self.folder), *arguments])

    def mark_done(self, status: int) -> None:
        """From now on this run counts, and is not made again."""
        (self.folder / STATUS_FILE).write_text(f"{status}\n", encoding="utf-8")


@dataclass
class Clock:
    """How long it will take, by the runs made since it was started."""

    begun: float = field(default_factory=time.monotonic)
    made: int = 0

    def left(self, to_come: int) -> str:
        """In words, for so many runs to come."""
        if not self.made:
            return "the time left is known after the first"
        seconds = (time.monotonic() - self.begun) / self.made * to_come
        return f"about {f'{seconds:.0f} s' if seconds < 90 else f'{seconds / 60:.0f} min'} left"

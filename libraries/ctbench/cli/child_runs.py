"""Runs of the suites as children of `./run sla --candidate KERNEL` and `./run calibrate`. Each has a process and a
folder of its own; a command that continues after a stop makes none twice."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.paths import PROGRAM
from ctbench.hosts.local import run_child
from ctbench.run.run_folder import claimed

#: In the folder of a run that has ended: the exit status of ./run sla.
STATUS_FILE = "exit-status"


def keep(target: Path, text: str) -> None:
    """Write a file that all runs of a command share. Raise `ConfigError` where it exists with other content."""
    if target.exists() and target.read_text(encoding="utf-8") != text:
        raise ConfigError(f"{target}: is of other options.\n  Expected another --outputdir, or the same options.")
    target.write_text(text, encoding="utf-8")


@dataclass
class ChildRuns:
    """The runs of a command, with an estimate of the time left by those made since it was started."""

    #: What ./run sla may end with so that a run counts.
    good: Collection[int]
    begun: float = field(default_factory=time.monotonic)
    made: int = 0

    def make(self, folder: Path, arguments: Sequence[str], line: str, to_come: int = 0) -> int:
        """Run the suites unless that is done. First print `line` with the estimated time for the `to_come` runs left.
        Return the status of ./run sla where the run does not count, else 0. Rename the folder of a run that was broken
        off. Raise `ConfigError` where another command makes a run in the folder above."""
        with claimed(folder.parent):
            return 0 if (folder / STATUS_FILE).exists() else self._make(folder, arguments, line, to_come)

    def _make(self, folder: Path, arguments: Sequence[str], line: str, to_come: int) -> int:
        print(f"{line}; {self._left(to_come)}" if to_come else line, flush=True)
        if folder.exists():
            aside = len(list(folder.parent.glob(f"{folder.name}-broken-off*"))) + 1
            folder.rename(folder.with_name(f"{folder.name}-broken-off-{aside}"))
        folder.mkdir()
        ended = run_child([*PROGRAM, "sla", "--outputdir", str(folder), *arguments])
        if ended not in self.good:
            return ended
        (folder / STATUS_FILE).write_text(f"{ended}\n", encoding="utf-8")
        self.made += 1
        return 0

    def _left(self, to_come: int) -> str:
        if not self.made:
            return "the time left is known after the first"
        seconds = (time.monotonic() - self.begun) / self.made * to_come
        return f"about {f'{seconds:.0f} s' if seconds < 90 else f'{seconds / 60:.0f} min'} left"

"""A stand-in for ./run sla, for the unit tests of the commands that start it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

#: Runs the command: its exit status, and what it said on either stream.
Run = Callable[..., tuple[int, str, str]]


class MadeUpSla:
    """Stands in for ./run sla: notes how it was called, and leaves what a run leaves where it ends with `status` 0."""

    def __init__(self, status: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.status = status

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls.append(list(argv[2:]))
        variables = dict(each.split(":", 1) for each in argv if each.startswith(("TESTBED:", "BASE:", "CAMPAIGN:")))
        duts = yaml.safe_load(Path(variables["TESTBED"]).read_text())["duts"]
        return self.status or self.leave(Path(argv[argv.index("--outputdir") + 1]), duts[0], variables.get("BASE", ""))

    def leave(self, folder: Path, dut: dict[str, Any], base: str) -> int:
        """Write into the folder of a run; `dut`: the first of its testbed. Returns the exit status."""
        raise NotImplementedError


#: Puts this stand-in in the place of ./run sla.
Made = Callable[[Any], Any]

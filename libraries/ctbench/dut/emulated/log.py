"""What an emulated machine says on its serial line, and whether it proves what its figures stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from ctbench.base.plain_text import one_line
from ctbench.dut.counting import Round, Workload

#: Of what the kernel says when it ends in a panic, and of anything else at the end of the line.
_LONGEST = 200
WORKLOADS: tuple[Workload, ...] = get_args(Workload)


@dataclass
class Told:
    """What was said of one workload."""

    rounds: list[Round] = field(default_factory=list)
    #: What was to be found, what was, and what that is in words.
    checks: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def doubt(self) -> str:
        """Why its figures say nothing, one sentence; empty where everything was proved."""
        if not self.rounds:
            return "no round was counted"
        for each in self.rounds:
            if each.received != each.sent:
                return f"{each.sent} were sent and {each.received} came through"
        if not self.checks:
            return "nothing was proved of the topology"
        for expected, found, what in self.checks:
            if expected != found:
                return f"{what}: {found or 'nothing'} where {expected} had to be"
        return ""


@dataclass(frozen=True)
class Log:
    """What a machine said until its end."""

    workloads: Mapping[Workload, Told]
    #: Why the machine did not come to its end, one sentence; empty where it did.
    trouble: str

    def told(self, workload: Workload) -> Told:
        """What was said of a workload; nothing of one that was not tried."""
        return self.workloads.get(workload) or Told()


def read_log(text: str) -> Log:
    """Read what was said; lines of the kernel and of tools are between."""
    found: dict[Workload, Told] = {}
    now, broken, ended, panic = Told(), "", False, ""
    for line in text.replace("\r", "").splitlines():
        word, _, rest = line.partition(" ")
        if word == "workload" and rest in WORKLOADS:
            now = found[rest] = Told()
        elif word == "round" and (counts := re.fullmatch(r"[a-z]+ (\d+) (\d+) (\d+)", rest)):
            now.rounds.append(Round(*map(int, counts.groups())))
        elif word == "check" and len(parts := rest.split(" ", 2)) == 3:
            now.checks.append((parts[0], parts[1], parts[2]))
        elif word == "broken":
            broken = broken or rest
        elif word == "done":
            ended = True
        elif "Kernel panic" in line or "Out of memory" in line:
            panic = panic or line
    trouble = broken or ("" if ended else panic or f"its last words are: {_last(text)}")
    return Log(found, one_line(trouble)[:_LONGEST])


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "none"

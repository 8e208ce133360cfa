"""What a check found: one row of the doctor's table."""

from dataclasses import dataclass
from typing import Literal

#: `unknown`: not known, or not needed here; nothing to be judged.
State = Literal["ok", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what was found, and what fixes it."""

    state: State
    #: A few words, such as `hugepages`.
    what: str
    #: What was found, and for what is bad, what was expected.
    found: str
    #: The command that fixes it, or what to do in words; what is unknown may have an advice.
    remedy: str = ""


def ok(what: str, found: str) -> Finding:
    """All is well."""
    return Finding("ok", what, found)


def bad(what: str, found: str, remedy: str) -> Finding:
    """Something has to be fixed."""
    return Finding("bad", what, found, remedy)


def unknown(what: str, found: str, advice: str = "") -> Finding:
    """Not known, or not needed; `advice` for those who want to do better."""
    return Finding("unknown", what, found, advice)

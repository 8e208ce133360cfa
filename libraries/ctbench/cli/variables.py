"""What `-v NAME:value` may name: a misspelt name would otherwise measure something else than what was meant."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.spelling import did_you_mean
from ctbench.base.units import quoted

#: What the suites of this project read (resources/testbed.resource).
KNOWN = ("TESTBED", "CAMPAIGN", "SLA", "REFERENCE", "BASE")
#: What a run sets for its own processes.
_INTERNAL = ("TESTBED_POOL",)
#: Those that cannot be empty, by their plain names.
_NEEDED = {"testbed": "TESTBED", "campaign": "CAMPAIGN", "sla": "SLA"}
#: Files in which suites that are not ours may say that they use a variable.
_SUITE_FILES = ("*.robot", "*.resource", "*.py", "*.yaml", "*.yml", "*.json", "*.tsv", "*.txt")


def check_forms(assignments: Sequence[str]) -> None:
    """Raise `ConfigError` for an assignment without a name, or of a variable of ours without a value."""
    for assignment in assignments:
        typed, _, value = assignment.partition(":")
        name = _plain(typed)
        if not name:
            raise ConfigError(f"-v {quoted(assignment)}: there is no name before the colon.\n  Expected -v NAME:value.")
        if name in _NEEDED and not value:
            raise ConfigError(f"-v {quoted(assignment)}: has no value.\n  Expected -v {_NEEDED[name]}:NAME.")


def check_names(assignments: Sequence[str], suites: Collection[Path], root: Path) -> None:
    """Raise `ConfigError` for an assignment of a variable that no suite uses.

    `suites` are the files of the tests that are to run. Where all of them are below `root` (suites/ of the checkout),
    an unknown name is refused. Suites of somebody else may have variables of their own: there a name is refused only
    where it is close to a known one and no file next to them has it.
    """
    ours = all(suite.resolve().is_relative_to(root.resolve()) for suite in suites)
    known = {_plain(name) for name in (*KNOWN, *_INTERNAL)}
    for assignment in assignments:
        typed = assignment.partition(":")[0]
        name = _plain(typed)
        if name in known:
            continue
        meant = did_you_mean(name.upper(), KNOWN)
        if ours or (meant and not _mentioned(name, suites)):
            raise ConfigError(f"-v {quoted(typed)}: no suite uses this variable.\n  Expected {_listed()}.{meant}")


def _plain(name: str) -> str:
    """A variable's name as Robot Framework compares it."""
    return name.replace("_", "").replace(" ", "").lower()


def _mentioned(name: str, suites: Iterable[Path]) -> bool:
    """Whether a file next to the suites has the name, in whatever way."""
    for folder in {suite.parent for suite in suites}:
        for pattern in _SUITE_FILES:
            for file in folder.glob(pattern):
                try:
                    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
                except OSError:
                    continue
                if name in _plain(text):
                    return True
    return False


def _listed() -> str:
    return f"one of: {', '.join(KNOWN)}"

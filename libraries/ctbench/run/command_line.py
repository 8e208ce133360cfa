"""The command line of `./run sla --resume RUN`: what the run was asked for, and what may be given with it."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.run.asked_for import AskedFor

#: Options of Robot Framework that only say what is shown and how: they may be others when a run goes on.
_SHOWS = frozenset(
    {"console", "quiet", "consolewidth", "consolecolors", "consolelinks", "consolemarkers", "loglevel", "debugfile",
     "maxerrorlines", "maxassignlength"}
)  # fmt: skip
#: Variables that name a file, whose content is compared.
_FILES = ("testbed", "campaign", "sla", "reference")
#: A variable of Robot Framework's type for secrets: `NAME: Secret:value`.
_SECRET = re.compile(r"[^:]+:\s*Secret\s*:", re.IGNORECASE)


def variable(assignment: str) -> str:
    """The name of a variable as Robot Framework compares names: case, spaces and underscores do not count."""
    return assignment.partition(":")[0].replace("_", "").replace(" ", "").lower()


def kept_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a run's folder keeps: not the folder itself, and nothing secret."""
    kept = {name: value for name, value in options.items() if name not in ("outputdir", "dryrun")}
    if "variable" in kept:
        kept["variable"] = [each for each in kept["variable"] if not _SECRET.match(each)]
    return kept


def absolute(suites: Sequence[str]) -> list[str]:
    """Suites as they are found from any folder."""
    return [os.path.abspath(suite) for suite in suites]  # noqa: PTH100 # links stay: they are names of suites


def goes_on_with(
    asked: AskedFor, folder: Path, given: Mapping[str, Any], suites: Sequence[str], testbeds: Sequence[str]
) -> list[str]:
    """The command line with which the run of a folder goes on: what was asked for, with what is `given` with it:
    `--resume` and may be another one. `ConfigError` says which option is not as it was."""
    options: dict[str, Any] = dict(asked.options)
    for name, value in given.items():
        if name == "outputdir":
            _require(Path(value).resolve() == folder, "--outputdir", folder, value)
        elif name == "dryrun":
            raise ConfigError("--dryrun: measures nothing, and --resume goes on measuring.\n  Expected one of them.")
        elif name == "variable":
            options[name] = _variables(options.get(name, []), value)
        elif name in _SHOWS:
            options[name] = value
        else:
            _require(_same(value, options.get(name)), f"--{name}", options.get(name), value)
    if suites:
        _require(set(absolute(suites)) == set(asked.suites), "The suites", asked.suites, suites)
    pool = ",".join(testbeds or asked.testbeds)
    chosen = ["--testbeds", pool] if pool else []
    return ["--outputdir", str(folder), *chosen, *_as_arguments(options), *asked.suites]


def _variables(asked: Sequence[str], given: Sequence[str]) -> list[str]:
    """The assignments of both. One that names a file may be another one: what is in the file is compared later."""
    found = list(asked)
    for each in given:
        name = variable(each)
        if name in _FILES:
            found = [kept for kept in found if variable(kept) != name] + [_absolute_file(each)]
        elif _SECRET.match(each):
            found.append(each)
        else:
            _require(each in asked, f"-v {each.partition(':')[0]}", [a for a in asked if variable(a) == name], each)
    return found


def _absolute_file(assignment: str) -> str:
    """An assignment as it is understood from any folder."""
    name, _, value = assignment.partition(":")
    exists = os.path.exists(value)  # noqa: PTH110 # pathlib's raises where a name is too long
    is_path = os.sep in value or value.endswith((".yaml", ".yml")) or (variable(assignment) == "reference" and exists)
    return f"{name}:{os.path.abspath(value)}" if is_path and exists else assignment  # noqa: PTH100


def _same(one: object, other: object) -> bool:
    return set(one) == set(other or ()) if isinstance(one, list) and isinstance(other, list | None) else one == other


def _require(same: bool, what: str, then: object, now: object) -> None:
    if not same:
        raise ConfigError(
            f"--resume: {what}: the run was asked for {_said(then)}, and now for {_said(now)}.\n"
            "  Expected --resume alone, which knows what was asked for, or the same."
        )


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options by their long names as a command line has them."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            found.append(f"--{name}" if value else f"--no{name}")
        else:
            for each in value if isinstance(value, list) else [value]:
                found += [f"--{name}", str(each)]
    return found

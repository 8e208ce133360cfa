"""The argument types of a row: kinds of DUT, rulesets and profiles by their names, and the options of a topology. Robot
Framework converts each when it reads a row, in a dry run too, so that a misspelt one is found where it stands."""

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError
from robot.running.context import EXECUTION_CONTEXTS

from ctbench.base.errors import ConfigError
from ctbench.dut.registry import KINDS, check_kind
from ctbench.dut.rulesets import ENDINGS, add_ruleset, find_ruleset
from ctbench.dut.topology import OPTIONS, Topology
from ctbench.run.exit_status import note_mistake
from ctbench.run.measurement import find_promise
from ctbench.traffic.profiles import load_profile


class Datapath(str):
    """A kind of DUT: ``ovs-dpdk``, ``linux-router``, ``linux-bridge`` or ``emulated``."""


class RulesetName(str):
    """The name of a ruleset: a file below ``resources/rulesets``. Those of iptables, ip6tables and nftables have the
    folder in front, as in ``iptables-snat``. Or the path of a file of rules, relative to the suite's folder, with its
    entry (``.yaml``) next to it."""


class Offered(str):
    """The name of a profile below ``variables/profiles``, or the path of a file. A path is relative to the suite's
    folder, and has a slash or ends in ``.yaml``."""


class PromiseName(str):
    """The name of a promise, as in the table of promises: ``connection rate``."""


def next_to(source: Path | str | None, named: str) -> str:
    """Return the name of a profile or ruleset unchanged; a path is taken from the folder of the suite that names it."""
    if source is None or not ("/" in named or named.endswith((".yaml", ".yml", *filter(None, ENDINGS.values())))):
        return named
    path = Path(source)
    with suppress(RuntimeError):  # the home is unknown, which is said where the file is read
        named = str(Path(named).expanduser())
    return str((path if path.is_dir() else path.parent) / named)


def ruleset_name(source: Path | str | None, named: str) -> str:
    """Return the name of a ruleset that a suite names; a ruleset given by its path is added to the known ones. Raise
    `ConfigError` for a path that is not a file of rules with its entry."""
    path = next_to(source, named)
    return named if path == named and not Path(path).is_absolute() else add_ruleset(Path(path)).name


@contextmanager
def _mistakes_noted() -> Iterator[None]:
    """Turn a mistake in an argument into the `ValueError` that Robot Framework asks for, and note it for the status of
    the run."""
    try:
        yield
    except ConfigError as error:
        context = EXECUTION_CONTEXTS.current
        if context and not context.dry_run:
            note_mistake(Path(context.variables["${OUTPUT DIR}"]), str(error))
        raise ValueError(str(error)) from None


def _datapath(value: str) -> Datapath:
    with _mistakes_noted():
        check_kind(value)
    return Datapath(value)


def _ruleset(value: str) -> RulesetName:
    """Convert the ruleset of any kind of DUT. Whether it fits the row's kind is checked with the whole row."""
    families = sorted({family for kind in KINDS.values() for family in kind.families})
    with _mistakes_noted():
        return RulesetName(find_ruleset(families, ruleset_name(_suite_file(), value), "any DUT").name)


def _offered(value: str) -> Offered:
    path = next_to(_suite_file(), value)
    with _mistakes_noted():
        load_profile(path)
    return Offered(path)


def _promise(value: str) -> PromiseName:
    with _mistakes_noted():
        return PromiseName(find_promise(value.lower()).name)


def _suite_file() -> str | None:
    try:
        return BuiltIn().get_variable_value("${SUITE SOURCE}") or None
    except RobotNotRunningError:  # an editor or Libdoc asks
        return None


#: For Robot Framework: how the text of an argument becomes its type.
CONVERTERS: dict[type, Callable[[Any], Any] | Callable[[Any, Any], Any]] = {
    Datapath: _datapath,
    RulesetName: _ruleset,
    Offered: _offered,
    PromiseName: _promise,
}

_ROW = {"datapath": Datapath, "ruleset": RulesetName, "cpus": int, "rx_queues": int, "profile": Offered}


def signature(first: Collection[str], conditions: Collection[str]) -> inspect.Signature:
    """Return the signature of a keyword for rows: the arguments `first`, then those of the row, and by name the options
    of the topology and further `conditions`."""
    kinds: dict[str, Any] = {"self": None, **dict.fromkeys(first, str), **_ROW}
    options: dict[str, Any] = {name: Topology.model_fields[name].annotation for name in OPTIONS}
    options |= dict.fromkeys(conditions, str)
    by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([
        *(inspect.Parameter(name, by_place, annotation=kind) for name, kind in kinds.items()),
        *(inspect.Parameter(name, by_name, default=None, annotation=kind | None) for name, kind in options.items()),
    ])  # fmt: skip

"""What the arguments of a row are: kinds of DUT, rulesets and profiles by their names, the options of a topology. Robot
Framework converts each when it reads a row, in a dry run too, so a misspelt one is found where it stands."""

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError

from ctbench.base.errors import ConfigError
from ctbench.base.units import did_you_mean, quoted
from ctbench.dut.registry import KINDS
from ctbench.dut.rulesets import ENDINGS, add_ruleset, find_ruleset
from ctbench.dut.topology import OPTIONS, Topology
from ctbench.traffic.profiles import load_profile


class Datapath(str):
    """A kind of DUT: ``ovs-dpdk``, ``linux-router``, ``linux-bridge`` or ``emulated``."""

    __slots__ = ()


class Ruleset(str):
    """The name of a ruleset: a file below ``resources/rulesets``. Those of iptables, ip6tables and nftables have the
    folder in front, as in ``iptables-snat``. Or the path of a file of rules, with its entry (``.yaml``) next to it; it
    begins at the suite's folder."""

    __slots__ = ()


class Offered(str):
    """The name of a profile below ``variables/profiles``, or the path of a file. A path begins at the suite's folder,
    and has a slash or ends in ``.yaml``."""

    __slots__ = ()


def beside(source: Path | str | None, named: str) -> str:
    """A profile or a ruleset as it is read: a name as it is, a path below the folder of the suite that names it."""
    if source is None or not ("/" in named or named.endswith((".yaml", ".yml", *filter(None, ENDINGS.values())))):
        return named
    path = Path(source)
    return str((path if path.is_dir() else path.parent) / Path(named).expanduser())


def ruleset_name(source: Path | str | None, named: str) -> str:
    """The name of a ruleset that a suite names; one that is a path becomes known by it. `ConfigError` for a path that
    is not one of rules with their entry."""
    path = beside(source, named)
    return named if path == named and not Path(path).is_absolute() else add_ruleset(Path(path)).name


def known_datapath(value: str) -> Datapath:
    """The name of a kind of DUT. `ValueError` lists those there are."""
    if value not in KINDS:
        raise ValueError(
            f"{quoted(value)} is not a kind of DUT. Expected one of: {', '.join(KINDS)}."
            f"{did_you_mean(value, list(KINDS))}"
        )
    return Datapath(value)


def _ruleset(value: str) -> Ruleset:
    """Of any kind of DUT: whether it is one of this row's is known when all of the row is."""
    families = sorted({family for kind in KINDS.values() for family in kind.families})
    try:
        return Ruleset(find_ruleset(families, ruleset_name(_suite_file(), value), "any DUT").name)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _offered(value: str) -> Offered:
    path = beside(_suite_file(), value)
    try:
        load_profile(path)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return Offered(path)


def _suite_file() -> str | None:
    try:
        return BuiltIn().get_variable_value("${SUITE SOURCE}") or None
    except RobotNotRunningError:  # an editor or Libdoc asks
        return None


#: For Robot Framework: how the text of an argument becomes its type.
CONVERTERS: dict[type, Callable[[Any], Any] | Callable[[Any, Any], Any]] = {
    Datapath: known_datapath,
    Ruleset: _ruleset,
    Offered: _offered,
}

_ROW = {"datapath": Datapath, "ruleset": Ruleset, "cpus": int, "rx_queues": int, "profile": Offered}


def signature(first: Collection[str], conditions: Collection[str]) -> inspect.Signature:
    """The arguments of a keyword whose arguments are a row: those before the row, the row, and by name the options of
    the topology and further `conditions`."""
    kinds: dict[str, Any] = {"self": None, **dict.fromkeys(first, str), **_ROW}
    options: dict[str, Any] = {name: Topology.model_fields[name].annotation for name in OPTIONS}
    options |= dict.fromkeys(conditions, str)
    by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([
        *(inspect.Parameter(name, by_place, annotation=kind) for name, kind in kinds.items()),
        *(inspect.Parameter(name, by_name, default=None, annotation=kind | None) for name, kind in options.items()),
    ])  # fmt: skip

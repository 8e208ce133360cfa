"""The registry of the kinds of DUT. A new kind is a package next to this file and an entry of `KINDS`."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ctbench.base.errors import ConfigError
from ctbench.base.units import did_you_mean, quoted
from ctbench.base.yaml_files import settings_of
from ctbench.dut.emulated import EmulatedConfig, EmulatedKind
from ctbench.dut.kind import Ability, DutKind
from ctbench.dut.linux.kind import BRIDGE, ROUTER, LinuxConfig
from ctbench.dut.ovs.kind import OvsDpdkKind
from ctbench.dut.ovs.settings import OvsDpdkConfig
from ctbench.dut.rulesets import Ruleset, catalogue, find_ruleset
from ctbench.dut.topology import OPTIONS, Topology

KINDS: dict[str, DutKind] = {kind.name: kind for kind in (OvsDpdkKind(), ROUTER, BRIDGE, EmulatedKind())}


if TYPE_CHECKING:
    DutConfig: TypeAlias = OvsDpdkConfig | LinuxConfig | EmulatedConfig
else:
    #: What a testbed file says of a DUT.
    DutConfig = settings_of(KINDS)


def title(datapath: str) -> str:
    """Return the name of a kind for people; an unknown kind (a record of another version) as it is."""
    return KINDS[datapath].title if datapath in KINDS else datapath


def describe(datapath: str, facts: Mapping[str, Any], *, whole: bool = False) -> str:
    """Return the name of what was measured, see `DutKind.describe`: `Open vSwitch 3.1.0`; empty where nothing was."""
    return KINDS[datapath].describe(facts, whole=whole) if datapath in KINDS else ""


def check_kind(datapath: str) -> None:
    """Raise `ConfigError`, which lists the kinds, for the name of an unknown one."""
    if datapath not in KINDS:
        raise ConfigError(
            f"{quoted(datapath)} is not a kind of DUT.\n  Expected one of: {', '.join(KINDS)}."
            f"{did_you_mean(datapath, list(KINDS))}"
        )


def ruleset_of(topology: Topology) -> Ruleset | None:
    """Return the ruleset of a topology; None for a cable. Raise `ConfigError` with the rulesets of its DUT."""
    if topology.datapath not in KINDS:
        return None
    kind = KINDS[topology.datapath]
    return find_ruleset(kind.families, topology.ruleset, kind.title)


#: Options of the connection table.
_OF_TABLE = frozenset({"timeout_s", "max_connections", "zone_policy"})


def check_set_up(topology: Topology) -> None:
    """Raise `ConfigError` for a ruleset, or an option, that the DUT of a topology does not have."""
    if (ruleset := ruleset_of(topology)) is None:
        return
    kind = KINDS[topology.datapath]
    for name in (name for name, default in OPTIONS.items() if getattr(topology, name) != default):
        if name not in kind.options:
            has = ", ".join(each for each in OPTIONS if each in kind.options)
            raise ConfigError(f"{name} is not an option of {kind.title}.\n  Expected one of: {has}.")
        if name in _OF_TABLE and not ruleset.tracks:
            raise ConfigError(
                f"{name} is an option of the connection table, and {topology.ruleset} tracks nothing.\n"
                "  Expected it with a ruleset that tracks."
            )


def rules_of(topology: Topology) -> str:
    """Return a hash of a topology's rules, which differs for any other rules of the same name; empty for a cable."""
    if (ruleset := ruleset_of(topology)) is None:
        return ""
    text = ruleset.text if ruleset.rules else ""
    return hashlib.sha256(f"{ruleset.model_dump_json(exclude={'rules'})}{text}".encode()).hexdigest()[:16]


def abilities(datapath: str) -> frozenset[Ability]:
    """Return the abilities of a kind besides forwarding; a cable has none."""
    return KINDS[datapath].abilities if datapath in KINDS else frozenset()


#: What ports are, for people; plain ones are not spoken of.
_PORTS = {"vlan": "VLAN", "bond": "Bond", "bond-vlan": "Bond and VLAN"}


def what_it_does(topology: Topology) -> str:
    """Return the ruleset for people, and the kind of its ports: `Learning bridge, VLAN`."""
    parts = [ruleset_title(topology.ruleset), _PORTS.get(topology.ports, "")]
    return ", ".join(part for part in parts if part)


def catalogued(name: str) -> Ruleset | None:
    """Return the ruleset of the catalogue with this name; None where there is none."""
    return next((entry for (_, found), entry in catalogue().items() if found == name), None)


def ruleset_title(name: str) -> str:
    """Return the name of a ruleset for people; a name that is not in the catalogue as it is."""
    known = catalogued(name)
    return known.title if known else name


def tracks(topology: Topology) -> bool:
    ruleset = ruleset_of(topology)
    return ruleset is not None and ruleset.tracks

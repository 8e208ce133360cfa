"""Names in SLA and campaign files and in rows of suites that stand for something which has to exist: found out from the
files, before the first trial."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ctbench.base.errors import ConfigError
from ctbench.base.units import did_you_mean, quoted
from ctbench.base.yaml_files import names
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS, abilities, ruleset_of
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.sla.floors import FloorEntry, Floors
from ctbench.traffic.profiles import Profile, load_profile


class Named(NamedTuple):
    """A row of a suite, as far as it names something."""

    #: File and test, for the sentence.
    where: str
    topology: Topology
    profile: Profile


def check(floors: Floors, campaign: Campaign, rows: Collection[Named] = ()) -> None:
    """`ConfigError` for the first name in the rows, the SLA or the campaign that stands for nothing: a kind of DUT, a
    ruleset, a profile; and for a ratio to what has none."""
    known = {*names("profiles"), *(row.profile.name for row in rows)}
    for row in rows:
        _check_topology(row.where, row.topology)
    for name in campaign.loads:
        if name not in ("connections", "packets"):
            _check_profile(f"{campaign.file}: loads.{name}", name, known)
    for name, substitute in campaign.profiles.items():
        _check_profile(f"{campaign.file}: profiles.{name}", substitute, known)
    for key, entries in floors.floors.items():
        _check_topology(f"{floors.file}: {key}", Topology.parse(key))
        for profile, entry in entries.items():
            where = f"{floors.file}: {key}.{profile}"
            _check_profile(where, profile, known)
            for name, to, other in _compared(entry, profile):
                _check_compared(f"{where}.{name}", Topology.parse(to), name)
                if other != profile:
                    _check_other_profile(f"{where}.{name}", profile, other, known)


def _compared(entry: FloorEntry, profile: str) -> Iterator[tuple[str, str, str]]:
    """The promise, the topology and the profile that an entry compares with."""
    if entry.ratio:
        yield "ratio", entry.ratio.to, entry.ratio.profile or profile
    if entry.cost:
        yield "cost", entry.cost.to, profile


def _check_topology(where: str, topology: Topology) -> None:
    if topology.datapath not in (*KINDS, CABLE.datapath):
        raise ConfigError(
            f"{where}: {quoted(topology.datapath)} is not a kind of DUT.\n  Expected one of: {', '.join(KINDS)}."
            f"{did_you_mean(topology.datapath, list(KINDS))}"
        )
    try:
        ruleset_of(topology)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_compared(where: str, topology: Topology, promise: str) -> None:
    _check_topology(f"{where}.to", topology)
    counts = "instructions" in abilities(topology.datapath)
    if counts != (promise == "cost"):
        has = "counts instructions and has no rate" if counts else "has rates and counts no instructions"
        instead = "cost: {to: ..., instructions: ...}" if counts else "ratio: {to: ..., rate: ...}"
        raise ConfigError(f"{where}.to: {topology.key} {has}.\n  Expected a topology that has both, or {instead}.")


def _check_profile(where: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise ConfigError(
            f"{where}: {quoted(name)} is not a profile.\n  Expected a name below variables/profiles, or the profile of "
            f"a row.{did_you_mean(name, sorted(known))}"
        )


def _check_other_profile(where: str, profile: str, other: str, known: Collection[str]) -> None:
    _check_profile(f"{where}.profile", other, known)
    kinds = [load_profile(name).kind for name in (profile, other) if name in names("profiles")]
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"{where}.profile: {other} is a profile of {kinds[1]}, and {profile} of {kinds[0]}: their rates have no "
            "ratio.\n  Expected a profile of the same kind."
        )

"""Whether a profile and what forwards it are of the same version of IP: found out before anything is set up."""

from ctbench.base.errors import ConfigError
from ctbench.dut.registry import KINDS, ruleset_of
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import Topology
from ctbench.traffic.profiles import Profile


def require(topology: Topology, profile: Profile) -> None:
    """Raise `ConfigError` for a profile whose packets the ruleset of the topology does not forward, with those that
    would."""
    ruleset = ruleset_of(topology)
    if ruleset is None or ruleset.ip_version in (profile.ip_version, "any"):
        return
    families = KINDS[topology.datapath].families
    others = sorted(
        entry.name
        for (family, _), entry in catalogue().items()
        if family in families and entry.ip_version in (profile.ip_version, "any")
    )
    expected = f"one of: {', '.join(others)}" if others else f"a profile of IPv{ruleset.ip_version}"
    raise ConfigError(
        f"Profile {profile.name} is of IPv{profile.ip_version}, and ruleset {ruleset.name} forwards "
        f"IPv{ruleset.ip_version}.\n  Expected {expected}."
    )

"""An emulated machine as a kind of DUT."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.dut.base import Dut
from ctbench.dut.emulated import doctor
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.counter import FAMILIES, EmulatedCounter
from ctbench.dut.kind import Ability, DutKind, Surroundings
from ctbench.hosts.examination import Examined, Finding


class EmulatedKind(DutKind):
    """A machine opens as many connections as fit; traffic and DUT are both in it."""

    name = EmulatedCounter.kind
    title = "Emulated machine"
    settings = EmulatedConfig
    abilities: frozenset[Ability] = frozenset({"instructions"})
    families = FAMILIES
    tags = ("emulated",)

    def require(self, config: EmulatedConfig) -> None:
        """What this machine lacks for it skips its tests, and no others. `ConfigError` for a
        kernel or an Open vSwitch that the testbed file names, and that is not there."""
        for key, named in (("kernel", config.kernel), ("ovs.prefix", config.ovs.prefix), ("image", config.image)):
            if named not in ("", "distribution") and not Path(named).exists():
                raise ConfigError(
                    f"{key} of the emulated machine is {named}, which does not exist.\n"
                    '  Expected "distribution", or a path that is there.'
                )

    def build(self, config: EmulatedConfig, around: Surroundings) -> Dut:
        return EmulatedCounter(config, around.host, around.machine)

    def examine(self, config: EmulatedConfig, on: Examined) -> Iterator[Finding]:
        return doctor.examine(config)

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        if not facts.get("kernel"):
            return ""
        return f"Linux {facts['kernel']} in QEMU {str(facts.get('qemu', '')).partition(' ')[0]}".strip()

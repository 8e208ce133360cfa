"""An emulated machine as a kind of DUT."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Dut
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.dut import FAMILIES, EmulatedDut
from ctbench.dut.emulated.image import COMPILER, PROGRAMS
from ctbench.dut.emulated.kernel import UNPACKED, find_kernel
from ctbench.dut.kind import NF_CONNTRACK_MAX, Ability, Builds, ConnectionTable, Surroundings
from ctbench.hosts.examination.facts import Examined
from ctbench.hosts.examination.finding import Finding, ok, unknown


class EmulatedKind:
    """Implements `ctbench.dut.kind.DutKind`."""

    name = EmulatedDut.kind
    title = "Emulated machine"
    settings = EmulatedConfig
    abilities: frozenset[Ability] = frozenset({"instructions"})
    builds: Builds | None = None
    polls = False
    bridges = False
    families = FAMILIES
    tags = ("emulated",)

    def require(self, config: EmulatedConfig) -> None:
        """See `DutKind.require`: what this machine lacks for it skips its tests, and no others. `ConfigError` for a
        kernel or an Open vSwitch that the testbed file names, and that is not there."""
        for key, named in (("kernel", config.kernel), ("ovs.prefix", config.ovs.prefix), ("image", config.image)):
            if named not in ("", "distribution") and not Path(named).exists():
                raise ConfigError(
                    f"{key} of the emulated machine is {named}, which does not exist.\n"
                    '  Expected "distribution", or a path that is there.'
                )

    def build(self, config: EmulatedConfig, around: Surroundings) -> Dut:
        """See `DutKind.build`."""
        return EmulatedDut(config, around.host, around.machine)

    def table(self, config: EmulatedConfig, limit: Path = NF_CONNTRACK_MAX) -> ConnectionTable | None:
        """See `DutKind.table`: a machine opens as many as fit."""
        return None

    def hugepages_mb(self, config: EmulatedConfig) -> int:
        """See `DutKind.hugepages_mb`."""
        return 0

    def examine(self, config: EmulatedConfig, on: Examined) -> Iterator[Finding]:
        """See `DutKind.examine`."""
        missing = [name for name in (machine.QEMU, COMPILER[0], *PROGRAMS) if shutil.which(name, path=_PATH) is None]
        if missing:
            yield unknown("emulated machine", f"{', '.join(missing)} not found: its tests are skipped (./run setup)")
            return
        try:
            kernel = find_kernel(UNPACKED if config.kernel == "distribution" else Path(config.kernel))
        except MissingResource as error:
            yield unknown("emulated machine", f"its tests are skipped: {error}")
            return
        yield ok("emulated machine", f"Linux {kernel.release}, {config.seeds} machines for each topology")

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """See `DutKind.describe`."""
        if not facts.get("kernel"):
            return ""
        return f"Linux {facts['kernel']} in QEMU {str(facts.get('qemu', '')).partition(' ')[0]}".strip()


_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

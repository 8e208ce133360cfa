"""An emulated machine as a kind of DUT, and the doctor's rows of it."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.counter import FAMILIES, EmulatedCounter
from ctbench.dut.emulated.image import COMPILER, PATH, PROGRAMS, open_kept
from ctbench.dut.kernel import UNPACKED, check_kernel, require_file
from ctbench.dut.kind import Ability, DutKind, Surroundings
from ctbench.hosts.machine import Examined, Finding, bad, ok, unknown

WHAT, KERNEL, IMAGE = "emulated machine", "emulated machine, kernel", "emulated machine, image"
_NAME_KERNEL = "name a package of a kernel (.deb) or a folder as one has it in kernel:, or write kernel: distribution"
_KEEP_IMAGE = "keep one with ./run calibrate --keep-image, or take image: out of the testbed file"


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

    def build(self, config: EmulatedConfig, around: Surroundings) -> EmulatedCounter:
        return EmulatedCounter(config, around.host, around.machine)

    def examine(self, config: EmulatedConfig, on: Examined) -> Iterator[Finding]:
        """Programs that are missing skip its tests; a file that the testbed file names has to be what it should be."""
        missing = [name for name in (machine.QEMU, COMPILER, *PROGRAMS) if shutil.which(name, path=PATH) is None]
        if missing:
            yield unknown(WHAT, f"{', '.join(missing)} not found: its tests are skipped (./run setup)")
        seeds = f"{config.seeds} machines for each topology"
        what, remedy = (IMAGE, _KEEP_IMAGE) if config.image else (KERNEL, _NAME_KERNEL)
        try:
            if config.image:
                require_file(Path(config.image))
                yield ok(IMAGE, f"Linux {open_kept(Path(config.image)).release}, {seeds}")
            elif config.kernel != "distribution":
                yield ok(KERNEL, f"Linux {check_kernel(Path(config.kernel))}, {seeds}")
            else:
                what, remedy = WHAT, ""
                yield ok(WHAT, f"Linux {check_kernel(UNPACKED)}, {seeds}")
        except (ConfigError, MissingResource) as error:
            if remedy:
                yield bad(what, str(error).split("\n")[0].rstrip("."), remedy)
            else:
                yield unknown(WHAT, f"its tests are skipped: {error}")

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        if not facts.get("kernel"):
            return ""
        return f"Linux {facts['kernel']} in QEMU {str(facts.get('qemu', '')).partition(' ')[0]}".strip()

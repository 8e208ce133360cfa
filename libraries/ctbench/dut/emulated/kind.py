"""An emulated machine as a kind of DUT: what a testbed file says of it, and the doctor's rows of it."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.counter import FAMILIES, EmulatedCounter
from ctbench.dut.emulated.image import COMPILER, PATH, PROGRAMS, open_kept
from ctbench.dut.kernel import UNPACKED, check_kernel, require_file
from ctbench.dut.kind import Ability, DutKind, OvsPrefix, Surroundings, path_or
from ctbench.dut.rulesets import Ruleset
from ctbench.hosts.machine import Examined, Finding, bad, ok, unknown

WHAT, KERNEL, IMAGE = "emulated machine", "emulated machine, kernel", "emulated machine, image"
_NAME_KERNEL = "name a package of a kernel (.deb) or a folder as one has it in kernel:, or write kernel: distribution"
_KEEP_IMAGE = "keep one with ./run calibrate --keep-image, or take image: out of the testbed file"


_KERNEL = path_or(
    "distribution", "a kernel",
    '"distribution", or the absolute path of a package (.deb) or of a folder with boot/vmlinuz-RELEASE and '
    "lib/modules/RELEASE.",
)  # fmt: skip
_IMAGE = path_or(
    "", "an image",
    'the absolute path of a file that ./run calibrate --keep-image wrote, for example "/srv/images/mine.image".',
)  # fmt: skip


class OvsSettings(YamlModel):
    """Which Open vSwitch its topologies with one have."""

    #: `distribution`: the package; or the absolute path that a build was configured with (--prefix).
    prefix: OvsPrefix = "distribution"


class EmulatedConfig(YamlModel):
    """An emulated machine that has DUT and traffic in it."""

    type: Literal["emulated"]
    host: Literal["sandbox"] = "sandbox"
    #: `distribution`: the package that `./run setup` unpacked; or another one (.deb), or a folder as a package has it.
    kernel: Annotated[str, _KERNEL]
    #: Machines for each topology, each with its own seed of the kernel's hash functions: their range is the
    #: uncertainty.
    seeds: int = Field(ge=2, le=100)

    #: An image that was kept (`./run calibrate --keep-image`), in the place of the kernel and the tools that are
    #: installed. Optional.
    image: Annotated[str, _IMAGE] = ""
    #: Of topologies with Open vSwitch. Optional.
    ovs: OvsSettings = OvsSettings()

    @model_validator(mode="after")
    def _an_image_has_a_kernel(self) -> Self:
        if self.image and self.kernel != "distribution":
            raise ValueError(
                f"kernel: {quoted(self.kernel)} and image: the image that was kept has a kernel.\n"
                "  Expected one of them: kernel: distribution with image."
            )
        return self

    @property
    def ports(self) -> None:
        return None


class EmulatedKind(DutKind):
    """A machine opens as many connections as fit; traffic and DUT are both in it."""

    name = EmulatedCounter.kind
    title = "Emulated machine"
    settings = EmulatedConfig
    abilities: frozenset[Ability] = frozenset({"instructions"})
    families = FAMILIES
    tags = ("emulated",)

    def tags_of(self, ruleset: Ruleset) -> tuple[str, ...]:
        """The kernel forwards by itself where its rulesets do not say that Open vSwitch does."""
        return self.tags if "ovs" in ruleset.tags else (*self.tags, "linux")

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

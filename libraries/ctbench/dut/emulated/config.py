"""The YAML model of an emulated machine as a DUT."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.kind import InnerPorts, OvsPrefix, path_or

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
    def ports(self) -> InnerPorts:
        """Out of reach of any generator."""
        return InnerPorts()

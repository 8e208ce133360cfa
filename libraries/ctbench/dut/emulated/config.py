"""The YAML model of an emulated machine as a DUT."""

from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.counting import Workload
from ctbench.dut.port_config import InnerPorts
from ctbench.dut.rulesets import catalogue


def _check_kernel(kernel: str) -> str:
    if kernel != "distribution" and not Path(kernel).is_absolute():
        raise ValueError(
            f'{quoted(kernel)} is no kernel.\n  Expected "distribution", or the absolute path of a package (.deb) or '
            "of a folder with boot/vmlinuz-RELEASE and lib/modules/RELEASE."
        )
    return kernel


def _check_prefix(prefix: str) -> str:
    if prefix != "distribution" and not Path(prefix).is_absolute():
        raise ValueError(
            f'{quoted(prefix)} is no installation.\n  Expected "distribution", or the absolute path that a build was '
            'configured with (--prefix), for example "/opt/ovs-3.3".'
        )
    return prefix


def _check_image(image: str) -> str:
    if image and not Path(image).is_absolute():
        raise ValueError(
            f"{quoted(image)} is no image.\n  Expected the absolute path of a file that ./run calibrate --keep-image "
            'wrote, for example "/srv/images/mine.image".'
        )
    return image


def _check_left_out(name: str) -> str:
    known = [*get_args(Workload), *(each for family, each in catalogue() if family == "emulated")]
    if name not in known:
        raise ValueError(
            f"{quoted(name)} is neither a ruleset nor a workload of an emulated machine.\n"
            f"  Expected one of {', '.join(known)}."
        )
    return name


class OvsSettings(YamlModel):
    """Which Open vSwitch its topologies with one have."""

    #: `distribution`: the package; or the absolute path that a build was configured with (--prefix).
    prefix: Annotated[str, AfterValidator(_check_prefix)] = "distribution"


class EmulatedConfig(YamlModel):
    """An emulated machine that has DUT and traffic in it."""

    type: Literal["emulated"]
    host: Literal["sandbox"] = "sandbox"
    #: `distribution`: the package that `./run setup` unpacked; or another one (.deb), or a folder as a package has it.
    kernel: Annotated[str, AfterValidator(_check_kernel)]
    #: Machines for each topology, each with its own seed of the kernel's hash functions: their range is the
    #: uncertainty.
    seeds: int = Field(ge=2, le=100)

    #: An image that was kept (`./run calibrate --keep-image`), in the place of the kernel and the tools that are
    #: installed. Optional.
    image: Annotated[str, AfterValidator(_check_image)] = ""
    #: Rulesets and workloads that it does not measure, so that a run is short. Optional.
    leave_out: list[Annotated[str, AfterValidator(_check_left_out)]] = Field(default_factory=list)
    #: Of topologies with Open vSwitch. Optional.
    ovs: OvsSettings = OvsSettings()

    @model_validator(mode="after")
    def _an_image_has_a_kernel(self) -> Self:
        if self.image and self.kernel != "distribution":
            raise ValueError(
                f"kernel: {quoted(self.kernel)} and image: the image that was kept has a kernel.\n"
                "  Expected one of them: kernel: distribution beside image."
            )
        return self

    @property
    def ports(self) -> InnerPorts:
        """Nobody outside reaches them."""
        return InnerPorts()

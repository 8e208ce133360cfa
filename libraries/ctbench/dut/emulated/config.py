"""The YAML model of an emulated machine as a DUT."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.port_config import InnerPorts


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
    #: Boots of each topology, each with its own seed of the kernel's hash functions: their range is the uncertainty.
    seeds: int = Field(ge=2, le=100)

    #: Of topologies with Open vSwitch. Optional.
    ovs: OvsSettings = OvsSettings()

    @property
    def ports(self) -> InnerPorts:
        """Nobody outside reaches them."""
        return InnerPorts()

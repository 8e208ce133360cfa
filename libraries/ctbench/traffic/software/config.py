"""The YAML model of the software traffic generator."""

from typing import Literal

from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.config import LOCAL


class SoftwareGeneratorConfig(YamlModel):
    """The software traffic generator of this repository, on this machine. Implements `SourceSettings`."""

    type: Literal["software"]

    @property
    def host(self) -> str:
        """Where it runs: on this machine."""
        return LOCAL

    @property
    def cpus_needed(self) -> int:
        """One thread drives both ports."""
        return 1

    @property
    def carries(self) -> bool:
        """Over veth it does."""
        return True

    @property
    def most(self) -> dict[str, float]:
        """No load is never exceeded."""
        return {}

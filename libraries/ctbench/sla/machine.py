"""The machine that absolute floors were made on: the key `machine` of an SLA file."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ctbench.base.plain_text import one_line
from ctbench.base.yaml_files import YamlModel
from ctbench.results.environment import MachineFacts

_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class BoundMachine(YamlModel):
    """What has to be the same on the DUT's machine for a rate of this file to be a promise there. What is not named may
    be anything."""

    #: A text that the name of the CPU contains: `Xeon(R) Gold 5118`.
    cpu_model: _Text
    #: CPUs that may be used there.
    cpus: int | None = Field(None, ge=1)
    #: Release of the kernel, and the hypervisor (`none` on bare metal), as records have them.
    kernel: _Text | None = None
    hypervisor: _Text | None = None

    def __str__(self) -> str:
        parts = [
            self.cpu_model,
            f"{self.cpus} CPUs" if self.cpus else "",
            f"kernel {self.kernel}" if self.kernel else "",
            f"hypervisor {self.hypervisor}" if self.hypervisor else "",
        ]
        return ", ".join(part for part in parts if part)

    def differs_from(self, found: MachineFacts | None) -> str:
        """What the DUT's machine has instead, `the DUT's machine has 2 CPUs`; empty where it is this one."""
        if found is None or not found.cpu_model:
            return "the DUT's machine is not known"
        others = []
        if self.cpu_model not in found.cpu_model:
            others.append(one_line(found.cpu_model))
        if self.cpus is not None and self.cpus != len(found.usable_cpus):
            others.append(f"{len(found.usable_cpus)} CPUs")
        if self.kernel is not None and self.kernel != found.kernel:
            others.append(f"kernel {one_line(found.kernel)}")
        if self.hypervisor is not None and self.hypervisor != found.virtualisation:
            others.append(f"hypervisor {one_line(found.virtualisation)}")
        return f"the DUT's machine has {', '.join(others)}" if others else ""

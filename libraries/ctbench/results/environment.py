"""The environment and the campaign of a record.

Facts that pages and comparisons use have a name and a type here. A DUT, a generator or a machine may add others.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ctbench.base.quantities import Amount, Count, Real
from ctbench.hosts.machine import Hugepages, Placement

#: A version is a text, and from some programs a number.
Text = str | Count | Real


class RecordedFacts(BaseModel):
    """Base: facts by name. Each may be missing; `model_extra` holds those without a name here."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)


class MachineFacts(RecordedFacts):
    """A machine, see `ctbench.hosts.machine.Machine`."""

    cpu_model: str = ""
    #: Vendor, family and model: `AuthenticAMD family 26 model 2`; empty where that is not known.
    cpu_kind: str = ""
    usable_cpus: list[Count] = []
    kernel: str = ""
    distribution: str = ""
    virtualisation: str = ""
    hugepages: list[Hugepages] = []


class DutFacts(RecordedFacts):
    """The device under test."""

    #: For example `Open vSwitch 3.1.0`, and with what belongs to it: `Open vSwitch 3.1.0, DPDK 22.11.11`. Empty for a
    #: cable.
    product: str = ""
    product_details: str = ""
    #: Of an emulated machine: what tells what it booted from anything else.
    image: Text = ""
    #: What tells its program from any other build, and its rules from any others of the same name.
    program: Text = ""
    rules: Text = ""
    machine: MachineFacts | None = None
    #: Of its packet buffers: `kind`, `megabytes`.
    memory: dict[str, Text] | None = None
    placement: Placement | None = None


class TestbedFacts(RecordedFacts):
    """The testbed file."""

    name: str = ""
    description: str = ""
    oversubscribe: bool = False
    #: `judged`: whether rates are.
    rates: dict[str, bool | Text] = {}
    duts: list[dict[str, Any]] = []


class CampaignFacts(RecordedFacts):
    """The campaign file."""

    name: str = ""
    description: str = ""
    search: str = ""
    loss_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_spread: Amount | None = None
    profiles: dict[str, str] = {}


class Environment(BaseModel):
    """All that the figures depend on and that is not a setting of the test."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    testbed: TestbedFacts
    dut: DutFacts
    #: `type`, `version`, `wiring` and what else it tells of itself.
    generator: dict[str, Any]
    machine: MachineFacts

    @property
    def dut_machine(self) -> MachineFacts:
        """The DUT's machine; the traffic generator's machine where the DUT names none."""
        return self.dut.machine or self.machine

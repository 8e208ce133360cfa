"""What a run was asked for: the testbed, the campaign, the floors, and the run that it is compared with."""

from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.sla.floor import Floor
from ctbench.sla.floors import Floors
from ctbench.sla.reference import ReferenceRun, read_reference
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import Profile


@dataclass(frozen=True)
class RunSettings:
    """What a run was asked for: the testbed, the campaign, the floors."""

    testbed: TestbedConfig
    campaign: Campaign
    floors: Floors
    #: The run of which `floors.of_reference` promises a share.
    reference: ReferenceRun | None = None

    @classmethod
    def load(
        cls, testbed: str = "local", campaign: str = "quick", sla: str = "local", reference: str = ""
    ) -> "RunSettings":
        """Read the three files, by name below variables/ or by path, and the records of the reference run if there is
        one. `ConfigError` says what is wrong with one."""
        floors = load("sla", sla, Floors)
        if bool(floors.of_reference) != bool(reference):
            raise ConfigError(
                f"{floors.file}: of_reference and -v REFERENCE:FOLDER go together.\n  Expected both or neither."
            )
        return cls(
            load("testbeds", testbed, TestbedConfig),
            load("campaigns", campaign, Campaign),
            floors,
            read_reference(reference) if reference else None,
        )

    def floor(self, topology: Topology, profile: Profile, procedure: Procedure) -> Floor:
        """The floor of a test, with what is promised of the reference run."""
        floor = self.floors.find(topology, profile, procedure.metric(profile), procedure.found_out)
        if self.reference is None or self.floors.of_reference is None:
            return floor
        return self.reference.applied_to(floor, topology, profile, self.floors.of_reference)

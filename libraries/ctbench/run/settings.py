"""What a run was asked for: the testbed, the campaign, the floors, and the run that it is compared with."""

from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.base.yaml_files import load
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.sla.floor import Floor
from ctbench.sla.floors import Floors
from ctbench.sla.reference import ReferenceRun, read_reference
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import Profile
from ctbench.traffic.registry import SOURCES


@dataclass(frozen=True)
class RunSettings:
    """What a run was asked for: the testbed, the campaign, the floors."""

    testbed: TestbedConfig
    campaign: Campaign
    floors: Floors
    #: The run of which `floors.of_reference` promises a share.
    reference: ReferenceRun | None = None
    #: The installation that the testbed's is compared with, and nothing else is measured; empty for an ordinary run.
    base: str = ""

    @classmethod
    def load(
        cls, testbed: str = "local", campaign: str = "quick", sla: str = "local", reference: str = "", base: str = ""
    ) -> "RunSettings":
        """Read the three files, by name below variables/ or by path, and the records of the reference run if there is
        one. `base`: the build that the testbed's is compared with. `ConfigError` says what is wrong with one."""
        floors = load("sla", sla, Floors)
        if bool(floors.of_reference) != bool(reference):
            raise ConfigError(
                f"{floors.file}: of_reference and -v REFERENCE:FOLDER go together.\n  Expected both or neither."
            )
        plan = load("campaigns", campaign, Campaign)
        if (plan.search == "pair") != bool(base):
            raise ConfigError(
                f"{plan.file}: search: pair and -v BASE:PREFIX, the build to compare with, go together.\n"
                "  Expected both or neither; ./run compare --installations has both."
            )
        return cls(
            load("testbeds", testbed, TestbedConfig),
            plan,
            floors,
            read_reference(reference) if reference else None,
            base,
        )

    def build(self, topology: Topology) -> str | None:
        """Which installation of the topology's DUT is tested: `distribution`, or a folder; None where it comes in one
        build only, or this testbed has no such DUT."""
        builds = KINDS[topology.datapath].builds if topology.datapath in KINDS else None
        dut = next((each for each in self.testbed.duts if each.type == topology.datapath), None)
        return builds.prefix(dut) if builds and dut else None

    def floor(self, topology: Topology, profile: Profile, procedure: Procedure) -> Floor:
        """The floor of a test, with what is promised of the reference run. Where builds are compared, nothing is."""
        if self.base:
            metric = procedure.metric(profile)
            return Floor(topology.key, profile, source="", metric=metric, thresholds={}, base_build=self.base)
        floor = self.floors.find(topology, profile, procedure, build=self.build(topology))
        floor = floor.counted_in(self.campaign.loss_unit)
        source = SOURCES[self.testbed.generator.type]
        floor = floor.as_far_as_told(source.unmeasured, source.title)
        if self.reference is None or self.floors.of_reference is None:
            return floor
        return self.reference.applied_to(floor, topology, profile, self.floors.of_reference)

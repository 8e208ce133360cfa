"""The load beside which the control plane works, as a campaign has it."""

from typing import Literal

from pydantic import Field

from ctbench.base.quantities import Load, TrialDuration
from ctbench.base.yaml_files import YamlModel
from ctbench.traffic.profiles import PacketProfile, Profile

#: Seconds within which every flow of a load comes again: Open vSwitch forgets one after 10 s (`max-idle`), and looks at
#: the least of them for longer than that.
_EACH_WITHIN_S = 4.0


class ControlPlaneSettings(YamlModel):
    """How the control plane is measured: the load first without, then with what it does."""

    #: Length of the trial in which the control plane works, and of the one before it with the load alone.
    trial_duration: TrialDuration = 4.0
    alone_duration: TrialDuration = 2.0
    #: What is offered, in the profile's unit per second: well below any capacity, so that what is lost is not lost by
    #: the load itself; and where the generator has a CPU with the control plane, low enough for it to have a half.
    connections: Load = 10_000
    packets: Load = 20_000
    #: Tests whose trials take longer are skipped. None: none is.
    most: TrialDuration | None = None
    #: What is skipped as well, by what is measured.
    leave_out: list[Literal["contention", "upcalls", "revalidation", "dump of held connections"]] = Field(
        default_factory=list
    )

    def rate(self, profile: Profile) -> float:
        """The load of a profile, in its unit per second; of one with very many flows, enough to keep each alive."""
        if not isinstance(profile, PacketProfile):
            return self.connections
        ways = 2 if profile.directions == "both" else 1
        return max(self.packets, profile.flows * ways / _EACH_WITHIN_S)

    def first_pass_s(self, profile: Profile) -> float:
        """Seconds before a trial counts: of a packet profile, every flow is sent once."""
        if not isinstance(profile, PacketProfile):
            return 0.0
        return profile.flows * (2 if profile.directions == "both" else 1) / self.rate(profile)

    def traffic_s(self, profile: Profile, least_s: float = 0.0) -> float:
        """Seconds of traffic of a test whose trial beside the control plane takes `least_s` or more."""
        return self.alone_duration + max(self.trial_duration, least_s) + 2 * self.first_pass_s(profile)

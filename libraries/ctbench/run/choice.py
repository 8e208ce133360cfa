"""Which procedure answers what a keyword asks for."""

from collections.abc import Callable

from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.measure.procedures.at_floor import AtFloor
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.traffic.profiles import Profile

#: What can be asked for.
RATE = "rate"


def _rate(campaign: Campaign, topology: Topology, profile: Profile) -> Procedure:
    """What the campaign says; of the generator over a cable, always its capacity."""
    if topology.datapath == CABLE.datapath:
        return HighestRate(campaign.ceiling_for(profile))
    if campaign.search == "gate":
        return AtFloor(campaign.gate_settings())
    return HighestRate(campaign.search_for(profile), campaign.repetitions)


#: By what is asked for.
ANSWERS: dict[str, Callable[[Campaign, Topology, Profile], Procedure]] = {RATE: _rate}


def choose(what: str, campaign: Campaign, topology: Topology, profile: Profile) -> Procedure:
    """The procedure for `what` is asked of a topology with a profile."""
    return ANSWERS[what](campaign, topology, profile)

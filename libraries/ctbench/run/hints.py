"""Where a search may begin: the capacities found so far in a run."""

from ctbench.dut.registry import tracks
from ctbench.dut.topology import Topology
from ctbench.traffic.profiles import Profile


class Hints:
    """Capacities by what they are likely to be found again with."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], float] = {}

    def learn(self, topology: Topology, profile: Profile, rate: float) -> None:
        """Let later searches begin here. Where the generator was the limit, the DUT holds at least this."""
        self._found |= dict.fromkeys(_alike(topology, profile), rate)

    def find(self, topology: Topology, profile: Profile) -> float | None:
        """The capacity of the topology found so far that is most like this one."""
        return next((self._found[key] for key in _alike(topology, profile) if key in self._found), None)


def _alike(topology: Topology, profile: Profile) -> list[tuple[str, str, str]]:
    """What a capacity is likely to be found again with, the likelier first: the same work, then another ruleset. Of
    connections, one that tracks them if this one does: what tracking makes of them is so far off that the floor says
    more."""
    anything = profile.kind == "packets" or tracks(topology)
    same = (topology.datapath, topology.ruleset, profile.name)
    return [same, (topology.datapath, "*", profile.name)] if anything else [same]

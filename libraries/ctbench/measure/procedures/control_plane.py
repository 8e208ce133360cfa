"""How long the control plane takes for something beside a load, and what that load loses meanwhile."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ctbench.dut.base import CLOSED_S
from ctbench.dut.control_plane import ControlPlane, ControlPlaneDut
from ctbench.dut.kind import Ability
from ctbench.dut.registry import ruleset_of
from ctbench.measure.beside import BesideLoad
from ctbench.measure.campaign import Campaign
from ctbench.measure.control_actions import STATISTICS_PERIOD_S, Action, PortChurn, Revalidate, Statistics, TableDump
from ctbench.measure.expected import Expected
from ctbench.measure.procedure import Bench, Outcome
from ctbench.results.metrics import MAIN_THREAD, MEANWHILE, METRICS, Metric
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import PacketProfile, Profile


@dataclass(frozen=True)
class ControlPlaneTime:
    """Implements `Procedure`."""

    name: str
    #: The metrics of the times, the one that it looks for first.
    times: tuple[str, ...]
    #: What is done.
    action: Callable[[ControlPlane, Bench], Action]
    #: Seconds that the trial takes at least.
    least_s: float = 0.0
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset({"control plane"})
    headroom: float = 0.0

    @property
    def found_out(self) -> Collection[str]:
        """See `Procedure.found_out`."""
        return (*self.times, MAIN_THREAD, *MEANWHILE)

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRICS[self.times[0]]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return Expected(2, campaign.control_plane.traffic_s(profile, self.least_s))

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        assert isinstance(bench.dut, ControlPlaneDut), "its ability was required"
        plane = bench.dut.control_plane
        action = self.action(plane, bench)
        return BesideLoad(bench, self.metric(bench.profile), action, plane.main_thread, self.least_s).run()


def entries_of(bench: Bench) -> float:
    """Entries that the load keeps in a connection table: one for each flow that comes again and again, or for each
    connection until it is forgotten."""
    profile = bench.profile
    if isinstance(profile, PacketProfile):
        return profile.flows
    return bench.campaign.control_plane.rate(profile) * (profile.lifetime_s + CLOSED_S)


def flows_of(bench: Bench) -> float:
    """Flows that the load keeps in a datapath with one for each client, or two where it is tracked: one before its
    connection is looked up, one after that. None are known of connections, which come and go."""
    if not isinstance(bench.profile, PacketProfile):
        return 0.0
    ruleset = ruleset_of(bench.topology) if bench.topology else None
    return bench.profile.flows * (2 if ruleset and ruleset.tracks else 1)


TABLE_DUMP = ControlPlaneTime(
    "table-dump", ("dump_time",), lambda plane, bench: TableDump(plane, expected=entries_of(bench))
)
PORT_CHURN = ControlPlaneTime("port-churn", ("port_add_time", "port_delete_time"), lambda plane, _: PortChurn(plane))
REVALIDATION = ControlPlaneTime(
    "revalidation", ("revalidation_time",), lambda plane, bench: Revalidate(plane, expected=flows_of(bench))
)
SWEEP = ControlPlaneTime(
    "revalidation-sweep",
    ("sweep_time",),
    lambda plane, bench: Revalidate(plane, expected=flows_of(bench), forced=True, every_s=0.1),
)
#: Three collections, and a second for what of the trial is no whole period.
STATISTICS = ControlPlaneTime(
    "interface-statistics",
    ("statistics_time",),
    lambda plane, bench: Statistics(plane, bench.topology.idle_ports if bench.topology else 0),
    least_s=3 * STATISTICS_PERIOD_S + 1,
)

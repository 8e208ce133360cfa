"""New datapath flows per second: what a trial counts, what decides a promise, and what says nothing."""

from dataclasses import dataclass, field

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.ovs.control_plane import require_cpus
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.new_flows import TRIALS, NewFlows
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Saturation
from ctbench.traffic.profiles import Profile

from .healthy import HealthyDut
from .simulated import LIMITS, SHORT, campaign, made_up_trial

pytestmark = pytest.mark.unit


@dataclass
class Upcalling(HealthyDut):
    """A DUT that makes a flow for a share of the packets, and its generator, which serves so many connections."""

    rates: list[float] = field(default_factory=lambda: [20_000.0 + 100 * number for number in range(99)])
    new: float = 1.0
    failed: float = 0.0
    limited: str = ""
    dies_in: int = 99
    forgot: int = 0
    sent: int = 0
    made: int = 0

    def forget_flows(self) -> None:
        self.forgot += 1

    def upcalls(self) -> tuple[int, int]:
        return round(self.sent * (self.new - self.failed)), round(self.sent * self.failed)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Saturation)
        self.made += 1
        if self.made == self.dies_in:
            raise TestbedError("ovs-vswitchd died.")
        rate = self.rates[self.made - 1]
        made = made_up_trial(rate, duration_s, generator_limited=self.limited)
        self.sent = made.packets_sent
        return made.model_copy(update={"under_way": 512})


def measured(dut: Upcalling, limit: float | None = None) -> Outcome:
    limits = {} if limit is None else {"new_flow_rate": limit}
    return NewFlows().run(Bench(dut, dut, SHORT, LIMITS, campaign(), limits=limits))


def test_the_figure_is_the_median_of_trials_that_each_begin_without_flows() -> None:
    dut = Upcalling()
    found = measured(dut)
    assert found.result is not None and found.result.value == pytest.approx(7 * 20_400)
    assert found.result.low is not None and found.result.high is not None
    assert found.result.low < found.result.value < found.result.high
    assert dut.forgot == dut.made == len(found.steps) == TRIALS
    assert "packets got a datapath flow of their own, in 9 closed loops" in found.reason


def test_packets_for_which_no_flow_was_made_do_not_count() -> None:
    found = measured(Upcalling(rates=[20_000.0] * 9, failed=0.25))
    assert found.result is not None and found.result.value == pytest.approx(7 * 20_000 * 0.75, rel=1e-3)
    assert "got none" in found.reason


@pytest.mark.parametrize(("limit", "kept"), [(100_000, True), (200_000, False), (142_800, None)])
def test_a_promise_is_decided_by_the_interval_of_the_median(limit: float, kept: bool | None) -> None:
    assert measured(Upcalling(), limit).decisions["new_flow_rate"].kept is kept


@pytest.mark.parametrize(
    ("dut", "limited_by", "reason"),
    [
        (Upcalling(new=0.5), "dut", "only 50 % of the packets were the first of their flow"),
        (Upcalling(limited="late"), "generator", "0 of 12 trials count, of 9 that are needed: late"),
        (Upcalling(dies_in=3), "fault", "ovs-vswitchd died, in trial 3"),
    ],
)
def test_what_says_nothing_says_why(dut: Upcalling, limited_by: str, reason: str) -> None:
    found = measured(dut, 1.0)
    assert (found.limited_by, found.figures) == (limited_by, {})
    assert reason in found.reason


def test_more_handlers_than_cpus_for_them_are_skipped() -> None:
    placement = Placement(pmd=(1,), housekeeping=(0,), generator=(0,), oversubscribed=False)
    require_cpus(Topology(handlers=1), placement)
    with pytest.raises(MissingResource, match="2 handlers need 2 CPUs"):
        require_cpus(Topology(handlers=2), placement)
    assert Topology.parse("ovs-dpdk/flow-each/1cpu-1rxq/handlers=2").handlers == 2

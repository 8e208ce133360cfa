"""One trial, the order of what is done to the DUT, and what is thought of the counts; and the recorder of trials, with
its one rule for invalid ones."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import ValidationError

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.dut.base import CpuUse, DutCounts, Problem
from ctbench.hosts import limits
from ctbench.hosts.limits import Limits
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Probe, Sampling
from ctbench.measure.trial import COUNTED_LATE_S, MOST_INVALID, PAUSE_S, Repetitions, TrialRunner, Trials
from ctbench.traffic.generator import Latency, LinkWork, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

from .simulated import LIMITS, HealthyDut, made_up_trial, seen, seen_packets

PROFILE = ConnectionProfile(name="short")


@dataclass
class RecordingTestbed(HealthyDut):
    """A DUT and a generator in one that write down what they are asked."""

    problems: list[Problem] = field(default_factory=list)
    error: Exception | None = None
    broken: str = ""
    cpu: CpuUse | None = None
    link: LinkWork | None = None
    learns: bool = False
    calls: list[str] = field(default_factory=list)
    most_lost: list[float] = field(default_factory=list)

    def flush_state(self) -> None:
        self.calls.append("flush")

    def health(self) -> list[Problem]:
        self.calls.append("health")
        return self.problems

    def trouble(self) -> str:
        return self.broken

    def cpu_use(self) -> CpuUse | None:
        return self.cpu

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.calls.append(f"{profile.name} at {load.per_s:g} for {duration_s:g} s")
        self.most_lost.append(load.most_lost)
        if self.error:
            raise self.error
        return made_up_trial(load.per_s, duration_s).model_copy(update={"link": self.link})

    def runner(self, **more: Any) -> TrialRunner:
        return TrialRunner(self, self, PROFILE, LIMITS, **more)


def test_the_state_is_flushed_before_the_trial_and_a_pause_and_the_health_asked_after_it() -> None:
    testbed, ticks = RecordingTestbed(), iter([100.0, 117.0])
    pause = {"settle_s": 2.5, "sleep": lambda seconds: testbed.calls.append(f"sleep {seconds}")}
    seen = testbed.runner(clock=lambda: next(ticks), **pause).offer(Rate(1000), 10)
    assert seen.good and seen.trial.wall_s == 17  # the flush included
    assert testbed.calls == ["flush", "sleep 2.5", "short at 1000 for 10 s", "health"]


def test_a_trial_that_counts_for_a_partial_drop_rate_goes_on_where_its_own_conditions_would_end_it() -> None:
    testbed = RecordingTestbed()
    for more in ({}, {"partial_drop": 0.005}, {"partial_drop": 0.0001}):
        testbed.runner(**more).offer(Rate(50_000), 1)
    assert testbed.most_lost == pytest.approx([100, 2_500, 100])


def test_a_trial_in_which_a_limit_stopped_threads_says_nothing_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else was seen: both sides are late then, and a DUT stands still."""
    monkeypatch.setattr(limits, "limits_here", lambda: Limits(cpus=2.0))
    still = Problem("stalled", "Open vSwitch stood still for 0.2 s.", code="stood-still")
    stopped = iter([1.0, 1.25])
    seen = RecordingTestbed([still]).runner(stopped_s=lambda: next(stopped)).offer(Rate(1000), 10)
    assert (seen.state, seen.problems[0].code) == ("invalid", "cpu-quota")
    assert "the time of 2 CPUs (cpu.max)" in seen.reason and "250 ms" in seen.reason


def test_what_a_profile_says_is_known_is_shown_to_the_dut_before_the_trial_begins() -> None:
    testbed = RecordingTestbed()
    profile = PROFILE.model_copy(update={"known": 100_000})
    assert replace(testbed.runner(), profile=profile).offer(Rate(1000), 10).good
    assert testbed.calls[1:3] == ["short at 200000 for 1 s", "short at 1000 for 10 s"]


def test_a_dut_that_learns_addresses_sees_those_of_both_sides_before_packets_go_one_way() -> None:
    for learns in (False, True):
        testbed = RecordingTestbed(learns=learns)
        replace(testbed.runner(), profile=PacketProfile(name="one", kind="packets")).offer(Rate(1000), 10)
        assert testbed.calls[1:-1] == [*["one at 1000 for 0.05 s"] * learns, "one at 1000 for 10 s"]


@pytest.mark.parametrize("noticed_by", [GeneratorError("the memif link broke"), TestbedError("`ovs-appctl` failed")])
def test_a_dut_that_died_is_named_and_not_what_noticed_it(noticed_by: Exception) -> None:
    testbed = RecordingTestbed(error=noticed_by, broken="ovs-vswitchd (process 16) was killed by SIGKILL.")
    with pytest.raises(TestbedError, match=r"^ovs-vswitchd \(process 16\) was killed by SIGKILL\.$"):
        testbed.runner().offer(Rate(1000), 10)


def test_a_generator_that_breaks_or_counts_backwards_with_a_healthy_dut_is_named() -> None:
    with pytest.raises(GeneratorError, match="out of memory"):
        RecordingTestbed(error=GeneratorError("out of memory")).runner().offer(Rate(1000), 10)
    with pytest.raises(ValidationError) as impossible:
        Trial.model_validate(made_up_trial(1000, 10).model_dump() | {"completed": -1})
    with pytest.raises(GeneratorError, match="counted what cannot be: completed: Input should be greater"):
        RecordingTestbed(error=impossible.value).runner().offer(Rate(1000), 10)


def test_what_the_trial_cost_is_asked_of_a_dut_that_lives_or_of_the_threads_that_carry_its_frames() -> None:
    testbed = RecordingTestbed()
    assert testbed.runner().offer(Rate(1000), 10).cpu is None
    testbed.link = LinkWork(busy_cpus=0.9, packets=1000, refused=0, ns_per_packet=900.0)
    assert testbed.runner().offer(Rate(1000), 10).cpu == CpuUse(0.9, 900.0, "link threads")
    testbed.link = LinkWork(busy_cpus=0.0, packets=0, refused=0, ns_per_packet=0.0)
    assert testbed.runner().offer(Rate(1000), 10).cpu == CpuUse(0.0, None, "link threads")
    testbed.cpu = CpuUse(1.0, 500.0, "PMD cycles")
    assert testbed.runner().offer(Rate(1000), 10).cpu == testbed.cpu
    testbed.problems = [Problem("fatal", "ovs-vswitchd was restarted")]
    assert testbed.runner().offer(Rate(1000), 10).cpu is None


def test_counters_that_disagree_are_read_once_more_as_a_card_may_tell_them_late() -> None:
    lost = made_up_trial(1000, 10, loss=0.1, failed={}).model_copy(
        update={"total_tx_packets": {"client": 30_000}, "total_rx_packets": {"client": 0, "server": 29_000}}
    )
    late, slept = [28_000, 30_000], list[float]()

    class Card(RecordingTestbed):
        def counts(self) -> DutCounts:
            return DutCounts({"client": late[self.calls.count("health") - 1]}, {"server": 29_000})

        def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
            return lost

    own = Card().runner(sleep=slept.append).offer(Rate(1000), 10)
    assert (own.state, slept) == ("bad", [COUNTED_LATE_S])
    late[1] = 28_000
    away = Card().runner(sleep=slept.append).offer(Rate(1000), 10)
    assert away.reason == "the generator sent 30000 frames to the DUT's client port, it received 28000"
    # Of a trial in which the generator sends more than it tells, only what became of the entries is known.
    part = Card().runner(sleep=slept.append).watch(lambda: lost, whole=False)
    assert (part.state, part.counts, len(slept)) == ("bad", DutCounts({}, {}), 2)


def test_a_loss_is_called_so_with_its_direction_and_the_permitted_one_is_good() -> None:
    assert seen_packets(loss=0.01).reason == "1.00 % of the packets were lost (limit 0.020 %)"
    there, back = seen_packets(loss=0.02, back_loss=0.0), seen_packets(loss=0.0, back_loss=0.02)
    assert there.reason == "1.00 % of the packets were lost, mostly from client to server (limit 0.020 %)"
    assert back.reason == "1.00 % of the packets were lost, mostly from server to client (limit 0.020 %)"
    limits = {"loss_ratio": 0.001}
    assert 1 - 999 / 1000 > 0.001
    assert all(seen(conditions=limits, load=1_000 * n, duration=1.0, loss=0.001).good for n in range(1, 200))
    assert not seen(conditions=limits, load=10_000, duration=1.0, loss=0.0012).good


@pytest.mark.parametrize(
    ("observe", "metric", "title"),
    [(seen_packets, "latency_p99", "latency (p99)"), (seen, "connect_time_p99", "TCP connect time (p99)")],
)
def test_a_time_over_its_limit_makes_a_trial_bad(observe: Any, metric: str, title: str) -> None:
    limits = {"loss_ratio": 0.0002, metric: 0.005}
    assert observe(conditions=limits, p99_us=5000.0).good
    slow = observe(conditions=limits, p99_us=5001.0)
    assert (slow.state, slow.reason) == ("bad", f"{title} was 5.0 ms (limit 5.0 ms)")
    assert observe(conditions=limits, p99_us=None).reason.startswith(f"{title} was not measured")


def test_of_few_packets_the_longest_time_stands_for_that_of_99_of_100() -> None:
    made = seen_packets()
    few = Latency(p50=40, p99=None, max=320, jitter=2)
    ways = {side: way.model_copy(update={"latency_us": few}) for side, way in made.trial.directions.items()}
    made = replace(made, trial=made.trial.model_copy(update={"directions": ways}))
    assert replace(made, conditions={"loss_ratio": 0.0002, "latency_p99": 0.00032}).good
    assert replace(made, conditions={"loss_ratio": 0.0002, "latency_p99": 0.00031}).state == "bad"


GOOD, BAD, SLOW = seen(), seen(loss=0.1), seen(generator_limited="late")
BUSY = replace(SLOW, problems=(Problem("invalid", "It was swapped out."),))
LATE = replace(SLOW, trial=SLOW.trial.model_copy(update={"late_max_ms": 80.0}))


def made(trials: Trials, *each: Observation | Exception, **how: object) -> Observation:
    """Make a trial that ends as the first of these, and is made again as the next ones."""
    ends = iter(each)

    def one(_number: int) -> Observation:
        end = next(ends)
        if isinstance(end, Exception):
            raise end
        return end

    return trials.make("search", one, 1_000, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "states"),
    [
        ([GOOD], ["good"]),
        ([BAD], ["bad"]),
        ([SLOW, GOOD], ["invalid", "good"]),
        ([SLOW, SLOW, BAD], ["invalid", "invalid", "bad"]),
        ([SLOW] * 9, ["invalid"] * MOST_INVALID),
    ],
)
def test_an_invalid_trial_is_made_again_and_a_valid_one_never(ends: list[Observation], states: list[str]) -> None:
    trials = Trials()
    assert made(trials, *ends).state == states[-1]
    assert [each.state for each in trials.made] == states


@pytest.mark.parametrize("spoilt", [BUSY, LATE])
def test_a_busy_machine_gets_a_pause_that_grows_and_a_slow_generator_none(spoilt: Observation) -> None:
    slept: list[float] = []
    made(Trials(repetitions=Repetitions(sleep=slept.append)), spoilt, spoilt, spoilt)
    assert slept == [PAUSE_S, 2 * PAUSE_S]
    slept.clear()
    made(Trials(repetitions=Repetitions(sleep=slept.append)), SLOW, SLOW, SLOW)
    assert slept == []


def test_the_repetitions_of_a_run_have_one_budget() -> None:
    budget = Repetitions(left_s=BUSY.trial.wall_s + PAUSE_S, sleep=lambda _seconds: None)
    first, second = Trials(repetitions=budget), Trials(repetitions=budget)
    assert made(first, BUSY, GOOD).good and budget.left_s == 0
    assert made(second, BUSY, GOOD).state == "invalid" and len(second.made) == 1


@dataclass
class OddProbe(Probe):
    """Samples nothing, and may fail to get ready."""

    fails: bool = False
    done: int = 0
    name = "odd"
    unit = "samples"
    every_s = 0.01

    def before(self) -> None:
        if self.fails:
            raise TestbedError("The DUT does not answer.")

    def sample(self) -> float:
        return 1.0

    def after(self) -> None:
        self.done += 1


def test_a_probe_that_cannot_get_ready_leaves_no_other_one_sampling() -> None:
    probes, before = [OddProbe(), OddProbe(fails=True)], threading.active_count()
    with pytest.raises(TestbedError, match="does not answer"), Sampling(probes):
        pass
    assert threading.active_count() == before and [each.done for each in probes] == [1, 1]

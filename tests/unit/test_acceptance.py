"""The acceptance run on a simulated testbed: what is measured once per run, what is compared, where searches begin."""

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.base import CpuUse, Problem
from ctbench.dut.cable import CABLE
from ctbench.dut.kind import Ability
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.measure.trial import Step
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import Record, SideRecord
from ctbench.run import acceptance, choice
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.choice import Plan
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pair import Setup
from ctbench.traffic.generator import Side, Slice, Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import Profile

from .simulated import FORWARDING, made_up_packets, made_up_trial

FORWARD = Topology(datapath="linux-router", ruleset="forward")
SNAT = Topology(datapath="linux-router", ruleset="iptables-snat")
SNAT_KEY = SNAT.key
CEILING = 2_500_000.0
TRIAL = {"trial_duration": "500ms", "max_iterations": 12, "relative_width": "5%"}


def campaign(**keys: Any) -> Campaign:
    base = {
        "name": "mine",
        "description": "",
        "search": "bisection",
        "loss_ratio": "0.02%",
        "bisection": TRIAL,
        "loads": {"packets": {"min": "10k", "max": "3M"}, "connections": {"min": "1k", "max": "3M"}},
    }
    return Campaign.model_validate(base | keys)


GATING = campaign(search="gate", bisection=None, gate={"trial_duration": "500ms", "headroom": "1%"})


def floors(share: str | None = ">= 60%", **keys: Any) -> Floors:
    relative = {"ratio": {"to": FORWARDING, "rate": share}} if share else {}
    promise = {"udp-64-10k": {"pps": ">= 100k"} | relative, "short-lived": {"cps": ">= 10k"}}
    plain = {"udp-64-10k": {"pps": ">= 100k"}, "short-lived": {"cps": ">= 10k"}}
    cable = {CABLE.key: {"short-lived": {"cps": ">= 1k"}}}
    head = {"name": "mine", "description": "", "source": "tests"} | cable
    return Floors.model_validate(head | {FORWARDING: plain, SNAT_KEY: promise} | keys)


@dataclass
class FakePair:
    """Two sides that are as fast as they are, for a `ctbench.measure.procedure.PairBench`."""

    records: dict[Side, SideRecord]
    rates: dict[Side, float]

    def sides(self) -> dict[Side, SideRecord]:
        return self.records

    def flush(self) -> None: ...

    def health(self) -> list[Problem]:
        return []

    def run_slices(self, order: Sequence[Side], slice_s: float) -> list[Slice]:
        return [Slice(side=side, seconds=slice_s, completed=round(self.rates[side] * slice_s)) for side in order]


@dataclass
class SimulatedTestbed:
    """Every topology has a sharp capacity, and so has the generator; it remembers what was applied and offered."""

    capacities: dict[str, float]
    applied: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    #: Raised when this topology is applied.
    errors: dict[str, Exception] = field(default_factory=dict)
    #: Load from which the generator is the limit.
    generator_limit: float = CEILING
    #: Raised instead of a trial, by its number in the run; and what is broken from then on until it is discarded.
    faults: dict[int, Exception] = field(default_factory=dict)
    broken: str = ""
    #: Topologies that stood when everything was discarded.
    discarded: list[str] = field(default_factory=list)
    #: Standard deviation of a capacity from trial to trial, relative.
    noise: float = 0.0
    offers: frozenset[type[Load]] = frozenset((Rate, Saturation))
    #: Not the testbed's: turns of two made-up sides.
    pair: "FakePair | None" = None
    turns: None = None
    dice: random.Random = field(default_factory=lambda: random.Random(1))

    @property
    def dut(self) -> "SimulatedTestbed":
        return self

    generator = dut

    def placement(self, topology: Topology) -> Placement:
        return Placement((0,), (1,), (0,))

    def apply(self, topology: Topology, profile: Profile | None = None) -> None:
        self.pair = None
        self._stands(topology.key, topology.key)

    def apply_pair(self, tested: Setup, other: Setup, profile: Profile) -> None:
        self.pair = None
        self._stands(f"{tested.topology.key} beside {other.topology.key}", tested.topology.key)
        self.pair = FakePair(
            {"tested": SideRecord(key=tested.topology.key), "other": SideRecord(key=other.topology.key)},
            {"tested": self.capacities[tested.topology.key], "other": self.capacities[other.topology.key]},
        )

    def _stands(self, named: str, key: str) -> None:
        self.applied.append(named)
        if named in self.errors:
            raise self.errors[named]
        self.standing = key

    def run_trial(self, profile: Profile, offered: Load, duration_s: float) -> Trial:
        capacity = self.capacities.get(self.standing, CEILING) * self.dice.gauss(1, self.noise)
        assert isinstance(offered, Rate | Saturation) and type(offered) in self.offers
        load = offered.per_s if isinstance(offered, Rate) else min(capacity, self.generator_limit)
        self.loads.append(load)
        if len(self.loads) in self.faults:
            raise self.faults[len(self.loads)]
        if isinstance(offered, Saturation):
            made = made_up_packets if profile.kind == "packets" else made_up_trial
            parts = {"timeline_step_s": 0.05, "timeline_completed": [round(load * 0.05)] * 10}
            limited = "it was too slow" if capacity >= self.generator_limit else ""
            found = made(load, duration_s, generator_limited=limited)
            return found.model_copy(update={"under_way": offered.under_way} | parts)
        loss = 0.0 if load <= capacity else 1 - capacity / load
        limited = "it was too slow" if load > self.generator_limit else ""
        made = made_up_packets if profile.kind == "packets" else made_up_trial
        return made(load, duration_s, loss=loss, generator_limited=limited)

    def cpu_use(self) -> CpuUse | None:
        return CpuUse(0.9, 1_000.0, "PMD cycles")

    def health(self) -> list[Problem]:
        return []

    def trouble(self) -> str:
        return self.broken

    def replace_broken(self, topology: Topology) -> str:
        broken, self.broken = self.broken, ""
        return broken

    def discard(self) -> list[str]:
        self.discarded.append(self.applied[-1])
        return ["The host does not answer."] if self.broken else []

    def flush_state(self) -> None: ...

    def begin_trial(self) -> None: ...

    def snapshot(self) -> dict[str, Any]:
        return {"version": "6.1"}

    def facts(self) -> dict[str, Any]:
        return {"testbed": {}, "dut": {}, "generator": {}, "machine": {}}

    def close(self) -> None: ...


class Started:
    """A run on a simulated testbed, with what it said."""

    def __init__(self, output: Path, testbed: SimulatedTestbed, **settings: Any) -> None:
        self.said: list[str] = []
        self.testbed = testbed
        local = load("testbeds", "local", TestbedConfig)
        chosen = {"testbed": local, "campaign": campaign(), "floors": floors()} | settings
        self.run = AcceptanceRun(RunSettings(**chosen), output, self.said.append)

    def measure(self, topology: Topology, profile: str = "udp-64-10k") -> Record:
        return self.run.measure(TestName("Suite", "Test"), topology, profile)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedTestbed:
    testbed = SimulatedTestbed({FORWARDING: 400_000.0, SNAT_KEY: 280_000.0})
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    return testbed


def test_a_ratio_is_measured_as_a_pair_and_the_rates_beside_the_side_that_is_tested(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    assert simulated.applied == ["cable/none/1cpu-1rxq", f"{SNAT_KEY} beside {FORWARDING}"]
    assert record.verdict == "met"
    assert record.figures["ratio"].value == pytest.approx(0.7, rel=0.01)
    assert record.result and record.result.value == pytest.approx(280_000, rel=0.1)
    (pair,) = record.evidence.pairs
    assert (pair.tested.key, pair.other.key) == (SNAT_KEY, FORWARDING)
    assert (record.procedure, record.metric) == ("highest-rate", "pps")
    # Its slices showed the saturation rate, so no trial was made for that.
    assert record.figures["saturation_pps"].value == pytest.approx(280_000, rel=0.01)
    assert "saturation" not in {made.phase for made in record.evidence.trials}
    assert any("ratio 70.0 %" in line for line in started.said)


def test_a_ratio_that_is_not_reached_is_missed_whatever_the_rate(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    record = Started(tmp_path, simulated, floors=floors(">= 90%")).measure(SNAT)
    assert record.verdict == "missed"
    assert "at least 90 % promised" in record.verdict_reason


def test_what_a_ratio_compares_with_and_the_testbed_lacks_leaves_the_rates_measured(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.errors[f"{SNAT_KEY} beside {FORWARDING}"] = MissingResource("There are no bonds here.")
    record = Started(tmp_path, simulated).measure(SNAT)
    assert record.verdict == "not measured"
    assert "There are no bonds here" in record.verdict_reason
    assert record.result and record.result.value == pytest.approx(280_000, rel=0.1)
    assert simulated.applied[-1] == SNAT_KEY


def test_what_a_ratio_compares_with_and_cannot_be_set_up_is_named(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.errors[f"{SNAT_KEY} beside {FORWARDING}"] = TestbedError("The link broke.")
    record = Started(tmp_path, simulated).measure(SNAT)
    assert record.verdict == "not measured"
    assert record.verdict_reason == f"{SNAT_KEY} could not be set up beside {FORWARDING}: The link broke."


def test_a_gate_decides_a_ratio_by_the_pair_and_the_rate_by_trials_at_it(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    record = Started(tmp_path, simulated, campaign=GATING).measure(SNAT)
    assert record.verdict == "met"
    # 100k are far below what the pair shows, so one trial confirms it.
    assert [made.trial.load for made in record.evidence.trials] == pytest.approx([101_000])
    assert (record.procedure, record.limited_by) == ("at-floor", "floor")
    assert Started(tmp_path, simulated, campaign=GATING, floors=floors(">= 90%")).measure(SNAT).verdict == "missed"


def test_a_gate_on_nothing_but_a_ratio_makes_no_trial(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    only = {SNAT_KEY: {"udp-64-10k": {"ratio": {"to": FORWARDING, "rate": ">= 60%"}}}}
    record = Started(tmp_path, simulated, campaign=GATING, floors=floors(**only)).measure(SNAT)
    assert (record.verdict, record.procedure, record.metric) == ("met", "pair", "ratio")
    assert record.evidence.trials == []
    assert len(record.evidence.pairs) == 1


def test_a_test_begins_with_a_closed_loop_and_searches_below_it(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    record = Started(tmp_path, simulated).measure(FORWARD)
    assert [made.phase for made in record.evidence.trials][:2] == ["saturation", "search"]
    assert record.evidence.trials[1].trial.load == pytest.approx(0.97 * 400_000)
    assert record.figures["saturation_pps"].value == pytest.approx(400_000)
    assert record.figures["saturation_pps"].value not in (record.figures["pps"].value, None)


def test_without_a_closed_loop_the_search_begins_at_the_floor_or_where_a_like_one_ended(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.offers = frozenset((Rate,))
    started = Started(tmp_path, simulated, floors=floors(share=None))
    forward = started.measure(FORWARD)
    assert forward.result and "saturation_pps" not in forward.figures
    assert forward.evidence.trials[0].trial.load == pytest.approx(101_000)
    assert started.measure(SNAT).evidence.trials[0].trial.load == forward.result.value
    assert simulated.applied.count("cable/none/1cpu-1rxq") == 1


def test_quick_needs_two_trials_where_all_is_well(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    record = Started(tmp_path, simulated, campaign=load("campaigns", "quick", Campaign)).measure(FORWARD)
    assert [made.phase for made in record.evidence.trials] == ["saturation", "final"]
    assert record.verdict == "met"
    assert record.result and (record.result.value, record.result.high) == pytest.approx((352_000, 400_000))
    assert record.limited_by == "dut"
    assert "and a closed loop shows that the DUT serves 400.0 k/s" in record.verdict_reason or record.margin_pct


@pytest.mark.parametrize("name", ["quick", "gate", "compare", "characterise", "published"])
@pytest.mark.parametrize("closed_loop", [True, False])
@pytest.mark.parametrize(("capacity", "word"), [(400_000.0, "met"), (60_000.0, "missed")])
def test_every_campaign_comes_to_its_verdict_with_every_generator(
    simulated: SimulatedTestbed, tmp_path: Path, name: str, closed_loop: bool, capacity: float, word: str
) -> None:
    if not closed_loop:
        simulated.offers = frozenset((Rate,))
    simulated.capacities = {FORWARDING: capacity, SNAT_KEY: capacity * 0.7}
    plain = floors(share=None)
    record = Started(tmp_path, simulated, campaign=load("campaigns", name, Campaign), floors=plain).measure(FORWARD)
    assert record.verdict == word, record.verdict_reason
    goal = record.evidence.goal
    assert (goal is not None) == (name in ("compare", "characterise"))
    assert goal is None or goal.relevant_lower_bound is not None


@pytest.mark.parametrize("name", ["quick", "gate", "compare"])
def test_a_machine_that_scatters_seldom_gives_a_verdict_that_is_wrong(
    simulated: SimulatedTestbed, tmp_path: Path, name: str
) -> None:
    words: dict[float, list[str]] = {}
    for capacity in (90_000.0, 112_000.0):
        simulated.capacities, simulated.noise = {FORWARDING: capacity}, 0.05
        settings = {"campaign": load("campaigns", name, Campaign), "floors": floors(share=None)}
        words[capacity] = [
            Started(tmp_path / f"{capacity}-{seed}", simulated, **settings).measure(FORWARD).verdict
            for seed in range(12)
        ]
    assert "met" not in words[90_000.0] and words[90_000.0].count("missed") > 6
    assert "missed" not in words[112_000.0] and words[112_000.0].count("met") > 6


def test_a_floor_beyond_the_generator_is_missed_where_the_dut_itself_ends_far_below(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.capacities |= {FORWARDING: 160_000.0, CABLE.key: 1_260_000.0}
    simulated.generator_limit = 1_260_000.0
    high = floors(**{FORWARDING: {"udp-64-10k": {"pps": ">= 3.9M"}}})
    record = Started(tmp_path, simulated, floors=high).measure(FORWARD)
    assert record.verdict == "missed"
    assert "160.0 k/s" in record.verdict_reason


def test_the_ceiling_is_measured_once_for_each_profile(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    records = [started.measure(FORWARD), started.measure(FORWARD), started.measure(FORWARD, "short-lived")]
    assert simulated.applied.count("cable/none/1cpu-1rxq") == 2
    assert all(record.evidence.ceiling == pytest.approx(CEILING, rel=0.05) for record in records)


def test_a_ceiling_below_the_floor_is_measured_once_more_and_not_for_ever(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.generator_limit = 50_000.0
    started = Started(tmp_path, simulated)
    assert started.measure(FORWARD).verdict == "not measured"
    assert started.measure(FORWARD).evidence.ceiling == pytest.approx(50_000, rel=0.05)
    simulated.generator_limit = CEILING
    assert started.measure(FORWARD).evidence.ceiling == pytest.approx(50_000, rel=0.05)
    assert simulated.applied.count("cable/none/1cpu-1rxq") == 2


def test_a_pause_of_the_machine_spoils_one_ceiling_and_not_the_run(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.generator_limit = 50_000.0
    started = Started(tmp_path, simulated)
    started.measure(FORWARD)
    simulated.generator_limit = CEILING
    record = started.measure(FORWARD)
    assert (record.evidence.ceiling, record.verdict) == (pytest.approx(CEILING, rel=0.05), "met")


def test_a_search_begins_where_a_like_topology_ended(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.offers = frozenset((Rate,))
    started = Started(tmp_path, simulated, floors=floors(share=None))
    forward = started.measure(FORWARD)
    assert forward.evidence.trials[0].trial.load == pytest.approx(101_000)  # nothing is known yet: the floor
    assert forward.result is not None
    assert started.measure(SNAT).evidence.trials[0].trial.load == forward.result.value  # the same datapath and profile
    snat = started.measure(SNAT)
    assert snat.result is not None
    assert snat.evidence.trials[0].trial.load == pytest.approx(snat.result.value, rel=0.05)  # the same ruleset, too
    # Connections are another kind of work.
    assert started.measure(FORWARD, "short-lived").evidence.trials[0].trial.load == pytest.approx(10_100)


def test_a_search_of_tracked_connections_begins_where_another_tracking_ruleset_ended(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    dnat = Topology(datapath="linux-router", ruleset="iptables-dnat")
    simulated.capacities |= {SNAT_KEY: 50_000.0, dnat.key: 45_000.0}
    simulated.offers = frozenset((Rate,))
    promised = floors(**{dnat.key: {"short-lived": {"cps": ">= 10k"}}})
    started = Started(tmp_path, simulated, floors=promised)
    started.measure(FORWARD, "short-lived")
    snat = started.measure(SNAT, "short-lived")
    assert snat.evidence.trials[0].trial.load == pytest.approx(10_100)  # what forwarding did says nothing of tracking
    assert snat.result
    assert started.measure(dnat, "short-lived").evidence.trials[0].trial.load == snat.result.value


def test_a_record_of_packets_says_what_they_cost_and_how_long_they_took(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    record = Started(tmp_path, simulated).measure(FORWARD)
    values = {name: figure.value for name, figure in record.figures.items()}
    assert (values["busy_cpus"], values["cpu_time_per_packet"]) == (0.9, pytest.approx(1e-6))
    assert values["latency_p99"] > 0
    assert (record.metric, record.procedure) == ("pps", "highest-rate")
    assert (record.result, record.figures["pps"].unit) == (record.figures["pps"], "packets/s")


def test_a_missing_floor_is_a_mistake_in_a_file_and_leaves_no_record(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    with pytest.raises(ConfigError, match=r"linux-router/notrack/1cpu-1rxq\.udp-64-10k: is missing"):
        started.measure(Topology(datapath="linux-router", ruleset="notrack"))
    assert started.run.records == []


def test_where_nothing_joins_the_generators_ports_its_ceiling_is_not_known_and_the_record_says_why(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.errors["cable/none/1cpu-1rxq"] = MissingResource("There is no cable.")
    record = Started(tmp_path, simulated).measure(FORWARD)
    assert (record.verdict, record.evidence.ceiling) == ("met", None)
    assert "The generator's ceiling is not known: There is no cable." in record.notes


def test_no_load_is_offered_that_the_generator_is_known_not_to_reach(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.offers = frozenset((Rate,))
    trex = load("testbeds", "local-trex", TestbedConfig)
    slow = trex.model_copy(update={"generator": trex.generator.model_copy(update={"max_pps": 300_000})})
    run = AcceptanceRun(RunSettings(testbed=slow, campaign=campaign(), floors=floors()), tmp_path, lambda _: None)
    record = run.measure(TestName("Suite", "Test"), FORWARD, "udp-64-10k")
    assert max(simulated.loads) <= 300_000
    assert record.campaign.extra["most"] == {"connections": 80_000, "packets": 300_000}


def left(line: str) -> float:
    """Seconds that a line of a trial says are left."""
    found = re.search(r"~(\d+) s$", line.splitlines()[0])
    return float(found[1]) if found else 0.0


def lines_of_trials(said: list[str]) -> list[str]:
    return [line for line in said if re.match(r" +\d+   ", line)]


def test_the_time_left_counts_what_is_measured_after_the_ceiling_and_ends_at_nothing(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)

    lines = lines_of_trials(started.said)
    own, trial_s = len(record.evidence.trials), record.evidence.trials[0].trial.wall_s
    ceiling = lines[: len(lines) - own]
    # A pair, a search of five trials and more and the trials at the floor follow.
    assert [left(line) > 7 * trial_s for line in ceiling] == [True]
    assert left(lines[0]) > left(lines[1]) > 0
    (looked,) = (line for line in started.said if line.startswith("  look"))
    assert left(looked) > 5 * trial_s  # the search is still to come
    assert left(lines[-1]) <= 1  # of the trials at the floor, none was needed


def test_the_time_left_counts_the_repetitions_to_come(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated, campaign=campaign(repetitions=4))
    started.measure(FORWARD)
    once = Started(tmp_path / "once", simulated)
    once.measure(FORWARD)
    lines, of_one = ([left(line) for line in lines_of_trials(each.said)] for each in (started, once))
    assert lines[1] > 3 * of_one[1] > 0
    assert lines[1] > 3 * lines[-1]


def test_the_summary_counts_the_trials_of_ceilings_and_comparisons(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    made = len(simulated.loads)
    others = made - len(record.evidence.trials)
    assert others == 1
    assert f"{made} trials ({others} for ceilings and comparisons): " in started.run.summary()


@dataclass(frozen=True)
class Throughput:
    """A procedure that looks for bits per second, and tries nothing."""

    name: str = "throughput"
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset()
    found_out: Collection[str] = ("bps",)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        return METRICS["bps"]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        return Expected(1, 1.0)

    def run(self, bench: Bench) -> Outcome:
        step = Step(1, "gate", bench.runner(50_000, 0.5), 0.0)
        bench.on_trial(step)
        figures = figures_of(step.observation, METRICS["bps"])
        return Outcome(METRICS["bps"], figures, "dut", "as it was tried", held=True, steps=(step,))


def test_what_is_no_rate_needs_no_ceiling_and_no_baseline_and_is_no_hint_for_a_search(
    simulated: SimulatedTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"pps": ">= 100k", "bps": ">= 1k", "ratio": {"to": FORWARDING, "rate": ">= 60%"}}
    started = Started(tmp_path, simulated, floors=floors(**{SNAT_KEY: {"udp-64-10k": entry}}))
    monkeypatch.setitem(choice.ANSWERS, "throughput", lambda *_: Plan(Throughput()))
    record = started.run.measure(TestName("Suite", "Test"), SNAT, "udp-64-10k", "throughput")
    assert simulated.applied == [SNAT_KEY]
    assert (record.verdict, record.metric, record.procedure) == ("met", "bps", "throughput")
    assert [each.metric for each in record.thresholds] == ["bps"]
    assert "ratio" not in record.figures
    after = started.measure(SNAT)
    assert after.evidence.trials[0].trial.load == pytest.approx(0.97 * 280_000)  # what the pair showed


class OtherTestbed(SimulatedTestbed):
    """One that answers how many connections there are."""

    def connections(self) -> int:
        return 7


def test_a_campaign_may_have_the_table_sampled_where_the_dut_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = OtherTestbed({FORWARDING: 400_000.0})
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    started = Started(tmp_path, testbed, campaign=campaign(probes=["table_entries"]))
    record = started.measure(FORWARD)
    assert {series.name for series in record.evidence.series} == {"table_entries"}
    assert {value for series in record.evidence.series for value in series.values} == {7}
    assert started.run.measure(TestName("Suite", "Cable"), CABLE, "short-lived").evidence.series == []

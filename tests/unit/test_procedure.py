"""Procedures: what they need, what they find out, how long they take, and what is sampled meanwhile."""

from dataclasses import dataclass, field, replace
from time import sleep

import pytest

from ctbench.base.errors import ConfigError, GeneratorError, MissingResource, TestbedError
from ctbench.measure.campaign import GateSettings
from ctbench.measure.probe import TableEntries, after_sample
from ctbench.measure.procedure import Bench, Decision, Outcome, require
from ctbench.measure.procedures.rates import AtFloor, HighestRate
from ctbench.measure.trial import Step, series_of
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Figure
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Idle, Load, Rate
from ctbench.traffic.profiles import Profile

from .healthy import HealthyDut
from .simulated import LIMITS, SHORT, campaign, made_up_trial


@dataclass
class SharpDut(HealthyDut):
    """A DUT with a sharp capacity, and its generator; a trial takes until its table was asked for so many entries."""

    capacity: float
    until_entries: int = 0
    error: Exception | None = None
    entries: int = 0
    offered: list[Load] = field(default_factory=list)

    def connections(self) -> int:
        self.entries += 10
        if self.entries == 20:
            raise TestbedError("`ovs-appctl` failed")
        return self.entries

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.offered.append(load)
        for _ in range(1000):
            if self.entries >= self.until_entries:
                break
            sleep(0.01)
        if self.error:
            raise self.error
        loss = 0.0 if load.per_s <= self.capacity else 1 - self.capacity / load.per_s
        return made_up_trial(load.per_s, duration_s, loss=loss)


def bench(dut: SharpDut, told: list[Step] | None = None, **more: object) -> Bench:
    tell = told.append if told is not None else lambda _step: None
    return Bench(dut, dut, SHORT, LIMITS, campaign(), on_trial=tell, **more)  # type: ignore[arg-type]


def test_the_highest_rate_is_a_figure_between_what_held_and_what_did_not_with_the_others_of_its_trial() -> None:
    outcome = HighestRate(campaign().search_for(SHORT)).run(bench(SharpDut(300_000)))
    assert outcome.result is not None and outcome.upper_bound is not None
    assert (outcome.metric.name, outcome.kept_conditions, outcome.limited_by) == ("cps", True, "dut")
    assert outcome.result.low == outcome.result.value <= 300_000 * 1.0002
    assert outcome.result.high == outcome.upper_bound > 300_000
    assert outcome.figures["pps"].unit == "packets/s"
    assert outcome.figures["connect_time_p99"].value == pytest.approx(200e-6)


def test_repetitions_are_samples_of_one_figure_and_the_time_left_counts_those_to_come() -> None:
    told: list[Step] = []
    outcome = HighestRate(campaign().search_for(SHORT), repetitions=3).run(bench(SharpDut(300_000), told))
    assert outcome.result is not None
    assert len(outcome.result.samples) == 3
    assert [step.number for step in outcome.steps] == list(range(1, len(told) + 1))
    assert [step.number for step in told] == list(range(1, len(told) + 1))
    # A repetition begins where the one before ended: at the load that its result stands on.
    loads, ends = [step.observation.load for step in told], outcome.result.samples[:-1]
    begins = [told[0].left_s, *(told[len(loads) - 1 - loads[::-1].index(load)].left_s for load in ends)]
    assert begins == sorted(begins, reverse=True)
    assert begins[0] > 2 * begins[-1] > 0
    assert told[-1].left_s == 0


def test_at_the_floor_the_load_that_held_is_the_figure_and_a_lower_bound() -> None:
    how = GateSettings.model_validate({"trial_duration": "5s", "headroom": "1%"})
    held = AtFloor(how).run(bench(SharpDut(300_000), floor_load=50_000.0))
    assert held.result is not None
    assert (held.kept_conditions, held.limited_by, held.result.value, held.result.high) == (True, "floor", 50_000, None)
    missed = AtFloor(how).run(bench(SharpDut(40_000), floor_load=50_000.0))
    assert missed.result is not None
    assert (missed.kept_conditions, missed.result.value) == (False, pytest.approx(40_000))
    assert AtFloor(how).headroom == 0.01


def test_where_no_rate_is_promised_there_is_nothing_to_try() -> None:
    how = GateSettings.model_validate({"trial_duration": "5s", "headroom": "1%"})
    with pytest.raises(ConfigError, match="no rate is promised"):
        AtFloor(how).run(bench(SharpDut(300_000)))


def test_a_generator_that_breaks_is_an_outcome_and_keeps_the_trials_made_until_then() -> None:
    outcome = HighestRate(campaign().search_for(SHORT)).run(bench(SharpDut(1, error=GeneratorError("The link broke."))))
    assert (outcome.limited_by, outcome.figures, outcome.kept_conditions) == ("fault", {}, False)
    assert outcome.reason.startswith("The link broke, in trial 1")


def test_what_a_test_found_is_merged_and_what_looked_for_its_rate_speaks() -> None:
    at = bench(SharpDut(300_000), floor_load=50_000.0)
    search = HighestRate(campaign().search_for(SHORT)).run(at)
    floor = AtFloor(GateSettings.model_validate({"trial_duration": "1s"})).run(replace(at, earlier=search))
    detail = Outcome(METRICS["saturation_cps"], {"saturation_cps": Figure(310e3, "connections/s")}, "dut", "", True, ())
    ratio = Outcome(METRICS["ratio"], {}, "dut", "", True, (), decisions={"ratio": Decision(True, "it is")})
    merged = ratio.merged(detail).merged(search).merged(floor)
    assert (merged.metric.name, merged.limited_by, merged.reason) == ("cps", "dut", search.reason)
    assert merged.result == search.result
    assert merged.figures["saturation_cps"].value == 310e3
    assert set(merged.decisions) == {"ratio", "cps"}
    assert [step.number for step in merged.steps] == list(range(1, len(search.steps) + len(floor.steps) + 1))
    broken = replace(floor, limited_by="fault", reason="It broke.")
    assert (search.merged(broken).limited_by, search.merged(broken).reason) == ("fault", "It broke.")


def test_a_trial_of_the_search_that_confirms_is_not_made_again() -> None:
    at = bench(SharpDut(300_000), floor_load=50_000.0)
    search = HighestRate(campaign().search_for(SHORT)).run(at)
    found = AtFloor(GateSettings.model_validate({"trial_duration": "500ms"})).run(replace(at, earlier=search))
    assert (found.steps, found.decisions["cps"].kept) == ((), True)


@dataclass(frozen=True)
class HoldsConnections(HighestRate):
    """A procedure that needs what no generator and no DUT here has."""

    name: str = "table-capacity"
    loads: frozenset[type[Load]] = frozenset((Rate, Hold))
    abilities: frozenset[str] = frozenset(("connections",))  # type: ignore[assignment]


def test_a_procedure_that_needs_what_the_testbed_cannot_is_told_what_is_missing() -> None:
    procedure = HoldsConnections(campaign().search_for(SHORT))
    with pytest.raises(MissingResource) as error:
        require(procedure, frozenset((Rate, Idle)), frozenset(("connections",)))
    assert str(error.value) == (
        "Procedure table-capacity needs a number of connections that stay open; the traffic generator of this testbed "
        "offers a rate of connections or packets and an idle time."
    )
    with pytest.raises(MissingResource, match="asks the DUT for connections; this kind of DUT answers nothing"):
        require(procedure, frozenset((Rate, Hold)), frozenset())
    require(procedure, frozenset((Rate, Hold)), frozenset(("connections",)))


def test_a_probe_samples_while_the_load_is_offered_and_says_where_it_could_not() -> None:
    dut = SharpDut(300_000, until_entries=30)
    seen = bench(dut, probes=[TableEntries(dut.connections, every_s=0.005)]).runner(1000, 0.5)
    (samples,) = seen.samples
    assert (samples.name, samples.unit, samples.every_s) == ("table_entries", "entries", 0.005)
    # The second could not be taken; on a busy machine others were missed as well.
    assert [value for value in samples.values if value is not None][:2] == [10, 30]
    assert None in samples.values
    first, second = series_of([Step(4, "search", seen, 0.0), Step(5, "search", seen, 0.0)])
    assert (first.trial, first.name, list(first.values)) == (1, "table_entries", samples.values)
    assert second.trial == 2, "as the record counts its trials"


def test_a_probe_ends_with_the_trial_whatever_ends_it() -> None:
    dut = SharpDut(300_000, error=GeneratorError("The link broke."))
    with pytest.raises(GeneratorError):
        bench(dut, probes=[TableEntries(dut.connections, every_s=0.001)]).runner(1000, 0.5)
    taken = dut.entries
    sleep(0.02)
    assert dut.entries == taken


@pytest.mark.parametrize(
    ("taken_s", "missed", "next_s"), [(0.001, 0, 0.1), (0.15, 0, 0.1), (0.25, 1, 0.2), (1.05, 9, 1.0)]
)
def test_a_slow_probe_leaves_out_the_samples_that_were_due_meanwhile(
    taken_s: float, missed: int, next_s: float
) -> None:
    assert after_sample(0.0, taken_s, 0.1) == (missed, pytest.approx(next_s))


def test_a_rate_that_held_later_counts_where_the_search_had_found_less() -> None:
    def found(rate: float, held: bool = True) -> Outcome:
        return Outcome(METRICS["cps"], {"cps": Figure(value=rate, unit="connections/s")}, "dut", "", held, ())

    assert found(16e3).merged(found(17e3)).figure(METRICS["cps"]) == 17e3
    assert found(39e3).merged(found(17e3)).figure(METRICS["cps"]) == 39e3
    assert found(16e3).merged(found(17e3, held=False)).figure(METRICS["cps"]) == 16e3

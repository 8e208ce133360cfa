"""The rate that lasts: a table that is filled first, a trial over two sweeps, and a search where there is time."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Code, Outcome
from ctbench.measure.procedures.sustained import Sustained
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

from .simulated import made_up_trial
from .table_double import TableDouble, table_bench


@dataclass
class Lasting(TableDouble):
    """A DUT that holds a rate and no more for long, and sweeps its table each 20 s."""

    limit: int = 5_000_000
    holds: float = 50_000.0
    offered: list[tuple[float, float]] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.offered.append((load.per_s, duration_s))
        self.entries += int(load.per_s * duration_s)
        return made_up_trial(load.per_s, duration_s, loss=0.0 if load.per_s <= self.holds else 0.3)

    @property
    def tried(self) -> list[float]:
        return [round(per_s) for per_s, seconds in self.offered if seconds >= 40]


def sustained(dut: Lasting, trials: int = 0, promised: float = 20_000.0, **more: Any) -> Outcome:
    bench = table_bench(dut, how=TableSettings(sustained=trials), limits={"sustained_cps": promised})
    return Sustained().run(replace(bench, **more))


def test_the_table_is_filled_to_what_the_rate_leaves_before_two_sweeps_count() -> None:
    dut = Lasting()
    found = sustained(dut)
    assert dut.offered == [(40_000.0, 10.5), (20_000.0, 40.0)]  # 1 s and a sweep of 20 s, at twice the rate
    assert [(each.expected, each.found) for each in found.evidence.table] == [(420_000, 420_000)]
    assert found.decisions["sustained_cps"].kept is True and found.limited_by == "floor"
    assert found.result is not None and found.result.value == 20_000 and len(found.steps) == 1


def test_a_rate_that_does_not_last_is_missed_by_one_valid_trial() -> None:
    found = sustained(Lasting(holds=19_000.0))
    assert found.decisions["sustained_cps"].kept is False and len(found.steps) == 1
    assert found.result is not None and found.result.value < 20_000 and not found.kept_conditions


def test_an_invalid_trial_is_made_once_more_and_then_nothing_is_decided() -> None:
    spoilt = [Problem("invalid", "the machine slept")]
    again = sustained(Lasting(problems=[spoilt, []]))
    assert [step.observation.state for step in again.steps] == ["invalid", "good"]
    assert again.decisions["sustained_cps"].kept is True
    never = sustained(Lasting(problems=[spoilt] * 9), trials=4)
    assert len(never.steps) == 2 and never.limited_by == "generator" and not never.figures
    assert never.decisions["sustained_cps"].code is Code.INVALID


def test_a_search_halves_what_is_between_loads_that_held_and_did_not() -> None:
    up = Lasting()
    found = sustained(up, trials=4)
    assert found.limited_by == "dut" and found.result is not None
    assert up.tried[0] == 20_000 and found.result.value == max(per_s for per_s in up.tried if per_s <= up.holds)
    assert found.result.value > 40_000 and found.decisions["sustained_cps"].kept is True
    down = Lasting(holds=9000.0)
    below = sustained(down, trials=4)
    assert below.result is not None and 6000 < below.result.value <= 9000 and below.kept_conditions
    assert below.decisions["sustained_cps"].kept is False  # by its own trial, whatever holds


def test_a_table_that_is_too_small_is_the_limit_and_is_said_so() -> None:
    dut = Lasting(limit=1_550_000, holds=1e6)  # entries for 50 k/s with half a sweep more
    found = sustained(dut, trials=9)
    assert found.limited_by == "range" and "the table is the limit" in found.reason and max(dut.tried) < 50_000
    with pytest.raises(MissingResource, match=r"table is the limit: .* 645.* promised: promise less"):
        sustained(Lasting(limit=20_000))
    assert sustained(Lasting(), most_held=700_000.0).limited_by == "floor"
    with pytest.raises(MissingResource):
        sustained(Lasting(), most_held=600_000.0)


def test_what_is_not_promised_is_a_mistake_of_the_files() -> None:
    with pytest.raises(ConfigError, match="sustained_cps"):
        Sustained().run(table_bench(Lasting(), limits={}))

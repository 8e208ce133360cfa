"""The rate that lasts: a table that is filled first, a trial over two sweeps, and a search where there is time."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Code, Outcome
from ctbench.measure.procedures.sustained import SUSTAINED_RATE
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

from .simulated import floor_of, made_up_trial
from .table_double import TableDouble, table_bench

SPOILT = [Problem("invalid", "the machine slept")]
BUSY = [Problem("disturbed", "Other processes took 2.0 % of a PMD CPU.", cpu_taken=0.02)]


@dataclass
class Lasting(TableDouble):
    """A DUT that holds a rate and no more for long, and sweeps its table each 20 s."""

    limit: int = 5_000_000
    holds: float = 50_000.0
    forgets: bool = True
    offered: list[tuple[float, float]] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.offered.append((load.per_s, duration_s))
        self.entries += int(load.per_s * duration_s)
        self.entries = min(self.entries, int(load.per_s * (1 + self.sweep_s)))
        if not self.forgets:
            self.entries = 786_061  # as seen of 3.5.0, whose entries stay for 45 s
            time.sleep(0.1)
        return made_up_trial(load.per_s, duration_s, loss=0.0 if load.per_s <= self.holds else 0.3)


def sustained(dut: Lasting, trials: int = 0, **more: Any) -> Outcome:
    bench = table_bench(dut, how=TableSettings(sustained=trials), limits={"sustained_cps": 20_000.0})
    return SUSTAINED_RATE.run(replace(bench, **more))


def test_the_table_is_filled_to_what_the_rate_leaves_before_two_sweeps_count() -> None:
    found = sustained(dut := Lasting())
    assert dut.offered == [(40_000.0, 10.5), (20_000.0, 40.0)]  # 1 s and a sweep of 20 s, at twice the rate
    assert [(each.expected, each.found) for each in found.evidence.table] == [(420_000, 420_000)]
    assert (found.decisions["sustained_cps"].kept, found.limited_by) == (True, "floor")


@pytest.mark.parametrize(
    ("dut", "trials", "made", "kept", "limited_by", "least", "most"),
    [
        (Lasting(holds=19_000), 0, 1, False, "dut", 10_000, 19_000),
        (Lasting(problems=[[], SPOILT, [], []]), 0, 2, True, "floor", 20_000, 20_000),
        (Lasting(problems=[[], BUSY, [], []]), 0, 1, True, "floor", 20_000, 20_000),  # it held all the same
        (Lasting(holds=19_000, problems=[[], BUSY, [], []]), 0, 2, False, "dut", 10_000, 19_000),  # tried again
        (Lasting(problems=[SPOILT, []]), 0, 1, True, "floor", 20_000, 20_000),  # only while the table was filled
        # A search halves what is between loads that held and did not; the promise is decided by its own trial.
        (Lasting(), 4, 5, True, "dut", 45_000, 50_000),
        (Lasting(holds=9000), 4, 5, False, "dut", 8000, 9000),
        (Lasting(limit=1_550_000, holds=1e6), 9, 6, True, "range", 47_000, 50_000),  # entries for 50 k/s
    ],
)
def test_a_rate_lasts_or_not(
    dut: Lasting, trials: int, made: int, kept: bool, limited_by: str, least: float, most: float
) -> None:
    found = sustained(dut, trials)
    assert (len(found.trials), found.decisions["sustained_cps"].kept) == (made, kept)
    assert found.limited_by == limited_by and found.result is not None and least <= found.result.value <= most
    assert ("the table is the limit" in found.reason) is (limited_by == "range")


def test_a_rate_is_not_sustained_by_a_table_whose_entries_outlive_their_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ctbench.measure.procedures.sustained._EVERY_S", 0.005)
    found = sustained(Lasting(forgets=False))
    assert found.decisions["sustained_cps"].kept is False
    assert "entries outlive their timeout" in found.reason


def test_what_says_nothing_or_has_no_room_decides_nothing() -> None:
    found = sustained(Lasting(problems=[SPOILT] * 9), trials=4)
    assert len(found.trials) == 2 and not found.figures and found.decisions["sustained_cps"].code is Code.INVALID
    for small in ({"dut": Lasting(limit=600_000)}, {"dut": Lasting(), "most_held": 600_000.0}):
        with pytest.raises(MissingResource, match="the table is the limit"):
            sustained(**small)
    with pytest.raises(ConfigError, match="sustained_cps"):
        sustained(Lasting(), floor=floor_of())

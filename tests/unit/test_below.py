"""Times below the edge: what is offered, what is decided by it, and when nothing is."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.below import Below
from ctbench.measure.promises import PROMISES
from ctbench.report import figures
from ctbench.results.floor import Floor
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code
from ctbench.run.measurement import plan
from ctbench.traffic.generator import Times, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import Profile

from .simulated import (
    SHORT,
    SimulatedDut,
    campaign,
    found,
    judged,
    made_up_floor,
    made_up_record,
    made_up_trial,
    outcome_of,
    promises,
)
from .table_double import WITHOUT_PAUSES

#: What the search before it found to hold, and what is promised.
HELD = outcome_of(found(100_000))
CONNECT, FIRST = "connect_time_p99_at_half", "first_byte_p99_at_half"
FLOOR = replace(
    made_up_floor(pps=None),
    thresholds=promises(cps=">= 48.2k", loss_ratio="<= 0.02%", connect_time_p99_at_half="<= 500us"),
)


@dataclass
class TimedDut(SimulatedDut):
    """One whose trials are, one after the other, what `yields` says."""

    yields: Callable[[int], dict[str, object]] = lambda _number: {}

    def run_trial(self, _profile: Profile | None, load: Load, duration_s: float) -> Trial:
        self.loads.append(load.per_s)
        made, changes = made_up_trial(load.per_s, duration_s), self.yields(len(self.loads))
        return made.model_copy(update={"first_byte_us": Times(p50=300, p99=450, max=900), **changes})


def late(p99_us: float) -> dict[str, object]:
    return {"connect_time_us": Times(p50=100, p90=150, p99=p99_us, p999=p99_us * 2, max=p99_us * 3)}


LOST = {"completed": 0, "failed": {"no_syn_ack": 1}}
DISTURBED = {"generator_disturbed": "it paused for 20 ms"}


def measured(
    *trials: dict[str, object], shares: tuple[float, ...] = (), earlier: Outcome | None = HELD, floor: Floor = FLOOR
) -> tuple[Outcome, TimedDut]:
    """What becomes of these trials, the last of which is repeated."""
    dut = TimedDut(1e6, yields=lambda number: (trials or ({},))[min(number, len(trials) or 1) - 1])
    bench = Bench(dut, dut, floor, campaign(), earlier=earlier, repetitions=WITHOUT_PAUSES())
    return Below(shares, 1.0).run(bench), dut


def test_each_share_of_what_is_held_is_offered_once_and_its_percentiles_are_kept() -> None:
    nothing_promised = made_up_floor()
    found, dut = measured(late(250), shares=(0.1, 0.5, 0.9), floor=nothing_promised)
    assert dut.loads == pytest.approx([10_000, 50_000, 90_000])
    assert [(each.trial, each.share) for each in found.evidence.below] == [(3, 0.1), (4, 0.5), (5, 0.9)]
    assert found.evidence.below[0].times_us["connect time"].p999 == 500
    values = {name: figure.value for name, figure in found.figures.items()}
    assert values == pytest.approx({CONNECT: 250e-6, FIRST: 450e-6})
    assert found.verdicts == {} and found.trials[0].phase == "below"
    merged = HELD.merged(found)
    assert merged.metric is HELD.metric and merged.figures["cps"] == HELD.figures["cps"]


@pytest.mark.parametrize(
    ("trials", "word", "code"),
    [
        ([late(200), late(499), late(500)], "met", Code.FIGURE),
        ([late(501), late(900), late(700)], "missed", Code.RANGE),
        ([late(200), late(200), late(501)], "not measured", Code.TOO_CLOSE),
        # What was lost never arrives, however soon the others came.
        ([late(200) | LOST], "missed", Code.RANGE),
        ([late(200), late(200) | LOST, late(200)], "not measured", Code.TOO_CLOSE),
        # Another process makes packets late without a loss.
        ([late(900) | DISTURBED], "not measured", Code.INVALID),
        ([late(200) | DISTURBED], "not measured", Code.INVALID),
        ([{"connect_time_us": None}], "not measured", Code.NOTHING),
        ([{"connect_time_us": Times(p50=100, max=900)}], "not measured", Code.NOTHING),  # too few
    ],
)
def test_three_trials_at_half_decide_where_they_agree(trials: list[dict[str, object]], word: str, code: Code) -> None:
    found, dut = measured(*trials)
    verdict = judged(HELD.merged(found), FLOOR, 105_000)  # a ceiling of the generator excuses no latency
    assert (verdict.word, verdict.code) == (word, code)
    assert set(dut.loads) == {50_000}
    if word == "missed":
        assert "TCP connect time at half of what is held (p99)" in verdict.reason


def test_nothing_is_offered_where_it_is_not_known_what_is_held() -> None:
    for earlier in (None, replace(HELD, kept_conditions=False), replace(HELD, figures={})):
        found, dut = measured(earlier=earlier)
        assert dut.loads == [] and found.verdicts[CONNECT].code is Code.NOTHING
    assert judged(HELD.merged(found), FLOOR).word == "not measured"


@pytest.mark.parametrize(
    ("name", "floor", "shares"),
    [
        ("quick", made_up_floor(), None),
        ("quick", FLOOR, []),
        ("gate", FLOOR, []),
        ("night", made_up_floor(), [0.1, 0.5, 0.9]),
        ("characterise", made_up_floor(), [0.1, 0.5, 0.9]),
    ],
)
def test_quick_makes_no_such_trial_unless_one_is_promised(name: str, floor: Floor, shares: list[float] | None) -> None:
    planned = plan(PROMISES["connection rate"], load("campaigns", name, Campaign), Topology(), SHORT)
    last = planned.alone(floor, frozenset())[-1]
    assert (list(last.shares) if isinstance(last, Below) else None) == shares


def test_the_page_shows_them_before_those_of_full_queues() -> None:
    found, _ = measured(late(250), late(250) | LOST, shares=(0.1, 0.5), floor=made_up_floor())
    record = made_up_record(evidence=made_up_record().evidence.model_copy(update={"below": found.evidence.below}))
    calm, lossy = map(figures.below_edge, record.evidence.below)
    assert calm.startswith("10.0 % of what is held (10.0 k/s): connect time p50 100 us, p90 150 us, p99 250 us, p99.9 ")
    assert calm.endswith("; first byte p50 300 us, p99 450 us, longest 900 us")
    assert "of the connections were lost" in lossy and "p99" not in lossy
    assert figures.at_edge(record).startswith("TCP connect time (p99) 200 us")
    assert "connect time" not in figures.also_measured(record)


def test_a_share_is_between_nothing_and_all() -> None:
    assert campaign(latency=["10%", "90%"]).latency == [0.1, 0.9]
    for share in ("0%", "100%"):
        with pytest.raises(ValueError, match="latency"):
            campaign(latency=[share])
    assert METRICS[CONNECT].operator == "<="

"""What is measured at the highest load: which share of the time of a thread locks have, and how many new datapath flows
there are per second; what counts, what decides a promise, and what says nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import ThreadSamples
from ctbench.dut.ovs.threads import _LOCK
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures import highest_load
from ctbench.measure.procedures.highest_load import LOCK_SHARE, NEW_FLOWS, TRIALS
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.results import store
from ctbench.results.evidence import Evidence
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import Profile

from .simulated import HealthyDut, campaign, floor_of, made_up_record, made_up_trial

FUNCTIONS = {
    "conn_key_lookup [ovs-vswitchd]": 2500,
    "pthread_mutex_lock [libc.so.6]": 300,
    "+0x8720 [librte_net_memif.so]": 200,
}


@dataclass
class Sampled(HealthyDut):
    """A DUT one of whose threads is seen in some functions, and its generator."""

    functions: Mapping[str, int] = field(default_factory=lambda: FUNCTIONS)
    refused: str = ""
    busy: float = 0.95
    limited: str = ""
    dies: str = ""
    offers: frozenset[type[Load]] = frozenset((Rate, Saturation))
    offered: list[Load] = field(default_factory=list)

    def sample_thread(self, seconds: float) -> ThreadSamples:
        if self.refused:
            raise TestbedError(self.refused)
        locks = frozenset(filter(_LOCK.search, self.functions))
        return ThreadSamples(1, 199, seconds, seconds, 0.0, self.functions, locks, self.busy)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.offered.append(load)
        if self.dies and len(self.offered) > 1:
            raise TestbedError(self.dies)
        rate = load.per_s if isinstance(load, Rate) else 50_000.0
        made = made_up_trial(rate, duration_s, generator_limited=self.limited)
        return made if isinstance(load, Rate) else made.model_copy(update={"under_way": 512})


def measured(dut: Sampled, limit: float | None = None) -> Outcome:
    limits = {} if limit is None else {"mutex_share": limit}
    return LOCK_SHARE.run(Bench(dut, dut, floor_of(**limits), campaign()))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highest_load, "_BEFORE_S", 0.0)


def test_the_share_of_locks_is_that_of_their_functions_in_a_trial_of_its_own() -> None:
    dut = Sampled()
    found = measured(dut)
    assert found.result is not None and found.result.value == pytest.approx(0.1)
    assert 0.08 < found.result.low < 0.1 < found.result.high < 0.12
    assert [each.phase for each in found.trials] == ["saturation", "samples"]
    assert found.figures["saturation_cps"].value == 50_000
    assert [type(load) for load in dut.offered] == [Saturation, Saturation]
    (record,) = found.evidence.profiles
    assert (record.samples, record.locks, record.rate_before) == (3000, 300, 50_000)
    assert [each.name for each in record.functions if each.lock] == ["pthread_mutex_lock [libc.so.6]"]
    assert "3000 samples of CPU 1" in found.reason and "conn_key_lookup [ovs-vswitchd] 83.3 %" in found.reason


def test_without_a_closed_loop_the_highest_rate_is_searched_first() -> None:
    dut = Sampled(offers=frozenset((Rate,)))
    found = measured(dut)
    assert isinstance(dut.offered[-1], Rate) and len(dut.offered) > 2
    assert found.trials[-1].phase == "samples" and found.result is not None


def test_the_page_has_the_functions(tmp_path: Path) -> None:
    found = measured(Sampled())
    evidence = Evidence(trials=[each.as_record() for each in found.trials], profiles=list(found.evidence.profiles))
    store.write(made_up_record(evidence=evidence), tmp_path)
    (row,) = compose(read_runs([tmp_path]), tmp_path).rows
    (said,) = row.details["Time of a thread"]
    assert "100 % of the rate without samples): locks 10.0 %; 83.3 % conn_key_lookup [ovs-vswitchd]" in said


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
        self.made += 1
        if self.made == self.dies_in:
            raise TestbedError("ovs-vswitchd died.")
        rate = self.rates[self.made - 1]
        made = made_up_trial(rate, duration_s, generator_limited=self.limited)
        self.sent = made.packets_sent
        return made.model_copy(update={"under_way": 512})


def counted(dut: Upcalling, limit: float | None = None) -> Outcome:
    limits = {} if limit is None else {"new_flow_rate": limit}
    return NEW_FLOWS.run(Bench(dut, dut, floor_of(**limits), campaign()))


def test_the_figure_is_the_median_of_trials_without_flows_of_packets_that_made_one() -> None:
    dut = Upcalling()
    found = counted(dut)
    assert found.result is not None and found.result.value == pytest.approx(7 * 20_400)
    assert found.result.low < found.result.value < found.result.high
    assert dut.forgot == dut.made == len(found.trials) == TRIALS
    assert "packets got a datapath flow of their own, in 9 closed loops" in found.reason
    found = counted(Upcalling(rates=[20_000.0] * 9, failed=0.25))
    assert found.result is not None and found.result.value == pytest.approx(7 * 20_000 * 0.75, rel=1e-3)
    assert "got none" in found.reason


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        *((partial(measured, Sampled(), limit), kept) for limit, kept in ((0.2, True), (0.05, False), (0.1, None))),
        *(
            (partial(counted, Upcalling(), limit), kept)
            for limit, kept in ((100_000, True), (200_000, False), (142_800, None))
        ),
    ],
)
def test_a_promise_is_decided_by_the_interval(found: Callable[[], Outcome], kept: bool | None) -> None:
    (verdict,) = found().verdicts.values()
    assert (verdict.kept, verdict.code) == (kept, Code.TOO_CLOSE if kept is None else Code.INTERVAL)


@pytest.mark.parametrize(
    ("dut", "limited_by", "reason"),
    [
        (Sampled(refused="Nothing can sample it."), "fault", "Nothing can sample it"),
        (Sampled(busy=0.3), "generator", "the thread had packets for 30 % of the time only"),
        (Sampled(functions={"f [x]": 299}), "dut", "299 samples say nothing"),
        (Sampled(limited="late"), "generator", "the highest load is not known: late"),
        (Sampled(dies="ovs-vswitchd died."), "fault", "ovs-vswitchd died, in trial 2"),
        (Upcalling(new=0.5), "dut", "only 50 % of the packets were the first of their flow"),
        (Upcalling(limited="late"), "generator", "0 of 12 trials count, of 9 that are needed: late"),
        (Upcalling(dies_in=3), "fault", "ovs-vswitchd died, in trial 3"),
    ],
)
def test_what_says_nothing_says_why(dut: Sampled | Upcalling, limited_by: str, reason: str) -> None:
    found = measured(dut, 0.2) if isinstance(dut, Sampled) else counted(dut, 1.0)
    assert (found.limited_by, found.figures) == (limited_by, {})
    assert reason in found.reason

"""Where the time of a thread that forwards goes at the highest load, and which share of it locks have: in a trial made
for it, which nothing else is judged by (as perf was used in the measurements of 2022)."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from ctbench.base.errors import TestbedError
from ctbench.dut.kind import Ability
from ctbench.dut.sampling import SampledDut, ThreadSamples
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.loss import limits_in
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.procedures.saturation import served
from ctbench.measure.trial import Step, broken_trial
from ctbench.results.evidence import FunctionSamples, ProfileRecord
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, SATURATION_OF, Metric
from ctbench.traffic.loads import Load, Rate, saturating
from ctbench.traffic.profiles import PacketProfile, Profile

METRIC = METRICS["mutex_share"]
#: Seconds that the load gets to begin before the first sample, and to go on after the last one.
_BEFORE_S, _AFTER_S = 1.0, 0.5
#: A thread that has packets for less of the time is not at its highest load, or was sampled before or after it. At that
#: load it has them for 95 to 97 %.
LEAST_BUSY = 0.8
#: Samples that say something.
LEAST_SAMPLES = 300
#: Functions that the record has at least, those with the most samples.
_SHOWN = 30
#: Of a normal distribution: what 99 % of it is within.
_Z = 2.576


@dataclass
class _SamplesOfAThread:
    """A probe that is asked once."""

    dut: SampledDut
    #: Seconds until the load is there, and that are sampled.
    wait_s: float
    seconds: float
    name: str = METRIC.name
    unit: str = "ratio"
    every_s: float = 3600.0
    found: ThreadSamples | None = None
    error: str = ""

    def before(self) -> None:
        """See `Probe.before`: nothing has to be made ready."""

    def sample(self) -> float:
        """See `Probe.sample`: the share of locks."""
        time.sleep(self.wait_s)
        try:
            self.found = self.dut.sample_thread(self.seconds)
        except TestbedError as error:
            self.error = str(error)
            raise
        return self.found.of_locks / max(1, self.found.samples)

    def after(self) -> None:
        """See `Probe.after`: nothing has to be put back."""


@dataclass(frozen=True)
class LockShare:
    """Implements `Procedure`."""

    name: str = "lock-share"
    times: tuple[str, ...] = (METRIC.name,)
    #: A closed loop where the generator has one; else the highest rate, which is searched first.
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset({"samples"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return Expected(1, campaign.control_plane.trial_duration + _BEFORE_S + _AFTER_S)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        assert isinstance(bench.dut, SampledDut), "its ability was required"
        steps: list[Step] = []
        if bench.earlier is None:  # no closed loop
            found = HighestRate(bench.campaign.search_for(bench.profile, closed_loop=False)).run(bench)
            steps, rate = list(found.steps), found.figure(bench.rate_metric)
            load: Load | None = Rate(rate) if rate else None
            why, limited_by = found.reason, found.limited_by
        else:
            rate = bench.earlier.figure(SATURATION_OF[bench.profile.kind])
            load = saturating(bench.profile) if rate else None
            why, limited_by = bench.earlier.reason, bench.earlier.limited_by
        if load is None:
            return Outcome(METRIC, {}, limited_by, f"the highest load is not known: {why}", held=False,
                           steps=tuple(steps))  # fmt: skip
        duration_s, ramp_s = bench.campaign.control_plane.trial_duration, _ramp_s(load, bench)
        probe = _SamplesOfAThread(bench.dut, _BEFORE_S + ramp_s, duration_s)
        # Whatever it loses, it is no trial that a rate is judged by.
        conditions = dict.fromkeys(limits_in(bench.conditions), 1.0)
        runner = replace(bench, conditions=conditions, probes=(*bench.probes, probe)).runner
        number = bench.made + len(steps) + 1
        try:
            seen = runner.offer(load, _BEFORE_S + duration_s + _AFTER_S)
        except TestbedError as error:
            reason = broken_trial(number, rate or 0.0, str(error))
            return Outcome(METRIC, {}, "fault", reason, held=False, steps=tuple(steps))
        steps.append(Step(len(steps) + 1, "samples", seen, 0.0))
        bench.on_trial(steps[-1])
        return _outcome(bench, probe, number, seen, rate, steps)


def _ramp_s(load: Load, bench: Bench) -> float:
    """Seconds that a load takes until it counts: in a closed loop all is under way at once."""
    profile = bench.profile
    if not isinstance(load, Rate):
        return 0.0
    return profile.flows / load.per_s if isinstance(profile, PacketProfile) else profile.lifetime_s


def _outcome(
    bench: Bench, probe: _SamplesOfAThread, number: int, seen: Observation, before: float | None, steps: list[Step]
) -> Outcome:
    found, made = probe.found, tuple(steps)
    if seen.fault:
        return Outcome(METRIC, {}, "fault", broken_trial(number, before or 0.0, seen.fault), held=False, steps=made)
    if found is None:
        return Outcome(METRIC, {}, "fault", probe.error or "no thread was sampled", held=False, steps=made)
    record = _record(found, number, served(seen), before)
    if seen.state == "invalid":
        return Outcome(METRIC, {}, "generator", seen.reason, held=False, steps=made, profiles=(record,))
    if found.samples < LEAST_SAMPLES:
        reason = f"{found.samples} samples say nothing: at least {LEAST_SAMPLES} are needed"
        return Outcome(METRIC, {}, "dut", reason, held=False, steps=made, profiles=(record,))
    if found.busy < LEAST_BUSY:
        reason = f"the thread had packets for {found.busy * 100:.0f} % of the time only: not at its highest load"
        return Outcome(METRIC, {}, "generator", reason, held=False, steps=made, profiles=(record,))
    low, share, high = interval(found.of_locks, found.samples)
    figure = Figure(value=share, unit=METRIC.unit.name, low=low, high=high)
    limit = bench.limits.get(METRIC.name)
    decisions = {} if limit is None else {METRIC.name: _decide(record, low, high, limit)}
    return Outcome(
        METRIC, {METRIC.name: figure}, "dut", sentence(record), held=True, steps=made, decisions=decisions,
        profiles=(record,),
    )  # fmt: skip


def interval(some: int, of: int) -> tuple[float, float, float]:
    """The least, the share itself, and the most that a share of `some` samples of so many stands for, by the 99 %
    interval of Wilson."""
    share, spread = some / of, _Z**2 / of
    middle, half = (share + spread / 2) / (1 + spread), math.sqrt(share * (1 - share) / of + spread / of / 4)
    return max(0.0, middle - _Z * half / (1 + spread)) if some else 0.0, share, middle + _Z * half / (1 + spread)


def _decide(record: ProfileRecord, low: float, high: float, limit: float) -> Decision:
    kept = {METRIC.keeps(end, limit) for end in (low, high)}
    text = f"{record.samples} samples, between {METRIC.format(low)} and {METRIC.format(high)}"
    if len(kept) == 1:
        return Decision(kept.pop(), text)
    return Decision(None, f"too close to call: {METRIC.title}, {text}, at most {METRIC.format(limit)} promised")


def _record(found: ThreadSamples, number: int, rate: float, before: float | None) -> ProfileRecord:
    ordered = sorted(found.functions.items(), key=lambda each: (-each[1], each[0]))
    shown = [each for place, each in enumerate(ordered) if place < _SHOWN or each[0] in found.locks]
    return ProfileRecord(
        trial=number, cpu=found.cpu, how=found.how, hz=found.hz, seconds=found.seconds, ran_s=found.ran_s,
        waited_s=found.waited_s,
        busy=found.busy, samples=found.samples, lost=found.lost, locks=found.of_locks, rate=rate,
        rate_before=before,
        functions=[FunctionSamples(name=name, samples=times, lock=name in found.locks) for name, times in shown],
    )  # fmt: skip


def sentence(record: ProfileRecord) -> str:
    """`2992 samples of CPU 1 in 3.0 s (perf, CPU clock, 997 per second): ...`."""
    top = ", ".join(f"{each.name} {METRIC.format(each.samples / record.samples)}" for each in record.functions[:3])
    cost = ""
    if record.rate_before:
        cost = f"; served meanwhile: {record.rate / record.rate_before * 100:.0f} % of the trial without samples"
    return (
        f"{record.samples} samples of CPU {record.cpu} in {record.seconds:.1f} s ({record.how}, {record.hz} per "
        f"second): {top}{cost}"
    )

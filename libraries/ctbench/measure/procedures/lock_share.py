"""Where the time of a thread that forwards goes at the highest load, and which share of it locks have: in a trial made
for it, which nothing else is judged by (as perf was used in the measurements of 2022)."""

import math
import time
from dataclasses import dataclass

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import SampledDut, ThreadSamples
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Observation, limits_in
from ctbench.measure.probe import Probe
from ctbench.measure.procedure import Bench, Decision, Outcome, Procedure
from ctbench.measure.procedures.rates import HighestRate
from ctbench.measure.trial import Expected, Trials
from ctbench.results.evidence import FunctionSamples, ProfileRecord
from ctbench.results.metrics import METRICS, SATURATION_OF
from ctbench.results.record_model import Figure
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
#: What a record has as the DUT says it.
_SAME = ("cpu", "how", "hz", "seconds", "ran_s", "waited_s", "busy", "samples", "lost")
#: Of a normal distribution: what 99 % of it is within.
_Z = 2.576


@dataclass
class _SamplesOfAThread(Probe):
    """A probe that is asked once."""

    dut: SampledDut
    #: Seconds until the load is there, and that are sampled.
    wait_s: float
    seconds: float
    found: ThreadSamples | None = None
    error: str = ""
    name = METRIC.name
    unit = "ratio"
    every_s = 3600.0

    def sample(self) -> float:
        time.sleep(self.wait_s)
        try:
            self.found = self.dut.sample_thread(self.seconds)
        except TestbedError as error:
            self.error = str(error)
            raise
        return self.found.of_locks / max(1, self.found.samples)


@dataclass(frozen=True)
class LockShare(Procedure):
    """Where the time of a forwarding thread goes."""

    name = "lock-share"
    says = "samples a forwarding thread at the highest load, and counts the samples in lock functions"
    #: A closed loop where the generator has one; else the highest rate, which is searched first.
    loads = frozenset((Rate,))
    abilities = frozenset({"samples"})
    after_closed_loop = True
    found_out = (METRIC.name,)

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        return Expected(1, campaign.control_plane.trial_duration + _BEFORE_S + _AFTER_S)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Nothing where the highest load is not known, or the samples say nothing of a thread that has to do."""
        assert isinstance(bench.dut, SampledDut), "its ability was required"
        if bench.earlier is None:  # no closed loop
            search = HighestRate(bench.campaign.search_for(bench.profile, closed_loop=False))
            found = search.measure(bench, trials)
            rate = found.figure(bench.rate_metric)
            load: Load | None = Rate(rate) if rate else None
        else:
            found = bench.earlier
            rate = found.figure(SATURATION_OF[bench.profile.kind])
            load = saturating(bench.profile) if rate else None
        if load is None:
            return Outcome.nothing(METRIC, found.limited_by, f"the highest load is not known: {found.reason}")
        duration_s = bench.campaign.control_plane.trial_duration
        probe = _SamplesOfAThread(bench.dut, _BEFORE_S + _ramp_s(load, bench), duration_s)
        # Whatever it loses, it is not a trial that a rate is judged by.
        runner = bench.runner_for(dict.fromkeys(limits_in(bench.conditions), 1.0), probe)

        def one(number: int) -> Observation:
            probe.found, probe.error = None, ""
            seen = runner.offer(load, _BEFORE_S + duration_s + _AFTER_S)
            if probe.found and not seen.fault:
                trials.keep(profiles=[_record(probe.found, number, seen.served, rate)])
            return seen

        seen = trials.make("samples", one, rate or 0.0)
        if probe.found is None:
            return Outcome.nothing(METRIC, "fault", probe.error or "no thread was sampled")
        return _outcome(bench, seen, probe.found, trials.evidence.profiles[-1])


def _ramp_s(load: Load, bench: Bench) -> float:
    """Seconds that a load takes until it counts: in a closed loop all is under way at once."""
    profile = bench.profile
    if not isinstance(load, Rate):
        return 0.0
    return profile.flows / load.per_s if isinstance(profile, PacketProfile) else profile.lifetime_s


def _outcome(bench: Bench, seen: Observation, found: ThreadSamples, record: ProfileRecord) -> Outcome:
    if seen.state == "invalid":
        return Outcome.nothing(METRIC, "generator", seen.reason)
    if found.samples < LEAST_SAMPLES:
        reason = f"{found.samples} samples say nothing: at least {LEAST_SAMPLES} are needed"
        return Outcome.nothing(METRIC, "dut", reason)
    if found.busy < LEAST_BUSY:
        reason = f"the thread had packets for {found.busy * 100:.0f} % of the time only: not at its highest load"
        return Outcome.nothing(METRIC, "generator", reason)
    low, share, high = interval(found.of_locks, found.samples)
    figure = Figure(value=share, unit=METRIC.unit.name, low=low, high=high)
    decisions = Decision.of_interval(figure, METRIC, bench.limits, f"{record.samples} samples")
    return Outcome(METRIC, {METRIC.name: figure}, "dut", sentence(record), True, decisions=decisions)


def interval(some: int, of: int) -> tuple[float, float, float]:
    """The least, the share itself, and the most that a share of `some` samples of so many stands for, by the 99 %
    interval of Wilson."""
    share, spread = some / of, _Z**2 / of
    middle, half = (share + spread / 2) / (1 + spread), math.sqrt(share * (1 - share) / of + spread / of / 4)
    return max(0.0, middle - _Z * half / (1 + spread)) if some else 0.0, share, middle + _Z * half / (1 + spread)


def _record(found: ThreadSamples, number: int, rate: float, before: float | None) -> ProfileRecord:
    ordered = sorted(found.functions.items(), key=lambda each: (-each[1], each[0]))
    shown = [each for place, each in enumerate(ordered) if place < _SHOWN or each[0] in found.locks]
    same = {name: getattr(found, name) for name in _SAME}
    return ProfileRecord(
        **same, trial=number, locks=found.of_locks, rate=rate, rate_before=before,
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

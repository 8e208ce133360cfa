"""Measurements at the highest load: the share of a forwarding thread's time that goes to locks, and the new datapath
flows per second.

The samples for locks are those of a trial of their own, which nothing else is judged by.

For new flows, every packet of the load is the first of its flow, so the DUT has to look its rules up and make a
datapath flow. Each closed loop begins with an empty datapath and ends before that is full. A load on a schedule would
be late where the generator shares its CPU with the threads that look at all flows.
"""

import math
import statistics
import time
from dataclasses import dataclass

from ctbench.base.units import format_count
from ctbench.dut.abilities import ThreadSamples
from ctbench.dut.base import Dut
from ctbench.measure.observation import limits_in
from ctbench.measure.probe import Probe
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.procedures.rates import ClosedLoop, HighestRate
from ctbench.measure.trial import MOST_INVALID, Trials
from ctbench.results.evidence import FunctionSamples, ProfileRecord
from ctbench.results.metrics import CONNECTIONS, METRICS, SATURATION_OF
from ctbench.results.record_model import Estimate
from ctbench.results.statistics import median_interval
from ctbench.results.verdict import by_interval
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation, saturating
from ctbench.traffic.profiles import PacketProfile

_SHARE, _FLOWS = METRICS["mutex_share"], METRICS["new_flow_rate"]
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
_SAME = ("cpu", "hz", "seconds", "ran_s", "waited_s", "busy", "samples")
#: Of a normal distribution: what 99 % of it is within.
_Z = 2.576


@dataclass
class _SamplesOfAThread(Probe):
    """A probe that samples a forwarding thread once in a trial."""

    dut: Dut
    #: Seconds until the load is there, and that are sampled.
    wait_s: float
    seconds: float
    found: ThreadSamples | None = None
    name = _SHARE.name
    unit = "ratio"
    every_s = 3600.0

    def before(self) -> None:
        self.found = None

    def sample(self) -> float:
        time.sleep(self.wait_s)
        self.found = self.dut.sample_thread(self.seconds)
        return self.found.of_locks / max(1, self.found.samples)


def _lock_share(bench: Bench, trials: Trials) -> Outcome:
    """Sample a forwarding thread in a closed loop, after one without samples. Where the generator has no closed loop,
    sample it at the highest rate, which is searched. Return no figures where that load is not known, or the samples are
    too few or of a thread that was not busy."""
    seconds = bench.campaign.control_plane.trial_duration
    if Saturation in bench.generator.offers:
        as_long = {"trial_duration": seconds}  # so that both can be compared
        loop = ClosedLoop(bench.campaign.saturation_for(bench.profile).model_copy(update=as_long))
        known = loop.measure(bench, trials)
    else:
        known = HighestRate(bench.campaign.search_for(bench.profile)).measure(bench, trials)
    served = known.figure(SATURATION_OF[bench.profile.kind])
    rate = served or known.figure(bench.rate_metric)
    if not rate:
        return Outcome.nothing(_SHARE, known.limited_by, f"the highest load is not known: {known.reason}")
    load = saturating(bench.profile) if served else Rate(rate)
    probe = _SamplesOfAThread(bench.dut, _BEFORE_S + _ramp_s(load, bench), seconds)
    # Whatever it loses, it is not a trial that a rate is judged by.
    runner = bench.runner_for(dict.fromkeys(limits_in(bench.conditions), 1.0), probe)
    seen = trials.offer(runner, load, _BEFORE_S + seconds + _AFTER_S, "samples")
    found = probe.found
    if found is None:
        return Outcome.nothing(_SHARE, "fault", seen.samples[0].error or "no thread was sampled")
    record = _record(found, trials.before + len(trials.made), seen.served, rate)
    trials.keep(profiles=[record])
    if seen.state == "invalid":
        return Outcome.nothing(_SHARE, "generator", seen.reason)
    if found.samples < LEAST_SAMPLES:
        reason = f"{found.samples} samples say nothing: at least {LEAST_SAMPLES} are needed"
        return Outcome.nothing(_SHARE, "dut", reason)
    if found.busy < LEAST_BUSY:
        reason = f"the thread had packets for {found.busy * 100:.0f} % of the time only: not at its highest load"
        return Outcome.nothing(_SHARE, "generator", reason)
    figure = share_of(found.of_locks, found.samples)
    verdicts = by_interval(_SHARE, figure, bench.floor.limit(_SHARE.name), f"{found.samples} samples")
    figures = {**(known.figures if served else {}), _SHARE.name: figure}
    return Outcome(_SHARE, figures, "dut", sentence(record), True, verdicts=verdicts)


LOCK_SHARE = Scripted(
    name="lock-share",
    says="samples a forwarding thread at the highest load, and counts the samples in lock functions",
    found_out=(_SHARE.name,),
    script=_lock_share,
    # A closed loop where the generator has one; else the highest rate, which is searched first.
    loads=frozenset((Rate,)),
    abilities=frozenset({"samples"}),
    promised=Promise("lock share", "control plane", "contention", long=True),
)


def _ramp_s(load: Load, bench: Bench) -> float:
    """Return the seconds until a load counts. A closed loop has all under way at once: 0."""
    profile = bench.profile
    if not isinstance(load, Rate):
        return 0.0
    return profile.flows / load.per_s if isinstance(profile, PacketProfile) else profile.lifetime_s


def share_of(some: int, of: int) -> Estimate:
    """Return the share of `some` in so many samples, with Wilson's 99 % interval."""
    share, spread = some / of, _Z**2 / of
    middle, half = (share + spread / 2) / (1 + spread), math.sqrt(share * (1 - share) / of + spread / of / 4)
    low = max(0.0, middle - _Z * half / (1 + spread)) if some else 0.0
    return Estimate(share, _SHARE.unit.name, low, middle + _Z * half / (1 + spread))


def _record(found: ThreadSamples, number: int, rate: float, before: float | None) -> ProfileRecord:
    ordered = sorted(found.functions.items(), key=lambda each: (-each[1], each[0]))
    shown = [each for place, each in enumerate(ordered) if place < _SHOWN or each[0] in found.locks]
    same = {name: getattr(found, name) for name in _SAME}
    return ProfileRecord(
        **same, trial=number, locks=found.of_locks, rate=rate, rate_before=before,
        functions=[FunctionSamples(name=name, samples=times, lock=name in found.locks) for name, times in shown],
    )  # fmt: skip


def sentence(record: ProfileRecord) -> str:
    """Describe the samples: `2992 samples of CPU 1 in 3.0 s (199 per second): ...`."""
    top = ", ".join(f"{each.name} {_SHARE.format(each.samples / record.samples)}" for each in record.functions[:3])
    cost = ""
    if record.rate_before:
        cost = f"; served meanwhile: {record.rate / record.rate_before * 100:.0f} % of the trial without samples"
    return (
        f"{record.samples} samples of CPU {record.cpu} in {record.seconds:.1f} s ({record.hz} per second): {top}{cost}"
    )


#: Trials that count: as few as have a 99 % interval of their median that assumes no distribution.
TRIALS = 9
#: Length of a trial, seconds: short enough that 200 000 flows are seldom reached, which is as many as there may be.
TRIAL_S = 0.5
#: Share of the packets that have to be the first of their flow, or the load does not ask what is to be measured.
LEAST_NEW = 0.9


def _new_flows(bench: Bench, trials: Trials) -> Outcome:
    """Run closed loops whose packets are each the first of its flow. Return no figures where too few trials were good,
    or less than `LEAST_NEW` of the packets asked for a flow."""
    dut, load = bench.dut, saturating(bench.profile)
    runner = bench.runner_for(limits_in(bench.conditions))
    # Packets for which a flow was made in the last trial, and for which that failed.
    made, failed = 0, 0

    def offer() -> Trial:
        nonlocal made, failed
        dut.forget_flows()
        trial = bench.generator.run_trial(bench.profile, load, TRIAL_S)
        made, failed = dut.upcalls()
        return trial

    rates: list[float] = []
    all_made = all_failed = all_sent = 0
    while len(rates) < TRIALS and len(trials.made) < TRIALS + MOST_INVALID:
        seen = trials.make("saturation", lambda _: runner.watch(offer))
        if seen.good:
            sent = seen.trial.packets_sent
            all_made, all_failed, all_sent = all_made + made, all_failed + failed, all_sent + sent
            # Of the packets that came through per second, those that got a flow: that is known of the whole trial.
            rates.append(seen.trial.pps * min(1.0, made / max(1, sent)))
    if len(rates) < TRIALS:
        why = f"{len(rates)} of {len(trials.made)} trials count, of {TRIALS} that are needed: {seen.reason}"
        return Outcome.nothing(_FLOWS, "generator" if seen.state == "invalid" else "dut", why)
    new = (all_made + all_failed) / max(1, all_sent)
    if new < LEAST_NEW:
        why = f"only {new * 100:.0f} % of the packets were the first of their flow"
        return Outcome.nothing(_FLOWS, "dut", why)
    low, high = median_interval(rates)
    figure = Estimate(value=statistics.median(rates), unit=_FLOWS.unit.name, low=low, high=high)
    without = f", and {format_count(all_failed)} got none" if all_failed else ""
    said = (
        f"{format_count(all_made)} of {format_count(all_sent)} packets got a datapath flow of their own{without}, "
        f"in {len(rates)} closed loops"
    )
    verdicts = by_interval(_FLOWS, figure, bench.floor.limit(_FLOWS.name), f"median of {TRIALS}")
    return Outcome(_FLOWS, {_FLOWS.name: figure}, "dut", said, True, verdicts=verdicts)


NEW_FLOWS = Scripted(
    name="new-flows",
    says="sends packets that are each the first of its flow, and counts the datapath flows made per second",
    found_out=(_FLOWS.name,),
    script=_new_flows,
    loads=frozenset((Saturation,)),
    abilities=frozenset({"upcalls"}),
    promised=Promise("new flow rate", "control plane", "upcalls", CONNECTIONS, long=True),
)

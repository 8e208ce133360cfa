"""The ratio of two set-ups that take turns, looked at until it decides what is promised (duet benchmarking)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctbench.base.units import format_interval, format_ratio
from ctbench.measure import pairs, start
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import limits_in
from ctbench.measure.procedure import Bench, Code, Decision, Outcome, Procedure
from ctbench.measure.start import StartRatio, decide, hopeless, measure_start
from ctbench.measure.trial import Expected
from ctbench.measure.trials import Trials
from ctbench.results.evidence import Evidence, LookRecord, PairRecord, SideRecord
from ctbench.results.metrics import METRICS, SATURATION_OF
from ctbench.results.record_model import Figure
from ctbench.traffic.profiles import Profile


@dataclass(frozen=True)
class Pair(Procedure):
    """The two `sides` of the bench stand side by side, or the DUT becomes the one or the other."""

    #: The metric that the ratio decides.
    promise: str = "ratio"
    slice_s: float = start.SLICE_S
    #: Rounds after which the interval is looked at; None: as many as the promise needs.
    looks: Sequence[int] | None = None
    name = "pair"
    says = "measures two set-ups in turn, and looks at the interval of their ratio until that decides what is promised"

    @property
    def found_out(self) -> Collection[str]:
        return (self.promise,)

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """Side by side, where most ratios are decided by the first look."""
        rounds = pairs.LOOKS[0] + 2 * start.WARM_UP
        return Expected(0, rounds * pairs.ROUND * self.slice_s)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """`ConfigError` where the bench has nothing to compare with."""
        metric, found = self.metric(bench.profile), measure_start(bench, self.slice_s, self.looks)
        figures, waited = {}, found.waited_for_generator
        # Without a promise only the ratio is wanted, and that of the generator to itself says nothing.
        last = None if found.fault or (waited and bench.promised_ratio is None) else found.pair.result
        if last:
            figures[metric.name] = Figure(value=last.value, unit=metric.unit.name, low=last.low, high=last.high)
            saturation = SATURATION_OF[bench.profile.kind]
            if found.pair.how == "side by side" and "tested" not in waited and (rate := found.sides["tested"].rate):
                figures[saturation.name] = Figure(value=rate, unit=saturation.unit.name)
        decision = _decision(found, bench)
        return Outcome(
            metric=metric,
            figures=figures,
            limited_by="fault" if found.fault else "generator" if waited and decision.kept is None else "dut",
            reason=found.fault or decision.reason,
            kept_conditions=decision.kept is True,
            steps=found.steps,
            decisions={} if bench.promised_ratio is None else {metric.name: decision},
            evidence=Evidence(trials=[], pairs=[found.pair]),
        )


def _decision(found: StartRatio, bench: Bench) -> Decision:
    last = found.pair.result
    if found.fault:
        return Decision(None, found.fault, code=Code.FAULT)
    if not last:
        return Decision(None, found.nothing or _too_few(found.pair), code=Code.NOTHING)
    waited = found.waited_for_generator
    kept = decide(last, bench.promised_ratio, waited)
    said, code = _in_words(last, found.pair.other, bench.promised_ratio), Code.INTERVAL
    if waited and (bench.promised_ratio is None or hopeless(last, bench.promised_ratio, waited)):
        keys = " and of ".join(dict.fromkeys(found.sides[side].key for side in waited))
        code = Code.GENERATOR
        said = f"the traffic generator was the limit of {keys}, which may be faster ({said})"
    elif kept is None and bench.promised_ratio is not None:
        code = Code.TOO_CLOSE
        said = f"too close to call on this machine ({said})"
    return Decision(kept, "; ".join([said, *_losses(found, bench)]), code=code)


def _in_words(found: LookRecord, other: SideRecord, promised: float | None) -> str:
    """`101.2 % ± 2.3 % of linux-router/forward/1cpu-1rxq, at least 100 % promised`."""
    of = f"{other.key} of {other.build}" if other.build else other.key
    least = "" if promised is None else f", at least {promised * 100:g} % promised"
    # At a hundred percent the tenths decide.
    return f"{found.value * 100:.1f} % {format_interval(found.value, found.low, found.high)} of {of}{least}"


def _too_few(pair: PairRecord) -> str:
    return (
        f"of {len(pair.ratios) + pair.dropped} turns of both sides, {pair.dropped} had to be dropped: the traffic "
        "generator stood still meanwhile, or nothing came through"
    )


def _losses(found: StartRatio, bench: Bench) -> list[str]:
    """What was lost although nothing was offered in excess, above what a trial may lose."""
    limit, lost = min(limits_in(bench.conditions).values()), METRICS["loss_ratio"]
    return [
        f"{format_ratio(known.lost)} of the {bench.profile.kind} of {known.key} were lost in its turns (limit "
        f"{lost.format(limit)})"
        for known in dict.fromkeys(found.sides.values())
        if known.lost > limit
    ]

"""What pairs found: whether that decides a promise, and in which words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ctbench.base.units import format_ratio
from ctbench.measure.loss import limits_in
from ctbench.measure.pairs import Estimate
from ctbench.measure.procedure import Bench, Decision, Look, Outcome
from ctbench.measure.trial import Step
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, SATURATION_OF, Metric
from ctbench.traffic.generator import Side


@dataclass(frozen=True)
class Found:
    """What two sides came to, whichever way they were measured."""

    sides: Mapping[Side, SideRecord]
    how: Literal["side by side", "reconfigured"]
    #: Of each round (block) that counts, and how many others were dropped.
    ratios: Sequence[float]
    dropped: int
    looks: Sequence[Estimate]
    notes: Sequence[str]
    slice_s: float = 0.0
    #: Trials of the tested side, where searches were the samples.
    steps: tuple[Step, ...] = ()
    #: How a DUT or the generator broke; empty where none did.
    fault: str = ""
    #: Why there is no ratio, where nothing broke; empty where there is one.
    nothing: str = ""

    @property
    def last(self) -> Estimate | None:
        """The last look."""
        return self.looks[-1] if self.looks else None

    def as_record(self) -> PairRecord:
        """For the record."""
        return PairRecord(
            tested=self.sides["tested"],
            other=self.sides["other"],
            how=self.how,
            slice_s=self.slice_s,
            ratios=list(self.ratios),
            dropped=self.dropped,
            looks=[as_record(look) for look in self.looks],
            notes=list(self.notes),
        )


def decide(found: Estimate, promised: float | None) -> bool | None:
    """Whether a promise is kept: all of the interval keeps it, or none of it does. None: go on."""
    if promised is None:
        return None
    return True if found.low >= promised else False if found.high < promised else None


def tell(bench: Bench, number: int, found: Estimate | None, left_s: float) -> bool:
    """Say where a pair stands. Returns whether that decides what is promised."""
    decided = found is not None and decide(found, bench.promised_ratio) is not None
    record = as_record(found) if found else None
    bench.on_look(Look(number, record, bench.promised_ratio, decided, 0.0 if decided else left_s))
    return decided


def outcome_of(found: Found, bench: Bench, metric: Metric) -> Outcome:
    """The outcome of a pair, which decides the promise of a metric: `ratio`, or one like it."""
    figures = {}
    if found.last and not found.fault:
        last = found.last
        figures[metric.name] = Figure(value=last.value, unit=metric.unit.name, low=last.low, high=last.high)
        saturation = SATURATION_OF[bench.profile.kind]
        if found.how == "side by side" and (rate := found.sides["tested"].rate):
            figures[saturation.name] = Figure(value=rate, unit=saturation.unit.name)
    decision = _decision(found, bench)
    return Outcome(
        metric=metric,
        figures=figures,
        limited_by="fault" if found.fault else "dut",
        reason=found.fault or decision.reason,
        held=decision.kept is True,
        steps=found.steps,
        decisions={} if bench.promised_ratio is None else {metric.name: decision},
        pairs=(found.as_record(),),
    )


def as_record(look: Estimate) -> LookRecord:
    """A look for the record and the console."""
    return LookRecord(rounds=look.rounds, value=look.value, low=look.low, high=look.high)


def in_words(found: Estimate, other: SideRecord, promised: float | None) -> str:
    """`101.2 % ± 2.3 % of linux-router/forward/1cpu-1rxq, at least 100 % promised`."""
    of = f"{other.key} of {other.build}" if other.build else other.key
    least = "" if promised is None else f", at least {promised * 100:g} % promised"
    # At a hundred percent the tenths decide.
    return f"{found.value * 100:.1f} % ± {found.half_width * 100:.1f} % of {of}{least}"


def _decision(found: Found, bench: Bench) -> Decision:
    if found.fault or not found.last:
        return Decision(None, found.fault or found.nothing or _too_few(found))
    kept = decide(found.last, bench.promised_ratio)
    said = in_words(found.last, found.sides["other"], bench.promised_ratio)
    if kept is None and bench.promised_ratio is not None:
        said = f"too close to call on this machine ({said})"
    return Decision(kept, "; ".join([said, *_losses(found, bench)]))


def _too_few(found: Found) -> str:
    return (
        f"of {len(found.ratios) + found.dropped} turns of both sides, {found.dropped} had to be dropped: the traffic "
        "generator stood still meanwhile, or nothing came through"
    )


def _losses(found: Found, bench: Bench) -> list[str]:
    """What was lost although nothing was offered in excess, above what a trial may lose."""
    limit, lost = min(limits_in(bench.conditions).values()), METRICS["loss_ratio"]
    return [
        f"{format_ratio(known.lost)} of the {bench.profile.kind} of {known.key} were lost in its turns (limit "
        f"{lost.format(limit)})"
        for known in dict.fromkeys(found.sides.values())
        if known.lost > limit
    ]

"""What pairs found: whether that decides a promise, and in which words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ctbench.base.units import format_interval, format_ratio
from ctbench.measure.loss import limits_in
from ctbench.measure.pairs import Estimate
from ctbench.measure.procedure import Bench, Decision, Look, Outcome
from ctbench.measure.trial import Step
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, SATURATION_OF, Metric
from ctbench.traffic.generator import Side

#: Share of its slices beyond which a side is said to have waited for the generator.
MOST_HELD = 0.5


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

    @property
    def held(self) -> tuple[Side, ...]:
        """The sides that the generator could not keep busy."""
        return held_sides({side: known.held for side, known in self.sides.items()})

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


def held_sides(held: Mapping[Side, float]) -> tuple[Side, ...]:
    """The sides that waited for the generator for most of their time, by the share in which they did."""
    return tuple(side for side, share in held.items() if share > MOST_HELD)


def decide(found: Estimate, promised: float | None, held: Collection[Side] = ()) -> bool | None:
    """Whether a promise is kept: all of the interval keeps it, or none of it does. None: go on.

    `held`: sides that the generator could not keep busy. These may be faster than was seen, so with the other one held
    the ratio is the most that it can be, and with the tested one the least.
    """
    if promised is None:
        return None
    if found.low >= promised:
        return None if "other" in held else True
    if found.high < promised:
        return None if "tested" in held else False
    return None


def hopeless(found: Estimate, promised: float | None, held: Collection[Side]) -> bool:
    """Whether a promise stays undecided, however long it is looked at, because of the generator."""
    if promised is None or not held:
        return False
    return len(held) == 2 or (found.low >= promised if "other" in held else found.high < promised)


def tell(bench: Bench, number: int, found: Estimate | None, left_s: float, held: Collection[Side] = ()) -> bool:
    """Say where a pair stands. Returns whether that is the end: it decides what is promised, or nothing will."""
    promised = bench.promised_ratio
    ends = found is not None and (decide(found, promised, held) is not None or hopeless(found, promised, held))
    record = as_record(found) if found else None
    bench.on_look(Look(number, record, promised, ends, 0.0 if ends else left_s))
    return ends


def outcome_of(found: Found, bench: Bench, metric: Metric) -> Outcome:
    """The outcome of a pair, which decides the promise of a metric: `ratio`, or one like it."""
    figures = {}
    # Without a promise only the ratio is wanted, and that of the generator to itself says nothing.
    last = None if found.fault or (found.held and bench.promised_ratio is None) else found.last
    if last:
        figures[metric.name] = Figure(value=last.value, unit=metric.unit.name, low=last.low, high=last.high)
        saturation = SATURATION_OF[bench.profile.kind]
        if found.how == "side by side" and "tested" not in found.held and (rate := found.sides["tested"].rate):
            figures[saturation.name] = Figure(value=rate, unit=saturation.unit.name)
    decision = _decision(found, bench)
    return Outcome(
        metric=metric,
        figures=figures,
        limited_by="fault" if found.fault else "generator" if found.held and decision.kept is None else "dut",
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
    return f"{found.value * 100:.1f} % {format_interval(found.value, found.low, found.high)} of {of}{least}"


def _decision(found: Found, bench: Bench) -> Decision:
    if found.fault or not found.last:
        return Decision(None, found.fault or found.nothing or _too_few(found))
    held = found.held
    kept = decide(found.last, bench.promised_ratio, held)
    said = in_words(found.last, found.sides["other"], bench.promised_ratio)
    if held and (bench.promised_ratio is None or hopeless(found.last, bench.promised_ratio, held)):
        keys = " and of ".join(dict.fromkeys(found.sides[side].key for side in held))
        said = f"the traffic generator was the limit of {keys}, which may be faster ({said})"
    elif kept is None and bench.promised_ratio is not None:
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

"""Which kinds of promises a run was judged by: ratios, smoke tests, promises of this machine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ctbench.report import labels
from ctbench.results.promised import ThresholdRecord
from ctbench.results.record import Record


@dataclass(frozen=True)
class Kinds:
    """In how many tests each kind of promise was met or missed; a test may have several."""

    ratios: int
    #: Of another build's rate.
    of_build: int
    #: So far from what is usual that a build 30 % slower would pass.
    smoke: int
    #: Rates that were made on this machine, and those that the SLA promises of any.
    of_this_machine: int
    of_any_machine: int
    #: Rates of another machine, met or not.
    of_another: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Kinds":
        """Count what was judged."""
        found = Counter(kind for record in records for kind in {_kind(each) for each in _judged(record)})
        return cls(**{name: found[name] for name in cls.__dataclass_fields__})

    @property
    def sentence(self) -> str:
        """`Judged: 31 ratios of like code, 13 smoke tests, no promise of this machine.`"""
        always = (
            _some(self.ratios, "ratio of like code", "ratios of like code"),
            _some(
                self.smoke, "smoke test (a build 30 % slower would pass)", "smoke tests (builds 30 % slower would pass)"
            ),
            _some(self.of_this_machine, "promise of this machine", "promises of this machine"),
        )
        others = (
            (self.of_build, "share of another build", "shares of another build"),
            (self.of_any_machine, "rate promised on any machine", "rates promised on any machine"),
            (self.of_another, "rate of another machine", "rates of another machine"),
        )
        return f"Judged: {', '.join([*always, *(_some(*each) for each in others if each[0])])}."


def _judged(record: Record) -> list[ThresholdRecord]:
    decided = [each for each in record.thresholds if each.is_promise and not each.undecided]
    return decided if record.verdict != "not measured" else [each for each in decided if each.met and each.reason]


def _kind(promise: ThresholdRecord) -> str:
    if promise.smoke:
        return "smoke"
    if promise.kind != "absolute":
        return "of_build" if promise.kind == "of_build" else "ratios"
    if not promise.bound_to:
        return "of_any_machine"
    return "of_another" if promise.elsewhere else "of_this_machine"


def _some(count: int, singular: str, many: str) -> str:
    return labels.plural(count, singular, many) if count else f"no {singular.partition(' (')[0]}"

"""The verdict of a whole run in one sentence, with counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from ctbench.base.units import format_margin
from ctbench.report import enough, labels
from ctbench.report.kinds import Kinds
from ctbench.report.page import Count, Tone
from ctbench.report.runs import RunSet
from ctbench.results.record import Record
from ctbench.results.store import Stored


@dataclass(frozen=True)
class Tally:
    """How many tests came to which end."""

    met: int
    missed: int
    not_measured: int
    skipped: int
    failed: int
    unreadable: int
    #: For which the campaign has no time: nothing is lacking.
    left: int = 0

    @classmethod
    def of(cls, runs: RunSet) -> "Tally":
        """Count what was found."""
        verdicts = [each.record.verdict for each in runs.newest]
        outcomes = [test.outcome for test in runs.without_record]
        return cls(
            met=verdicts.count("met"),
            missed=verdicts.count("missed"),
            not_measured=verdicts.count("not measured"),
            skipped=outcomes.count("skipped"),
            left=outcomes.count("left for the night"),
            failed=outcomes.count("failed"),
            unreadable=len(runs.broken),
        )

    @property
    def judged(self) -> int:
        """Tests that left a record."""
        return self.met + self.missed + self.not_measured

    @property
    def tone(self) -> Tone:
        """The worst news decides. Green only where something was measured and nothing is in doubt."""
        if self.missed:
            return "missed"
        if self.not_measured or self.failed or self.unreadable or not self.met:
            return "unmeasured"
        return "met"


def sentence(tally: Tally) -> str:
    """The verdict: what is missed comes first, then what is not known."""
    slas = labels.plural(tally.judged, "SLA")
    if not tally.judged:
        return "Nothing was measured."
    met = [f"{labels.thousands(tally.met)} {_are(tally.met)} met"] if tally.met else []
    unknown = [f"{labels.thousands(tally.not_measured)} could not be measured"] if tally.not_measured else []
    if tally.missed:
        which = f"{labels.thousands(tally.missed)} of {slas} {_are(tally.missed)}"
        rest = "".join(f"{mark} {text}" for mark, text in zip(";,", met + unknown, strict=False))
        return f"{'The only SLA is' if tally.judged == 1 else which} missed{rest}."
    if not tally.met:
        return "The only SLA could not be measured." if tally.judged == 1 else f"None of {slas} could be measured."
    if tally.not_measured:
        return (
            f"No SLA is missed, but {labels.thousands(tally.not_measured)} of {slas} could not be measured; {met[0]}."
        )
    return "The SLA that was measured is met." if tally.met == 1 else f"All {slas} that were measured are met."


def details(tally: Tally, newest: Sequence[Stored]) -> tuple[str, ...]:
    """What has to be known with the verdict."""
    records = [each.record for each in newest]
    said = [Kinds.of(records).sentence] if records else []
    met = [record for record in records if record.verdict == "met" and record.margin_pct is not None]
    if met:
        nearest = min(met, key=lambda record: record.margin_pct or 0.0)
        margin = format_margin(nearest.margin_pct or 0.0)
        said.append(f"Of those met, the nearest to its floor is {_named(nearest)} ({margin}).")
    if thrown_away := sum(each.thrown_away for each in newest):
        said.append(f"{labels.thousands(thrown_away)} of {labels.plural(sum(each.trials for each in newest), 'trial')} "
                    f"{_was(thrown_away)} thrown away: they say nothing about the device under test.")  # fmt: skip
    if tally.skipped:
        said.append(f"{labels.plural(tally.skipped, 'test')} {_was(tally.skipped)} skipped: this testbed lacks what "
                    f"{'it needs' if tally.skipped == 1 else 'they need'}, as told below.")  # fmt: skip
    if tally.left:
        said.append(f"{labels.plural(tally.left, 'test')} {_was(tally.left)} left for the night: this campaign has no "
                    "time for more.")  # fmt: skip
    if tally.failed:
        said.append(f"{labels.plural(tally.failed, 'test')} failed before anything was measured.")
    if tally.unreadable:
        what = "file is no record" if tally.unreadable == 1 else "files are no records"
        said.append(f"{labels.thousands(tally.unreadable)} {what} and {_are(tally.unreadable)} not counted.")
    return tuple(said)


def counts(tally: Tally) -> tuple[Count, ...]:
    """The tiles below the sentence. The three verdicts always, the others where there are any."""
    always = (
        Count(tally.met, "met", labels.SIGNS["met"], "met"),
        Count(tally.missed, "missed", labels.SIGNS["missed"], "missed"),
        Count(tally.not_measured, "not measured", labels.SIGNS["not measured"], "unmeasured"),
    )
    others = (
        Count(tally.skipped, "skipped", labels.DASH, "skipped"),
        Count(tally.left, "left for the night", labels.DASH, "skipped"),
        Count(tally.failed, "failed, no record", "!", "unmeasured"),
        Count(tally.unreadable, "unreadable", "!", "unmeasured"),
    )
    return (*always, *(count for count in others if count.number))


def _named(record: Record) -> str:
    """A test with its suite: rows of two suites may have the same name."""
    return f"“{enough.name(record.test)}” ({enough.name(record.suite.rpartition('.')[2])})"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"

"""The verdict of a whole run in one sentence, with counts; and by which kinds of promises it was judged."""

from collections import Counter
from collections.abc import Sequence

from ctbench.base.units import format_share
from ctbench.report import figures, labels
from ctbench.report.page import Count, Tone
from ctbench.report.runs import RunSet
from ctbench.results.record import Record, Word
from ctbench.results.record_model import ThresholdRecord
from ctbench.results.store import Stored

#: Kinds of promises, one of them and several in words.
_KINDS = {
    "ratios": ("ratio of like code", "ratios of like code"),
    "smoke": ("smoke test (a build 30 % slower would pass)", "smoke tests (builds 30 % slower would pass)"),
    "of_this_machine": ("promise of this machine", "promises of this machine"),
    "of_build": ("share of another build", "shares of another build"),
    "of_any_machine": ("rate promised on any machine", "rates promised on any machine"),
    "of_another": ("rate of another machine", "rates of another machine"),
}
#: Those that are said where there is none too.
_ALWAYS = ("ratios", "smoke", "of_this_machine")


#: How many tests ended how, by the words of the tiles; and how many files could not be read.
Tally = Counter[str]
_VERDICTS: dict[Word, Tone] = {"met": "met", "missed": "missed", "not measured": "unmeasured"}
_NO_SLOWER = "no slower seen"
_ACCEPTED, _FAILED, _DOUBTS = "missed, accepted", "met, failed", ("not measured", "failed", "unreadable")
#: Other outcomes by their words: as `WithoutRecord` calls them, sign and tone.
_OTHERS: dict[str, tuple[str, str, Tone]] = {
    _FAILED: ("met, failed", labels.SIGNS["missed"], "missed"),
    _NO_SLOWER: (_NO_SLOWER, labels.DASH, "skipped"),
    _ACCEPTED: ("accepted", labels.SIGNS["missed"], "unmeasured"),
    "skipped": ("skipped", labels.DASH, "skipped"),
    "nightly only": ("nightly only", labels.DASH, "skipped"),
    "no floor yet": ("no floor yet", labels.DASH, "skipped"),
    "failed": ("failed, no record", "!", "unmeasured"),
    "unreadable": ("unreadable", "!", "unmeasured"),
}


def tally_of(runs: RunSet) -> Tally:
    """Count what was found."""
    verdicts = (each.record.outcome for each in runs.newest)
    outcomes = (test.outcome for test in runs.without_record)
    return Counter([*verdicts, *outcomes, *("unreadable" for _ in runs.broken)])


def tone(tally: Tally) -> Tone:
    """The worst news decides. Green only where something was measured, nothing is in doubt, and no miss is accepted."""
    if tally["missed"] or tally[_FAILED]:
        return "missed"
    if any(tally[each] for each in (_ACCEPTED, *_DOUBTS)) or not tally["met"]:
        return "unmeasured"
    return "met"


def word(tally: Tally) -> str:
    """The verdict of the run, for programs."""
    worst = tone(tally)
    if worst == "missed" and not tally["missed"]:
        return _FAILED
    if worst == "unmeasured" and tally[_ACCEPTED] and not any(tally[each] for each in _DOUBTS):
        return _ACCEPTED
    return worst if worst in ("met", "missed") else "not measured"


def sentence(tally: Tally) -> str:
    """The verdict: what is missed comes first, then what is not known."""
    met, missed, not_measured = (tally[word] for word in _VERDICTS)
    accepted, failed = tally[_ACCEPTED], tally[_FAILED]
    judged = met + missed + not_measured + accepted + failed + tally[_NO_SLOWER]
    slas = labels.plural(judged, "SLA")
    if not judged:
        return "Nothing was measured."
    are_met = f"{labels.thousands(met)} {_are(met)} met"
    if alike := tally[_NO_SLOWER]:
        are_met += f", {labels.thousands(alike)} {_are(alike)} no slower than the traffic generator can see"
    unknown = f"{labels.thousands(not_measured)} could not be measured"
    spared = f"{labels.thousands(accepted)} {_are(accepted)} missed and accepted"
    yet = f"{labels.plural(failed, 'test')} failed although {'its SLA is' if failed == 1 else 'their SLAs are'} met"
    if missed or failed:
        which = f"{labels.thousands(missed)} of {slas} {_are(missed)}" if judged > 1 else "The only SLA is"
        parts = [f"{which} missed"] * bool(missed) + [yet] * bool(failed)
        others = ", ".join([are_met] * bool(met) + [unknown] * bool(not_measured) + [spared] * bool(accepted))
        return f"{'; '.join([*parts, *([others] if others else [])])}."
    if accepted:
        rest = ", ".join([are_met] * bool(met) + [unknown] * bool(not_measured))
        return (
            f"{labels.thousands(accepted)} of {slas} {_are(accepted)} missed and accepted{'; ' if rest else ''}{rest}."
        )
    if not met:
        return "The only SLA could not be measured." if judged == 1 else f"None of {slas} could be measured."
    if not_measured:
        return f"No SLA is missed, but {labels.thousands(not_measured)} of {slas} could not be measured; {are_met}."
    return _none_is_missed(tally, slas, are_met)


def _none_is_missed(tally: Tally, slas: str, are_met: str) -> str:
    """Where each that was measured is met, or no slower than could be seen."""
    if tally[_NO_SLOWER]:
        return f"No SLA is missed: {are_met}."
    return "The SLA that was measured is met." if tally["met"] == 1 else f"All {slas} that were measured are met."


def details(tally: Tally, records: Sequence[Record]) -> tuple[str, ...]:
    """What has to be known with the verdict."""
    failed, unreadable = tally["failed"], tally["unreadable"]
    said = [
        f"Accepted until {known.until} by {known.by}: {figures.subject(record)}, {known.because.rstrip('.')}."
        for record in records if (known := record.accepted)
    ]  # fmt: skip
    said += [
        f"Failed although its SLA is met: {labels.name(record.test)}: {str(record.failed).rstrip('.')}."
        for record in records if record.outcome == _FAILED
    ]  # fmt: skip
    said += [kinds_sentence(records), *catches_sentence(records)] if records else []
    if failed:
        said.append(f"{labels.plural(failed, 'test')} failed before anything was measured.")
    if unreadable:
        what = "file is not a record" if unreadable == 1 else "files are not records"
        said.append(f"{labels.thousands(unreadable)} {what} and {_are(unreadable)} not counted.")
    return tuple(said)


def unseen(tally: Tally, newest: Sequence[Stored]) -> tuple[str, ...]:
    """What a run says nothing of."""
    said, tests = [], ("test was", "tests were")
    machines = [each.record.environment.dut_machine for each in newest]
    if cpus := max((len(machine.usable_cpus) for machine in machines), default=0):
        had = "machine" if len({machine.cpu_model for machine in machines}) == 1 else "largest machine"
        said.append(f"More than {labels.plural(cpus, 'CPU')}: its {had} had no more.")
    if newest and not _of_candidate([each.record for each in newest]):
        said.append("Whether another build is slower: no candidate was compared with a base (--candidate).")
    if skipped := tally["skipped"]:
        need = "it needs, or the run leaves it" if skipped == 1 else "they need, or the run leaves them"
        said.append(f"{labels.plural(skipped, *tests)} skipped: this testbed lacks what {need} out.")
    if left := tally["nightly only"]:
        said.append(f"{labels.plural(left, *tests)} nightly only: this campaign has no time for more.")
    if new := tally["no floor yet"]:
        said.append(f"{labels.plural(new, *tests)} not judged: too few machines have measured "
                    f"{'it' if new == 1 else 'them'} for a floor.")  # fmt: skip
    if thrown_away := sum(each.thrown_away for each in newest):
        trials, were = sum(each.trials for each in newest), "was" if thrown_away == 1 else "were"
        said.append(f"{labels.thousands(thrown_away)} of {labels.plural(trials, 'trial')} {were} thrown away: they say "
                    "nothing about the device under test.")  # fmt: skip
    return tuple(said)


def counts(tally: Tally) -> tuple[Count, ...]:
    """The tiles below the sentence. The three verdicts always, the others where there are any."""
    always = (Count(tally[word], word, labels.SIGNS[word], tone) for word, tone in _VERDICTS.items())
    others = (Count(tally[outcome], *shown) for outcome, shown in _OTHERS.items() if tally[outcome])
    return (*always, *others)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def kinds(records: Sequence[Record]) -> dict[str, int]:
    """In how many tests each kind of promise was met or missed, by the names of `_KINDS`; a test may have several."""
    found = Counter(kind for record in records for kind in {_kind(each) for each in _judged(record)})
    return {name: found[name] for name in _KINDS}


def kinds_sentence(records: Sequence[Record]) -> str:
    """`Judged: 31 ratios of like code, 13 smoke tests, no promise of this machine.`"""
    said, found = [], kinds(records)
    for name, count in found.items():
        singular, many = _KINDS[name]
        if count:
            said.append(labels.plural(count, singular, many))
        elif name in _ALWAYS and not found["of_build"]:
            said.append(f"no {singular.partition(' (')[0]}")
    return f"Judged: {', '.join(said)}."


def catches_sentence(records: Sequence[Record]) -> list[str]:
    """Which slowdowns the rows would not pass, with how many CPUs, and what sees more; nothing where none is known, and
    of a candidate, whose starts tell."""
    if _of_candidate(records):
        return []
    found = sorted(each for each in map(figures.catches, records) if each is not None)
    if not found:
        return []
    best, half, worst = (format_share(found[at]) for at in (0, len(found) // 2, -1))
    cpus = labels.plural(max(record.topology.cpus for record in records), "CPU")
    half = f"Half of the rows that tell ({len(found)}) see a regression of {half}"
    return [f"{half}; the best sees {best}, the worst {worst}; {cpus}."]


def _of_candidate(records: Sequence[Record]) -> bool:
    shares = [share for record in records if (share := record.threshold("of_build"))]
    return any(share.measured is not None or (share.reason and not share.undecided) for share in shares)


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

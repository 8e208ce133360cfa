"""The verdict of a run in one sentence, with counts, and the kinds of promises that it was judged by."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from ctbench.base.units import format_share, plural, thousands
from ctbench.report import figures, labels
from ctbench.report.labels import Tone
from ctbench.report.runs import RunSet
from ctbench.results import gate
from ctbench.results.floor import Threshold
from ctbench.results.metrics import COSTS
from ctbench.results.record import Record
from ctbench.results.store import Ending, Stored
from ctbench.results.verdict import Word

#: Kinds of promises, one of them and several in words.
_KINDS = {
    "ratios": ("ratio of like code", "ratios of like code"),
    "smoke": ("smoke test (a build 30 % slower would pass)", "smoke tests (builds 30 % slower would pass)"),
    "of_this_machine": ("floor of this machine", "floors of this machine"),
    "of_build": ("share of another build", "shares of another build"),
    "of_any_machine": ("floor of any machine", "floors of any machine"),
    "of_another": ("floor of another machine or image", "floors of other machines or images"),
    "of_image": ("instruction count of this image", "instruction counts of this image"),
}
#: Those that are said where there is none too.
_ALWAYS = ("ratios", "smoke", "of_this_machine")


#: How many tests ended how, by the names of `labels.OUTCOMES`.
Tally = Counter[str]
#: Outcomes of what has a record, the worst news first.
_SAID = {
    "missed": "missed",
    "met, failed": "met in a test that failed",
    "missed, accepted": "missed and accepted",
    "not measured": "not measured",
    "no slower seen": "no slower than the traffic generator can see",
    "met": "met",
}


#: What is said of tests without a record.
WITHOUT: dict[Ending, str] = {
    "failed": "failed before anything was measured",
    "not begun": "not begun: the run was stopped before",
    "skipped": "skipped: not possible on this testbed, or left out of this run",
    "nightly only": "nightly only: not in the time of this campaign",
    "no floor yet": "not judged: measured on too few machines for a floor",
}


def tally_of(runs: RunSet) -> Tally:
    """Count the outcomes of a run."""
    records = [each.record for each in runs.newest]
    verdicts = (record.outcome for record in records)
    outcomes = (test.outcome for test in runs.without_record)
    of_gate = ["gate not measured"] if gate.doubt(records) else []
    counted = Counter([*verdicts, *outcomes, *of_gate, *("unreadable" for _ in runs.broken)])
    if left_open := len(gate.left_open(records)):
        counted["left open"] = left_open
        counted["not measured"] -= left_open
    return counted


def tone(tally: Tally) -> Tone:
    """Return the tone of the worst outcome. It is green only where something was measured, nothing is in doubt, and no
    miss is accepted."""
    found = {labels.OUTCOMES[outcome].tone for outcome, number in tally.items() if number}
    return next((each for each in labels.WORST_FIRST if each in found - {"skipped"}), "unmeasured")


def word(tally: Tally) -> str:
    """Return the verdict of the run as a word for programs."""
    if any(tally[each] for each in ("missed", "met, failed")):
        return "missed" if tally["missed"] else "met, failed"
    if any(tally[each] for each in ("not measured", "failed", "not begun", "gate not measured", "unreadable")):
        return "not measured"
    return next((each for each in ("missed, accepted", "met") if tally[each]), "not measured")


def sentence(tally: Tally) -> str:
    """Return the verdict in a sentence: what is missed, then what is not measured, then what is met."""
    judged = sum(tally[outcome] for outcome in _SAID)
    slas = plural(judged, "SLA")
    if not judged:
        return "Nothing was measured."
    if tally["met"] == judged:
        return "The SLA that was measured is met." if judged == 1 else f"All {slas} that were measured are met."
    (worst, count), *others = ((words, tally[outcome]) for outcome, words in _SAID.items() if tally[outcome])
    which = f"{thousands(count)} of {slas} {_are(count)}" if judged > 1 else "The only SLA is"
    rest = ", ".join(f"{thousands(number)} {_are(number)} {words}" for words, number in others)
    return f"{which} {worst}; {rest}." if rest else f"{which} {worst}."


def details(tally: Tally, records: Sequence[Record]) -> tuple[str, ...]:
    """Return sentences on accepted misses, on failed tests whose SLA is met, and on what left no record."""
    failed, unreadable = tally["failed"], tally["unreadable"]
    said = [
        f"Accepted until {known.until} by {known.signed}: {figures.subject(record)}, {known.because.rstrip('.')}."
        for record in records if (known := record.accepted)
    ]  # fmt: skip
    said += [
        f"Failed although its SLA is met: {labels.name(record.test)}: {str(record.failed).rstrip('.')}."
        for record in records if record.outcome == "met, failed"
    ]  # fmt: skip
    if failed:
        said.append(f"{plural(failed, 'test')} {WITHOUT['failed']}.")
    if unreadable:
        what = "file is not a record" if unreadable == 1 else "files are not records"
        said.append(f"{thousands(unreadable)} {what} and {_are(unreadable)} not counted.")
    return tuple(said)


def unseen(tally: Tally, newest: Sequence[Stored]) -> tuple[str, ...]:
    """Return sentences on what a run does not cover."""
    said = []
    machines = [each.record.environment.dut_machine for each in newest]
    if cpus := max((len(machine.usable_cpus) for machine in machines), default=0):
        had = "machine" if len({machine.cpu_model for machine in machines}) == 1 else "largest machine"
        said.append(f"More than {plural(cpus, 'CPU')}: its {had} had no more.")
    records = [each.record for each in newest]
    if not _only_counted(records) and not of_candidate(records):
        said.append("Whether another build is slower: no candidate was compared with a base (--candidate).")
    left = [(outcome, words) for outcome, words in WITHOUT.items() if tally[outcome] and outcome != "failed"]
    said += [f"{plural(tally[outcome], 'test')} {words}." for outcome, words in left]
    if thrown_away := sum(each.thrown_away for each in newest):
        trials, were = sum(each.trials for each in newest), "was" if thrown_away == 1 else "were"
        said.append(f"{thousands(thrown_away)} of {plural(trials, 'trial')} {were} thrown away: they say "
                    "nothing about the device under test.")  # fmt: skip
    return tuple(said)


def counts(tally: Tally) -> tuple[tuple[int, labels.Shown], ...]:
    """Return the tiles below the sentence: always the three verdicts, and the other outcomes that occurred."""
    return tuple(
        (tally[outcome], shown)
        for outcome, shown in labels.OUTCOMES.items()
        if tally[outcome] or outcome in get_args(Word)
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def kinds(records: Sequence[Record]) -> dict[str, int]:
    """Return how many tests met or missed a promise of each kind, by the names of `_KINDS`. A test may count for
    several."""
    found = Counter(kind for record in records for kind in {figures.floor_kind(each) for each in _judged(record)})
    return {name: found[name] for name in _KINDS}


def kinds_sentence(records: Sequence[Record]) -> str:
    """Return the kinds in words: `Judged: 31 ratios of like code, 13 smoke tests, no floor of this machine.`"""
    said, found = [], kinds(records)
    for name, count in found.items():
        singular, many = _KINDS[name]
        if count:
            said.append(plural(count, singular, many))
        elif name in _ALWAYS and not found["of_build"]:
            said.append(f"no {singular.partition(' (')[0]}")
    return f"Judged: {', '.join(said)}."


def judged(records: Sequence[Record]) -> tuple[str, ...]:
    """Return sentences on the kinds of promises that judged a run, and on the slowdown of a single set-up that fails
    its test. The latter is left out where it is unknown, and for a candidate, whose starts give it
    (`candidate.could_see`)."""
    found = sorted(each for each in map(figures.catches, records) if each is not None)
    if not found or of_candidate(records):
        return (kinds_sentence(records),) if records else ()
    best, half, worst = (format_share(found[at]) for at in (0, len(found) // 2, -1))
    cpus = plural(max(record.topology.cpus for record in records), "CPU")
    return (
        kinds_sentence(records),
        "How much slower a set-up alone has to become until its test fails, over the "
        f"{plural(len(found), 'test')} that tell: {half} in half of them, {best} in the strictest, {worst} in "
        f"the laxest (at most {cpus}).",
    )


#: So much slower (ratio), a build is one that everybody would want to see.
_SLOWER = 0.1


def would_pass(records: Sequence[Record], color: Tone) -> str:
    """Return a sentence on whether the run would fail a build that is slower in everything: such a build keeps its
    ratios, so that only absolute floors catch it. Empty for a candidate, where nothing was measured, and where
    instructions were counted and nothing was timed."""
    if of_candidate(records) or _only_counted(records):
        return ""
    caught = [figures.catches(record, "absolute") for record in records]
    least = min((each for each in caught if each is not None), default=1.0)
    well = "Set up and working. " if color == "met" else ""
    if least <= _SLOWER:
        return f"{well}A build that is {format_share(least)} slower in everything would fail."
    return (
        f"{well}A build that is {_SLOWER * 100:g} % slower in everything would pass: most floors compare set-ups of "
        "the same build. To compare builds: ./run sla --candidate."
    )


def _only_counted(records: Sequence[Record]) -> bool:
    """True where nothing was timed: the floors of instructions may be the counts of a base."""
    return all(record.metric in COSTS for record in records)


def of_candidate(records: Sequence[Record]) -> bool:
    """True where a candidate was compared with its base, or crashed in the attempt."""
    shares = [share for record in records if (share := record.threshold("of_build"))]
    return any(share.measured is not None or (share.reason and not share.undecided) for share in shares)


def _judged(record: Record) -> list[Threshold]:
    decided = [each for each in record.thresholds if each.is_promise and not each.undecided]
    return decided if record.verdict != "not measured" else [each for each in decided if each.met and each.reason]

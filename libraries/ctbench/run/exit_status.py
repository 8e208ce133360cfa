"""The exit status of `./run sla`: what the records of a run and Robot Framework's own return code mean.

Robot's return code counts failed tests and does not say why they failed. A test that a mistake in a file ended leaves
no record either, so the library notes such mistakes in a file of the output folder (`note_mistake`).
"""

import sys
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ctbench.base.errors import ExitStatus
from ctbench.base.text import one_line
from ctbench.results.gate import doubt, left_open
from ctbench.results.store import read_stored, read_without_record

#: Robot Framework's return codes (User Guide, 3.1.3) that do not count failed tests, as 1-250 do. What it was asked for
#: was looked at before: what it cannot do then, or what breaks in it, is of what it writes, or its own fault.
_BY_CODE = {252: ExitStatus.OUTPUT, 253: ExitStatus.INTERRUPTED, 255: ExitStatus.INTERNAL}

#: Statuses that tests have brought about, for which Robot Framework's `--nostatusrc` asks for 0.
OF_TESTS = (ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
#: In the output folder: a sentence for each mistake in a file that ended a test.
MISTAKES_FILE = "configuration-errors.txt"


#: How often each outcome of a record is there (rows that a gate leaves open apart), how many tests failed without one
#: (`failed`) or have one that cannot be read (`broken`), and whether a gate is not measured as a whole (`gate`).
Verdicts = Counter[str]


def note_mistake(output: Path, sentence: str) -> None:
    """Note that a mistake in a file ended a test of this run. A folder that cannot be written is ignored: the test says
    the sentence too."""
    with suppress(OSError), (output / MISTAKES_FILE).open("a", encoding="utf-8") as file:
        file.write(f"{sentence}\n")


def record_files(output: Path) -> list[Path]:
    """Return the records in the folder of a run, sorted by their names; none without such a folder."""
    return sorted((output / "records").glob("*.json"))


def read_verdicts(output: Path, before: Collection[Path] = (), *, accepting: bool = True) -> Verdicts:
    """Count the outcomes of the records in the folder of a run, but for those `before`, which are of another run or of
    other tests. `accepting`: whether an accepted miss counts apart. Names on stderr the records that cannot be read."""
    stored, broken = read_stored(output)
    records = [each.record for each in stored if each.path not in before]
    counts = Counter[str](record.outcome for record in records)
    counts["left open"] = len(left_open(records))
    counts["not measured"] -= counts["left open"]
    counts["gate"] = int(bool(doubt(records)))
    for each in broken:
        if each.path not in before:
            print(f"Not a record: {each.reason}", file=sys.stderr)
            counts["broken"] += 1
    if not accepting:
        counts["missed"] += counts.pop("missed, accepted", 0)
    counts["failed"] = sum(test.outcome == "failed" for test in read_without_record(output)[0])
    return counts


def exit_status(robot_rc: int, verdicts: Verdicts, *, dry_run: bool = False, mistakes: bool = False) -> ExitStatus:
    """Return the exit status of a run. The worst news about the DUT comes first, a missed SLA; then what is wrong with
    the run itself. *Not measured* comes last, for a gate may let it pass: it says that no test failed for another
    reason. Rows of a gate that are left open do not count.

    `mistakes`: a mistake in a file ended a test, which is why it failed without a record. A broken record hides a
    verdict, so it counts as not measured. A dry run has no verdicts: it is 0 or 4.
    """
    if robot_rc in _BY_CODE:
        return _BY_CODE[robot_rc]
    if dry_run:
        return ExitStatus.CONFIGURATION if robot_rc else ExitStatus.MET
    if verdicts["missed"] or verdicts["met, failed"]:
        return ExitStatus.MISSED
    doubtful = verdicts["not measured"] + verdicts["broken"]
    # Robot's code counts failed tests, those that the library does not hear of too.
    if verdicts["failed"] or robot_rc > (0 if mistakes else doubtful + verdicts["left open"]):
        return ExitStatus.CONFIGURATION if mistakes else ExitStatus.TESTBED
    known = verdicts["met"] or verdicts["missed, accepted"]
    if doubtful or verdicts["gate"] or (verdicts["left open"] and not known):
        return ExitStatus.NOT_MEASURED
    return ExitStatus.MET if known else ExitStatus.NOTHING_MEASURED


#: Outcomes that are said only where there are some.
_RARE = {
    "missed, accepted": "missed and accepted",
    "met, failed": "met but failed",
    "no slower seen": "no slower than the generator can see",
    "left open": "left open",
    "gate": "gate not measured as a whole",
}


def why_without_verdict(output: Path) -> str:
    """Return the reason of the first test of a run that failed or did not begin without a record; empty where none
    did."""
    ended = (test for test in read_without_record(output)[0] if test.outcome in ("failed", "not begun"))
    return next((one_line(test.reason) for test in ended), "")


def sentence(status: ExitStatus, verdicts: Verdicts, why: str = "") -> str:
    """Return what the status means, for the last line on the console. `why`: the reason of a test without a verdict."""
    counts = ", ".join(f"{verdicts[word]} {word}" for word in ("met", "missed", "not measured"))
    for word, said in _RARE.items():
        counts += f", {verdicts[word]} {said}" if verdicts[word] else ""
    missed = "An SLA is missed" if verdicts["missed"] else "A test failed although its SLA is met"
    other = ", or its miss is accepted" if verdicts["missed, accepted"] else ""
    return {
        ExitStatus.MET: f"Every SLA that was measured is met{other} ({counts}).",
        ExitStatus.MISSED: f"{missed} ({counts}).",
        ExitStatus.NOT_MEASURED: f"Not everything could be measured ({counts}); the report says why.",
        ExitStatus.CONFIGURATION: "The configuration is wrong: see the message above.",
        ExitStatus.TESTBED: f"A test failed without a verdict ({counts}): "
        f"{why or 'the testbed broke, or a step of the test.'}",
        ExitStatus.NOTHING_MEASURED: "Nothing was measured: every test was skipped or left no record.",
        ExitStatus.INTERNAL: f"The program failed ({counts} until then): see the message above.",
        ExitStatus.OUTPUT: f"Not everything could be written ({counts} are kept as records): see the message above.",
        ExitStatus.INTERRUPTED: f"Stopped before the end ({counts} until then).",
    }.get(status, f"Exit status {int(status)}.")

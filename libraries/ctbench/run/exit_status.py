"""The exit status of `./run sla`: what the records of a run and Robot Framework's own return code mean.

Robot's return code counts failed tests and does not say why they failed. A test that a mistake in a file ended leaves
no record either, so the library notes such mistakes in a file of the output folder (`note_mistake`).
"""

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import ExitStatus
from ctbench.results.store import read_stored, read_without_record

#: Robot Framework's return codes (User Guide, 3.1.3) that do not count failed tests, as 1-250 do.
_BY_CODE = {
    251: ExitStatus.MET,  # its help
    252: ExitStatus.CONFIGURATION,  # invalid data
    253: ExitStatus.INTERRUPTED,
    255: ExitStatus.TESTBED,  # it crashed
}

#: Statuses that tests have brought about, for which Robot Framework's `--nostatusrc` asks for 0.
OF_TESTS = (ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
#: In the output folder: a sentence for each mistake in a file that ended a test.
MISTAKES_FILE = "configuration-errors.txt"


@dataclass(frozen=True)
class Verdicts:
    """How often each verdict was given in one run, how many tests failed without one, and which records could not be
    read (file: reason)."""

    met: int = 0
    missed: int = 0
    not_measured: int = 0
    #: Missed, and accepted for a while.
    accepted: int = 0
    #: Met, and the test failed by another step.
    met_failed: int = 0
    #: No slower than the generator can see: neither met nor missed.
    no_slower_seen: int = 0
    #: Failed without a verdict.
    failed: int = 0
    broken: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Records found, broken ones too."""
        judged = self.met + self.missed + self.not_measured + self.accepted + self.met_failed
        return judged + self.no_slower_seen + len(self.broken)


def note_mistake(output: Path, sentence: str) -> None:
    """Note that a mistake in a file ended a test of this run. A folder that cannot be written is not a reason to fail
    once more: the test says the sentence too."""
    with suppress(OSError), (output / MISTAKES_FILE).open("a", encoding="utf-8") as file:
        file.write(f"{sentence}\n")


def record_files(output: Path) -> list[Path]:
    """The records in the folder of a run, by their names, which no later record takes; none without such a folder."""
    return sorted((output / "records").glob("*.json"))


def read_verdicts(output: Path, before: Collection[Path] = (), *, accepting: bool = True) -> Verdicts:
    """Count the verdicts of the records in the folder of a run, but for those `before`, which are of an older run.
    `accepting`: whether a miss that is accepted counts apart."""
    stored, broken = read_stored(output)
    counts = Counter(each.record.outcome for each in stored if each.path not in before)
    reasons = tuple(each.reason for each in broken if each.path not in before)
    if not accepting:
        counts["missed"] += counts.pop("missed, accepted", 0)
    failed = sum(test.outcome == "failed" for test in read_without_record(output)[0])
    return Verdicts(
        counts["met"], counts["missed"], counts["not measured"], counts["missed, accepted"], counts["met, failed"],
        counts["no slower seen"], failed, reasons,
    )  # fmt: skip


def exit_status(robot_rc: int, verdicts: Verdicts, *, dry_run: bool = False, mistakes: bool = False) -> ExitStatus:
    """What the run ends with. The worst news about the DUT comes first, a missed SLA; then what is wrong with the run
    itself. *Not measured* comes last, for a gate may let it pass: it says that no test failed for another reason.

    `mistakes`: a mistake in a file ended a test, which is why it failed without a record. A broken record hides a
    verdict, so it counts as not measured. A dry run has no verdicts: it is 0 or 4.
    """
    if robot_rc in _BY_CODE:
        return _BY_CODE[robot_rc]
    if dry_run:
        return ExitStatus.CONFIGURATION if robot_rc else ExitStatus.MET
    if verdicts.missed or verdicts.met_failed:
        return ExitStatus.MISSED
    doubtful = verdicts.not_measured + len(verdicts.broken)
    # Robot's code counts failed tests, those that the library does not hear of too.
    if verdicts.failed or robot_rc > (0 if mistakes else doubtful):
        return ExitStatus.CONFIGURATION if mistakes else ExitStatus.TESTBED
    if doubtful or (verdicts.no_slower_seen and not verdicts.met):
        return ExitStatus.NOT_MEASURED
    return ExitStatus.MET if verdicts.met or verdicts.accepted else ExitStatus.NOTHING_MEASURED


def sentence(status: ExitStatus, verdicts: Verdicts) -> str:
    """What the status means, for the last line on the console."""
    counts = f"{verdicts.met} met, {verdicts.missed} missed, {verdicts.not_measured} not measured"
    counts += f", {verdicts.accepted} missed and accepted" if verdicts.accepted else ""
    counts += f", {verdicts.met_failed} met but failed" if verdicts.met_failed else ""
    if verdicts.no_slower_seen:
        counts += f", {verdicts.no_slower_seen} no slower than the generator can see"
    missed = "An SLA is missed" if verdicts.missed else "A test failed although its SLA is met"
    other = ", or its miss is accepted" if verdicts.accepted else ""
    return {
        ExitStatus.MET: f"Every SLA that was measured is met{other} ({counts}).",
        ExitStatus.MISSED: f"{missed} ({counts}).",
        ExitStatus.NOT_MEASURED: f"Not everything could be measured ({counts}); the log says why.",
        ExitStatus.CONFIGURATION: "The configuration is wrong: see the message above.",
        ExitStatus.TESTBED: f"A test failed without a verdict ({counts}): the testbed broke, or a step of the test.",
        ExitStatus.NOTHING_MEASURED: "Nothing was measured: every test was skipped or left no record.",
        ExitStatus.INTERNAL: f"The program failed ({counts} until then): see the message above.",
        ExitStatus.OUTPUT: f"Not everything could be written ({counts} are kept as records): see the message above.",
        ExitStatus.INTERRUPTED: f"Stopped before the end ({counts} until then).",
    }.get(status, f"Exit status {int(status)}.")

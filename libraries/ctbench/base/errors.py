"""What can go wrong, as exceptions whose text is one sentence for the user, and the exit status of each cause.

Each class carries the exit status of `./run`, so that a script can tell the causes apart. Nothing may be lost for an
unexpected error, so some places catch every one: an exception that ends the run on request can come at any of them (the
handler of a signal raises it), and has to pass.
"""

import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from ctbench.base.text import brief


class ExitStatus(IntEnum):
    """What a command ends with. The numbers are a contract; `./run --help` shows the meanings."""

    MET = 0
    MISSED = 1
    USAGE = 2
    NOT_MEASURED = 3
    CONFIGURATION = 4
    TESTBED = 5
    NOTHING_MEASURED = 6
    #: EX_SOFTWARE of sysexits.h.
    INTERNAL = 70
    #: EX_IOERR of sysexits.h.
    OUTPUT = 74
    INTERRUPTED = 130


#: For `./run --help`; a command may say more precisely what it means by one.
MEANINGS = {
    ExitStatus.MET: "the command did what it was asked for; of sla: every SLA that was measured is met",
    ExitStatus.MISSED: "of sla: an SLA is missed, or a test failed although it is met; of tests and check: something"
    " failed",
    ExitStatus.USAGE: "wrong usage: an unknown command or option, or a missing argument",
    ExitStatus.NOT_MEASURED: "of sla: at least one test, or a gate as a whole, could not be judged, and nothing else"
    " failed",
    ExitStatus.CONFIGURATION: "configuration error: an invalid value in a file or an option",
    ExitStatus.TESTBED: "of sla: a test failed without a verdict: the testbed broke, or a step of the test",
    ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured; of doctor: something has to be"
    " fixed",
    ExitStatus.INTERNAL: "a fault of this program: the last line names the file with the traceback",
    ExitStatus.OUTPUT: "what was found could not be written: the disk is full, or the results folder was removed",
    ExitStatus.INTERRUPTED: "stopped with Ctrl-C (143: with SIGTERM, 129: with SIGHUP)",
}


class CtbenchError(Exception):
    """Root of every error that says what, where, and what to do; itself a fault of this program (EX_SOFTWARE of
    sysexits.h)."""

    #: Never 1, which says that an SLA is missed.
    exit_status: ClassVar[int] = ExitStatus.INTERNAL


class ConfigError(CtbenchError):
    """Invalid value in a file or an option: names file, key and expectation."""

    exit_status = ExitStatus.CONFIGURATION


class NoPromise(ConfigError):
    """The SLA promises nothing of what a test is about."""


class TestbedError(CtbenchError):
    """The testbed is broken: a host, a command or the DUT did not do what it was asked to."""

    exit_status = ExitStatus.TESTBED


class UnknownAnswer(TestbedError):
    """A program of the testbed answered in a form that nothing here can read: neither wrong nor right."""


class Crashed(TestbedError):
    """What is tested ended by a fault of its own, while what it is compared with lives."""


class GeneratorError(TestbedError):
    """The traffic generator is broken (not: too slow, which is a property of a trial)."""


class MissingResource(CtbenchError):
    """The testbed lacks what a topology needs; the test is skipped. Says the need and what was found."""

    exit_status = ExitStatus.NOTHING_MEASURED


class NightlyOnly(MissingResource):
    """The testbed has what the test needs, and the campaign leaves it to one with more time; the test is skipped."""


class NoFloorYet(MissingResource):
    """Too few machines have measured what the test is about for a floor; the test is skipped."""


class OutputError(CtbenchError):
    """What was found could not be written: a full disk, a folder that was removed (EX_IOERR of sysexits.h)."""

    exit_status = ExitStatus.OUTPUT


#: In the output folder of a run.
UNEXPECTED_LOG = "unexpected-errors.log"
_stops: set[type[Exception]] = set()


def let_pass(kind: type[Exception]) -> None:
    """From now on this kind of exception ends the run on request."""
    _stops.add(kind)


def reraise_stop(error: Exception) -> None:
    """Raise `error` again where it ends the run on request."""
    if isinstance(error, tuple(_stops)):
        raise error


def sentence_of(error: BaseException, output: Path | None) -> str:
    """What went wrong, in one sentence. Of an unexpected error the traceback is added to `UNEXPECTED_LOG` in `output`,
    or in a temporary folder, and the sentence names it; where it cannot be written, the sentence is all there is."""
    if isinstance(error, CtbenchError):
        return str(error)
    said = brief(f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ").rstrip("."), 300)
    with suppress(OSError):
        file = (output or Path(tempfile.mkdtemp(prefix="conntrack-sla-error-"))) / UNEXPECTED_LOG
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{''.join(traceback.format_exception(error))}\n")
        return f"unexpected error: {said} (traceback in {file})."
    return f"unexpected error: {said}."

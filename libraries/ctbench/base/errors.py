"""Exceptions of the suite, whose text is one sentence for the user, and the exit status of each cause.

Each class carries the exit status of `./run`, so that a script can tell the causes apart. Some places catch every
exception, so that an unexpected error loses no result. An exception that ends the run on request (the handler of a
signal raises it) can reach any of these places, and they must raise it again (`reraise_stop`).
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
    """The exit statuses of a command. The numbers are a contract; `./run --help` shows the meanings."""

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
    """Base class of the errors that say what happened, where, and what to do. By itself it is a fault of this program
    (EX_SOFTWARE of sysexits.h)."""

    #: Never 1, which says that an SLA is missed.
    exit_status: ClassVar[int] = ExitStatus.INTERNAL


class ConfigError(CtbenchError):
    """Invalid value in a file or an option; the text names file, key and expectation."""

    exit_status = ExitStatus.CONFIGURATION


class NoPromise(ConfigError):
    """The SLA file has no promise for what a test measures."""


class TestbedError(CtbenchError):
    """The testbed is broken: a host, a command or the DUT did not do what it was asked to."""

    exit_status = ExitStatus.TESTBED


class UnknownAnswer(TestbedError):
    """A program of the testbed answered in a form that no reader here knows: the answer proves nothing."""


class Crashed(TestbedError):
    """The tested DUT ended by a fault of its own, while the DUT that it is compared with runs."""


class GeneratorError(TestbedError):
    """The traffic generator is broken (not: too slow, which is a property of a trial)."""


class MissingResource(CtbenchError):
    """The testbed lacks what a topology needs; the test is skipped. The text names the need and what was found."""

    exit_status = ExitStatus.NOTHING_MEASURED


class NightlyOnly(MissingResource):
    """The campaign leaves the test to a longer campaign; the testbed has what the test needs. The test is skipped."""


class NoFloorYet(MissingResource):
    """Too few machines have measured a test to promise a floor for it; the test is skipped."""


class OutputError(CtbenchError):
    """The results could not be written: a full disk, a folder that was removed (EX_IOERR of sysexits.h)."""

    exit_status = ExitStatus.OUTPUT


#: In the output folder of a run.
UNEXPECTED_LOG = "unexpected-errors.log"
_stops: set[type[Exception]] = set()


def let_pass(kind: type[Exception]) -> None:
    """Register a class of exceptions that end the run on request, for `reraise_stop`."""
    _stops.add(kind)


def reraise_stop(error: Exception) -> None:
    """Raise `error` again where its class ends the run on request (`let_pass`)."""
    if isinstance(error, tuple(_stops)):
        raise error


def sentence_of(error: BaseException, output: Path | None) -> str:
    """Describe an error in one sentence. Append the traceback of an unexpected error to `UNEXPECTED_LOG` in `output`,
    or in a temporary folder, and name that file. Where it cannot be written, return the sentence alone."""
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

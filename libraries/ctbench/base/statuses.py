"""The exit statuses of `./run`, each with its meaning: a script tells by them what came of a command."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a command ends with. The numbers are a contract; `./run --help` shows the meanings."""

    MET = 0
    MISSED = 1
    USAGE = 2
    NOT_MEASURED = 3
    CONFIGURATION = 4
    TESTBED = 5
    NOTHING_MEASURED = 6
    REGRESSED = 7
    NOT_MEASURABLE = 8
    #: EX_SOFTWARE of sysexits.h.
    INTERNAL = 70
    #: EX_IOERR of sysexits.h.
    OUTPUT = 74
    INTERRUPTED = 130


#: For `./run --help`; a command may say more precisely what it means by one.
MEANINGS = {
    ExitStatus.MET: "the command did what it was asked for; of sla: every SLA that was measured is met",
    ExitStatus.MISSED: "of sla: an SLA is missed; of tests and check: something failed",
    ExitStatus.USAGE: "wrong usage: an unknown command or option, or a missing argument",
    ExitStatus.NOT_MEASURED: "of sla: at least one test could not be judged, and no SLA is missed",
    ExitStatus.CONFIGURATION: "configuration error: an invalid value in a file or an option",
    ExitStatus.TESTBED: "of sla: the testbed failed although every record says met, or left no record",
    ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured; of doctor: something has to be"
    " fixed",
    ExitStatus.REGRESSED: "of compare: a test regressed",
    ExitStatus.NOT_MEASURABLE: "of compare: something is not measurable, and nothing regressed",
    ExitStatus.INTERNAL: "a fault of this program: the last line names the file with the traceback",
    ExitStatus.OUTPUT: "what was found could not be written: the disk is full, or the results folder was removed",
    ExitStatus.INTERRUPTED: "stopped with Ctrl-C (143: with SIGTERM, 129: with SIGHUP)",
}

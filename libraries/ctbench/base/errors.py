"""What can go wrong, as exceptions whose text is one sentence for the user.

Each class carries the exit status of `./run`, so that a script can tell the causes apart.
"""

from typing import ClassVar

from ctbench.base.statuses import ExitStatus


class CtbenchError(Exception):
    """Root of every error that is not a bug. `str(error)` says what, where, and what to do."""

    #: Never 1, which says that an SLA is missed.
    exit_status: ClassVar[int] = ExitStatus.INTERNAL


class ConfigError(CtbenchError):
    """Invalid value in a file or an option: names file, key and expectation."""

    exit_status = ExitStatus.CONFIGURATION


class TestbedError(CtbenchError):
    """The testbed is broken: a host, a command or the DUT did not do what it was asked to."""

    __test__ = False  # not a pytest class
    exit_status = ExitStatus.TESTBED


class GeneratorError(TestbedError):
    """The traffic generator is broken (not: too slow, which is a property of a trial)."""


class MissingResource(CtbenchError):
    """The testbed lacks what a topology needs; the test is skipped. Says the need and what was found."""

    exit_status = ExitStatus.NOTHING_MEASURED


class LeftForTheNight(MissingResource):
    """The testbed has what the test needs, and the campaign leaves it to one with more time; the test is skipped."""


class InternalError(CtbenchError):
    """Something that nobody expected: a fault of this program (EX_SOFTWARE of sysexits.h)."""


class OutputError(CtbenchError):
    """What was found could not be written: a full disk, a folder that was removed (EX_IOERR of sysexits.h)."""

    exit_status = ExitStatus.OUTPUT

"""What this process was given by the pool of testbeds that it belongs to, where there is one."""

import ctypes
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from pabot.pabotlib import PabotLib
from robot.libraries.BuiltIn import BuiltIn

from ctbench.errors import TestbedError
from ctbench.pool_run import PoolRun
from ctbench.results.record import PoolMember

#: Set by ./run sla --testbeds, which holds the value sets that are taken here.
POOL_VARIABLE = "${TESTBED_POOL}"
#: prctl(2).
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Share:
    """A testbed of the pool, this process' own until it ends."""

    testbed: str
    run: PoolRun


def take() -> Share | None:
    """Take a testbed of the pool; None where there is no pool.

    From here on this process uses that testbed's CPUs only, and ends with the process that holds the pool. The testbed
    is free again when this process has ended: pabot sees that, whatever ended it. Raises `TestbedError` where the pool
    is gone.
    """
    robot = BuiltIn()
    if not robot.get_variable_value(POOL_VARIABLE):
        return None
    # First, so that a pool which ends before this line is missed in the next one.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    library = PabotLib()
    try:
        library.acquire_value_set()
    except RuntimeError as error:
        raise TestbedError(f"The pool of testbeds cannot be reached, its run has probably ended: {error}") from None
    value = library.get_value_from_set
    cpus = list(value("cpus"))
    if cpus:
        # What is started later inherits it, and `auto` in a testbed file chooses among these.
        os.sched_setaffinity(0, cpus)
    place = int(robot.get_variable_value("${PABOTQUEUEINDEX}"))
    member = PoolMember(name=value("name"), cpus=cpus, suite=place)
    return Share(value("testbed"), PoolRun(value("run_id"), Path(value("output")), member))

"""Runs a kernel function in a thread of its own until it is over, and never lets go of memory that it still uses."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import typeof

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software.wiring import Wiring

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
#: Called about ten times a second with seconds since the start, state and counters.
Watcher = Callable[[float, Counts, Counts], None]
#: Seconds that a trial may take longer than it should, on a machine that is kept busy by others.
_PATIENCE_S = 120


def run_kernel(
    function: Any,
    arguments: Sequence[Any],
    wiring: Wiring,
    cpus: Sequence[int],
    stop: Callable[[], None],
    longest_s: float,
    watch: Callable[[float], None],
) -> None:
    """Run `function(*arguments)`, a function of numba's, with the wiring carrying frames.

    `stop()` makes it end soon; it is called when anything goes wrong here, Ctrl-C included. Raises `GeneratorError`
    when it fails or takes too long, or when a port's link is gone.
    """
    # Here, before anybody waits: it takes half a minute the first time, and minutes where others want the interpreter.
    function.compile(tuple(typeof(argument) for argument in arguments))
    failure: list[BaseException] = []
    # Not Thread.join: interrupted by a signal, it takes the thread for ended (CPython, _wait_for_tstate_lock), and
    # the rings would be unmapped under the kernel function.
    ended = threading.Event()

    def work() -> None:
        try:
            if cpus:
                os.sched_setaffinity(0, cpus)  # of this thread only
            function(*arguments)
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    started = time.perf_counter()
    wiring.start()
    try:
        threading.Thread(target=work, name="traffic-generator", daemon=True).start()
        while not ended.wait(0.1):
            elapsed = time.perf_counter() - started
            watch(elapsed)
            wiring.check_ports()  # or a trial of an hour would go on with a DUT that is gone
            if elapsed > longest_s + _PATIENCE_S:
                raise GeneratorError(
                    f"The traffic generator did not end a trial of {longest_s:g} s in {elapsed:.0f} s."
                )
    finally:
        stop()
        # However long it takes: what comes after this frees the memory that the function works on.
        ended.wait()
        wiring.stop()
    if failure:
        raise GeneratorError(f"The traffic generator failed: {failure[0]}") from failure[0]
    wiring.check()

"""Threads for functions of numba's: a trial's memory is never let go of while a function still works on it."""

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import typeof

from ctbench.base.errors import GeneratorError

if TYPE_CHECKING:
    from ctbench.traffic.software.wiring import Wiring

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
#: Called about ten times a second with seconds since the start, state and counters.
Watcher = Callable[[float, Counts, Counts], None]
#: Seconds that a trial may take longer than it should, on a machine that is kept busy by others.
_PATIENCE_S = 120


class KernelThread(threading.Thread):
    """A thread in which a function of numba's works. Wait for `ended`, and not with `join`: that takes the thread for
    ended where a signal interrupts it (CPython, _wait_for_tstate_lock); memory would be unmapped under the function."""

    def __init__(self, name: str, work: Callable[[], None], cpus: Collection[int]) -> None:
        """`cpus`: where it may run; empty: anywhere."""
        super().__init__(name=name, daemon=True)
        self._work, self._cpus = work, cpus
        self.ended = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            if self._cpus:
                os.sched_setaffinity(0, self._cpus)  # of this thread only
            self._work()
        except BaseException as error:
            self.failure = error
        finally:
            self.ended.set()

    def check(self, what: str) -> None:
        """Raise `GeneratorError` where it failed. `what`: of the generator."""
        if self.failure:
            raise GeneratorError(f"{what} failed: {self.failure}") from self.failure


def run_kernel(
    function: Any,
    arguments: Sequence[Any],
    wiring: "Wiring",
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
    thread = KernelThread("traffic-generator", lambda: function(*arguments), cpus)
    started = time.perf_counter()
    wiring.start()
    try:
        thread.start()
        while not thread.ended.wait(0.1):
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
        thread.ended.wait()
        wiring.stop()
    thread.check("The traffic generator")
    wiring.check()

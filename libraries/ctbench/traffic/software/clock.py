"""The rate of the processor's cycle counter, measured against the monotonic clock."""

import functools
import time
from pathlib import Path

from numba import njit

from ctbench.base.errors import MissingResource
from ctbench.traffic.software.machine_code import cycles


@njit(nogil=True, cache=True)
def read_cycles():  # type: ignore[no-untyped-def]
    """The cycle counter now."""
    return cycles()


def _sample() -> tuple[int, int]:
    """Clock (ns) and counter at the same moment: the best of some tries."""
    best: tuple[int, int, int] | None = None
    for _ in range(20):
        before = time.perf_counter_ns()
        count = int(read_cycles())
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, count)
    assert best is not None
    return best[1], best[2]


@functools.cache
def cycles_per_second() -> float:
    """The counter's rate in hertz, within about one part in 100 000. Takes 50 ms once per process."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    if "constant_tsc" not in flags:
        raise MissingResource(
            "The software traffic generator keeps time with the processor's time stamp counter, and this processor's"
            " is not constant (no constant_tsc in /proc/cpuinfo). Use TRex on another host."
        )
    read_cycles()
    first_ns, first = _sample()
    time.sleep(0.05)
    last_ns, last = _sample()
    return (last - first) * 1e9 / (last_ns - first_ns)

"""A process that does not outlive the one that started it."""

import ctypes
import os
import signal

#: prctl(2).
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent`, or its thread that started us, ends. SystemExit where it has
    ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)

"""A program that samples the program counter of a thread. It needs nothing but Python.

    python3 -I -S -c SOURCE PROCESS THREAD SECONDS HZ

Prints one JSON object. ptrace(2) stops the thread for each sample, for some 20 us, whether it runs or sleeps. That
works as an ordinary user on one's own processes, also where an administrator forbids perf_event_open(2). A thread that
is in the kernel is seen at its system call.
"""

import ctypes
import json
import os
import struct
import sys
import time
from collections import Counter
from pathlib import Path

#: Requests of ptrace(2), and where the program counter is in the registers of x86-64 (sys/user.h).
_CONT, _GETREGS, _SEIZE, _INTERRUPT, _DETACH = 7, 12, 0x4206, 0x4207, 17
_RIP, _REGISTERS = 16 * 8, 27 * 8
_WALL = 0x40000000
#: What stopped it, of the status of waitpid(2): we did (PTRACE_EVENT_STOP).
_EVENT_STOP = 128

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def _stop(thread: int) -> None:
    """Stop the thread, and pass on signals that arrive meanwhile. Raise OSError where the thread has ended."""
    while True:
        # Again after a signal: the kernel forgets that it is to stop when it stops for anything else (ptrace_stop).
        _libc.ptrace(_INTERRUPT, thread, None, None)
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise OSError("the thread has ended")
        if status >> 16 == _EVENT_STOP:
            return
        _libc.ptrace(_CONT, thread, None, os.WSTOPSIG(status))


def sample(thread: int, seconds: float, hz: int) -> "Counter[int]":
    """Return addresses with how often each was seen. Raise OSError where the thread may not be stopped, or has
    ended."""
    if _libc.ptrace(_SEIZE, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    registers = ctypes.create_string_buffer(_REGISTERS)
    found: Counter[int] = Counter()
    due, end = time.monotonic(), time.monotonic() + seconds
    while due < end:
        _stop(thread)
        _libc.ptrace(_GETREGS, thread, None, registers)
        _libc.ptrace(_CONT, thread, None, None)
        found[struct.unpack_from("<Q", registers, _RIP)[0]] += 1
        due = max(due + 1 / hz, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    _stop(thread)
    _libc.ptrace(_DETACH, thread, None, None)
    return found


def _ran(process: str, thread: str) -> "tuple[float, float]":
    ran, waited, _ = Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()
    return int(ran) / 1e9, int(waited) / 1e9


def main(process: str, thread: str, seconds: str, hz: str) -> None:
    """Sample the thread, and print the result."""
    before, begun = _ran(process, thread), time.monotonic()
    found = sample(int(thread), float(seconds), int(hz))
    wall, after = time.monotonic() - begun, _ran(process, thread)
    said = {
        "seconds": wall,
        "ran_s": after[0] - before[0],
        "waited_s": after[1] - before[1],
        "addresses": list(found.items()),
        "maps": [line for line in Path(f"/proc/{process}/maps").read_text().splitlines() if " r-xp " in line],
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Samples where a thread is in its program, again and again: a program of its own that needs nothing but Python.

    python3 -I -S -c SOURCE PROCESS THREAD SECONDS HZ STOPS_HZ [stops]

Prints one JSON object. What samples is perf_event_open(2) where the kernel lets us: an interrupt each time, a
microsecond of the thread's own CPU time, so a thread that sleeps is not seen. Else ptrace(2): the thread is stopped
each time, for some 20 us, whether it runs or sleeps. Both work as an ordinary user on one's own processes; then
perf_event_open sees no kernel code (perf_event_paranoid 2), and nothing at all where an administrator forbids it (3).
"""

import bisect
import contextlib
import ctypes
import json
import mmap
import os
import struct
import sys
import time
from collections import Counter
from pathlib import Path

#: System call number of perf_event_open on x86-64 and on 64-bit ARM.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
#: linux/perf_event.h: type and config of an event. Virtual machines often have no counter of cycles.
_EVENTS = {"perf, CPU cycles": (0, 0), "perf, CPU clock": (1, 0)}
_ATTRIBUTES = struct.Struct("<IIQQQQQ64x")
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _FREQUENCY = 1 << 0, 1 << 5, 1 << 6, 1 << 10
_SAMPLE_IP, _RECORD_LOST, _RECORD_SAMPLE = 1, 2, 9
_ENABLE, _DISABLE = 0x2400, 0x2401
_HEAD, _HEADER = struct.Struct("<Q"), struct.Struct("<IHH")
#: Pages of samples: 16 384 of them, within what an ordinary user may lock (perf_event_mlock_kb).
_PAGES = 64
#: Where the kernel's addresses begin (x86-64, and 64-bit ARM).
_KERNEL = 0xFF00_0000_0000_0000
#: Requests of ptrace(2), and where the program counter is in the registers of x86-64 (sys/user.h).
_CONT, _GETREGS, _SEIZE, _INTERRUPT, _DETACH = 7, 12, 0x4206, 0x4207, 17
_RIP, _REGISTERS = 16 * 8, 27 * 8
_WALL = 0x40000000
#: What stopped it, of the status of waitpid(2): we did (PTRACE_EVENT_STOP).
_EVENT_STOP = 128

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def _opened(thread: int, hz: int, *, kernel: bool) -> "tuple[int, str]":
    """Descriptor of an event that samples a thread, and what it is called; OSError where it cannot be had."""
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        raise OSError("perf_event_open is not known here")
    for name, (kind, config) in _EVENTS.items():
        flags = _DISABLED | _EXCLUDE_HYPERVISOR | _FREQUENCY | (0 if kernel else _EXCLUDE_KERNEL)
        attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, hz, _SAMPLE_IP, 0, flags)
        found = _libc.syscall(number, attributes, thread, -1, -1, 0)
        if found >= 0:
            return found, name
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def by_perf(thread: int, seconds: float, hz: int) -> "tuple[Counter[int], str, int]":
    """Addresses with how often each was seen, how, and how many were lost. OSError where the kernel forbids it."""
    try:
        event, name = _opened(thread, hz, kernel=True)
    except OSError:
        event, name = _opened(thread, hz, kernel=False)
        name += ", without the kernel"
    page = mmap.PAGESIZE
    try:
        with mmap.mmap(event, (1 + _PAGES) * page) as ring:
            _libc.ioctl(event, _ENABLE, 0)
            time.sleep(seconds)
            _libc.ioctl(event, _DISABLE, 0)
            (head,) = _HEAD.unpack_from(ring, 1024)
            found: Counter[int] = Counter()
            lost = at = 0
            while at < head:
                place = page + at
                kind, _, size = _HEADER.unpack_from(ring, place)
                if kind == _RECORD_SAMPLE:
                    found[_HEAD.unpack_from(ring, place + 8)[0]] += 1
                elif kind == _RECORD_LOST:
                    lost += _HEAD.unpack_from(ring, place + 16)[0]
                at += size
    finally:
        os.close(event)
    return found, name, lost


def _stop(thread: int) -> None:
    """Stop it, and hand on what signals come meanwhile. OSError where it has ended."""
    _libc.ptrace(_INTERRUPT, thread, None, None)
    while True:
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise OSError("the thread has ended")
        if status >> 16 == _EVENT_STOP:
            return
        _libc.ptrace(_CONT, thread, None, os.WSTOPSIG(status))


def by_ptrace(thread: int, seconds: float, hz: int) -> "tuple[Counter[int], str, int]":
    """As `by_perf`."""
    if _libc.ptrace(_SEIZE, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    registers = ctypes.create_string_buffer(_REGISTERS)
    found: Counter[int] = Counter()
    due, end = time.monotonic(), time.monotonic() + seconds
    while due < end:
        _stop(thread)
        _libc.ptrace(_GETREGS, thread, None, registers)
        _libc.ptrace(_CONT, thread, None, None)
        found[_HEAD.unpack_from(registers, _RIP)[0]] += 1
        due = max(due + 1 / hz, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    _stop(thread)
    _libc.ptrace(_DETACH, thread, None, None)
    return found, "stack samples", 0


def _kernel_symbols(addresses: "list[int]") -> "dict[int, str]":
    """The kernel's functions at these addresses; none where it does not say where they are."""
    table = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/kallsyms").read_text().splitlines() if addresses else ():
            begin, kind, name = line.split()[:3]
            if kind in "tTwW" and int(begin, 16):
                table.append((int(begin, 16), name))
    table.sort()
    begins = [begin for begin, _ in table]
    places = {address: bisect.bisect_right(begins, address) for address in addresses}
    return {address: table[place - 1][1] for address, place in places.items() if place}


def _ran(process: str, thread: str) -> "tuple[float, float]":
    ran, waited, _ = Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()
    return int(ran) / 1e9, int(waited) / 1e9


def main(process: str, thread: str, seconds: str, hz: str, stops_hz: str, *how: str) -> None:
    """Sample, and print what was seen."""
    before, begun = _ran(process, thread), time.monotonic()
    try:
        if how:
            raise OSError("asked for the other way")
        found, name, lost = by_perf(int(thread), float(seconds), int(hz))
    except OSError:
        hz = stops_hz
        found, name, lost = by_ptrace(int(thread), float(seconds), int(hz))
    wall, after = time.monotonic() - begun, _ran(process, thread)
    kernel = _kernel_symbols([address for address in found if address >= _KERNEL])
    said = {
        "how": name,
        "hz": int(hz),
        "lost": lost,
        "seconds": wall,
        "ran_s": after[0] - before[0],
        "waited_s": after[1] - before[1],
        "user": [[address, times] for address, times in found.items() if address < _KERNEL],
        "kernel": [[kernel.get(address, ""), times] for address, times in found.items() if address >= _KERNEL],
        "maps": [line for line in Path(f"/proc/{process}/maps").read_text().splitlines() if " r-xp " in line],
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])

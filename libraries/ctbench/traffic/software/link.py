"""Link threads: they hand the generator's frames to sockets on the DUT's interfaces, each on one CPU of the DUT.

A veth pair has no NIC that would interrupt a CPU of the DUT: the kernel receives a frame, forwards it and delivers it
in the softirq of the sender. So the sender decides which CPU is the DUT's, and without root that can only be a
thread of one's own. A link thread polls the rings of its receive queues, as a PMD thread of DPDK does and as the NAPI
of a NIC does under load, and what it spends on a frame is what the DUT spends on it (and about a sixth of it for the
system call, see docs/evidence).
"""

import os
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numba import njit, types

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import (
    cycles,
    load32,
    load32_acquire,
    load64,
    store32_release,
    store64,
)
from ctbench.traffic.software.xdp import CHUNK_BYTES, DESCRIPTOR_BYTES, ENTRIES, XdpSender

#: Columns of a queue's row: address of its ring's row, file descriptor of its socket, and for a socket of AF_XDP the
#: addresses of `XdpSender.row`; 0 there: a packet socket.
RING, SOCKET, XDP = 0, 1, 2
_QUEUE_COLUMNS = 8
#: Columns of a thread's counters: cycles spent on frames, frames, those that the interface refused, the last error.
BUSY, FRAMES, REFUSED, ERROR, STOP = 0, 1, 2, 3, 4
#: A cache line a thread.
COUNTERS = 8

#: Frames for one system call.
BATCH = 32
#: struct mmsghdr and struct iovec of sendmmsg(2) on x86-64.
_MESSAGE_BYTES, _IOVEC_ADDRESS, _IOVEC_COUNT = 64, 16, 24
_IOVEC_BYTES, _IOVEC_LENGTH = 16, 8
_MSG_DONTWAIT = 0x40
_EAGAIN = 11
#: System calls for one batch at most: AF_XDP may leave frames for the next one.
_TRIES = 8

_sendmmsg = types.ExternalFunction("sendmmsg", types.int32(types.int32, types.int64, types.uint32, types.int32))
_sendto = types.ExternalFunction(
    "sendto", types.int64(types.int32, types.int64, types.uint64, types.int32, types.int64, types.uint32)
)
_errno_location = types.ExternalFunction("__errno_location", types.int64())

Rows = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@njit(nogil=True, forceinline=True)
def _refuse(counters, count):  # type: ignore[no-untyped-def]
    store64(counters + 8 * REFUSED, load64(counters + 8 * REFUSED) + count)
    store64(counters + 8 * ERROR, load32(_errno_location()))


@njit(nogil=True, forceinline=True)
def _send_packets(descriptor, ring, waiting, memory, counters):  # type: ignore[no-untyped-def]
    """Hand frames to a packet socket: one system call for all of them, which stops at one that is refused."""
    iovecs = memory + BATCH * _MESSAGE_BYTES
    for place in range(waiting):
        frame, length = r.frame_at(ring, place)
        store64(iovecs + place * _IOVEC_BYTES, frame)
        store64(iovecs + place * _IOVEC_BYTES + _IOVEC_LENGTH, length)
    done = 0
    while done < waiting:
        sent = _sendmmsg(descriptor, memory + done * _MESSAGE_BYTES, waiting - done, _MSG_DONTWAIT)
        if sent <= 0:  # the first of them was refused, the others were not tried
            _refuse(counters, 1)
            sent = 1
        done += sent


@njit(nogil=True, forceinline=True)
def _send_xdp(queue, ring, waiting, counters):  # type: ignore[no-untyped-def]
    """Hand frames to a socket of AF_XDP: copy them to its memory, describe them, and tell the kernel."""
    producer_at, consumer_at, descriptors = queue[XDP], queue[XDP + 1], queue[XDP + 2]
    produced = load32(producer_at)
    room = ENTRIES - ((produced - load32_acquire(consumer_at)) & 0xFFFFFFFF)
    if room < waiting:  # the interface has not taken what it was given: it is down
        _refuse(counters, waiting)
        return
    for place in range(waiting):
        frame, length = r.frame_at(ring, place)
        slot = (produced + place) & (ENTRIES - 1)
        chunk = slot * CHUNK_BYTES
        for at in range(0, length, 8):
            store64(queue[XDP + 5] + chunk + at, load64(frame + at))
        store64(descriptors + slot * DESCRIPTOR_BYTES, chunk)
        store64(descriptors + slot * DESCRIPTOR_BYTES + 8, length)
    produced = (produced + waiting) & 0xFFFFFFFF
    store32_release(producer_at, produced)
    for _ in range(_TRIES):
        store32_release(queue[XDP + 4], load32_acquire(queue[XDP + 3]))  # what is done may be used again
        if _sendto(queue[SOCKET], 0, 0, _MSG_DONTWAIT, 0, 0) < 0 and load32(_errno_location()) != _EAGAIN:
            _refuse(counters, 1)
        if load32_acquire(consumer_at) == produced:
            break


@njit(nogil=True, cache=True)
def carry(queues, memory, counters):  # type: ignore[no-untyped-def]
    """Carry frames until `counters[STOP]` is set. `queues`: a row per queue; `memory`: address of zeroed memory for
    the system call, `scratch_bytes()` of it."""
    iovecs = memory + BATCH * _MESSAGE_BYTES
    for place in range(BATCH):
        store64(memory + place * _MESSAGE_BYTES + _IOVEC_ADDRESS, iovecs + place * _IOVEC_BYTES)
        store64(memory + place * _MESSAGE_BYTES + _IOVEC_COUNT, 1)
    while load64(counters + 8 * STOP) == 0:
        for number in range(queues.shape[0]):
            ring = queues[number, RING]
            waiting = r.frames_waiting(ring)
            if waiting == 0:
                continue
            begun = cycles()
            if waiting > BATCH:
                waiting = BATCH
            if queues[number, XDP]:
                _send_xdp(queues[number], ring, waiting, counters)
            else:
                _send_packets(queues[number, SOCKET], ring, waiting, memory, counters)
            r.give_back(ring, waiting)
            store64(counters + 8 * FRAMES, load64(counters + 8 * FRAMES) + waiting)
            store64(counters + 8 * BUSY, load64(counters + 8 * BUSY) + cycles() - begun)


@njit(nogil=True, forceinline=True)
def total(counters, threads, column):  # type: ignore[no-untyped-def]
    """Sum of a column over the threads' counters, which begin at this address."""
    found = 0
    for thread in range(threads):
        found += load64(counters + 8 * (thread * COUNTERS + column))
    return found


def scratch_bytes() -> int:
    """Bytes of memory that `carry` needs for its system calls."""
    return BATCH * (_MESSAGE_BYTES + _IOVEC_BYTES)


#: What takes the frames of a queue.
Sender = socket.socket | XdpSender


def _row(ring: "np.ndarray[tuple[int], np.dtype[np.int64]]", sender: Sender) -> tuple[int, ...]:
    xdp = sender.row if isinstance(sender, XdpSender) else (0,) * (_QUEUE_COLUMNS - XDP)
    return int(ring.ctypes.data), sender.fileno(), *xdp


def _waited_ns() -> int:
    """How long this thread was ready to run and did not: the second field of schedstat (Linux,
    Documentation/scheduler/sched-stats.rst)."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1])


class LinkThreads:
    """A thread per CPU of the DUT, while a trial runs. Queue q of either port is served by thread q modulo threads."""

    def __init__(self, ports: Sequence[tuple[Rows, Sequence[Sender]]], cpus: Sequence[int]) -> None:
        """`ports`: rings towards the DUT (the DUT's view of them: rows to take frames from), and a socket for each.
        `cpus`: one thread each; empty: one thread, anywhere."""
        self.compile()
        self.cpus = tuple(cpus)
        count = max(1, len(cpus))
        self._queues: list[Rows] = []
        for thread in range(count):
            rows = [
                _row(rings[queue], sender)
                for rings, senders in ports
                for queue, sender in enumerate(senders)
                if queue % count == thread
            ]
            self._queues.append(np.array(rows, dtype=np.int64).reshape(-1, _QUEUE_COLUMNS))
        #: A row of counters per thread, see `COUNTERS`.
        self.counters: Rows = np.zeros((count, COUNTERS), np.int64)
        self._scratch = [np.zeros(scratch_bytes(), np.uint8) for _ in range(count)]
        self._threads: list[threading.Thread] = []
        self._ended: list[threading.Event] = []
        self._failures: list[BaseException] = []
        #: Per thread, once it stopped: the share of its time in which it waited for its CPU.
        self.waiting = [0.0] * count

    @staticmethod
    def compile() -> None:
        """Compile `carry`, so that no trial begins before its frames are carried."""
        counters = np.zeros(COUNTERS, np.int64)
        counters[STOP] = 1
        scratch = np.zeros(scratch_bytes(), np.uint8)
        carry(np.zeros((0, _QUEUE_COLUMNS), np.int64), int(scratch.ctypes.data), int(counters.ctypes.data))

    def start(self) -> None:
        """Begin to carry frames, with counters at zero."""
        self.counters[:] = 0
        self._failures.clear()
        self._ended = [threading.Event() for _ in self._queues]
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"link-{number}", daemon=True)
            for number in range(len(self._queues))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop, and wait until no thread touches the rings any more. May be called twice."""
        self.counters[:, STOP] = 1
        # Not Thread.join, which a signal makes return early (see engine.drive).
        for ended in self._ended:
            ended.wait(5)
        self._threads.clear()

    def check(self) -> None:
        """Raise `GeneratorError` when a thread failed, or an interface refused every frame since `start`."""
        if self._failures:
            raise GeneratorError(f"A link thread failed: {self._failures[0]}") from self._failures[0]
        frames, refused = int(self.counters[:, FRAMES].sum()), int(self.counters[:, REFUSED].sum())
        if frames and refused == frames:
            reason = os.strerror(int(self.counters[:, ERROR].max()))
            raise GeneratorError(f"The DUT's interfaces took none of {frames} frames: {reason}.")

    def _work(self, number: int) -> None:
        try:
            if self.cpus:
                os.sched_setaffinity(0, {self.cpus[number]})  # of this thread only
            row = self.counters[number]
            begun, waited = time.monotonic_ns(), _waited_ns()
            carry(self._queues[number], int(self._scratch[number].ctypes.data), int(row.ctypes.data))
            self.waiting[number] = (_waited_ns() - waited) / (time.monotonic_ns() - begun)
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._ended[number].set()

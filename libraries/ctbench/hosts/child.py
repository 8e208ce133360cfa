"""A command in a process of its own that never outlives this one: ./run compare and ./run calibrate measure in such."""

import signal
import subprocess
from collections.abc import Sequence
from types import FrameType


def ends_with_us(argv: Sequence[str]) -> list[str]:
    """`argv`, started so that the kernel kills it when the thread that started it ends, kill -9 included; prctl(2),
    PR_SET_PDEATHSIG."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *argv]


def run_child(argv: Sequence[str]) -> int:
    """Run `argv` to its end, which is this process' end at the latest, and return its exit status.

    SIGINT and SIGTERM are handed on and the end of the child is waited for; then the status is 128 and the number of
    the signal, as it is where a signal killed the child. Call it from the main thread.
    """
    received: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        for process in child:
            process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # A process group of its own: a terminal would send Ctrl-C to it as well, and a second one ends Robot Framework
        # by force.
        child.append(subprocess.Popen(ends_with_us(argv), process_group=0))
        if received:  # before there was anyone to hand it on to
            child[0].send_signal(received[0])
        ended = child[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        return 128 + received[0]
    return ended if ended >= 0 else 128 - ended

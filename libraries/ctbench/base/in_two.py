"""Long work on many items in two processes, where there is a second CPU."""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TypeVar

#: Items below which a second process costs more than it brings.
WORTH_IT = 1000
#: Share of the items that it takes; it also has to hand over what it found.
_SHARE = 0.45

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_two(work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item]) -> list[Result]:
    """`work(items)`, of which the last part is done by a copy of this process. The results have to be picklable.

    Where the copy comes to nothing, this process does its part too. A copy whose parent is killed ends by itself when
    it has nobody to hand its results to.
    """
    if len(items) < WORTH_IT or len(os.sched_getaffinity(0)) < 2:
        return work(items)
    first = len(items) - int(len(items) * _SHARE)
    ours, theirs = multiprocessing.Pipe(duplex=False)
    copy = multiprocessing.get_context("fork").Process(
        target=_work_apart, args=(work, items[first:], ours, theirs), daemon=True
    )
    copy.start()
    theirs.close()
    try:
        found = work(items[:first])
        try:
            rest: list[Result] = pickle.loads(ours.recv_bytes())
        except EOFError:
            rest = work(items[first:])
        return found + rest
    finally:
        ours.close()
        copy.join()


def _work_apart(
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], ours: Connection, theirs: Connection
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says what Ctrl-C comes to
    ours.close()  # else nobody would notice that the parent has gone
    try:
        # At once, so that what results have in common stays so.
        theirs.send_bytes(pickle.dumps(work(items), pickle.HIGHEST_PROTOCOL))
    except Exception:  # whatever it is, the parent tries the same items and says so
        os._exit(1)

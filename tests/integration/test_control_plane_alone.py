"""Threads of the real OVS-DPDK under a load: what holds revalidators up is seen, and what a forwarding thread does with
its time. Alone: how much of a CPU they get is what is measured."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from integration.test_control_plane import CONTENTION, FLOWS, FORCE, LOADS, MANY_FLOWS, PLAIN, PROMISED, measure, run
from integration.test_faults import process_of, sandbox_of

from ctbench.hosts.local import ends_with_us
from ctbench.measure.procedures.control_plane import Revalidate
from ctbench.results.record import Record
from ctbench.run.acceptance import AcceptanceRun

__all__ = ["run"]
#: Seconds of the trial with the loops, and those after their start in which rounds may have begun before them. Rounds
#: that were not held up do not count: with two of them, and fewer than a dozen that were, nothing is decided.
LONGER_S, MIXED_S = 5.0, 1.5
#: Busy loops that revalidators share a CPU with: they get a thirteenth of it at most. (Flows: MANY_FLOWS take them many
#: turns; they have the first one at once.)
LOOPS = 12

pytestmark = pytest.mark.usefixtures("unhurried")


@contextmanager
def held_up(pid: int) -> Iterator[None]:
    """The revalidators of a process share one CPU with busy loops. Each is of a session of its own: where the kernel
    gives every session as much time (sched(7), autogroups), all loops of one would have no more than Open vSwitch."""
    threads = [
        int(path.parent.name)
        for path in Path(f"/proc/{pid}/task").glob("*/comm")
        if path.read_text().startswith("revalidator")
    ]
    cpu = min(os.sched_getaffinity(threads[0]))
    for thread in threads:
        os.sched_setaffinity(thread, {cpu})
    endless = ends_with_us(["taskset", "-c", str(cpu), sys.executable, "-S", "-c", "while True: pass"])
    loops = [subprocess.Popen(endless, start_new_session=True) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_revalidators_that_busy_loops_hold_up_are_seen(run: AcceptanceRun) -> None:
    record = held_up_record(run)
    if record.limited_by == "fault":  # Open vSwitch 3.1.0 crashed in its set-up, as was seen here
        record = held_up_record(run)
    assert record.verdict == "missed", record.verdict_reason
    assert re.search(r"[\d.]+ m?s instead of at most [\d.]+ ms", record.verdict_reason), record.verdict_reason
    assert record.capture


def held_up_record(run: AcceptanceRun) -> Record:
    """Of rounds over all flows that busy loops hold up, with a promise by what is usual without them."""
    ask = Revalidate.sample
    begun: list[float] = []
    usual = measure(run, FORCE, FLOWS, MANY_FLOWS)
    if usual.limited_by == "fault":
        return usual
    promised = f"<= {PROMISED * usual.figures['sweep_time'].value * 1000:.0f}ms"
    with ExitStack() as loops, pytest.MonkeyPatch.context() as patch:

        def hold_up(action: Revalidate) -> float:
            found, done = ask(action), action.done[action.name]
            if not begun and done[-1].size >= 0.9 * action.expected:  # the load is there, which shares that CPU as well
                loops.enter_context(held_up(process_of(sandbox_of(run), "ovs-vswitchd")))
                begun.append(time.monotonic())
            if not begun or time.monotonic() < begun[0] + MIXED_S:
                done.clear()
            return found

        longer = LOADS.model_copy(update={"trial_duration": LONGER_S})
        patch.setattr("integration.test_control_plane.LOADS", longer)
        patch.setattr(Revalidate, "sample", hold_up)
        return measure(run, FORCE, FLOWS, MANY_FLOWS, sweep_time=promised)


def test_a_thread_is_sampled_at_the_highest_load(run: AcceptanceRun) -> None:
    record = measure(run, CONTENTION, PLAIN, "short-lived", mutex_share="<= 0.1%")
    assert record.verdict == "missed", record.verdict_reason
    assert [trial.phase for trial in record.evidence.trials] == ["saturation", "samples"]
    (profile,) = record.evidence.profiles
    # How long the thread ran is the machine's business; that it was sampled all the time that it ran is perf's.
    assert 0.8 * profile.hz * profile.ran_s < profile.samples < 1.2 * profile.hz * profile.ran_s
    assert profile.samples >= 300 and 0 < profile.locks < profile.samples / 2
    assert {each.name.partition(" ")[0] for each in profile.functions if each.lock} & {"pthread_mutex_lock"}

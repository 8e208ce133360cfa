"""One trial with packets: hands TRex its streams, starts them, watches them, waits for the last packets.

TRex sends exactly the packets of the trial (stl_spec.py). Where it cannot keep up it stretches its schedule without a
word, so what it has not sent when the time is up is never sent.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import PacketProfile
from ctbench.traffic.trex.stl_counts import Reading, Readings, trial_of
from ctbench.traffic.trex.stl_spec import Spec, spec_of

#: Seconds between two samples of the timeline, and at most so many of them, but at least a few.
STEP_S, MOST_SAMPLES, FEWEST_SAMPLES = 0.5, 100, 8
#: The counters are read this long before the sustain phase, seconds: reading takes some milliseconds.
BEFORE_S = 0.05
#: Seconds that TRex may be late at the end, for the start is known no better.
GRACE_S = 0.1
#: After the last packet was sent, at most; the DUT's queues hold some ten milliseconds.
LINGER_S = 0.2

#: Seconds that TRex gets to answer; to take lists of flows.
ANSWER_S, LOAD_S = 10.0, 60.0


class Worker(Protocol):
    """What asks TRex; see worker.py."""

    def call(self, do: str, timeout: float, **arguments: Any) -> Any: ...


def run_trial(
    worker: Worker,
    profile: PacketProfile,
    load: float,
    duration_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Offer `load` packets per second, all directions added, for `duration_s` seconds and count.

    `ConfigError` when TRex cannot send the profile's flows; `GeneratorError` when TRex or its client breaks.
    """
    started = time.perf_counter()
    spec = spec_of(profile, load, duration_s)
    readings = _offer(worker, spec, sleep)
    return trial_of(spec, readings, load, time.perf_counter() - started)


def _offer(worker: Worker, spec: Spec, sleep: Callable[[float], None]) -> Readings:
    def read() -> Reading:
        return Reading.of(worker.call("stl_stats", ANSWER_S))

    def wait_until(moment_s: float) -> None:
        sleep(max(0.0, moment_s - time.monotonic()))

    worker.call("stl_load", LOAD_S, streams=spec.as_json())
    zero = read()
    begun_s = worker.call("stl_start", ANSWER_S)["to_s"]
    sustain_s = begun_s + spec.warm_up_s
    end_s = sustain_s + spec.duration_s
    wait_until(sustain_s - BEFORE_S)
    begin = read()
    step_s = min(max(STEP_S, spec.duration_s / MOST_SAMPLES), spec.duration_s / FEWEST_SAMPLES)
    samples: list[Reading] = []
    while sustain_s + step_s * (len(samples) + 1) < end_s:
        wait_until(sustain_s + step_s * (len(samples) + 1))
        samples.append(read())
    wait_until(end_s)
    end = read()
    while end.sent(spec) < spec.intended and time.monotonic() < end_s + GRACE_S:
        sleep(0.01)
        end = read()
    if end.received(spec) < spec.intended:
        worker.call("stl_stop", ANSWER_S, linger_s=LINGER_S)
        end = read()
    else:
        worker.call("stl_stop", ANSWER_S, linger_s=0.0)
    return Readings(zero, begin, (*samples, end), end, step_s)

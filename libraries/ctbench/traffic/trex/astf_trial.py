"""One trial with connections: starts the traffic, reads the counters around the sustain phase, lets connections end.

Phases: ramp-up at the full rate for a connection's lifetime and a second more, by which time what was lost at the start
has shown up as a retransmission; the sustain phase between two readings; the drain, in which no connection begins and
those that are open end by themselves; then stop (which would cut open ones off).

No connect time: ASTF measures none. Its latency stream (`latency_pps`) is ICMP packets between the ports, one way, on a
thread of its own; they say nothing about a handshake.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex.astf_spec import base_cps
from ctbench.traffic.trex.counters import Reading, Span
from ctbench.traffic.trex.faults import generator_fault, unexpected
from ctbench.traffic.trex.losses import Losses

#: Seconds at the full rate besides a connection's lifetime: TRex sends a packet again after 0.5 to 1 s.
RAMP_UP_S = 1.0
#: A connection of many messages lives longer than their waits add up to, as each of TRex' timers may be late: by less
#: than this factor.
LATE_TIMERS = 1.1
#: Seconds besides a connection's lifetime until those that are open still have failed. TRex remembers each for half a
#: second; one retransmission takes another second.
DRAIN_S = 1.1
#: The rate to which TRex slows down to begin no more connections, as a multiplier: one in days.
STANDSTILL = 1e-7
#: TRex is told to stop by itself this long after the sustain phase, should nobody be left to stop it, seconds.
ABANDONED_S = 60.0
#: Seconds between two samples of the timeline, and at most so many of them.
STEP_S, MOST_SAMPLES = 0.5, 100
#: A smaller difference between connections asked for and begun is no more than when exactly the counters were read.
FEW = 10
#: Begun slower than asked for by more than this share: the generator did not keep the pace. Wider than
#: `ctbench.traffic.generator.ATTEMPTED_LIMIT` allows, because what TRex counted is only known at the moments when it is
#: asked.
SHORTFALL = 0.001

#: Seconds that TRex gets to answer; to start, which prepares its tables; to stop.
ANSWER_S, START_S, STOP_S = 5.0, 30.0, 15.0


class Worker(Protocol):
    """What asks TRex; see worker.py."""

    def call(self, do: str, timeout: float, **arguments: Any) -> Any: ...


@dataclass(frozen=True)
class Readings:
    """What was read of one trial: before the first connection, around the sustain phase and in it, after the drain."""

    zero: Reading
    begin: Reading
    samples: tuple[Reading, ...]
    end: Reading
    drained: Reading


def run_trial(
    worker: Worker, ports: Sequence[int], profile: ConnectionProfile, load: float, duration_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:  # fmt: skip
    """Offer `load` connections per second of the loaded profile for `duration_s` seconds and count.

    `ports`: TRex' numbers, client side first. `GeneratorError` when TRex or its client breaks.
    """
    started = time.perf_counter()
    ramp_up_s = RAMP_UP_S + LATE_TIMERS * profile.lifetime_s
    readings = _offer(worker, profile, load, ramp_up_s, duration_s, sleep)
    worker.call("stop", STOP_S)
    return trial_of(readings, ports, load, duration_s, ramp_up_s, time.perf_counter() - started)


def _offer(
    worker: Worker, profile: ConnectionProfile, load: float, ramp_up_s: float, duration_s: float,
    sleep: Callable[[float], None],
) -> Readings:  # fmt: skip
    def read() -> Reading:
        return Reading.of(worker.call("stats", ANSWER_S))

    lasts_s = ramp_up_s + duration_s + ABANDONED_S
    worker.call("astf_start", START_S, mult=load / base_cps(profile), duration_s=lasts_s)
    zero = read()
    sleep(ramp_up_s)
    begin = read()
    samples = []
    step_s = max(STEP_S, duration_s / MOST_SAMPLES)
    for number in range(1, int(duration_s / step_s) + 1):
        if number * step_s < duration_s:
            sleep(max(0.0, begin.at_s + number * step_s - time.monotonic()))
            samples.append(read())
    sleep(max(0.0, begin.at_s + duration_s - time.monotonic()))
    end = read()
    worker.call("astf_update", ANSWER_S, mult=STANDSTILL)
    deadline = time.monotonic() + LATE_TIMERS * profile.lifetime_s + DRAIN_S
    drained = read()
    while time.monotonic() < deadline and (drained.open("client") or drained.open("server")):
        sleep(0.05)
        drained = read()
    return Readings(zero, begin, tuple(samples), end, drained)


def trial_of(
    readings: Readings, ports: Sequence[int], load: float, duration_s: float, ramp_up_s: float, wall_s: float
) -> Trial:
    """What the counters say of a trial."""
    sustain = Span(readings.begin, readings.end)
    whole = Span(readings.zero, readings.drained)
    attempted = sustain.begun
    intended = intended_of([readings.begin, *readings.samples, readings.end], load)
    losses = Losses.of(Span(readings.begin, readings.drained), whole)
    failed = losses.among(attempted)
    samples = [readings.begin, *readings.samples, readings.end]
    active = [sample.open("client") for sample in samples]
    closed = [sample.closed("client") for sample in samples]
    client, server = ports
    pair = {"client": client, "server": server}
    return Trial(
        load=load,
        duration_s=duration_s,
        ramp_up_s=ramp_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        established=attempted - min(attempted, losses.not_established),
        completed=attempted - sum(failed.values()),
        failed=failed,
        tx_packets={name: sustain.port(port, "opackets") for name, port in pair.items()},
        rx_packets={name: sustain.port(port, "ipackets") for name, port in pair.items()},
        tx_bytes={name: sustain.port(port, "obytes") for name, port in pair.items()},
        rx_bytes={name: sustain.port(port, "ibytes") for name, port in pair.items()},
        total_tx_packets={name: whole.port(port, "opackets") for name, port in pair.items()},
        total_rx_packets={name: whole.port(port, "ipackets") for name, port in pair.items()},
        unexpected=unexpected(whole),
        active_mean=sum(active) / len(active),
        active_max=max(active),
        timeline_step_s=sustain.seconds / (len(samples) - 1),
        timeline_active=active[1:],
        timeline_completed=[after - before for before, after in pairwise(closed)],
        generator_limited=limited_by(sustain, whole, intended, ports),
    )


def intended_of(samples: Sequence[Reading], load: float) -> int:
    """Connections that the load asked for between the first and the last of some readings. Where TRex began them at the
    rate asked for, it is as many as were begun: its schedule is as even as a clock, our look at it is not.

    The rate is the median of those between two readings, or that of the whole, whichever is higher: a pause of TRex'
    thread at either end of the sustain phase moves the latter (what it owes, it sends in the next moment), and what
    makes single readings late the former.
    """
    whole = Span(samples[0], samples[-1])
    rate = max(median(_rate(Span(*each)) for each in pairwise(samples)), _rate(whole))
    asked = load * whole.seconds
    tolerance = max(SHORTFALL * asked, FEW, load * whole.within_s)
    return round(asked) if (load - rate) * whole.seconds > tolerance else whole.begun


def _rate(span: Span) -> float:
    """Connections begun per second."""
    return span.begun / span.seconds if span.seconds > 0 else 0.0


def limited_by(sustain: Span, whole: Span, intended: int, ports: Sequence[int]) -> str:
    """Why the generator limited the trial, in words; empty when it did not."""
    fault = generator_fault(whole, ports)
    if sustain.begun < intended:
        return f"TRex began only {sustain.begun} of {intended} connections{f': {fault}' if fault else ''}"
    return f"TRex: {fault}" if fault else ""

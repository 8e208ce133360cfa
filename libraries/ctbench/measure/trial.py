"""One trial on a DUT and a generator, and what to think of it: good, bad or invalid."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import ValidationError

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.base.units import format_duration, format_rate, format_ratio
from ctbench.dut.base import CpuUse, Problem
from ctbench.results.record import Measured, TrialRecord
from ctbench.traffic.generator import Latency, LinkWork, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

State = Literal["good", "bad", "invalid"]
Phase = Literal["search", "recheck", "final", "gate"]


#: Share of a trial that a link thread may wait for its CPU. ksoftirqd does work of the DUT there as well, and they were
#: seen to wait 0.6 % (median of 286 trials), 1.5 % (95 of 100), 3.7 % (99 of 100). A rival takes half.
MOST_WAITING_OF_LINKS = 0.05


@dataclass(frozen=True)
class Limits:
    """What a trial has to keep to be good."""

    #: Loss ratio at most.
    loss_ratio: float
    #: 99th percentile of the set-up time at most, seconds; None when nothing is promised.
    setup_time_p99_s: float | None = None
    #: 99th percentile of the latency at most, in the worse direction, seconds; None when nothing is promised.
    latency_p99_s: float | None = None


@dataclass(frozen=True)
class Observation:
    """A trial, what was wrong with the DUT meanwhile, and the limits by which it is judged.

    `invalid` says nothing about the DUT's capacity: the generator was the limit, or the DUT had a fault.
    """

    trial: Trial
    limits: Limits
    problems: tuple[Problem, ...] = ()
    #: What the trial cost the DUT's CPUs; None where nobody could tell.
    cpu: CpuUse | None = None

    @property
    def load(self) -> float:
        """Offered load, in the profile's unit per second."""
        return self.trial.load

    @property
    def latency(self) -> Latency | None:
        """Latency in the direction where it is the worse one; None where none was measured."""
        found = [way.latency_us for way in self.trial.directions.values() if way.latency_us]
        return max(found, key=lambda latency: latency.p99, default=None)

    @property
    def loss_ratio(self) -> float:
        """`Trial.loss_ratio` from the difference of the counts: `1 - 999/1000` is above 0.001 by rounding alone,
        and a trial exactly at its limit is good."""
        intended = self.trial.intended
        return (intended - self.trial.completed) / intended if intended > 0 else 1.0

    @property
    def fault(self) -> str:
        """The first fatal problem of the DUT, empty when there is none. The search stops at it."""
        return next((problem.text for problem in self.problems if problem.severity == "fatal"), "")

    @property
    def generator_fault(self) -> str:
        """Why the generator or the testbed, not the DUT, decided this trial; empty when it did not.

        Beside what the generator says of itself: an offer that fell short by more than the loss limit
        was never put to the DUT (TRex does that without an error, see research/trex.md, trap 1).
        """
        trial = self.trial
        if trial.attempted > 0 and self._over_limits and self._stall:
            return ""  # what was lost while the DUT stood still is its own loss, however busy the others were
        if trial.generator_limited:
            return trial.generator_limited
        spoilt = next((problem.text for problem in self.problems if problem.severity == "invalid"), "")
        if spoilt:
            return spoilt
        if trial.intended <= 0 or trial.attempted <= 0:
            return "nothing was offered"
        if self._over_loss and (trial.intended - trial.attempted) / trial.intended > self.limits.loss_ratio:
            sent = trial.attempted / trial.duration_s
            return f"the generator began only {format_rate(sent)} of {format_rate(trial.load)}"
        return self._disturbance if self._over_limits else ""

    @property
    def _stall(self) -> str:
        """How the DUT stood still by itself; empty when it did not."""
        return next((problem.text for problem in self.problems if problem.severity == "stalled"), "")

    @property
    def _disturbance(self) -> str:
        """What took the DUT's CPUs away, which makes a good trial bad and never a bad one good."""
        disturbed = next((problem.text for problem in self.problems if problem.severity == "disturbed"), "")
        waiting = self.trial.link.waiting if self.trial.link else 0.0
        if not disturbed and waiting > MOST_WAITING_OF_LINKS:
            return f"other processes took {waiting * 100:.1f} % of a CPU of the DUT"
        return disturbed

    @property
    def state(self) -> State:
        """`good`, `bad` or `invalid`."""
        if self.fault or self.generator_fault:
            return "invalid"
        return "bad" if self._over_limits else "good"

    @property
    def good(self) -> bool:
        """Whether the DUT held the load within the limits."""
        return self.state == "good"

    @property
    def reason(self) -> str:
        """Why it is not good, in words; empty when it is."""
        if self.fault or self.generator_fault:
            return self.fault or self.generator_fault
        parts = []
        if self._over_loss:
            loss, limit = format_ratio(self.loss_ratio), format_ratio(self.limits.loss_ratio)
            parts.append(f"{loss} of the {self.trial.unit} were lost{self._cause} (limit {limit})")
        if self._over_setup_time:
            measured = self.trial.setup_time_us.p99 / 1e6 if self.trial.setup_time_us else None
            limit = format_duration(self.limits.setup_time_p99_s or 0)
            found = f"took {format_duration(measured)}" if measured is not None else "was not measured"
            parts.append(f"set-up {found} for one connection in a hundred (limit {limit})")
        if self._over_latency:
            limit = format_duration(self.limits.latency_p99_s or 0)
            found = f"was {format_duration(self.latency.p99 / 1e6)}" if self.latency else "was not measured"
            parts.append(f"latency {found} for one packet in a hundred (limit {limit})")
        because = [self._stall.rstrip(".")] if parts and self._stall else []
        return ": ".join([" and ".join(parts), *because])

    @property
    def _cause(self) -> str:
        """What most of the loss was: connections by what did not come, packets by their direction."""
        ways = self.trial.directions
        if len(ways) > 1:
            sender = max(ways, key=lambda name: ways[name].intended - ways[name].received)
            return ", mostly from server to client" if sender == "server" else ", mostly from client to server"
        cause = max(self.trial.failed, key=lambda name: self.trial.failed[name], default="")
        return f", mostly {cause.replace('_', ' ')}" if cause and self.trial.failed[cause] else ""

    @property
    def _over_limits(self) -> bool:
        return self._over_loss or self._over_setup_time or self._over_latency

    @property
    def _over_loss(self) -> bool:
        return self.loss_ratio > self.limits.loss_ratio

    @property
    def _over_setup_time(self) -> bool:
        limit, times = self.limits.setup_time_p99_s, self.trial.setup_time_us
        return limit is not None and (times is None or times.p99 > limit * 1e6)

    @property
    def _over_latency(self) -> bool:
        limit = self.limits.latency_p99_s
        return limit is not None and (self.latency is None or self.latency.p99 > limit * 1e6)

    def measured(self, capacity: float | None = None) -> Measured:
        """The figures of the trial for the record, with `capacity` instead of what was completed per second."""
        trial = self.trial
        rate = trial.rate if capacity is None else capacity
        return Measured(
            unit=trial.unit,
            rate=rate,
            pps=rate if trial.unit == "packets" else trial.pps,
            bps=trial.bps,
            active_connections=trial.active_mean,
            loss_ratio=self.loss_ratio,
            setup_time_us=trial.setup_time_us,
            latency_us=self.latency,
            cpu=self.cpu,
        )


@dataclass(frozen=True)
class Step:
    """A trial that has just ended, on the way to a result."""

    number: int
    phase: Phase
    observation: Observation
    #: Seconds that are probably left until the result.
    left_s: float

    def as_record(self) -> TrialRecord:
        """The trial for the record and the console."""
        seen = self.observation
        return TrialRecord(
            phase=self.phase,
            state=seen.state,
            reason=seen.reason,
            problems=list(seen.problems),
            latency_us=seen.latency,
            cpu=seen.cpu,
            trial=seen.trial,
        )


def broken_trial(number: int, load: float, why: str) -> str:
    """How a trial ended a measurement: what broke, and in which trial."""
    return f"{why.rstrip('.')}, in trial {number}, at {format_rate(load)}"


TrialFn = Callable[[float, float], Observation]
OnTrial = Callable[[Step], None]


def nobody(_step: Step) -> None:
    """Take no notice of a trial: the default of `on_trial`."""


class TrialDut(Protocol):
    """What a trial needs of a Dut (ctbench.dut.base)."""

    def flush_state(self) -> None: ...
    def begin_trial(self) -> None: ...
    def health(self) -> Sequence[Problem]: ...
    def trouble(self) -> str: ...
    def cpu_use(self) -> CpuUse | None: ...


class TrialGenerator(Protocol):
    """What a trial needs of a TrafficGenerator (ctbench.traffic.generator)."""

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial: ...


@dataclass(frozen=True)
class TrialRunner:
    """Runs trials of one profile: flush, begin, offer, ask the DUT for its health and its CPUs. A `TrialFn`.

    The flush comes first so that no trial inherits the connections of the one before (RFC 9693 section 4).
    """

    dut: TrialDut
    generator: TrialGenerator
    profile: Profile
    limits: Limits
    settle_s: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __call__(self, load: float, duration_s: float) -> Observation:
        """Run one trial. Raises `TestbedError` when the state cannot be flushed, or the DUT or the generator
        broke; a DUT that died is named, and not what noticed it: a command to it, or the generator that lost it."""
        try:
            return self._run(load, duration_s)
        except TestbedError as error:
            if trouble := self.dut.trouble():
                raise TestbedError(trouble) from error
            raise

    def _run(self, load: float, duration_s: float) -> Observation:
        begun = self.clock()
        self.dut.flush_state()
        if self.settle_s:
            self.sleep(self.settle_s)
        self.dut.begin_trial()
        try:
            trial = self.generator.run_trial(self.profile, Rate(load), duration_s)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in wrong["loc"])
            raise GeneratorError(f"The generator counted what cannot be: {where}: {wrong['msg']}.") from error
        problems = tuple(self.dut.health())
        dead = any(problem.severity == "fatal" for problem in problems)
        cpu = None if dead else self.dut.cpu_use() or _cpu_of(trial.link)
        whole = trial.model_copy(update={"wall_s": self.clock() - begun})
        return Observation(whole, self.limits, problems, cpu)


def _cpu_of(link: LinkWork | None) -> CpuUse | None:
    """What a DUT in the kernel did in the time of the threads that carry its frames."""
    if link is None:
        return None
    return CpuUse(link.busy_cpus, link.ns_per_packet if link.packets else None, "link threads")

"""One trial on a DUT and a generator, and what to think of it: good, bad or invalid."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ctbench.dut.base import Problem
from ctbench.errors import GeneratorError, TestbedError
from ctbench.results.record import Measured, TrialRecord
from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.units import format_duration, format_rate, format_ratio

State = Literal["good", "bad", "invalid"]
Phase = Literal["search", "recheck", "final", "gate"]


@dataclass(frozen=True)
class Limits:
    """What a trial has to keep to be good."""

    #: Loss ratio at most.
    loss_ratio: float
    #: 99th percentile of the set-up time at most, seconds; None when nothing is promised.
    setup_time_p99_s: float | None = None


@dataclass(frozen=True)
class Observation:
    """A trial, what was wrong with the DUT meanwhile, and the limits by which it is judged.

    `invalid` says nothing about the DUT's capacity: the generator was the limit, or the DUT had a fault.
    """

    trial: Trial
    limits: Limits
    problems: tuple[Problem, ...] = ()

    @property
    def load_cps(self) -> float:
        """Offered load, connections per second."""
        return self.trial.load_cps

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
        """Why the generator, not the DUT, decided this trial; empty when it did not.

        Beside what the generator says of itself: an offer that fell short by more than the loss limit
        was never put to the DUT (TRex does that without an error, see research/trex.md, trap 1).
        """
        trial = self.trial
        if trial.generator_limited:
            return trial.generator_limited
        if trial.intended <= 0 or trial.attempted <= 0:
            return "nothing was offered"
        if self._over_loss and (trial.intended - trial.attempted) / trial.intended > self.limits.loss_ratio:
            sent = trial.attempted / trial.duration_s
            return f"the generator began only {format_rate(sent)} of {format_rate(trial.load_cps)}"
        return ""

    @property
    def state(self) -> State:
        """`good`, `bad` or `invalid`."""
        if self.fault or self.generator_fault:
            return "invalid"
        return "bad" if self._over_loss or self._over_setup_time else "good"

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
            cause = max(self.trial.failed, key=lambda name: self.trial.failed[name], default="")
            why = f", mostly {cause.replace('_', ' ')}" if cause and self.trial.failed[cause] else ""
            loss, limit = format_ratio(self.loss_ratio), format_ratio(self.limits.loss_ratio)
            parts.append(f"{loss} of the connections were lost{why} (limit {limit})")
        if self._over_setup_time:
            measured = self.trial.setup_time_us.p99 / 1e6 if self.trial.setup_time_us else None
            limit = format_duration(self.limits.setup_time_p99_s or 0)
            found = f"took {format_duration(measured)}" if measured is not None else "was not measured"
            parts.append(f"set-up {found} for one connection in a hundred (limit {limit})")
        return " and ".join(parts)

    @property
    def _over_loss(self) -> bool:
        return self.loss_ratio > self.limits.loss_ratio

    @property
    def _over_setup_time(self) -> bool:
        limit, times = self.limits.setup_time_p99_s, self.trial.setup_time_us
        return limit is not None and (times is None or times.p99 > limit * 1e6)

    def measured(self, cps: float | None = None) -> Measured:
        """The figures of the trial for the record, with `cps` (a capacity) instead of completed per second."""
        trial = self.trial
        return Measured(
            cps=trial.cps if cps is None else cps,
            pps=trial.pps,
            bps=trial.bps,
            active_connections=trial.active_mean,
            loss_ratio=self.loss_ratio,
            setup_time_us=trial.setup_time_us,
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
            phase=self.phase, state=seen.state, reason=seen.reason, problems=list(seen.problems), trial=seen.trial
        )


TrialFn = Callable[[float, float], Observation]
OnTrial = Callable[[Step], None]


def nobody(_step: Step) -> None:
    """Take no notice of a trial: the default of `on_trial`."""


class TrialDut(Protocol):
    """What a trial needs of a Dut (ctbench.dut.base)."""

    def flush_state(self) -> None: ...
    def begin_trial(self) -> None: ...
    def health(self) -> Sequence[Problem]: ...


class TrialGenerator(Protocol):
    """What a trial needs of a TrafficGenerator (ctbench.traffic.generator)."""

    def run_trial(self, profile: ConnectionProfile, load_cps: float, duration_s: float) -> Trial: ...


@dataclass(frozen=True)
class TrialRunner:
    """Runs trials of one profile: flush, begin, offer, ask the DUT for its health. A `TrialFn`.

    The flush comes first so that no trial inherits the connections of the one before (RFC 9693 section 4).
    """

    dut: TrialDut
    generator: TrialGenerator
    profile: ConnectionProfile
    limits: Limits
    settle_s: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __call__(self, load_cps: float, duration_s: float) -> Observation:
        """Run one trial. Raises `TestbedError` when the state cannot be flushed, or the DUT or the generator
        broke; a DUT that died is named before the generator that lost it."""
        begun = self.clock()
        self.dut.flush_state()
        if self.settle_s:
            self.sleep(self.settle_s)
        self.dut.begin_trial()
        try:
            trial = self.generator.run_trial(self.profile, load_cps, duration_s)
        except GeneratorError as error:
            died = next((problem.text for problem in self.dut.health() if problem.severity == "fatal"), "")
            if died:
                raise TestbedError(f"{died} ({error})") from error
            raise
        problems = tuple(self.dut.health())
        whole = trial.model_copy(update={"wall_s": self.clock() - begun})
        return Observation(whole, self.limits, problems)

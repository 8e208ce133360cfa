"""One trial on a DUT and a generator."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import ValidationError

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.base.units import format_rate
from ctbench.dut.base import CpuUse, LookingUp, Problem
from ctbench.measure.loss import hopeless
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.probe import Probe, Sampling
from ctbench.results.evidence import Series, TrialRecord
from ctbench.traffic.generator import LinkWork, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, Profile

Phase = Literal["saturation", "warm-up", "search", "recheck", "final", "gate", "hold", "alone", "beside", "samples"]


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
            look_ups=seen.look_ups,
            trial=seen.trial,
        )


def broken_trial(number: int, load: float, why: str) -> str:
    """How a trial ended a measurement: what broke, and in which trial. A closed loop, which has no load until it has
    ended, is one at 0."""
    return f"{why.rstrip('.')}, in trial {number}, {f'at {format_rate(load)}' if load else 'a closed loop'}"


def series_of(steps: Sequence[Step]) -> list[Series]:
    """What the probes saw in some trials, for the record."""
    return [
        Series(name=seen.name, unit=seen.unit, trial=step.number, every_s=seen.every_s, values=list(seen.values))
        for step in steps
        for seen in step.observation.samples
    ]


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
    conditions: Conditions
    settle_s: float = 0.0
    probes: Sequence[Probe] = ()
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __call__(self, load: float, duration_s: float) -> Observation:
        """Run one trial at a rate; see `offer`."""
        return self.offer(Rate(load), duration_s)

    def offer(self, load: Load, duration_s: float) -> Observation:
        """Run one trial; see `watch`."""
        return self.watch(
            lambda: self.generator.run_trial(self._offered(load), self._ending_early(load, duration_s), duration_s)
        )

    def _offered(self, load: Load) -> Profile:
        """The profile at a load."""
        if isinstance(self.profile, ConnectionProfile) and isinstance(load, Rate):
            return self.profile.at_rate(load.per_s)
        return self.profile

    def watch(self, offer: Callable[[], Trial]) -> Observation:
        """Run one trial, which `offer` makes. Raises `TestbedError` when the state cannot be flushed, or the DUT or the
        generator broke; a DUT that died is named, and not what noticed it: a command to it, or the generator that lost
        it."""
        try:
            return self._watch(offer)
        except TestbedError as error:
            if trouble := self.dut.trouble():
                raise TestbedError(trouble) from error
            raise

    def _watch(self, offer: Callable[[], Trial]) -> Observation:
        begun = self.clock()
        self.dut.flush_state()
        if self.settle_s:
            self.sleep(self.settle_s)
        self.dut.begin_trial()
        try:
            with Sampling(self.probes) as sampling:
                trial = offer()
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in wrong["loc"])
            raise GeneratorError(f"The generator counted what cannot be: {where}: {wrong['msg']}.") from error
        problems = tuple(self.dut.health())
        dead = any(problem.severity == "fatal" for problem in problems)
        cpu = None if dead else self.dut.cpu_use() or _cpu_of(trial.link)
        whole = trial.model_copy(update={"wall_s": self.clock() - begun})
        found = self.dut.look_ups() if isinstance(self.dut, LookingUp) and not dead else None
        return Observation(whole, self.conditions, problems, cpu, found, sampling.samples)

    def _ending_early(self, load: Load, duration_s: float) -> Load:
        """A rate may end as soon as the trial is lost."""
        return Rate(load.per_s, self._most_lost(load.per_s, duration_s)) if isinstance(load, Rate) else load

    def _most_lost(self, load: float, duration_s: float) -> float:
        """Connections (packets) after whose loss a trial may end. Where connections are judged by their packets there
        is no such number: what a whole trial sends, ramps included, is known at its end."""
        limit = self.conditions.get("loss_ratio")
        if limit is None and self.profile.kind == "packets":
            limit = self.conditions.get("packet_loss_ratio")
        return math.inf if limit is None else hopeless(limit, load * duration_s)


def _cpu_of(link: LinkWork | None) -> CpuUse | None:
    """What a DUT in the kernel did in the time of the threads that carry its frames."""
    if link is None:
        return None
    return CpuUse(link.busy_cpus, link.ns_per_packet if link.packets else None, "link threads")

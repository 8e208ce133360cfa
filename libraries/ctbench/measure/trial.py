"""One trial on a DUT and a generator."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.dut.base import CpuUse, Dut
from ctbench.measure.observation import Conditions, Observation, hopeless
from ctbench.measure.probe import Probe, Sampling
from ctbench.results.evidence import Series, TrialRecord
from ctbench.traffic.generator import LinkWork, TrafficGenerator, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, Profile

Phase = Literal["saturation", "warm-up", "search", "recheck", "final", "gate", "hold", "alone", "beside", "samples"]


@dataclass(frozen=True)
class Step:
    """A trial that has just ended, on the way to a result."""

    #: In its test, from 1 on.
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


def series_of(steps: Sequence[Step]) -> list[Series]:
    """What the probes saw in the trials of a record, which numbers them in their order."""
    return [
        Series(name=seen.name, unit=seen.unit, trial=number, every_s=seen.every_s, values=list(seen.values))
        for number, step in enumerate(steps, 1)
        for seen in step.observation.samples
    ]


@dataclass(frozen=True)
class Expected:
    """Trials to come, and the seconds of their traffic that counts."""

    trials: float
    traffic_s: float

    def seconds(self, overhead_s: float) -> float:
        """With what a trial takes besides its traffic: ramps, the flush, the DUT's health."""
        return self.traffic_s + self.trials * overhead_s

    def times(self, number: int) -> "Expected":
        """So much more than once."""
        return Expected(self.trials * number, self.traffic_s * number)


TrialFn = Callable[[float, float], Observation]
OnTrial = Callable[[Step], None]


@dataclass(frozen=True)
class TrialRunner:
    """Runs trials of one profile: flush, begin, offer, ask the DUT for its health and its CPUs. A `TrialFn`.

    The flush comes first so that no trial inherits the connections of the one before (RFC 9693 section 4).
    """

    dut: Dut
    generator: TrafficGenerator
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
        """Run one trial; see `watch`. One at a rate may end as soon as it is lost."""
        profile, offered = self.profile, load
        if isinstance(load, Rate):
            offered = Rate(load.per_s, self._most_lost(load.per_s, duration_s))
            if isinstance(profile, ConnectionProfile):
                profile = profile.at_rate(load.per_s)
        return self.watch(lambda: self.generator.run_trial(profile, offered, duration_s))

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
        found = None if dead else self.dut.look_ups()
        return Observation(whole, self.conditions, problems, cpu, found, sampling.samples)

    def _most_lost(self, load: float, duration_s: float) -> float:
        """Connections (packets) after whose loss a trial may end. Where connections are judged by their packets there
        is not such a number: what a whole trial sends, ramps included, is known at its end."""
        limit = self.conditions.get("loss_ratio")
        if limit is None and self.profile.kind == "packets":
            limit = self.conditions.get("packet_loss_ratio")
        return math.inf if limit is None else hopeless(limit, load * duration_s)


def _cpu_of(link: LinkWork | None) -> CpuUse | None:
    """What a DUT in the kernel did in the time of the threads that carry its frames."""
    if link is None:
        return None
    return CpuUse(link.busy_cpus, link.ns_per_packet if link.packets else None, "link threads")

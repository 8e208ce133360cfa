"""One trial on a DUT and a generator, and the recorder of trials: it numbers them, tells of them and keeps them, ends a
measurement where something broke, and has the one rule for invalid trials.

An invalid trial says nothing about the DUT. It is made again, after a pause where the machine was busy, until it is
valid, too many in a row were not, or the run has no time left for it. It is never evidence, and never a reason for a
lower load.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from pydantic import ValidationError

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.base.units import format_rate
from ctbench.dut.base import CpuUse, Dut, DutCounts, Problem, blaming_the_dead
from ctbench.hosts import limits
from ctbench.measure.observation import LOSSES, Conditions, Observation, Phase, hopeless
from ctbench.measure.probe import Probe, Sampling
from ctbench.results.evidence import Evidence, Series
from ctbench.traffic.generator import LinkWork, TrafficGenerator, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile


def series_of(made: Sequence[Observation]) -> list[Series]:
    """What the probes saw in the trials of a record, which numbers them in their order."""
    return [
        Series(name=each.name, unit=each.unit, trial=number, every_s=each.every_s, values=list(each.values))
        for number, seen in enumerate(made, 1)
        for each in seen.samples
    ]


#: Packets per second by which the flows that a DUT is to know are shown to it, both ways together.
_KNOWN_PER_S = 200_000
#: Threads that were stopped for less time, all together, may have been those that wait between two trials.
LEAST_STOPPED_S = 0.001

#: Some drivers read a card's counters once a second.
COUNTED_LATE_S = 1.5

OnTrial = Callable[[Observation], None]


class Runner(Protocol):
    """What runs the trials of a measurement."""

    def offer(self, load: Load, duration_s: float) -> Observation:
        """Run one trial."""


@dataclass(frozen=True)
class TrialRunner:
    """Runs trials of one profile: flush, begin, offer, ask the DUT for its health and its CPUs. A `Runner`.

    The flush comes first so that no trial inherits the connections of the one before (RFC 9693 section 4).
    """

    dut: Dut
    generator: TrafficGenerator
    profile: Profile
    conditions: Conditions
    settle_s: float = 0.0
    probes: Sequence[Probe] = ()
    #: Loss ratio up to which a trial goes on, where its conditions allow less.
    partial_drop: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    #: For how long a limit of CPU time has stopped threads of this machine's testbed.
    stopped_s: Callable[[], float] = limits.stopped_s

    def offer(self, load: Load, duration_s: float) -> Observation:
        """Run one trial; see `watch`. One at a rate may end as soon as it is lost."""
        profile, offered = self.profile, load
        if isinstance(load, Rate):
            offered = Rate(load.per_s, self._most_lost(load.per_s, duration_s))
            if isinstance(profile, ConnectionProfile):
                profile = profile.at_rate(load.per_s)
        return self.watch(partial(self.generator.run_trial, profile, offered, duration_s))

    def watch(self, offer: Callable[[], Trial], *, whole: bool = True) -> Observation:
        """Run one trial, which `offer` makes; `whole`: of all that it sends, as only then what the DUT counted can be
        compared. Raises `TestbedError` when the state cannot be flushed, or the DUT or the generator broke; a DUT that
        died is named, and not what noticed it: a command to it, or the generator that lost it."""
        begun = self.clock()
        with blaming_the_dead(self.dut.trouble):
            self._prepare()
            stopped = self.stopped_s()
            try:
                with Sampling(self.probes) as sampling:
                    trial = offer()
            except ValidationError as error:
                wrong = error.errors(include_url=False)[0]
                where = ".".join(str(part) for part in wrong["loc"])
                raise GeneratorError(f"The generator counted what cannot be: {where}: {wrong['msg']}.") from error
            problems = (*_of_quota(self.stopped_s() - stopped), *self.dut.health())
            dead = any(problem.severity == "fatal" for problem in problems)
            cpu = None if dead else self.dut.cpu_use() or _cpu_of(trial.link)
            trial = trial.model_copy(update={"wall_s": self.clock() - begun})
            found = None if dead else self.dut.look_ups()
            counts = None if dead else self._counted(whole=whole)
            seen = Observation(trial, self.conditions, problems, cpu, found, counts, sampling.samples)
            if seen.lost_elsewhere:  # a card may tell what it counted a second later
                self.sleep(COUNTED_LATE_S)
                self.dut.health()
                seen = replace(seen, counts=self._counted(whole=whole))
        return seen

    def _prepare(self) -> None:
        """An empty DUT that knows what the profile wants it to know, and has come to rest."""
        self.dut.flush_state()
        if isinstance(self.profile, ConnectionProfile) and (known := self.profile.known):
            self.generator.run_trial(self.profile.flows_known, Rate(_KNOWN_PER_S), 2 * known / _KNOWN_PER_S)
        if isinstance(self.profile, PacketProfile) and self.dut.learns:  # learning frames: RFC 2544 section 23
            self.generator.run_trial(self.profile.addresses_known, Rate(1_000), 0.05)
        if self.settle_s:
            self.sleep(self.settle_s)
        self.dut.begin_trial()

    def _counted(self, *, whole: bool) -> DutCounts | None:
        """What the DUT's own counters say of a trial."""
        counts = self.dut.counts()
        return counts if whole or counts is None else replace(counts, received={}, sent={})

    def _most_lost(self, load: float, duration_s: float) -> float:
        """Connections (packets) after whose loss a trial may end. Where connections are judged by their packets there
        is not such a number: what a whole trial sends, ramps included, is known at its end."""
        names = LOSSES if self.profile.kind == "packets" else LOSSES[:1]
        limit = next((self.conditions[name] for name in names if name in self.conditions), math.inf)
        return hopeless(max(limit, self.partial_drop), load * duration_s)


def _of_quota(stopped_s: float) -> tuple[Problem, ...]:
    """Threads that poll were stopped, all of them, for as long as nobody else would be."""
    if stopped_s < LEAST_STOPPED_S:
        return ()
    text = (
        f"The control group has {limits.limits_here()}, which stopped threads for {stopped_s * 1000:.0f} ms: start the "
        "container without a limit of CPU time."
    )
    return (Problem("invalid", text, code="cpu-quota"),)


def _cpu_of(link: LinkWork | None) -> CpuUse | None:
    """What a DUT in the kernel did in the time of the threads that carry its frames."""
    if link is None:
        return None
    return CpuUse(link.busy_cpus, link.ns_per_packet if link.packets else None, "link threads")


#: So many invalid trials in a row end it: something else than the DUT decides here.
MOST_INVALID = 3
#: What else runs on a machine comes in bursts: after a busy trial, seconds of pause before the first repetition, and
#: twice as many before the second.
PAUSE_S = 1.0


def ignore(*_told: Any) -> None:
    """Take no notice: the default of those who are told of something."""


class TrialFault(Exception):
    """The DUT or the generator broke; the text says how, and in which trial."""


def broken_trial(number: int, load: float, why: str) -> str:
    """How a trial ended a measurement: what broke, and in which trial. A closed loop, which has no load until it has
    ended, is one at 0."""
    return f"{why.rstrip('.')}, in trial {number}, {f'at {format_rate(load)}' if load else 'a closed loop'}"


#: No evidence but trials.
NO_EVIDENCE = Evidence(trials=[])


def merge(one: Evidence, later: Evidence) -> Evidence:
    """The evidence of two procedures of one test. Of upper bounds the later counts, of anything else the first."""
    found: dict[str, Any] = {}
    for name in Evidence.model_fields:
        first, second = getattr(one, name), getattr(later, name)
        if isinstance(first, list):
            found[name] = first + second
        else:
            found[name] = second if first is None or (name == "upper_bound" and second is not None) else first
    return Evidence(**found)


@dataclass
class Repetitions:
    """What a run has left, seconds, for making invalid trials again and looking at pairs a third and a fourth time
    (`Campaign.repeating`), or for starting a candidate and its base further (`Campaign.more_starts`): on a machine that
    is always busy it would else take three times as long, and have measured no more."""

    left_s: float = 1800.0
    sleep: Callable[[float], None] = time.sleep

    def grant(self, spoilt: Observation, in_a_row: int) -> bool:
        """Whether a trial may be made again after so many invalid ones in a row; waits where the machine was busy."""
        pause_s = PAUSE_S * in_a_row if spoilt.machine_was_busy else 0.0
        granted = self.spend(spoilt.trial.wall_s + pause_s)
        if granted and pause_s:
            self.sleep(pause_s)
        return granted

    def spend(self, seconds: float) -> bool:
        """Take so much of it; whether that was left."""
        granted = seconds <= self.left_s
        self.left_s -= seconds if granted else 0.0
        return granted


@dataclass
class Trials:
    """The trials of one measurement."""

    #: Told of each as it ends.
    on_trial: OnTrial = ignore
    #: Trials that the test made before.
    before: int = 0
    repetitions: Repetitions = field(default_factory=Repetitions)
    #: All trials in their order.
    made: list[Observation] = field(default_factory=list)
    #: What was found besides them.
    evidence: Evidence = NO_EVIDENCE

    def keep(self, **parts: Any) -> None:
        """Add to the evidence: `table=[...]`."""
        self.evidence = merge(self.evidence, Evidence(trials=[], **parts))

    def make(
        self, phase: Phase, one: Callable[[int], Observation], at: float = 0.0, *, most: int = MOST_INVALID
    ) -> Observation:
        """Make a trial with `one`, which is told its number in the test; again where it was invalid, `most` in a row.
        The last one.

        `at`: its load for a sentence, per second; 0 for a closed loop. Raises `TrialFault` where the DUT or the
        generator broke.
        """
        in_a_row = 0
        while True:
            number = self.before + len(self.made) + 1
            try:
                seen = replace(one(number), number=number, phase=phase)
            except TestbedError as error:
                raise TrialFault(broken_trial(number, at, str(error))) from error
            self.made.append(seen)
            self.on_trial(seen)
            if seen.fault:
                raise TrialFault(broken_trial(number, at or seen.served, seen.fault))
            in_a_row += 1
            if seen.state != "invalid" or in_a_row >= most or not self.repetitions.grant(seen, in_a_row):
                return seen

    def offer(
        self,
        runner: Runner,
        load: Load,
        duration_s: float,
        phase: Phase,
        *,
        most: int = MOST_INVALID,
        strict: bool = False,
    ) -> Observation:
        """Offer a load for so long; see `make`, and `Observation.strict`."""
        return self.make(phase, lambda _: replace(runner.offer(load, duration_s), strict=strict), load.per_s, most=most)

"""One trial on a DUT and a generator, and the recorder of trials. The recorder numbers trials, announces and keeps
them, ends a measurement at a fault, and applies the one rule for invalid trials.

An invalid trial says nothing about the DUT. It is repeated, after a pause where the machine was busy, until it is
valid, too many in a row were invalid, or the run has no time left for it. It is never evidence, and never a reason for
a lower load.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

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
    """Return the probes' samples of all trials, which are numbered in their order."""
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


@dataclass(frozen=True)
class TrialRunner:
    """A runner of one profile: flush the DUT, offer the load, then read the DUT's health, CPUs and counters.

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
        """Run one trial; see `watch`. A trial at a rate may end early, once too much is lost."""
        profile, offered = self.profile, load
        if isinstance(load, Rate):
            offered = Rate(load.per_s, self._most_lost(load.per_s, duration_s))
            if isinstance(profile, ConnectionProfile):
                profile = profile.at_rate(load.per_s)
        return self.watch(partial(self.generator.run_trial, profile, offered, duration_s))

    def watch(self, offer: Callable[[], Trial], *, whole: bool = True) -> Observation:
        """Run one trial, which `offer` makes. `whole`: the trial covers all that `offer` sends; only then can the DUT's
        frame counts be compared. Raise `TestbedError` where the state cannot be flushed, or the DUT or the generator
        broke. The error names a DUT that died, and not the command or the generator that noticed it."""
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
        """Flush the DUT, show it the flows that the profile wants known, or the addresses of packets where the DUT
        learns addresses, and let it settle."""
        self.dut.flush_state()
        if isinstance(self.profile, ConnectionProfile) and (known := self.profile.known):
            self.generator.run_trial(self.profile.flows_known, Rate(_KNOWN_PER_S), 2 * known / _KNOWN_PER_S)
        if isinstance(self.profile, PacketProfile) and self.dut.learns:  # learning frames: RFC 2544 section 23
            self.generator.run_trial(self.profile.addresses_known, Rate(1_000), 0.05)
        if self.settle_s:
            self.sleep(self.settle_s)
        self.dut.begin_trial()

    def _counted(self, *, whole: bool) -> DutCounts | None:
        """Return the DUT's own counters of a trial, without frames where the trial does not cover the `whole` load."""
        counts = self.dut.counts()
        return counts if whole or counts is None else replace(counts, received={}, sent={})

    def _most_lost(self, load: float, duration_s: float) -> float:
        """Return the loss, in connections (packets), at which a trial may end early. It is infinite where connections
        are judged by their packets: what a whole trial sends, ramps included, is known only at its end."""
        names = LOSSES if self.profile.kind == "packets" else LOSSES[:1]
        limit = next((self.conditions[name] for name in names if name in self.conditions), math.inf)
        return hopeless(max(limit, self.partial_drop), load * duration_s)


def _of_quota(stopped_s: float) -> tuple[Problem, ...]:
    """Return the problem of a CPU quota that stopped threads for so many seconds, all CPUs together; none below
    `LEAST_STOPPED_S`."""
    if stopped_s < LEAST_STOPPED_S:
        return ()
    text = (
        f"The control group has {limits.limits_here()}, which stopped threads for {stopped_s * 1000:.0f} ms: start the "
        "container without a limit of CPU time."
    )
    return (Problem("invalid", text, code="cpu-quota"),)


def _cpu_of(link: LinkWork | None) -> CpuUse | None:
    """Return the CPU use of a DUT in the kernel, by the threads that carry its frames."""
    if link is None:
        return None
    return CpuUse(link.busy_cpus, link.ns_per_packet if link.packets else None, "link threads")


#: So many invalid trials in a row end it: something else than the DUT decides here.
MOST_INVALID = 3
#: What else runs on a machine comes in bursts: after a busy trial, seconds of pause before the first repetition, and
#: twice as many before the second.
PAUSE_S = 1.0


def ignore(*_told: Any) -> None:
    """Do nothing: the default callback."""


class TrialFault(Exception):
    """Raised where the DUT or the generator broke; the text says how, and in which trial."""


def broken_trial(number: int, load: float, why: str) -> str:
    """Describe a fault and its trial. A load of 0 is a closed loop, which has no load until it has ended."""
    return f"{why.rstrip('.')}, in trial {number}, {f'at {format_rate(load)}' if load else 'a closed loop'}"


#: No evidence but trials.
NO_EVIDENCE = Evidence(trials=[])


def merge(one: Evidence, later: Evidence) -> Evidence:
    """Merge the evidence of two procedures of one test: all lists, the later upper bound, else the first value."""
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
    """The time that a run has left, seconds, for repeating invalid trials and for third and fourth looks at pairs
    (`Campaign.repeating`), or for further starts of a candidate and its base (`Campaign.more_starts`). Without this
    limit, a run on a machine that is always busy would take three times as long and measure no more."""

    left_s: float = 1800.0
    sleep: Callable[[float], None] = time.sleep

    def grant(self, spoilt: Observation, in_a_row: int) -> bool:
        """Return whether a trial may be repeated after so many invalid ones in a row; wait if the machine was busy."""
        pause_s = PAUSE_S * in_a_row if spoilt.machine_was_busy else 0.0
        granted = self.spend(spoilt.trial.wall_s + pause_s)
        if granted and pause_s:
            self.sleep(pause_s)
        return granted

    def spend(self, seconds: float) -> bool:
        """Take so much of the time left. Return whether it was there; else take nothing."""
        granted = seconds <= self.left_s
        self.left_s -= seconds if granted else 0.0
        return granted


@dataclass
class Trials:
    """The recorder of one measurement's trials."""

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
        """Add evidence, for example `table=[...]`."""
        self.evidence = merge(self.evidence, Evidence(trials=[], **parts))

    def make(
        self, phase: Phase, one: Callable[[int], Observation], at: float = 0.0, *, most: int = MOST_INVALID
    ) -> Observation:
        """Make a trial with `one`, which gets its number in the test. Repeat an invalid trial, up to `most` in a row.
        Return the last one.

        `at`: its load for a sentence, per second; 0 for a closed loop. Raise `TrialFault` where the DUT or the
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
        runner: TrialRunner,
        load: Load,
        duration_s: float,
        phase: Phase,
        *,
        most: int = MOST_INVALID,
        strict: bool = False,
    ) -> Observation:
        """Offer a load for `duration_s` seconds; see `make`, and `Observation.strict`."""
        return self.make(phase, lambda _: replace(runner.offer(load, duration_s), strict=strict), load.per_s, most=most)

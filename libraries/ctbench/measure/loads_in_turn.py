"""Candidate and base in turn under one load: the trials of each side, and their result at that load."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.units import format_duration, format_rate
from ctbench.measure.observation import Observation, Phase
from ctbench.measure.procedure import Bench
from ctbench.measure.start_rule import ERROR
from ctbench.measure.trial import TrialFault, Trials
from ctbench.results.verdict import Code, Verdict, of_turns
from ctbench.testbed.two_sides import InTurn, SideBySide
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import saturating

#: Blocks (A B B A) at one load, at most, until they decide: of a run with few rows.
BLOCKS = 3
#: As less is offered where a load decides nothing, a row errs so many times as often as at one load, at most.
OF_LOADS = 1.3
#: Trials of a candidate, at most, where each takes a minute.
MOST_LASTING = 5
#: How often a like build is missed by these in a run of the stock suites, whose rows of rates that last are two of Open
#: vSwitch: both builds lose each trial with the same chance, and at 1/2 one loses all of its trials, the other none, in
#: as many of runs.
_OF_LASTING = 2 * 2 ** (-2 * MOST_LASTING)
#: Of what broke.
_OF_BASE = " (of the base)"
#: Makes a trial at a bench, with these trials before it.
MakesTrial = Callable[[Bench, Trials, Phase], Observation]


def blocks(rows: int) -> int:
    """Return the maximum number of blocks at one load, in a run that compares so many rows. Of two like builds that
    each lose a trial with probability p, one loses all of its trials and the other none in at most 2^-4 of blocks (p =
    1/2). The rows share an error as large as that of the starts, together with the sustained rates."""
    return max(BLOCKS, math.ceil(math.log2(OF_LOADS * rows / (ERROR - _OF_LASTING)) / 4))


@dataclass
class TrialsInTurn:
    """The trials of both sides at one load, and the result."""

    load: float
    code: Code = Code.INVALID
    made: Mapping[Side, list[Observation]] = field(default_factory=lambda: {"tested": [], "other": []})
    #: Why trials say nothing of either; empty where they do.
    invalid: str = ""

    def adds(self, side: Side, seen: Observation) -> Code | None:
        """Add a trial of a side. Return `INVALID` for an invalid trial, which is not counted."""
        if seen.state == "invalid":
            self.code, self.invalid = Code.INVALID, seen.reason
            return self.code
        self.made[side].append(seen)
        return None

    def lost(self, side: Side) -> int:
        """Return the number of a side's trials that did not hold."""
        return sum(not seen.good for seen in self.made[side])

    def misses(self, metrics: Sequence[str], said: str) -> dict[str, Verdict]:
        """Return the verdicts where the candidate holds less than its base: missed for those of these metrics that its
        trials broke, or for all where no single one was broken. The other metrics are judged by their figures."""
        tested = self.made["tested"]
        broken = [name for name in metrics if any(name in seen.broken for seen in tested)]
        return dict.fromkeys(broken or metrics, of_turns(self.code, said, tested[-1].reason))

    @property
    def sentence(self) -> str:
        """The result in words, for a reason."""
        rate = format_rate(self.load)
        if self.code is Code.HOLDS_AS_BASE:
            # One that lost ended early.
            seconds = max(seen.trial.counted_s for seen in self.made["tested"])
            return f"{rate} held for {format_duration(seconds)}, in turn with the base"
        if self.code is Code.INVALID:
            return f"at {rate} a trial says nothing: {self.invalid}"
        mine, theirs = (f"{len(made) - self.lost(side)} of {len(made)}" for side, made in self.made.items())
        return f"of trials at {rate}, in turn, the candidate held {mine}, and the base {theirs}"


@dataclass
class BothSides:
    """Candidate and base, which make trials in turn. The trials of the candidate are the record's trials; those of the
    base are its `base_trials`."""

    bench: Bench
    trials: Trials

    def __post_init__(self) -> None:
        assert self.bench.sides, "both stand"
        self._sides: SideBySide | InTurn = self.bench.sides
        self._base = Trials(self.bench.on_trial, repetitions=self.bench.repetitions)
        self._set_up = 0

    def at(self, side: Side) -> Bench:
        """Give a side the turn, and return its bench. Raise `TrialFault` where it cannot be set up again."""
        try:
            dut, generator = self._sides.turn(side)
        except (TestbedError, MissingResource) as error:  # it stood before
            raise TrialFault(f"{str(error).rstrip('.')}{_OF_BASE}" if side == "other" else str(error)) from error
        return replace(self.bench, dut=dut, generator=generator)

    def make(self, side: Side, one: MakesTrial) -> Observation:
        """Make a trial on a side. A fault of the base is marked as such."""
        at = self.at(side)
        if side == "tested":
            return one(at, self.trials, "in turn")
        made = len(self._base.made)
        try:
            return one(at, self._base, "base")
        except TrialFault as fault:
            raise TrialFault(f"{fault}{_OF_BASE}") from fault
        finally:
            self.trials.keep(base_trials=[seen.as_record() for seen in self._base.made[made:]])

    def begin_again(self) -> None:
        """Set both sides up again: the memory layout is fixed for the length of a start."""
        try:
            self._sides = self.bench.set_up_again(self._set_up) or self._sides
        except (TestbedError, MissingResource) as error:
            raise TrialFault(str(error)) from error
        self._set_up += 1


def conditions_of(bench: Bench) -> list[str]:
    """Return the floor's metrics that are conditions of trials, not promises."""
    return [name for name, each in bench.floor.thresholds.items() if not each.is_promise]


def served_in_a_loop(sides: BothSides, side: Side, duration_s: float) -> float:
    """Return the rate of a side in a closed loop, or that of the generator where it is the limit."""

    def one(at: Bench, trials: Trials, phase: Phase) -> Observation:
        return trials.offer(at.runner, saturating(at.profile), duration_s, phase)

    return sides.make(side, one).served

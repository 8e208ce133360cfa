"""Candidate and base in turn under one load: what their trials say, and how each is asked for some."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.units import format_duration, format_rate
from ctbench.measure.observation import Observation, Phase
from ctbench.measure.procedure import Bench
from ctbench.measure.starts import ERROR
from ctbench.measure.trial import TrialFault, Trials
from ctbench.results.verdict import Code, Verdict, of_turns
from ctbench.testbed.pair import InTurn, SideBySide
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
    """Blocks at one load, at most, in a run that compares so many rows: of two like builds that each lose a trial with
    any chance p, one loses all of its trials and the other none in at most 2^-4 of blocks (p = 1/2). The rows share
    an error as large as that of the starts, with the rates that last."""
    return max(BLOCKS, math.ceil(math.log2(OF_LOADS * rows / (ERROR - _OF_LASTING)) / 4))


@dataclass
class Tried:
    """What came of one load."""

    load: float
    code: Code = Code.INVALID
    made: Mapping[Side, list[Observation]] = field(default_factory=lambda: {"tested": [], "other": []})
    #: Why trials say nothing of either; empty where they do.
    invalid: str = ""

    def adds(self, side: Side, seen: Observation) -> Code | None:
        """One trial more of a side: `INVALID` where it says nothing, and is not counted."""
        if seen.state == "invalid":
            self.code, self.invalid = Code.INVALID, seen.reason
            return self.code
        self.made[side].append(seen)
        return None

    def lost(self, side: Side) -> int:
        """Trials that a side did not hold."""
        return sum(not seen.good for seen in self.made[side])

    def misses(self, metrics: Sequence[str], said: str) -> dict[str, Verdict]:
        """The verdicts of a load that the candidate holds less of: those of these metrics that its trials broke are
        missed, or where they broke none by itself, all. The others are judged by their figures."""
        tested = self.made["tested"]
        broken = [name for name in metrics if any(name in seen.broken for seen in tested)]
        return dict.fromkeys(broken or metrics, of_turns(self.code, said, tested[-1].reason))

    @property
    def said(self) -> str:
        """What happened, for a reason."""
        rate = format_rate(self.load)
        if self.code is Code.HOLDS_AS_BASE:
            return f"{rate} held for {format_duration(self.made['tested'][0].trial.counted_s)}, in turn with the base"
        if self.code is Code.INVALID:
            return f"at {rate} a trial says nothing: {self.invalid}"
        mine, theirs = (f"{len(made) - self.lost(side)} of {len(made)}" for side, made in self.made.items())
        return f"of trials at {rate}, in turn, the candidate held {mine}, and the base {theirs}"


@dataclass
class Sides:
    """Candidate and base, each of which is asked for trials in its turn: those of the candidate are the trials of the
    record, which has those of the base besides."""

    bench: Bench
    trials: Trials

    def __post_init__(self) -> None:
        assert self.bench.sides, "both stand"
        self._sides: SideBySide | InTurn = self.bench.sides
        self._base = Trials(self.bench.on_trial, repetitions=self.bench.repetitions)
        self._set_up = 0

    def at(self, side: Side) -> Bench:
        """The bench of a side, which has the turn from now on."""
        try:
            dut, generator = self._sides.turn(side)
        except (TestbedError, MissingResource) as error:  # it stood before
            raise TrialFault(f"{str(error).rstrip('.')}{_OF_BASE}" if side == "other" else str(error)) from error
        return replace(self.bench, dut=dut, generator=generator)

    def make(self, side: Side, one: MakesTrial) -> Observation:
        """Let a side have a trial."""
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
        """Set both up again: a start decides for as long as it lasts where memory lies."""
        try:
            self._sides = self.bench.again(self._set_up) or self._sides
        except (TestbedError, MissingResource) as error:
            raise TrialFault(str(error)) from error
        self._set_up += 1


def conditions_of(bench: Bench) -> list[str]:
    """What trials have to keep, of what the floor promises."""
    return [name for name, each in bench.floor.thresholds.items() if not each.is_promise]


def served_in_a_loop(sides: Sides, side: Side, duration_s: float) -> float:
    """What a side serves in a closed loop, or the generator where that is the limit."""

    def one(at: Bench, trials: Trials, phase: Phase) -> Observation:
        return trials.offer(at.runner, saturating(at.profile), duration_s, phase)

    return sides.make(side, one).served

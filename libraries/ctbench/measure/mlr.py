"""The capacity search with the MLRsearch library (RFC 9971): short trials first, full-length ones near the capacity.

The library chooses each load. Our measurer makes the trial, keeps it, and reports a loss ratio to the library. So this
module distinguishes by type a fault, an exhausted number of trials and a range in which no load held, where the library
raises the same RuntimeError for all three. It also classifies the result, over all trials.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch.target_stat import TargetStat

from ctbench.measure.campaign import Mlr
from ctbench.measure.observation import Observation, Phase
from ctbench.measure.search import SearchResult, broken_off, conclude
from ctbench.measure.trial import MOST_INVALID, TrialFault, TrialRunner, Trials
from ctbench.results.evidence import GoalRecord
from ctbench.traffic.loads import Rate

#: Packets that the library believes a trial to have had: it needs only their ratio.
_INTENDED: Final = 10**9
#: The library's own limit, by the clock; ours, by trials, comes first.
_FOREVER_S: Final = 1e9
#: Of the trials that classify a load the share that may fail.
_EXCEED: Final = 0.5

#: The first step away from a hint, as a factor: a narrow width is not a reason to creep. From one that is not a guess
#: of the capacity, but only a promise, it is a large one.
STRIDE, ROUGH_STRIDE = 1.1, 1.5
#: Of what a DUT forwarded of too many packets: what it probably forwards without a loss.
JUST_BELOW = 0.985
#: Ranges that the library is given at most, each above the one before.
_MOST_RANGES = 4


@dataclass(frozen=True)
class Goal:
    """The attributes of a search goal. All trials at a load classify it, as RFC 9971 asks (appendix A), with the
    library's own code. A trial is low-loss where it is good. An invalid trial counts only where the valid ones leave a
    load undecided."""

    #: Seconds: of a full-length trial, and of full-length trials that classify a load, which the library knows by this
    #: name.
    final_duration_s: float
    duration_sum: float
    #: Share of that sum in which trials may be bad.
    exceed_ratio: float
    #: Loss ratio up to which a trial is good for it, where the trial's own conditions allow less.
    loss_ratio: float = 0.0

    def judge(self, seen: Observation) -> Observation:
        """Return a trial as this goal judges it, by the goal's loss ratio."""
        return seen.allowing(self.loss_ratio)

    def classify(self, trials: Sequence[Observation]) -> Literal["lower", "upper", "undecided"]:
        """Classify a load by its trials: a lower or an upper bound of the capacity, or undecided."""
        judged = list(map(self.judge, trials))
        found = self._class_of(_that_count(judged))
        return self._class_of(judged) if found == "undecided" else found

    def _class_of(self, judged: Sequence[Observation]) -> Literal["lower", "upper", "undecided"]:
        """Classify a load by exactly these trials."""
        may_become_lower, is_lower = self._sums(judged).estimates()
        if is_lower:
            return "lower"
        return "undecided" if may_become_lower else "upper"

    def bounds(self, trials: Mapping[float, Sequence[Observation]]) -> tuple[float | None, float | None]:
        """Return the relevant bounds: the largest lower bound below the smallest upper bound, and that upper bound."""
        found = {load: self.classify(made) for load, made in trials.items()}
        upper = min((load for load, bound in found.items() if bound == "upper"), default=None)
        lower = (load for load, bound in found.items() if bound == "lower" and (upper is None or load < upper))
        return max(lower, default=None), upper

    def conditional_throughput(self, load: float, trials: Sequence[Observation]) -> float:
        """Return the conditional throughput (appendix B): the load times (1 - loss ratio), with the loss ratio at the
        goal's quantile of the full-length trials."""
        lost: float = self._sums(_that_count(list(map(self.judge, trials)))).pessimistic_loss_ratio
        return load * (1 - lost)

    def _sums(self, judged: Sequence[Observation]) -> TargetStat:
        """Add up the durations of a load's trials, seconds, in the library's form: of low-loss and high-loss ones,
        full-length and shorter, and of full-length ones by loss ratio in ascending order."""
        sums = TargetStat(self)
        by_loss: dict[float, float] = defaultdict(float)
        for seen in judged:
            seconds = seen.trial.duration_s
            full = seconds >= self.final_duration_s * (1 - 1e-9)
            kind = f"{'good' if seen.good else 'bad'}_{'long' if full else 'short'}"
            setattr(sums, kind, getattr(sums, kind) + seconds)
            if full:
                by_loss[seen.values["loss_ratio"]] += seconds
        sums.long_losses = dict(sorted(by_loss.items()))
        return sums


def _that_count(judged: Sequence[Observation]) -> Sequence[Observation]:
    return [each for each in judged if each.state != "invalid"] or judged


class _Ended(Exception):
    """Raised where the search ends before it reaches its goal; the text says why."""


class MlrSearch(AbstractMeasurer):  # type: ignore[misc]  # the library comes without types
    """One search in progress. It is the measurer that the library asks for trials."""

    def __init__(
        self, runner: TrialRunner, lo: float, hi: float, settings: Mlr, trials: Trials, partial_drop: float = 0.0
    ) -> None:
        self.runner, self.lo, self.hi, self.settings, self.trials = runner, lo, hi, settings, trials
        #: All trials, those included that do not count.
        self.tried = trials.made
        #: The trials that count, by load.
        self.made: dict[float, list[Observation]] = {}
        self.hint: float | None = None
        #: The upper end of the range that the library is given.
        self.top = hi
        #: The trial that the library begins with, at that end, where it was made already to find it.
        self.first: Observation | None = None
        self.crashed = False
        self.note = ""
        goal = Goal(settings.final_duration, settings.classified_by_s, _EXCEED)
        #: What is searched in one run, where each trial counts for all: by the conditions of the trials, and where more
        #: may be lost. The last one allows most.
        self.goals = [goal, replace(goal, loss_ratio=partial_drop)] if partial_drop else [goal]

    def run(self, hint: float | None, *, rough: bool = False, cold: bool = False) -> SearchResult:
        """Search; see `ctbench.measure.search.search` for the arguments."""
        goal, *others = self.goals
        try:
            if cold:
                self._try(hint or self.lo, self.settings.trial_duration, "warm-up")
            self._search(hint, ROUGH_STRIDE if rough else STRIDE)
        except TrialFault as fault:
            lower, upper = self._bounds(goal)
            above = self._seen(goal, upper, good=False)
            bound = upper if above and above.state != "invalid" else None
            return broken_off(self._seen(goal, lower, good=True), bound, self.tried, str(fault))
        except _Ended as error:
            self.note = f" ({error})"
        return replace(self._found(goal), partial=next(map(self._found, others), None))

    def _found(self, goal: Goal) -> SearchResult:
        """Return the result for a goal, from all trials."""
        lower, upper = self._bounds(goal)
        proof, above = self._seen(goal, lower, good=True), self._seen(goal, upper, good=False)
        return conclude(proof, above, self.tried, self.hi, self.note, self._report(goal))

    # What the library is asked.

    def _search(self, hint: float | None, stride: float) -> None:
        """Let the library search a range, and then the range above it where a disturbed trial had ended the first one
        below the capacity. The library's bounds follow from its own trials, those of this search from all: see
        `_bounds`."""
        self.top = 0.0
        for _ in range(_MOST_RANGES):
            self.top = self._find_top(self.top or hint, stride)
            self._search_range()
            if self.top >= self.hi or self._bounds(self.goals[-1])[1] is not None:
                break

    def _search_range(self) -> None:
        config = Config()
        config.min_load = self.lo  # before the maximum, which the default minimum may be above
        config.max_load = self.top
        config.goals = map(self._as_theirs, self.goals)
        config.search_duration_max, config.warmup_duration = _FOREVER_S, 0.0
        try:
            MultipleLossRatioSearch(config).search(self, lambda _log: None)
        except RuntimeError as error:
            if self.crashed:  # a bug of ours that went through the library
                raise
            raise _Ended(f"MLRsearch gave up: {error}") from error

    def _as_theirs(self, goal: Goal) -> Any:
        settings = self.settings
        return SearchGoal(
            loss_ratio=goal.loss_ratio,
            duration_sum=goal.duration_sum,
            exceed_ratio=goal.exceed_ratio,
            relative_width=settings.relative_width / (1 + settings.relative_width),  # theirs is of the upper bound
            initial_trial_duration=settings.trial_duration,
            final_trial_duration=settings.final_duration,
            preceding_targets=2
            if settings.duration_sum
            else 1,  # bounds twice as wide first, by fewer or shorter trials
            fail_fast=False,
        )

    def _find_top(self, hint: float | None, stride: float) -> float:
        """Return the upper end of the range: a load little above the hint that no goal holds, so that no load far above
        it is tried. The library begins there."""
        self.hint, self.first = hint if hint is not None and self.lo < hint < self.hi else None, None
        load, factor = self.hint or self.hi, max(stride, 1 + self.settings.relative_width)
        while (load := load * factor) < self.hi:
            seen = self._try(load, self.settings.trial_duration)
            if not self.goals[-1].judge(seen).good:
                self.first = seen
                return load
            factor *= factor
        return self.hi

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Make a trial for the library. The reported loss encodes for which goals the trial is good, as judged here.
        For a trial that is good for none, the loss makes the library take `_guess` for the DUT's forwarding rate."""
        seen, self.first = self.first or self._try(intended_load, intended_duration), None
        held = next((goal for goal in self.goals if goal.judge(seen).good), None)
        if held:
            lost = math.ceil(_INTENDED * held.loss_ratio / 2)
        else:
            guess = round(_INTENDED * (1 - self._guess(seen) / intended_load))
            lost = max(1 + math.ceil(_INTENDED * self.goals[-1].loss_ratio), guess)
        return MeasurementResult(intended_duration, intended_load, offered_count=_INTENDED, loss_count=lost)

    def _guess(self, over: Observation) -> float:
        """Return the load to try below one that did not hold: the hint where it fits, else just below the forwarded
        rate. An overloaded DUT completes fewer connections than it can: for them, the geometric mean of that rate and
        the load. Otherwise the geometric mean of this load and the highest one below it that held."""
        held = (seen.load for seen in self.tried if seen.good)
        least = max((load for load in held if load < over.load), default=self.lo)
        if self.hint is not None and least < self.hint < over.load:
            return self.hint
        completed = over.trial.forwarded_rate * JUST_BELOW
        aim = completed if over.trial.unit == "packets" else math.sqrt(completed * over.load)
        return aim if over.state == "bad" and aim > least * STRIDE else math.sqrt(least * over.load)

    # Trials.

    def _try(self, load: float, duration: float, phase: Phase | None = None) -> Observation:
        """Make a trial at a load, and repeat it where it is invalid. A warm-up is made once and does not count."""

        def one(_number: int) -> Observation:
            if len(self.tried) >= self.settings.max_iterations:
                raise _Ended(f"stopped after {self.settings.max_iterations} trials")
            try:
                seen = self.runner.offer(Rate(load), duration)
            except RuntimeError:
                self.crashed = True
                raise
            if phase != "warm-up" and not seen.fault:
                self.made.setdefault(load, []).append(seen)
            return seen

        by_length: Phase = "final" if duration >= self.settings.final_duration else "search"
        return self.trials.make(phase or by_length, one, load, most=1 if phase == "warm-up" else MOST_INVALID)

    # Results.

    def _bounds(self, goal: Goal) -> tuple[float | None, float | None]:
        """Return the relevant bounds over all trials. An unfinished search without a lower bound is classified by the
        trials that it made."""
        lower, upper = goal.bounds(self.made)
        if lower is None and self.note:
            lower, upper = replace(goal, duration_sum=0.0).bounds(self.made)
        return lower, upper

    def _report(self, goal: Goal) -> GoalRecord:
        """Return the report on a goal that RFC 9971 asks for."""
        lower, upper = self._bounds(goal)
        conditions = self.tried[0].conditions if self.tried else {}
        return GoalRecord(
            loss_ratio=max(conditions.get("loss_ratio", conditions.get("packet_loss_ratio", 0.0)), goal.loss_ratio),
            final_duration_s=goal.final_duration_s,
            duration_sum_s=goal.duration_sum,
            exceed_ratio=goal.exceed_ratio,
            relative_width=self.settings.relative_width,
            relevant_lower_bound=lower,
            relevant_upper_bound=upper,
            conditional_throughput=goal.conditional_throughput(lower, self.made[lower]) if lower else None,
        )

    def _seen(self, goal: Goal, load: float | None, *, good: bool) -> Observation | None:
        """Return the longest trial at a load that was good, or not good; of equally long ones the last. A valid trial
        precedes an invalid one."""
        made = [each for each in map(goal.judge, self.made.get(load or 0.0, [])) if each.good is good]
        return max(reversed(made), key=lambda each: (each.state != "invalid", each.trial.duration_s), default=None)

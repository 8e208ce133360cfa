"""Trials of the connection table: one is enough; another one is made where something else than the DUT spoilt it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ctbench.base.errors import TestbedError
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.sequential import MOST_INVALID
from ctbench.measure.trial import Step, broken_trial
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import Metric

Made = TypeVar("Made")


@dataclass
class TableTrials(Generic[Made]):
    """The trials of one test, and what each came to besides its observation."""

    bench: Bench
    metric: Metric
    steps: list[Step] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    #: The DUT's counts of all of them, in their order.
    counts: list[TableCount] = field(default_factory=list)

    def run(self, load: float, one: Callable[[int], tuple[Observation, Made, Sequence[TableCount]]]) -> Outcome | None:
        """Make one trial with `one`, which is told its number in the test; another where it was invalid. The outcome
        where something broke, else None. `load`: for the sentence, per second."""
        for _ in range(MOST_INVALID):
            number = self.bench.made + len(self.steps) + 1
            try:
                seen, made, counts = one(number)
            except TestbedError as error:
                return self._broken(broken_trial(number, load, str(error)))
            self.made.append(made)
            self.counts += counts
            step = Step(len(self.steps) + 1, "hold", seen, 0.0)
            self.steps.append(step)
            self.bench.on_trial(step)
            if seen.fault:
                return self._broken(broken_trial(number, load, seen.fault))
            if seen.state != "invalid":
                break
        return None

    @property
    def last(self) -> Observation:
        """The last trial."""
        return self.steps[-1].observation

    def _broken(self, why: str) -> Outcome:
        return Outcome(self.metric, {}, "fault", why, held=False, steps=tuple(self.steps), table=tuple(self.counts))

"""What a run says while it measures: a line for each trial, with the time that the test will probably take still."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ctbench.measure.procedure import Look
from ctbench.measure.trial import Expected, Step
from ctbench.report import console
from ctbench.results.evidence import TrialRecord
from ctbench.run.measurement import Measurement

Say = Callable[[str], None]


class Progress:
    """Shows what a run does as it does it, and keeps its trials."""

    def __init__(self, say: Say) -> None:
        """`say` takes lines to show."""
        self.say = say
        #: All trials, those of ceilings too.
        self.trials: list[TrialRecord] = []
        #: What the test that runs measures after the procedure that runs.
        self._to_come: list[Expected] = []
        self._headed: Measurement | None = None

    def expect(self, to_come: Iterable[Expected]) -> None:
        """What the test that begins will measure, one procedure after the other; nothing at its end."""
        self._to_come = list(to_come)

    def next_procedure(self) -> None:
        """The next procedure of the test begins, or is left out."""
        self._to_come = self._to_come[1:]

    def heading(self, test: Measurement, version: Callable[[], str]) -> None:
        """Name the test and its DUT, once."""
        if self._headed is test:
            return
        self._headed = test
        self.say(console.heading(test.name.test, test.topology.key, version()))
        if test.plan.makes_trials:
            self.say(console.trial_heading(test.profile.kind))

    def trial(self, step: Step) -> None:
        """One trial has ended."""
        made = step.as_record()
        self.trials.append(made)
        overhead_s = max(0.0, made.trial.wall_s - made.trial.duration_s)
        self.say(console.trial_line(step.number, made, step.left_s + self._left_s(overhead_s)))

    def look(self, look: Look) -> None:
        """The rounds of a pair were looked at."""
        self.say(console.look_line(replace(look, left_s=look.left_s + self._left_s(0.0))))

    def _left_s(self, overhead_s: float) -> float:
        """Seconds of what is to come; of each trial so much more than its traffic."""
        return sum(each.seconds(overhead_s) for each in self._to_come)

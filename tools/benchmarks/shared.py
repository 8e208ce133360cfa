"""Simulated DUTs on a simulated machine that others use as well. Nothing here measures anything."""

from dataclasses import dataclass, field

from unit.simulated import SimulatedDut
from unit.simulated_pair import SimulatedPair

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from tools.benchmarks.machine import BETWEEN_TRIALS_S, Machine, quiet, step_of, through_ring


@dataclass
class SharedDut(SimulatedDut):
    """A DUT that also has a closed loop, and may have a ring, where what is offered in excess waits while there
    is room; without one it is lost at once."""

    #: Share of the capacity that a trial lacks after an overloaded one: connections that nobody flushed.
    carried_over: float = 0.0
    #: Frames that can wait for the DUT.
    ring: int = 0
    #: What it runs on.
    machine: Machine = field(default_factory=quiet)
    #: What it serves in a closed loop, relative to its capacity.
    saturation: float = 1.0
    _overloaded: bool = False

    def serve(self, capacity: float, load: Load, duration_s: float) -> Trial:
        self.machine.run(BETWEEN_TRIALS_S)
        if isinstance(load, Saturation):
            return self._saturated(capacity * self.saturation, load.under_way, duration_s)
        assert isinstance(load, Rate)
        capacity *= 1 - self.carried_over * self._overloaded
        self._overloaded = load.per_s > capacity
        if not self.ring:
            return super().serve(capacity, load, duration_s)
        passage = through_ring(load.per_s, duration_s, capacity, self.ring, self.machine, self.random)
        made = self.made_up(load.per_s, duration_s, min(1.0, passage.lost / passage.intended))
        return _with_timeline(made, passage.under_way, passage.served)

    def _saturated(self, rate: float, under_way: int, duration_s: float) -> Trial:
        step_s = step_of(duration_s)
        steps = round(duration_s / step_s)
        served = [round(rate * self.machine.run(step_s) * step_s) for _ in range(steps)]
        made = self.made_up(sum(served) / duration_s, duration_s, 0.0)
        return _with_timeline(made, [under_way] * steps, served).model_copy(update={"under_way": under_way})


@dataclass
class SharedPair(SimulatedPair):
    """Both sides run on the same machine, whose speed goes on hopping through slices and flushes."""

    machine: Machine = field(default_factory=quiet)

    def speed(self, seconds: float) -> float:
        return self.machine.run(seconds)


def _with_timeline(trial: Trial, active: list[int], completed: list[int]) -> Trial:
    """The trial with its points; packets of the sustain phase are of what came out in it, not of what came later."""
    in_time = sum(completed) / trial.completed if trial.completed else 0.0
    return trial.model_copy(
        update={
            "timeline_step_s": step_of(trial.duration_s),
            "timeline_active": active,
            "timeline_completed": completed,
            "rx_packets": {end: round(count * in_time) for end, count in trial.rx_packets.items()},
            "rx_bytes": {end: round(count * in_time) for end, count in trial.rx_bytes.items()},
        }
    )

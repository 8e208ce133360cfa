"""The result of a search for the capacity, whichever way it was searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.measure.observation import Observation
from ctbench.measure.trial import Step
from ctbench.results.evidence import GoalRecord


class SearchFault(Exception):
    """The DUT or the generator broke during a search; the text says how."""


@dataclass(frozen=True)
class SearchResult:
    """What the search found."""

    #: What the DUT forwarded at the highest offered load that held, in the profile's unit per second; 0 when none did.
    capacity: float
    #: Lowest load above it that did not hold; None when every load held.
    upper: float | None
    #: `dut`; `generator`: the load that did not hold was the generator's limit; `range`: every load held, so the
    #: capacity is at least this; `fault`: the DUT or the generator broke and the search was given up.
    limited_by: Literal["dut", "generator", "range", "fault"]
    #: One sentence.
    reason: str
    #: The trial that the capacity stands on; None when none held.
    proof: Observation | None
    #: All trials in their order, each with the phase it was made in.
    steps: tuple[Step, ...]
    #: Capacity of each repetition; one entry when there was no other.
    capacities: tuple[float, ...] = ()
    #: What the search was to find and how its bounds were classified, where RFC 9971 asks for it.
    goal: GoalRecord | None = None

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All trials in their order."""
        return tuple(step.observation for step in self.steps)

    def at_capacity(self) -> Observation | None:
        """The trial to take the figures besides the capacity from; where nothing held, of the lowest load tried."""
        if self.proof:
            return self.proof
        tried = [seen for seen in self.observations if seen.state == "bad"]
        return min(tried, key=lambda seen: seen.load, default=None)


def conclude(
    proof: Observation | None,
    above: Observation | None,
    steps: Sequence[Step],
    end: float,
    note: str = "",
    goal: GoalRecord | None = None,
) -> SearchResult:
    """The result of a search that came to its end: `proof` held, `above` did not; None where there is no such load.
    The range was searched up to `end`; `note` is added to the reason."""
    lower, upper = proof.load if proof else 0.0, above.load if above else None
    limited_by: Literal["dut", "generator", "range"] = "dut"
    if above is None:
        limited_by = "range"
        reason = f"every load up to {format_rate(lower or end)} held; the range of the campaign ends there{note}"
    elif above.state == "invalid":
        limited_by = "generator"
        reason = f"at {format_rate(above.load)} the generator was the limit: {above.reason}{note}"
    else:
        held = f"{format_rate(lower)} held, {format_rate(above.load)} did not" if proof else ""
        reason = f"{held or f'no load held, not even {format_rate(above.load)}'}: {above.reason}{note}"
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, limited_by, reason, proof, tuple(steps), (capacity,), goal)


def broken_off(proof: Observation | None, upper: float | None, steps: Sequence[Step], reason: str) -> SearchResult:
    """The result of a search that a fault ended: what was known until then."""
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, "fault", reason, proof, tuple(steps), (capacity,))

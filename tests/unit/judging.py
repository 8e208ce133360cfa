"""Floors and outcomes for the tests of verdicts, and what a verdict says."""

from dataclasses import replace

from ctbench.measure.procedure import Decision, Outcome
from ctbench.results.figure import Figure
from ctbench.sla.verdict import Verdict

from .simulated import (
    found,
    found_packets,
    made_up_floor,
    made_up_packet_floor,
    outcome_of,
)

FLOOR = made_up_floor()


def message(verdict: Verdict) -> str:
    """Word and sentence, as a failing test says them."""
    return f"{verdict.word.capitalize()}: {verdict.reason}"


COMPARED = made_up_packet_floor(">= 100k", share=">= 60%")


def compared(value: float, low: float, high: float, decision: Decision | None = None, metric: str = "ratio") -> Outcome:
    """What a search and a pair found together."""
    base = outcome_of(found_packets(264_400))
    figures = {**base.figures, metric: Figure(value=value, unit="ratio", low=low, high=high)}
    return replace(base, figures=figures, decisions={metric: decision} if decision else {})


def sprt(kept: bool | None, reason: str, capacity: float = 50_000.0) -> Outcome:
    """What a search found, and what trials at the floor decided."""
    return replace(outcome_of(found(capacity)), decisions={"cps": Decision(kept, reason)})

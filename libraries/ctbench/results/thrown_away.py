"""Trials that said nothing and were thrown away: how many, and why."""

from collections.abc import Sequence

from ctbench.results.evidence import TrialRecord


def thrown_away(trials: Sequence[TrialRecord]) -> int:
    """How many of a test's trials say nothing of the DUT."""
    return sum(made.state == "invalid" for made in trials)


def note(trials: Sequence[TrialRecord]) -> str:
    """That in one sentence, with the first cause; empty where none was thrown away."""
    causes = [made.reason.rstrip(".") for made in trials if made.state == "invalid"]
    if not causes:
        return ""
    more = ", and the like" if len(set(causes)) > 1 else ""
    were = "was" if len(causes) == 1 else "were"
    return f"{thrown_away(trials)} of {len(trials)} trials {were} thrown away: {causes[0]}{more}."

"""Searches as the tests of the bisection make them: their range, their width and their settings."""

from typing import Any

from ctbench.measure.campaign import Bisection

LO, HI, WIDTH = 1_000.0, 1_000_000.0, 0.05


def how(**keys: Any) -> Bisection:
    base = {
        "trial_duration": "1s",
        "max_iterations": 12,
        "relative_width": "5%",
        "final_duration": "3s",
    }
    return Bisection.model_validate(base | keys)


#: Eight times the middle and nothing else.
PUBLISHED = how(middle="arithmetic", max_iterations=8, relative_width=None, final_duration=None)

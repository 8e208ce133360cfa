"""The search for the capacity: by bisection or with MLRsearch, as the campaign says."""

from ctbench.measure.bisection import BisectionSearch, planned_trials
from ctbench.measure.campaign import Bisection, Mlr
from ctbench.measure.result import SearchResult
from ctbench.measure.trial import OnTrial, TrialFn, nobody

__all__ = ["SearchResult", "planned_trials", "search"]


def search(
    trial_fn: TrialFn,
    lo: float,
    hi: float,
    settings: Bisection | Mlr,
    on_trial: OnTrial = nobody,
    *,
    hint: float | None = None,
    floor_load: float | None = None,
) -> SearchResult:
    """Search the capacity from `lo` to `hi`, in the profile's unit per second.

    With a `hint` (the capacity of a like topology) it begins there and widens its steps until the capacity
    is between two trials; a wrong hint costs trials, never truth. It needs a relative width.
    `floor_load`, the load that the floor promises, is never left between the bounds: whether it holds is tried,
    whatever the width.
    A fatal problem of the DUT or a `TestbedError` of a trial ends the search with `limited_by="fault"`.
    """
    if isinstance(settings, Mlr):
        # The library looks at the source of every module that was imported before it: half a second.
        from ctbench.measure.mlr import MlrSearch  # noqa: PLC0415

        return MlrSearch(trial_fn, lo, hi, settings, on_trial).run(hint, floor_load)
    return BisectionSearch(trial_fn, lo, hi, settings, on_trial).run(hint, floor_load)

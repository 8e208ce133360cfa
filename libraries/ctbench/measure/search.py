"""The search for the capacity: by bisection, with MLRsearch or below the saturation rate, as the campaign says."""

from ctbench.measure.bisection import BisectionSearch, planned_trials
from ctbench.measure.campaign import Mlr, SaturationSettings, SearchSettings
from ctbench.measure.descent import descend
from ctbench.measure.result import SearchResult
from ctbench.measure.trial import OnTrial, TrialFn, nobody

__all__ = ["SearchResult", "planned_trials", "search"]


def search(
    trial_fn: TrialFn,
    lo: float,
    hi: float,
    settings: SearchSettings,
    on_trial: OnTrial = nobody,
    *,
    hint: float | None = None,
    rough: bool = False,
    cold: bool = False,
    before: int = 0,
) -> SearchResult:
    """Search the capacity from `lo` to `hi`, in the profile's unit per second.

    With a `hint` (the saturation rate, the capacity of a like topology) it begins there and widens its steps until the
    capacity is between two trials; a wrong hint costs trials, never truth. A bisection needs a relative width for it.
    `rough`: the hint is only what is promised, and no guess of the capacity. `cold`: nothing was offered to this DUT
    yet; a search with MLRsearch begins with a trial that does not count.
    `before`: trials that the test made already, for messages.
    Below the saturation rate, that is the hint, and has to be one.
    A fatal problem of the DUT or a `TestbedError` of a trial ends the search with `limited_by="fault"`.
    """
    if isinstance(settings, SaturationSettings):
        if hint is None:
            raise ValueError("no saturation rate to search below")
        return descend(trial_fn, hint, hi, settings, on_trial, before)
    if isinstance(settings, Mlr):
        # The library looks at the source of every module that was imported before it: half a second.
        from ctbench.measure.mlr import MlrSearch  # noqa: PLC0415

        return MlrSearch(trial_fn, lo, hi, settings, on_trial, before).run(hint, rough=rough, cold=cold)
    return BisectionSearch(trial_fn, lo, hi, settings, on_trial, before).run(hint, rough=rough)

"""A search that is made several times: the median is the result."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ctbench.measure.result import SearchResult


def repeat(times: int, search_once: Callable[[float | None], SearchResult]) -> SearchResult:
    """Search several times; the result is the one with the (lower) median capacity and has all trials.

    Each search is given what the one before found, to begin there; the first one None. A fault ends it at once. One
    repetition that the generator limited does not make the others worthless.
    """
    results: list[SearchResult] = []
    for _ in range(times):
        results.append(search_once((results[-1].capacity or None) if results else None))
        if results[-1].limited_by == "fault":
            return _with_trials_of(results, results[-1])
    by_capacity = sorted(results, key=lambda result: result.capacity)
    return _with_trials_of(results, by_capacity[(times - 1) // 2])


def _with_trials_of(results: Sequence[SearchResult], chosen: SearchResult) -> SearchResult:
    steps = [step for result in results for step in result.steps]
    return replace(
        chosen,
        steps=tuple(replace(step, number=number) for number, step in enumerate(steps, 1)),
        capacities=tuple(result.capacity for result in results),
    )

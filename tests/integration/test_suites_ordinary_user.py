"""A run needs no root, and leaves nothing behind as an ordinary user either."""

from collections.abc import Callable


def test_runs_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    whole = "test_suites_runs.py::test_a_floor_that_is_held_ends_with_0_and_the_figures_are_in_robots_output"
    ended = "test_suites_runs.py::test_a_run_that_is_ended_in_the_middle_of_a_trial_leaves_its_records_and_nothing_else"
    as_ordinary_user(whole, f"{ended}[Ctrl-C]", f"{ended}[kill -9]", generator=True)

"""What an acceptance run says while it measures: the time left, and the trials in sum."""

import re
from pathlib import Path

from .simulated_run import FORWARD, SNAT, SimulatedTestbed, Started, campaign, simulated

__all__ = ["simulated"]


def left(line: str) -> float:
    """Seconds that a line of a trial says are left."""
    found = re.search(r"~(\d+) s$", line.splitlines()[0])
    return float(found[1]) if found else 0.0


def lines_of_trials(said: list[str]) -> list[str]:
    return [line for line in said if re.match(r" +\d+   ", line)]


def test_the_time_left_counts_what_is_measured_after_the_ceiling_and_ends_at_nothing(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)

    lines = lines_of_trials(started.said)
    own, trial_s = len(record.evidence.trials), record.evidence.trials[0].trial.wall_s
    ceiling = lines[: len(lines) - own]
    # A pair, a search of five trials and more and the trials at the floor follow.
    assert [left(line) > 7 * trial_s for line in ceiling] == [True]
    assert left(lines[0]) > left(lines[1]) > 0
    (looked,) = (line for line in started.said if line.startswith("  look"))
    assert left(looked) > 5 * trial_s  # the search is still to come
    assert left(lines[-1]) <= 1  # of the trials at the floor, none was needed


def test_the_time_left_counts_the_repetitions_to_come(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated, campaign=campaign(repetitions=4))
    started.measure(FORWARD)
    once = Started(tmp_path / "once", simulated)
    once.measure(FORWARD)
    lines, of_one = ([left(line) for line in lines_of_trials(each.said)] for each in (started, once))
    assert lines[1] > 3 * of_one[1] > 0
    assert lines[1] > 3 * lines[-1]


def test_the_summary_counts_the_trials_of_ceilings_and_comparisons(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    made = len(simulated.loads)
    others = made - len(record.evidence.trials)
    assert others == 1
    assert f"{made} trials ({others} for ceilings and comparisons): " in started.run.summary()

"""Whether the generator kept its pace, how it catches up, and what it may be blamed for."""

import pytest

from ctbench.traffic.software import schedule
from ctbench.traffic.software.lateness import Pace, disturbed_by, limited_by

pytestmark = pytest.mark.unit

RING = 16_384


def pace(late: int = 0, late_max_ms: float = 0.0, dropped: int = 0, attempted: int = 100_000) -> Pace:
    return Pace(100_000, attempted, late, late_max_ms, dropped, 0.5)


@pytest.mark.parametrize(("late", "limited"), [(0, False), (2_001, False), (20_000, False), (20_001, True)])
def test_late_is_no_limit_as_long_as_it_is_a_fifth_at_most(late: int, limited: bool) -> None:
    assert bool(limited_by(pace(late, 11.0), "packets")) is limited


@pytest.mark.parametrize(("late_max_ms", "limited"), [(4.0, False), (10.0, False), (10.1, True)])
def test_nor_as_long_as_it_is_late_by_a_fiftieth_of_the_trial_at_most(late_max_ms: float, limited: bool) -> None:
    assert bool(limited_by(pace(60_000, late_max_ms), "packets")) is limited


def test_what_was_never_begun_limits_a_trial() -> None:
    assert limited_by(pace(attempted=99_981), "packets") == ""
    assert limited_by(pace(attempted=99_979, late_max_ms=60), "packets") == (
        "99979 of 100000 packets were begun in time (up to 60.0 ms late)"
    )


def test_its_own_full_ring_is_no_limit_by_itself() -> None:
    assert limited_by(pace(dropped=5), "packets") == ""


def test_a_pause_that_may_have_overrun_the_rings_is_a_cause() -> None:
    """5 ms at 1 M packets/s are 5000, a quarter of the ring is 4096."""
    said = "the generator paused for 5.0 ms: 5000 packets came late and fast, the DUT's rings hold 16384"
    assert disturbed_by(pace(3_000, 5.0), 100_000, 545, 1e6, RING) == said
    assert disturbed_by(pace(3_000, 4.0), 100_000, 545, 1e6, RING) == ""
    assert disturbed_by(pace(3_000, 5.0), 100_000, 0, 1e6, RING) == ""


def test_more_than_came_too_fast_was_lost_for_another_reason() -> None:
    """3000 late are 273 that pauses held back; 11 % of loss is not of 4 ms."""
    assert disturbed_by(pace(3_000, 5.0), 100_000, 546, 1e6, RING) == ""
    assert disturbed_by(pace(38_000, 4.1), 66_000, 7_500, 4e5, 4_096) == ""


def test_its_own_full_ring_is_the_cause_of_what_it_had_no_room_for() -> None:
    assert disturbed_by(pace(dropped=50), 100_000, 60, 1e6, RING) == (
        "50 frames came back and found the generator's own receive rings full"
    )
    assert disturbed_by(pace(dropped=50), 100_000, 101, 1e6, RING) == ""


def offered(interval: float, slack: float, pauses: list[tuple[float, float]], until: float) -> list[float]:
    """When packets go out that are due every `interval`, as the kernel functions do it; no look at the clock happens
    within a pause."""
    due = not_before = now = 0.0
    times = []
    while now < until:
        while due <= now and not_before <= now:
            times.append(now)
            due += interval
            not_before = schedule.next_allowed.py_func(not_before, now, slack, interval)
        now += interval / 2
        for begin, end in pauses:
            if begin <= now < end:
                now = end
    return times


def most_within(times: list[float], window: float) -> int:
    """The most packets in any window that begins with one."""
    best, last = 0, 0
    for first, begin in enumerate(times):
        while last < len(times) and times[last] < begin + window:
            last += 1
        best = max(best, last - first)
    return best


def test_after_a_pause_no_more_than_a_tenth_above_the_rate_is_offered() -> None:
    """In microseconds: a packet each, a pause of 5 ms, and what is due in 100 us may go out at once."""
    times = offered(1.0, 100.0, [(10_000, 15_000)], 90_000)
    assert len(times) == pytest.approx(90_000, abs=2)  # all of it was offered in the end
    for window in (1_000, 5_000, 20_000):
        assert most_within(times, window) <= 1.1 * window + 100 * 1.1
    assert most_within(times, 20_000) > 1.09 * 20_000


def test_without_a_pause_it_is_the_rate() -> None:
    assert most_within(offered(1.0, 100.0, [], 30_000), 1_000) <= 1_001


def test_many_short_pauses_cost_no_rate() -> None:
    """A loop that takes 30 us each time is no pause."""
    pauses = [(place * 40.0, place * 40.0 + 30) for place in range(1, 1_000)]
    assert len(offered(1.0, 100.0, pauses, 40_000)) == pytest.approx(40_000, abs=60)

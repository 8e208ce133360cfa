"""The slope of what is under way: what counts as falling behind, what is noise, and what can be told at all."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.measure.observation import Observation
from ctbench.traffic.backlog import LEAST_POINTS, UNKNOWN, growth

from .simulated import LIMITS, made_up_packets, made_up_trial

pytestmark = pytest.mark.unit

STEP_S = 0.05
POINTS = st.lists(st.integers(0, 100_000), min_size=LEAST_POINTS, max_size=40)


def test_a_straight_line_has_its_slope() -> None:
    found = growth([100, 110, 120, 130, 140, 150], STEP_S)
    assert (found.per_s, found.least_per_s, found.late_per_s) == pytest.approx((200, 200, 200))


@pytest.mark.parametrize("points", [[], [5], [0, 100, 200, 300, 400]])
def test_too_few_points_tell_nothing(points: list[float]) -> None:
    assert growth(points, STEP_S) == UNKNOWN


def test_points_without_a_step_tell_nothing() -> None:
    assert growth([1, 2, 3, 4, 5, 6, 7], 0) == UNKNOWN


def test_one_stall_is_no_growth() -> None:
    assert growth([3, 2, 4, 3, 9_000, 2, 3, 4, 2, 3], STEP_S).per_s == 0
    assert growth([3, 2, 4, 3, 2, 3, 4, 2, 3, 9_000], STEP_S).least_per_s <= 0


@settings(deadline=None)
@given(POINTS, st.integers(0, 10_000), st.integers(0, 50))
def test_a_ramp_on_top_adds_its_slope_and_a_constant_nothing(points: list[int], constant: int, ramp: int) -> None:
    plain = growth(points, STEP_S)
    raised = growth([point + constant + ramp * place for place, point in enumerate(points)], STEP_S)
    for name in ("per_s", "least_per_s", "late_per_s"):
        assert getattr(raised, name) == pytest.approx(getattr(plain, name) + ramp / STEP_S, abs=1e-6)


@settings(deadline=None)
@given(POINTS)
def test_it_is_as_long_as_it_is_wide(points: list[int]) -> None:
    found = growth(points, STEP_S)
    assert found.least_per_s <= found.per_s
    assert growth([-point for point in points], STEP_S).per_s == pytest.approx(-found.per_s, abs=1e-6)
    assert growth(points, 2 * STEP_S).per_s == pytest.approx(found.per_s / 2, abs=1e-6)


# A DUT behind a ring: a fluid model.


def under_way(load: float, capacity: Sequence[float] | float, duration_s: float, ring: int = 16_384) -> list[int]:
    """Packets in a ring at each point: `capacity` per second in each step."""
    steps = round(duration_s / STEP_S)
    rates = [capacity] * steps if isinstance(capacity, int | float) else capacity
    held, points = 0.0, []
    for rate in rates:
        held = min(float(ring), max(0.0, held + (load - rate) * STEP_S))
        points.append(round(held))
    return points


def packets(load: float, points: list[int], duration_s: float) -> Observation:
    """A lossless trial of packets with these points."""
    trial = made_up_packets(load=load, duration=duration_s)
    return Observation(trial.model_copy(update={"timeline_step_s": STEP_S, "timeline_active": points}), LIMITS)


def connections(load: float, points: list[int], duration_s: float) -> Observation:
    """A lossless trial of connections with these points."""
    trial = made_up_trial(load=load, duration=duration_s)
    return Observation(trial.model_copy(update={"timeline_step_s": STEP_S, "timeline_active": points}), LIMITS)


@pytest.mark.parametrize("duration_s", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("load", [100_000.0, 400_000.0])
def test_a_dut_too_slow_by_2_percent_behind_a_ring_of_16384_frames_is_not_good(load: float, duration_s: float) -> None:
    """Without the rule it loses nothing: the ring holds all of what it is behind by."""
    points = under_way(load, 0.98 * load, duration_s)
    assert max(points) < 16_384
    seen = packets(load, points, duration_s)
    assert (seen.trial.loss_ratio, seen.state) == (0, "bad")
    assert seen.reason == "the DUT fell behind by 2.0 %"


def test_a_dut_that_is_as_fast_as_the_load_is_good() -> None:
    seen = packets(400_000, under_way(400_000, 400_000, 1.0), 1.0)
    assert (seen.state, seen.falls_behind) == ("good", 0)


def test_a_share_of_half_a_percent_is_the_limit_where_losses_may_be_fewer() -> None:
    assert packets(400_000, under_way(400_000, 400_000 * 0.9951, 1.0), 1.0).good
    assert not packets(400_000, under_way(400_000, 400_000 * 0.9945, 1.0), 1.0).good


def test_a_wider_limit_on_losses_is_one_on_the_backlog_as_well() -> None:
    seen = packets(400_000, under_way(400_000, 400_000 * 0.98, 1.0), 1.0)
    assert Observation(seen.trial, {"loss_ratio": 0.03}).good
    assert Observation(seen.trial, {"packet_loss_ratio": 0.01}).state == "bad"


def test_in_a_closed_loop_nothing_falls_behind() -> None:
    seen = packets(400_000, under_way(400_000, 380_000, 0.5), 0.5)
    assert not seen.good
    assert Observation(seen.trial.model_copy(update={"under_way": 2048}), LIMITS).good


def test_an_idle_trial_does_not_fall_behind() -> None:
    trial = packets(400_000, under_way(400_000, 380_000, 0.5), 0.5).trial
    assert Observation(trial.model_copy(update={"load": 0.0}), LIMITS).falls_behind == 0


def noisy(seed: int, load: float, share: float, duration_s: float, noise: float) -> Observation:
    """A trial in which a DUT of `load` / `share` packets per second changes its speed from step to step; its ring never
    is full, so that nothing but the backlog can tell."""
    chance = random.Random(seed)
    capacity = [load / share * chance.gauss(1, noise) for _ in range(round(duration_s / STEP_S))]
    return packets(load, under_way(load, capacity, duration_s, ring=10**9), duration_s)


@pytest.mark.parametrize("duration_s", [0.5, 1.0, 2.0])
def test_at_80_percent_of_a_noisy_dut_nothing_falls_behind(duration_s: float) -> None:
    """10 % of noise within a trial."""
    assert sum(not noisy(seed, 400_000, 0.8, duration_s, 0.1).good for seed in range(200)) == 0


@pytest.mark.parametrize(("duration_s", "least"), [(0.5, 0.9), (1.0, 0.95), (2.0, 0.97)])
def test_at_105_percent_of_a_noisy_dut_it_falls_behind(duration_s: float, least: float) -> None:
    """What is detectable: 5 % too slow with 5 % of noise from step to step, in 95 of 100 trials of 1 s."""
    found = sum(bool(noisy(seed, 400_000, 1.05, duration_s, 0.05).falls_behind) for seed in range(200))
    assert found / 200 >= least


def poisson(seed: int, mean: float, count: int) -> list[int]:
    """Connections open at random: a sum of many that come and go independently."""
    chance = random.Random(seed)
    return [max(0, round(chance.gauss(mean, mean**0.5))) for _ in range(count)]


@pytest.mark.parametrize(("load", "mean", "duration_s"), [(2_000, 50, 1.0), (100_000, 100, 1.0), (8_000, 16_000, 2.0)])
def test_the_fluctuation_of_open_connections_is_no_backlog(load: float, mean: float, duration_s: float) -> None:
    """Each trial may be called so by chance alone once in a hundred; the second half has to agree besides."""
    trials = [connections(load, poisson(seed, mean, round(duration_s / STEP_S)), duration_s) for seed in range(500)]
    assert sum(bool(seen.falls_behind) for seen in trials) <= 5


def test_a_long_lived_profile_at_the_end_of_its_ramp_is_not_behind() -> None:
    """The population grows until the first connections end, here for the first 0.5 s of the sustain phase."""
    load, steady = 8_000, 16_000
    points = [min(steady, round(steady - load * (0.5 - STEP_S * (place + 1)))) for place in range(40)]
    assert points[0] < steady
    assert connections(load, points, 2.0).good


def test_what_grew_and_went_away_again_is_no_backlog() -> None:
    capacity = [400_000.0] * 2 + [320_000.0] * 3 + [480_000.0] * 5
    assert packets(400_000, under_way(400_000, capacity, 0.5), 0.5).good


# The two records of a run in which such trials counted as good.


def test_the_trial_of_9018_bytes_in_which_15_percent_came_too_late_is_bad() -> None:
    """74 848 of 88 238 packets arrived in its 0.5 s, all of them later, with a latency of 66 ms at the median."""
    load, arrived, sent = 176_476.0, 74_848, 88_238
    points = [round((sent - arrived) * (place + 1) / 10) for place in range(10)]
    seen = packets(load, points, 0.5)
    late = seen.trial.model_copy(update={"rx_packets": {"client": 0, "server": arrived}})
    seen = Observation(late, LIMITS)
    assert (seen.state, seen.reason) == ("bad", "the DUT fell behind by 15.2 %")
    assert seen.values["pps"] == seen.rate == pytest.approx(arrived / 0.5)


def test_the_trial_of_8_queues_in_which_3000_more_were_open_at_its_end_is_bad() -> None:
    """16 126 open at its beginning and 19 093 at its end, 849 k of 990 k packets per second, nothing lost."""
    chance = random.Random(1)
    points = [round(16_126 + (19_093 - 16_126) * place / 39 + chance.gauss(0, 100)) for place in range(40)]
    seen = connections(7_945.0, points, 2.0)
    assert (seen.trial.loss_ratio, seen.state) == (0, "bad")
    assert seen.falls_behind == pytest.approx(0.187, abs=0.02)

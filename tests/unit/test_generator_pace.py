"""Whether the generator kept its pace, how it catches up, what it may be blamed for, and what ends early."""

import ctypes
from unittest.mock import patch

import pytest
from kernel_parts import kernel_parts
from wire import AT_ONCE, LATEST_S, Wire, deaf, over_a_cable, watching

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, load_profile
from ctgen import clock, engine, plan
from ctgen.engine import Run, disturbed_by, limited_by

from .simulated import made_up_packets

pytestmark = pytest.mark.usefixtures("compiled_generator")

RING = 16_384
CONNECTIONS = ConnectionProfile(name="short", client_ips=10, server_ips=5)
PACKETS = PacketProfile(name="stream", kind="packets", client_ips=10, server_ips=5)
SECONDS = 5.0
PAUSED = "the generator paused for 5.0 ms: 5000 packets came late and fast, the DUT's rings hold 16384"
FULL = "50 frames came back and found the generator's own receive rings full"


def paced(late: int = 0, late_max_ms: float = 0.0, *, of: int = 100_000, lost: int = 0, **changes: object) -> Trial:
    """A trial of so many packets in half a second, of which so many of 100 000 were late."""
    trial = made_up_packets(load=of / 0.5, duration=0.5)
    known = {"late_ratio": late / 100_000, "late_max_ms": late_max_ms, "completed": of - lost}
    return trial.model_copy(update=known | changes)


@pytest.mark.parametrize(
    ("late", "late_max_ms", "limited"),
    [
        *((0, 11.0, False), (2_001, 11.0, False), (20_000, 11.0, False), (20_001, 11.0, True)),  # a fifth
        *((60_000, 4.0, False), (60_000, 10.0, False), (60_000, 10.1, True)),  # and a fiftieth of the trial
    ],
)
def test_late_is_no_limit_as_long_as_it_is_little_or_few(late: int, late_max_ms: float, limited: bool) -> None:
    assert bool(limited_by(paced(late, late_max_ms))) is limited


def test_what_was_never_begun_limits_a_trial() -> None:
    assert limited_by(paced(attempted=99_981)) == ""
    assert limited_by(paced(attempted=99_979, late_max_ms=60.0)) == (
        "99979 of 100000 packets were begun in time (up to 60.0 ms late)"
    )


def test_a_late_look_counts_for_those_that_were_left_out() -> None:
    due = ctypes.c_int64(100)
    found = [kernel_parts().looks_due(ctypes.byref(due), now, 10) for now in (99, 100, 105, 110, 165, 170, 175)]
    assert found == [0, 1, 0, 1, 5, 0, 1]
    assert due.value == 185


@pytest.mark.parametrize(
    ("trial", "per_s", "dropped", "ring", "said"),
    [
        # 5 ms at 1 M packets/s are 5000, a quarter of the ring is 4096.
        (paced(3_000, 5.0, lost=545), 1e6, 0, RING, PAUSED),
        (paced(3_000, 4.0, lost=545), 1e6, 0, RING, ""),
        (paced(3_000, 5.0, lost=0), 1e6, 0, RING, PAUSED),
        (paced(lost=0), 1e6, 0, RING, ""),
        # 3000 late are 273 that pauses held back; 11 % of loss is not of 4 ms.
        (paced(3_000, 5.0, lost=546), 1e6, 0, RING, ""),
        (paced(38_000, 4.1, of=66_000, lost=7_500), 4e5, 0, 4_096, ""),
        # What it had no room for, of either end.
        (paced(lost=60), 1e6, 50, RING, FULL),
        (paced(lost=101), 1e6, 50, RING, ""),
    ],
)
def test_a_pause_or_its_own_full_ring_is_the_cause_of_as_much_as_it_can_explain(
    trial: Trial, per_s: float, dropped: int, ring: int, said: str
) -> None:
    sent = trial.model_copy(update={"tx_packets": {"client": round(per_s / 2), "server": 0}})
    assert disturbed_by(sent, dropped, ring) == said


def test_a_pause_voids_no_trial_over_a_cable_where_it_is_a_part_of_what_is_measured() -> None:
    with patch.object(engine, "disturbed_by", lambda *_: PAUSED), Wire(lambda frame, _side: [frame]) as wire:
        assert over_a_cable(PACKETS, Rate(1000), 0.1).generator_disturbed == ""
        assert wire.generator.run_trial(PACKETS, Rate(1000), 0.1).generator_disturbed == PAUSED


def offered(interval: float, slack: float, pauses: list[tuple[float, float]], until: float) -> list[float]:
    """When packets go out that are due every `interval`, as the kernel functions do it; no look at the clock happens
    within a pause."""
    due = not_before = now = 0.0
    times = []
    while now < until:
        while due <= now and not_before <= now:
            times.append(now)
            due += interval
            not_before = kernel_parts().next_allowed(not_before, now, slack, interval)
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
    # Many short ones cost no rate: a loop that takes 30 us each time is no pause.
    pauses = [(place * 40.0, place * 40.0 + 30) for place in range(1, 1_000)]
    assert len(offered(1.0, 100.0, pauses, 40_000)) == pytest.approx(40_000, abs=60)


def test_as_many_are_open_as_the_profile_says_and_as_many_begin_as_end() -> None:
    shape = {"messages": 19, "short_percent": 75.0, "short_messages": 3, "open_at_once": 300}
    mixed = CONNECTIONS.model_copy(update=shape).at_rate(400.0)
    with patch.multiple(clock, SLACK_S=1.0, LATEST_S=LATEST_S):  # what a pause holds back begins after it, all at once
        trial = over_a_cable(mixed, Rate(400), 1.0)
    # In a pause servers wait longer.
    assert trial.active_mean == pytest.approx(300, rel=0.1)
    assert trial.timeline_active[-1] == pytest.approx(trial.timeline_active[0], rel=0.2)
    assert trial.attempted - trial.completed < 0.02 * trial.attempted


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_what_a_ramp_up_owes_is_sent_before_anything_counts(profile: Profile) -> None:
    """A debt of 0.1 s, as after a pause, of which a ramp-up of 0.5 s at a tenth above the rate makes up half."""
    pace, runs = engine._pace, list[Run]()

    def owing(p: ctypes.Structure, *of: float) -> None:
        pace(p, *of)  # type: ignore[arg-type]
        p.first -= 0.1 * clock.cycles_per_second()

    ramp = {"RAMP_S": -1.0, "SETTLE_S": 1.5, "STREAM_RAMP_S": -1.0, "STREAM_SETTLE_S": 1.5}
    with patch.dict(AT_ONCE, ramp), patch.object(engine, "_pace", owing), watching(runs.append):
        trial = over_a_cable(profile, Rate(20_000), 0.1)
    assert trial.ramp_up_s > 0.51
    assert runs[0].marks[0].all_completed > 11_500  # of 0.6 s; in 0.5 s it may begin 11 000


def test_a_load_beyond_the_generators_means_begins_all_the_same_and_is_said_to_be_late() -> None:
    trial = over_a_cable(PACKETS, Rate(1e9), 0.1)
    assert trial.late_max_ms >= 100.0  # of a trial as long
    assert trial.generator_limited.startswith(f"0 of {trial.intended} packets were begun in time")


# A trial that is lost ends early, and counts what was due until then.


def test_without_a_limit_on_losses_a_trial_goes_to_its_end() -> None:
    assert [plan.most_lost_of(load) for load in (Rate(5), Rate(5, 0.2), Rate(5, 7.9), Saturation(5))] == [0, 1, 7, 0]


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_a_trial_of_a_dut_that_takes_nothing_ends_early_where_it_may_not_lose_that_much(profile: Profile) -> None:
    """Its ring is full before the sustain phase begins: all that comes then is missed."""
    with Wire(deaf) as wire:
        trial = wire.generator.run_trial(profile, Rate(20_000, most_lost=500), SECONDS)
        whole = wire.generator.run_trial(profile, Rate(5_000, most_lost=100_000), 0.4)
    assert clock.EARLIEST_S <= trial.ended_after_s + 1e-6 < SECONDS  # a rounded reading of the clock
    assert (trial.duration_s, trial.loss_ratio) == (SECONDS, 1.0)
    assert 0 < trial.attempted == trial.intended <= 20_000 * trial.ended_after_s + 1
    assert (whole.ended_after_s, whole.loss_ratio) == (None, 1.0)  # it may lose that much


def test_connections_of_a_warm_start_that_had_no_time_to_fail_are_lost_where_a_trial_ends_early() -> None:
    with patch.object(plan, "REPLY_TIMEOUT_S", 5.0), Wire(deaf) as wire:  # however late this machine begins them
        trial = wire.generator.run_trial(load_profile("long-lived-short"), Rate(20_000, most_lost=500), SECONDS)
    assert trial.ended_after_s is not None and not trial.failed
    assert trial.intended - trial.completed > 500

"""What a trial is called where something was late, was lost in either unit, or ended it early, and where the DUT fell
behind."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ctbench.base.yaml_files import load as load_file
from ctbench.dut.base import DutCounts, Problem
from ctbench.dut.ovs.health import drop_problems
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import (
    Conditions,
    Observation,
)
from ctbench.results.statistics import few, within
from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import PacketProfile

from .simulated import (
    LIMITS,
    made_up_floor,
    made_up_packets,
    made_up_trial,
)

LIMIT = 0.0002


@pytest.mark.parametrize(
    ("of", "allowed"),
    [(99, 0), (100, 1), (500, 1), (1_000, 1), (1_100, 2), (4_336, 3), (10_000, 5), (20_000, 9), (24_999, 10)],
)
def test_of_few_as_many_may_be_lost_as_chance_explains(of: int, allowed: int) -> None:
    """0.02 % of a trial with 4336 long-lived connections is 0.87 of one."""
    assert few(LIMIT, of) == allowed
    assert within(allowed, of, LIMIT)
    assert not within(allowed + 1, of, LIMIT)


@pytest.mark.parametrize(("lost", "of"), [(0, 0), (1, 0), (1, 1), (1, 2), (2, 100)])
def test_all_or_much_of_next_to_nothing_is_lost(lost: int, of: int) -> None:
    assert not within(lost, of, LIMIT)


IN_PACKETS: Conditions = {"packet_loss_ratio": 0.0002}
PAUSED = "the generator paused for 9.0 ms: 9000 packets came late and fast, the DUT's rings hold 16384"


def seen(
    trial: Trial, conditions: Conditions = LIMITS, problems: tuple[Problem, ...] = (), **changes: Any
) -> Observation:
    """An observation of a trial of which something is changed."""
    return Observation(Trial.model_validate(trial.model_dump() | changes), conditions, problems)


# What is a rate.


@pytest.mark.parametrize(
    ("completed", "changes", "rate"),
    [
        ([4_800, 4_700], {}, 9_500),
        ([5_200, 5_300], {}, 10_000),  # no more than what began in it
        ([5_200, 5_300], {"under_way": 512}, 10_500),  # but in a closed loop
        # Datagrams, of whose fragments three times as many packets came.
        ([], {"unit": "packets", "fragments": 3, "rx_packets": {"client": 0, "server": 28_500}}, 9_500),
    ],
)
def test_the_rate_is_what_ended_in_the_sustain_phase(completed: list[int], changes: dict[str, int], rate: int) -> None:
    late = seen(made_up_trial(load=10_000, duration=1.0), timeline_step_s=0.5, timeline_completed=completed, **changes)
    assert (late.trial.rate, late.trial.forwarded_rate) == (10_000, rate)
    assert late.rate == min(rate, 10_000)


# Late, and lost.

#: Packets that the client sent of made_up_packets(loss=0.01), and those of them that came.
SENT, CAME = 200_000, 198_000


def rival(share: float) -> Problem:
    return Problem("disturbed", f"Other processes took {share:.1%} of a PMD CPU of the DUT.", cpu_taken=share)


def rings_full(lost: int) -> Problem:
    return drop_problems({"client.ovs_tx_failure_drops": lost}, "memif")[0]


def strictly(trial: Observation) -> Observation:
    """At a floor: in a search one that held all the same counts, for what is late comes faster, and is harder."""
    return replace(trial, strict=True)


def paused(loss: float) -> Observation:
    return seen(made_up_packets(loss=loss), late_max_ms=9.0, late_ratio=0.12, generator_disturbed=PAUSED)


def one_way(back: int, share: float) -> Observation:
    """Of 832 packets to the server and 832 back, so many reach the client."""
    ways = {"total_tx_packets": {"client": 832, "server": 832}, "total_rx_packets": {"client": back, "server": 832}}
    return seen(made_up_trial(loss=1.0), problems=(rival(share),), **ways)


def of_link(trial: Trial, waiting: float = 0.1) -> Observation:
    """Whose link's thread waited for its CPU."""
    link = {"busy_cpus": 0.9, "packets": 1000, "refused": 0, "ns_per_packet": 900.0, "waiting": waiting}
    return seen(trial, link=link)


def compared(
    sent: int = SENT, received: int = SENT, dropped: int = 0, problems: tuple[Problem, ...] = (), **changes: Any
) -> Observation:
    """A trial of packets from the client that lost 1 %, and what the DUT counted of it."""
    counts = DutCounts({"client": received, "server": 0}, {"client": 0, "server": sent}, dropped)
    return replace(seen(made_up_packets(loss=0.01), problems=problems, **changes), counts=counts)


ALL = rings_full(100_000)
GROWING = {"timeline_step_s": 0.05, "timeline_active": [900 * place for place in range(10)]}
#: By share of a PMD CPU that others took, the loss that this explains: three times as much, and some more.
EXPLAINED = {0.011: 0.043, 0.02: 0.07, 0.25: 0.76}
NOT_TAKEN = f"the DUT sent {SENT} frames to the generator's server port, it took {CAME}"
NOT_RECEIVED = f"the generator sent {SENT} frames to the DUT's client port, it received {CAME}"
SHORT = made_up_trial(load=10_000, duration=10.0, attempted=99_900)
NOTHING_CAME = {"total_tx_packets": {"client": 10**6, "server": 0}, "total_rx_packets": {"client": 0, "server": 0}}
PACKETS_LOST = "of the packets were lost"

#: What was seen, what it is called, and words of the reason.
STATES: dict[str, tuple[Observation, str, str]] = {
    "late, and nothing lost": (seen(made_up_packets(), late_max_ms=9.0), "good", ""),
    "late, and some lost": (seen(made_up_packets(loss=0.01), late_max_ms=9.0), "bad", PACKETS_LOST),
    "a pause, and nothing lost": (paused(0.0), "good", ""),
    "a pause, and some lost": (paused(0.01), "invalid", PAUSED),
    **{f"a pause at a floor, {loss:%} lost": (strictly(paused(loss)), "invalid", PAUSED) for loss in (0.0, 0.01)},
    # What OVS lost at the generator's full ring is not the DUT's, whatever else had its CPU; the rest is.
    "a full ring": (seen(made_up_packets(loss=0.5), problems=(ALL,)), "invalid", ALL.text),
    "a full ring at a floor": (strictly(seen(made_up_trial(), problems=(ALL,))), "invalid", ALL.text),
    "a full ring, and a rival": (
        seen(made_up_packets(loss=0.5), problems=(rival(0.02), ALL)), "invalid", ALL.text),
    "a full ring for one packet": (seen(made_up_packets(loss=0.5), problems=(rings_full(1),)), "bad", PACKETS_LOST),
    # Others on the DUT's CPU explain three times the loss of their share only.
    **{f"{share:.1%} to a rival, {loss:.1%} lost": (
        strictly(seen(made_up_packets(loss=loss), problems=(rival(share),))), "invalid", rival(share).text)
       for share, most in EXPLAINED.items() for loss in (0.0, most - 0.001)},
    **{f"{share:.1%} to a rival, more lost": (
        seen(made_up_packets(loss=most + 0.001), problems=(rival(share),)), "bad",
        "of the packets were lost (limit 0.020 %)") for share, most in EXPLAINED.items()},
    # What is counted is packets, of whatever profile: of a connection, seven in a row can be lost at once.
    **{f"{share:.1%} to a rival, nine of ten connections lost": (
        seen(made_up_trial(loss=0.9), problems=(rival(share),),
             total_tx_packets={"client": 300_000, "server": 400_000},
             total_rx_packets={"client": 400_000, "server": round(300_000 * (1 - most))}), "invalid", "")
       for share, most in EXPLAINED.items()},
    # A backlog, and links.
    "a rival, and a backlog": (seen(made_up_packets(), problems=(rival(0.012),), **GROWING), "invalid", ""),
    "a rival, and a larger backlog": (
        seen(made_up_packets(), problems=(rival(0.011),), **GROWING | {"load": 350_000}), "bad", "fell behind"),
    "a rival of a link": (of_link(made_up_packets(loss=0.3)), "invalid", ""),
    "a rival of a link, more lost": (of_link(made_up_packets(loss=0.32)), "bad", PACKETS_LOST),
    "a rival of a link, connections lost": (
        of_link(made_up_trial(loss=0.1)), "invalid",
        "other processes took 10.0 % of a CPU that hands frames to the DUT"),
    "hardly a rival of a link": (of_link(made_up_trial(loss=0.1), waiting=0.04), "bad", "connections were lost"),
    "a rival of a link, nothing lost": (of_link(made_up_trial()), "good", ""),
    # That nothing comes back, they explain only where they had nearly all of the CPU.
    "half to a rival, nothing back": (one_way(0, 0.5), "bad", ""),
    "nearly all to a rival, nothing back": (one_way(0, 0.95), "invalid", ""),
    "half to a rival, one back": (one_way(1, 0.5), "invalid", ""),
    # What was never begun.
    **{f"never begun, {next(iter(limits))}": (
        seen(SHORT, limits, completed=99_900), "invalid", "the generator began only 10.0 k/s of 10.0 k/s")
       for limits in (LIMITS, IN_PACKETS)},
    # Whose loss it is, by the counters of both sides.
    "sent by the DUT and not taken": (compared(), "invalid", NOT_TAKEN),
    "and why": (
        compared(generator_limited="TRex: its card threw frames away"), "invalid",
        f"{NOT_TAKEN}: TRex: its card threw frames away"),
    "sent to the DUT and not received": (compared(sent=CAME, received=CAME), "invalid", NOT_RECEIVED),
    "both": (compared(sent=CAME + 1_000, received=CAME + 1_000), "invalid", ", and the generator sent"),
    # What the DUT lost itself, whatever the other side lost besides.
    "it received all, and sent less": (compared(sent=CAME), "bad", PACKETS_LOST),
    "its receive ring was full": (compared(sent=CAME, received=CAME, dropped=SENT - CAME), "bad", PACKETS_LOST),
    "half of it": (compared(sent=CAME + 1_000), "bad", PACKETS_LOST),
    "sent when the generator had gone": (compared(total_untaken=SENT - CAME), "bad", PACKETS_LOST),
    "half-open connections, of which neither tells": (compared(half_open={"sent": 5}), "bad", PACKETS_LOST),
    "a DUT that stood still": (
        compared(problems=(Problem("stalled", "It stood still for 0.3 s.", code="stood-still"),)), "bad",
        PACKETS_LOST),
    "no counters": (replace(compared(), counts=None), "bad", PACKETS_LOST),
    "counters of nothing": (replace(compared(), counts=DutCounts({}, {})), "bad", PACKETS_LOST),
    # A loss on the way voids no trial that is good, and none that is bad for another reason.
    "few lost on the way": (
        compared(completed=SENT - 40, total_rx_packets={"client": 0, "server": SENT - 40}), "good", ""),
    "slow, and some lost on the way": (
        replace(compared(), conditions=LIMITS | {"latency_p99": 1e-6}), "bad", "latency"),
    "a server port that is not polled": (
        replace(seen(made_up_trial(loss=1.0, p99_us=None), LIMITS | {"connect_time_p99": 1.0}, **NOTHING_CAME),
                counts=DutCounts({"client": 10**6, "server": 0}, {"client": 0, "server": 10**6})),
        "invalid", "the DUT sent 1000000 frames to the generator's server port, it took 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", STATES)
def test_a_trial_is_called_by_what_was_seen(case: str) -> None:
    trial, state, reason = STATES[case]
    assert trial.state == state, trial.reason
    assert reason in trial.reason


def test_a_trial_that_was_ended_counts_until_then() -> None:
    ended = seen(made_up_trial(load=10_000, duration=0.2, loss=0.5), duration_s=2.0, ended_after_s=0.2)
    assert (ended.trial.intended, ended.trial.counted_s, ended.trial.duration_s) == (2_000, 0.2, 2.0)
    assert (ended.trial.rate, ended.trial.pps) == (5_000, 35_000)
    assert ended.reason == (
        "50.0 % of the connections were lost, mostly no syn ack when it was ended after 0.20 s (limit 0.020 %)"
    )


@pytest.mark.parametrize("name", ["loss_ratio", "packet_loss_ratio"])
@pytest.mark.parametrize(
    ("never", "lost", "state"), [(1, 0, "good"), (1_999, 0, "good"), (2_001, 0, "invalid"), (1, 1, "bad")]
)
def test_where_nothing_may_be_lost_what_was_never_sent_is_not(name: str, never: int, lost: int, state: str) -> None:
    """RFC 2544: two minutes of 83 333 packets per second, of which a generator may leave out 0.02 %."""
    sent, offered = 10_000_000 - never, made_up_packets(load=10_000_000 / 120, duration=120.0)
    trial = seen(offered, {name: 0.0}, intended=10_000_000, attempted=sent, completed=sent - lost)
    assert (trial.state, trial.values[name]) == (state, lost / sent)


# Lost in connections, and in packets.


def test_connections_lose_packets_of_either_end_and_one_that_came_twice_is_no_negative_loss() -> None:
    packets = {
        "total_tx_packets": {"client": 300_000, "server": 399_000},
        "total_rx_packets": {"client": 398_900, "server": 299_800},
    }
    made = made_up_trial(load=10_000, duration=10.0)
    trial = seen(made, **packets, total_dut_missed=1_000, unexpected={"foreign": 20})
    assert (trial.trial.packets_sent, trial.trial.packets_lost) == (700_000, 1_000 + 300 + 20)
    assert trial.values["packet_loss_ratio"] == pytest.approx(1_320 / 700_000)
    assert trial.values["loss_ratio"] == 0
    twice = seen(made_up_trial(), total_rx_packets={"client": 10**7, "server": 10**7})
    assert twice.values["packet_loss_ratio"] == 0
    values = seen(made_up_packets(loss=0.01)).values
    assert values["loss_ratio"] == values["packet_loss_ratio"] == pytest.approx(0.01)


def test_a_campaign_says_what_is_counted_and_a_floors_own_limit_is_counted_so() -> None:
    published, quick = (load_file("campaigns", name, Campaign) for name in ("published", "quick"))
    assert published.loss_limit == {"packet_loss_ratio": 0.0002}
    assert quick.loss_limit == {"loss_ratio": 0.0002}
    floor = made_up_floor()
    assert floor.conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.0002}
    in_packets = floor.counted_in("packets")
    assert in_packets.conditions({"packet_loss_ratio": 0.5}) == {"packet_loss_ratio": 0.0002}
    assert in_packets.thresholds["packet_loss_ratio"].metric == "packet_loss_ratio"
    assert floor.counted_in("connections") is floor
    # A stricter limit of the campaign holds in the place of one that the file has for every floor, and of no other.
    of_all = replace(floor, of_all=frozenset(["loss_ratio"]))
    assert of_all.counted_in("connections", 0.01) is of_all and floor.counted_in("connections", 0.0) is floor
    assert of_all.counted_in("packets", 0.0).conditions({}) == {"packet_loss_ratio": 0.0}
    packets = replace(floor, profile=PacketProfile(name="udp", kind="packets"))
    assert packets.counted_in("packets") is packets


STEP_S = 0.05


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


def packets(
    load: float, points: list[int], duration_s: float, made: Callable[..., Trial] = made_up_packets
) -> Observation:
    """A lossless trial of packets with these points."""
    return seen(made(load=load, duration=duration_s), timeline_step_s=STEP_S, timeline_active=points)


connections = partial(packets, made=made_up_trial)


@pytest.mark.parametrize("duration_s", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("load", [100_000.0, 400_000.0])
def test_a_dut_too_slow_by_2_percent_behind_a_ring_of_16384_frames_is_not_good(load: float, duration_s: float) -> None:
    """Without the rule it loses nothing: the ring holds all of what it is behind by."""
    points = under_way(load, 0.98 * load, duration_s)
    assert max(points) < 16_384
    seen = packets(load, points, duration_s)
    assert (seen.trial.loss_ratio, seen.state) == (0, "bad")
    assert seen.reason == "the DUT fell behind by 2.0 %"


def test_in_a_closed_loop_and_without_a_load_nothing_falls_behind() -> None:
    behind = packets(400_000, under_way(400_000, 380_000, 0.5), 0.5)
    assert not behind.good
    assert Observation(behind.trial.model_copy(update={"under_way": 2048}), LIMITS).good
    assert Observation(behind.trial.model_copy(update={"load": 0.0}), LIMITS).falls_behind == 0


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


def test_what_grew_and_went_away_or_grows_in_a_ramp_is_no_backlog() -> None:
    """The population grows until the first connections end, here for the first 0.5 s of the sustain phase."""
    load, steady = 8_000, 16_000
    points = [min(steady, round(steady - load * (0.5 - STEP_S * (place + 1)))) for place in range(40)]
    assert points[0] < steady
    assert connections(load, points, 2.0).good
    capacity = [400_000.0] * 2 + [320_000.0] * 3 + [480_000.0] * 5
    assert packets(400_000, under_way(400_000, capacity, 0.5), 0.5).good


# The two records of a run in which such trials counted as good.

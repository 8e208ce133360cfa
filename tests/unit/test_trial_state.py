"""What a trial is called where something was late, was lost in either unit, or ended it early."""

import math
from dataclasses import replace
from typing import Any

import pytest

from ctbench.base.yaml_files import load as load_file
from ctbench.dut.base import Problem
from ctbench.dut.ovs.health import drop_problems
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.trial import TrialRunner
from ctbench.results.metrics import METRICS
from ctbench.results.thrown_away import note, thrown_away
from ctbench.sla.verdict import judge
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

from .simulated import LIMITS, found, judged, made_up_floor, made_up_packets, made_up_record, made_up_trial, outcome_of

pytestmark = pytest.mark.unit

IN_PACKETS: Conditions = {"packet_loss_ratio": 0.0002}
PAUSED = "the generator paused for 9.0 ms: 9000 packets came late and fast, the DUT's rings hold 16384"


def seen(
    trial: Trial, conditions: Conditions = LIMITS, problems: tuple[Problem, ...] = (), **changes: Any
) -> Observation:
    """An observation of a trial of which something is changed."""
    return Observation(Trial.model_validate(trial.model_dump() | changes), conditions, problems)


# What is a rate.


def test_the_rate_of_packets_is_what_came_in_the_sustain_phase() -> None:
    late = seen(made_up_packets(load=100_000, duration=1.0), rx_packets={"client": 0, "server": 97_000})
    assert (late.trial.rate, late.values["pps"], late.rate) == (100_000, 97_000, 97_000)


def test_the_rate_of_connections_is_what_ended_in_the_sustain_phase() -> None:
    late = {"timeline_step_s": 0.5, "timeline_completed": [4_800, 4_700]}
    trial = seen(made_up_trial(load=10_000, duration=1.0), **late)
    assert (trial.trial.rate, trial.values["cps"], trial.rate) == (10_000, 9_500, 9_500)
    more = seen(made_up_trial(load=10_000, duration=1.0), **late | {"timeline_completed": [5_200, 5_300]})
    assert more.rate == 10_000


def test_a_closed_loop_has_a_rate_of_its_own() -> None:
    late = {"timeline_step_s": 0.5, "timeline_completed": [5_200, 5_300], "under_way": 512}
    assert seen(made_up_trial(load=10_000, duration=1.0), **late).trial.forwarded_rate == 10_500


# Late, and lost.


def test_a_late_trial_that_lost_nothing_is_good() -> None:
    late = seen(made_up_packets(), late_max_ms=9.0, late_ratio=0.12, generator_disturbed=PAUSED)
    assert (late.state, late.reason) == ("good", "")


def test_a_lossy_trial_of_a_generator_that_paused_is_invalid_with_the_cause() -> None:
    lossy = seen(made_up_packets(loss=0.01), late_max_ms=9.0, generator_disturbed=PAUSED)
    assert (lossy.state, lossy.reason) == ("invalid", PAUSED)
    assert seen(made_up_packets(loss=0.01), late_max_ms=9.0).state == "bad"


def test_a_dut_that_fell_behind_while_the_generator_paused_is_not_judged() -> None:
    growing = {"timeline_step_s": 0.05, "timeline_active": [900 * place for place in range(10)]}
    assert seen(made_up_packets(), **growing).state == "bad"
    assert seen(made_up_packets(), generator_disturbed=PAUSED, **growing).state == "invalid"


def test_what_ovs_lost_at_the_generators_full_ring_is_not_the_duts_loss() -> None:
    (full, other) = drop_problems({"client.ovs_tx_failure_drops": 12_265, "client.rx_missed": 3}, "memif")
    assert (full.severity, other.severity) == ("disturbed", "warning")
    said = "the generator's receive rings were full: OVS lost 12265 packets there (client.ovs_tx_failure_drops)."
    assert full.text == said
    assert seen(made_up_trial(loss=0.11), problems=(full,)).reason == said
    assert seen(made_up_trial(loss=0.11), problems=(full,)).state == "invalid"
    assert seen(made_up_trial(), problems=(full,)).state == "good"


def rival(share: float) -> Problem:
    return Problem("disturbed", f"Other processes took {share:.1%} of a PMD CPU of the DUT.", cpu_taken=share)


@pytest.mark.parametrize(("share", "most"), [(0.011, 0.043), (0.02, 0.07), (0.25, 0.76)])
def test_others_on_the_duts_cpu_explain_three_times_the_loss_of_their_share_and_no_more(
    share: float, most: float
) -> None:
    explained = seen(made_up_packets(loss=most - 0.001), problems=(rival(share),))
    assert (explained.state, explained.reason) == ("invalid", rival(share).text)
    beyond = seen(made_up_packets(loss=most + 0.001), problems=(rival(share),))
    assert beyond.state == "bad" and beyond.reason.endswith("of the packets were lost (limit 0.020 %)")
    # What is counted is packets, of whatever profile: of a connection, seven in a row can be lost at once.
    sent = {"client": 300_000, "server": 400_000}
    one_each = {
        "total_tx_packets": sent,
        "total_rx_packets": {"client": 400_000, "server": round(300_000 * (1 - most))},
    }
    assert seen(made_up_trial(loss=0.9), problems=(rival(share),), **one_each).state == "invalid"


def test_others_on_the_duts_cpu_explain_no_more_of_a_backlog_either() -> None:
    growing = {"timeline_step_s": 0.05, "timeline_active": [900 * place for place in range(10)]}
    behind = seen(made_up_packets(), **growing).falls_behind
    assert 0.04 < behind < 0.05
    assert seen(made_up_packets(), problems=(rival(0.012),), **growing).state == "invalid"
    assert seen(made_up_packets(), problems=(rival(0.011),), **growing | {"load": 350_000}).state == "bad"


def test_the_threads_of_links_explain_no_more_than_their_share_either() -> None:
    link = {"busy_cpus": 0.9, "packets": 1000, "refused": 0, "ns_per_packet": 900.0, "waiting": 0.1}
    assert seen(made_up_packets(loss=0.3), link=link).state == "invalid"
    assert seen(made_up_packets(loss=0.32), link=link).state == "bad"


def test_what_has_no_share_explains_any_loss_and_a_rival_beside_it_takes_nothing_away() -> None:
    (full,) = drop_problems({"client.ovs_tx_failure_drops": 12_265}, "memif")
    both = seen(made_up_packets(loss=0.5), problems=(rival(0.02), full))
    assert (both.state, both.reason) == ("invalid", full.text)


def test_at_a_network_card_a_full_ring_is_its_links() -> None:
    (full,) = drop_problems({"client.ovs_tx_failure_drops": 7}, "pci")
    assert (full.severity, full.text) == ("warning", "OVS lost 7 packets: client.ovs_tx_failure_drops.")


def test_what_was_never_begun_makes_a_trial_invalid_in_either_unit() -> None:
    short = made_up_trial(load=10_000, duration=10.0, attempted=99_900)
    for conditions in (LIMITS, IN_PACKETS):
        missing = seen(short, conditions, completed=99_900)
        assert (missing.state, missing.reason) == ("invalid", "the generator began only 10.0 k/s of 10.0 k/s")


# Lost in connections, and in packets.


def test_connections_lose_packets_of_those_that_either_end_sent() -> None:
    trial = seen(
        made_up_trial(load=10_000, duration=10.0),
        total_tx_packets={"client": 300_000, "server": 399_000},
        total_rx_packets={"client": 398_900, "server": 299_800},
        total_dut_missed=1_000,
        unexpected={"foreign": 20},
    )
    assert (trial.trial.packets_sent, trial.trial.packets_lost) == (700_000, 1_000 + 300 + 20)
    assert trial.values["packet_loss_ratio"] == pytest.approx(1_320 / 700_000)
    assert trial.values["loss_ratio"] == 0


def test_a_packet_that_came_twice_is_no_negative_loss() -> None:
    trial = seen(made_up_trial(), total_rx_packets={"client": 10**7, "server": 10**7})
    assert trial.values["packet_loss_ratio"] == 0


def test_of_a_packet_profile_both_are_the_same() -> None:
    values = seen(made_up_packets(loss=0.01)).values
    assert values["loss_ratio"] == values["packet_loss_ratio"] == pytest.approx(0.01)


def test_one_lost_packet_fails_a_connection_and_is_a_seventh_of_a_loss_in_packets() -> None:
    lost = made_up_trial(load=10_000, duration=10.0, loss=0.0005)
    sent = {"client": 300_000, "server": 400_000}
    totals = {"total_tx_packets": sent, "total_rx_packets": sent | {"server": 399_950}}
    assert seen(lost, LIMITS, **totals).reason == (
        "0.050 % of the connections were lost, mostly no syn ack (limit 0.020 %)"
    )
    assert seen(lost, IN_PACKETS, **totals).good
    totals = {"total_tx_packets": sent, "total_rx_packets": sent | {"server": 399_000}}
    assert seen(lost, IN_PACKETS, **totals).reason == "0.143 % of the packets were lost (limit 0.020 %)"


def test_a_campaign_says_what_is_counted() -> None:
    published, quick = (load_file("campaigns", name, Campaign) for name in ("published", "quick"))
    assert published.loss_limit == {"packet_loss_ratio": 0.0002}
    assert quick.loss_limit == {"loss_ratio": 0.0002}


def test_a_floors_own_limit_is_counted_as_the_campaign_does() -> None:
    floor = made_up_floor()
    assert floor.conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.0002}
    in_packets = floor.counted_in("packets")
    assert in_packets.conditions({"packet_loss_ratio": 0.5}) == {"packet_loss_ratio": 0.0002}
    assert in_packets.thresholds["packet_loss_ratio"].metric is METRICS["packet_loss_ratio"]
    assert floor.counted_in("connections") is floor
    packets = replace(floor, profile=PacketProfile(name="udp", kind="packets"))
    assert packets.counted_in("packets") is packets


# A few of not so many.


def test_one_connection_of_few_is_chance_for_the_trial_and_for_the_verdict() -> None:
    few = made_up_trial(load=50_000, duration=0.05, loss=0.0004)
    assert (few.intended, few.completed) == (2_500, 2_499)
    good = Observation(few, LIMITS)
    assert good.good
    result = replace(found(50_000), proof=good)
    verdict = judged(result, made_up_floor())
    assert verdict.word == "met"
    outcome = replace(outcome_of(result), held=False)
    assert judge(outcome, made_up_floor()).word == "missed"


# Ended early.


def test_a_trial_that_was_ended_counts_what_was_due_until_then() -> None:
    ended = seen(made_up_trial(load=10_000, duration=0.2, loss=0.5), duration_s=2.0, ended_after_s=0.2)
    assert (ended.trial.intended, ended.trial.counted_s, ended.trial.duration_s) == (2_000, 0.2, 2.0)
    assert (ended.trial.rate, ended.trial.pps) == (5_000, 35_000)
    assert ended.reason == (
        "50.0 % of the connections were lost, mostly no syn ack when it was ended after 0.20 s (limit 0.020 %)"
    )


class Asked:
    """A DUT and a generator that remember what load they were asked for."""

    def __init__(self) -> None:
        self.loads: list[Load] = []

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.loads.append(load)
        return made_up_trial(10_000, duration_s)

    def flush_state(self) -> None: ...
    def begin_trial(self) -> None: ...
    def health(self) -> list[Problem]:
        return []

    def trouble(self) -> str:
        return ""

    def cpu_use(self) -> None: ...


@pytest.mark.parametrize(
    ("profile", "conditions", "most"),
    [
        (ConnectionProfile(name="c"), LIMITS, 200.0),  # ten times 0.02 % of 100 000
        (ConnectionProfile(name="c"), {"loss_ratio": 0.0}, 10.0),
        (ConnectionProfile(name="c"), IN_PACKETS, math.inf),
        (PacketProfile(name="p", kind="packets"), IN_PACKETS, 200.0),
    ],
)
def test_the_generator_is_told_when_a_trial_is_lost(profile: Profile, conditions: Conditions, most: float) -> None:
    asked = Asked()
    TrialRunner(asked, asked, profile, conditions)(10_000, 10.0)
    assert asked.loads == [Rate(10_000, most)]


# Thrown away.


def test_the_record_says_how_many_trials_were_thrown_away() -> None:
    trials = made_up_record().evidence.trials
    assert (thrown_away(trials), note(trials)) == (0, "")
    spoilt = trials[0].model_copy(update={"state": "invalid", "reason": PAUSED})
    assert thrown_away([*trials, spoilt]) == 1
    assert note([*trials, spoilt]) == f"1 of 3 trials was thrown away: {PAUSED}."
    other = spoilt.model_copy(update={"reason": "It was late."})
    assert note([spoilt, *trials, other]) == f"2 of 4 trials were thrown away: {PAUSED}, and the like."
    assert note([other, other]) == "2 of 2 trials were thrown away: It was late."

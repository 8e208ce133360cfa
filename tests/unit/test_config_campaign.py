"""A campaign file: settings per profile, stand-ins, what is scaled or left out, and what is missing."""

from typing import Any

import pytest
from pydantic import ValidationError

from ctbench.base.errors import ConfigError, MissingResource, NightlyOnly
from ctbench.base.yaml_files import load
from ctbench.measure.campaign import Bisection, Campaign, SaturationSettings
from ctbench.sla.floor import packets_per_connection
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile
from ctbench.traffic.software import plan

from . import simulated

BISECTION = {"trial_duration": "1s", "max_iterations": 8, "relative_width": "5%", "final_duration": "2s"}
SHORT, SLOW = ConnectionProfile(name="short-lived"), ConnectionProfile(name="slow")
JUMBO, SMALL = (PacketProfile(name=name, kind="packets") for name in ("jumbo", "small"))

MLR = {"trial_duration": "2s", "final_duration": "5s", "relative_width": "1%"}


def campaign(**keys: Any) -> Campaign:
    loads = {"short-lived": {"min": "1k", "max": "100k"}, "slow": {"min": 5, "max": 50, "trial_duration": "9s"}}
    return simulated.campaign(**{"bisection": BISECTION, "ceiling": BISECTION, "loads": loads} | keys)


def test_a_profile_has_the_settings_of_the_campaign_and_its_own_on_top() -> None:
    assert campaign().search_for(SHORT).trial_duration == 1
    slow = campaign().search_for(SLOW)
    assert (slow.trial_duration, slow.final_duration, slow.relative_width) == (9, 2, 0.05)
    # A stand-in replaces its profile and no other.
    quick = campaign(profiles={"long-lived": "long-lived-short"})
    assert (quick.profile_for("long-lived"), quick.profile_for("short-lived")) == ("long-lived-short", "short-lived")


def test_a_profile_that_is_not_named_has_what_its_kind_has_or_is_named_with_the_key_to_add() -> None:
    loads = {"packets": {"min": "20k", "max": "3M", "trial_duration": "500ms"}, "jumbo": {"min": "5k", "max": "500k"}}
    ours = campaign(loads=loads)
    assert (ours.load_range(SMALL).max, ours.load_range(JUMBO).max) == (3_000_000, 500_000)
    assert (ours.search_for(SMALL).trial_duration, ours.search_for(JUMBO).trial_duration) == (0.5, 1)
    with pytest.raises(ConfigError, match=r"loads\.short-lived: is missing.*\n.*here or under connections"):
        ours.load_range(SHORT)
    with pytest.raises(ConfigError, match=r"(?s)campaign mine: loads\.short-live: is mis.*Did you mean .short-lived"):
        campaign().load_range(SHORT.model_copy(update={"name": "short-live"}))


def test_floors_are_tried_with_trials_as_long_as_the_final_ones_or_as_the_gate_says() -> None:
    loads = {"short-lived": {"min": "1k", "max": "100k", "final_duration": "3s"}}
    assert campaign(loads=loads).floor_trials(SHORT).trial_duration == 3
    assert campaign().floor_trials(SLOW).trial_duration == 9
    assert campaign(search="mlr", mlr=MLR, loads=loads).floor_trials(SHORT).trial_duration == 3
    assert campaign(search="saturation", loads=loads).floor_trials(SHORT).trial_duration == 3
    gate = campaign(search="gate", bisection=None, gate={"trial_duration": "7s", "headroom": "2%"})
    assert (gate.floor_trials(SHORT).trial_duration, gate.floor_trials(SHORT).headroom) == (7, 0.02)
    assert campaign().floor_trials(SHORT).headroom == 0.01


def test_below_the_saturation_rate_a_generator_without_a_closed_loop_bisects() -> None:
    loads = {"short-lived": {"min": "1k", "max": "100k", "final_duration": "3s", "trial_duration": "4s"}}
    ours = campaign(search="saturation", saturation={"trial_duration": "700ms"}, loads=loads)
    below, otherwise = ours.search_for(SHORT), ours.search_for(SHORT, closed_loop=False)
    assert isinstance(below, SaturationSettings) and isinstance(otherwise, Bisection)
    # How long its closed loop takes is no matter of the range.
    assert (below.trial_duration, below.final_duration, otherwise.trial_duration) == (0.7, 3, 4)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bisection": None}, "bisection: is missing"),
        (
            {"bisection": None, "search": "saturation"},
            "because search is saturation, for generators without a closed loop",
        ),
        ({"search": "gate"}, "gate: is missing"),
        ({"search": "gate", "gate": {"trial_duration": "5s", "headroom": "1%"}, "repetitions": 2}, "not for a gate"),
        ({"loads": {"a": {"min": "2k", "max": "1k"}}}, "min: 2000 is not below max: 1000"),
        ({"loads": {"a": {"min": 0, "max": "1k"}}}, "0 is not a valid load"),
        ({"bisection": BISECTION | {"trial_duration": "0s"}}, '"0s" is not a valid time for a trial'),
        ({"bisection": BISECTION | {"relative_width": "0%"}}, '"0%" is not a valid width'),
        ({"loss_ratio": 0.02}, "0.02 is not a percentage"),
        ({"max_spread": "10%"}, "max_spread: 10% is for several repetitions"),
        ({"search": "mlr"}, "mlr: is missing"),
        (
            {"search": "mlr", "mlr": MLR | {"final_duration": "1s"}},
            "trial_duration: 2 s is longer than final_duration: 1 s",
        ),
        ({"search": "mlr", "mlr": MLR}, "loads.slow.trial_duration: 9 s is longer than final_duration: 5 s"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        campaign(**keys)
    assert said in str(error.value)
    assert "Expected" in str(error.value)


def test_a_slow_generator_ends_the_ranges_of_its_kind_of_profile_and_opens_what_stays_as_fast_as_it_can() -> None:
    loads = {"connections": {"min": "1k", "max": "1M"}, "packets": {"min": "20k", "max": "3M"}}
    usual, slow = campaign(loads=loads), campaign(loads=loads, most={"connections": "500"})

    assert slow.load_range(SHORT).max == 500
    assert 0 < slow.load_range(SHORT).min < 500
    assert slow.load_range(SMALL) == usual.load_range(SMALL)
    assert campaign(loads=loads, most={"connections": "1G"}).load_range(SHORT) == usual.load_range(SHORT)
    slow = usual.limited_to({"connections": 500.0, "opened": 2000.0, "held": 70.0})
    assert slow.load_range(SHORT).max == 500
    assert slow.most == {"connections": 500.0}
    assert (usual.table.opened_per_s, slow.table.opened_per_s) == (100_000, 2000)
    assert usual.limited_to({"opened": 1e9}).table.opened_per_s == usual.table.opened_per_s


MOBILE = load_profile("mobile")


@pytest.mark.parametrize("tag", ["nightly", "long"])
def test_a_campaign_and_a_testbed_skip_tests_by_their_tags(tag: str) -> None:
    quick, local = load("campaigns", "quick", Campaign), load("testbeds", "local", TestbedConfig)
    quick.require_time_for(["1cpu", "extended"])
    local.require_wanted(["1cpu", tag])
    with pytest.raises(NightlyOnly, match=f"tagged {tag} "):
        quick.require_time_for(["1cpu", tag])
    with pytest.raises(MissingResource, match="tagged extended") as skipped:
        local.require_wanted(["1cpu", "extended"])
    assert not isinstance(skipped.value, NightlyOnly)
    load("campaigns", "characterise", Campaign).require_time_for([tag])


def test_mobile_traffic_has_19_packets_a_connection_of_600_bytes_and_a_million_open_at_any_rate() -> None:
    assert isinstance(MOBILE, ConnectionProfile)
    assert packets_per_connection(MOBILE) == pytest.approx(19)
    data, empty = 2 * MOBILE.mean_messages, packets_per_connection(MOBILE) - 2 * MOBILE.mean_messages
    assert (data * (733 + 58) + empty * 64) / (data + empty) == pytest.approx(600, rel=0.001)
    for rate in (100_000, 200_000):
        at_rate = MOBILE.at_rate(rate)
        assert rate * at_rate.mean_lifetime_s == pytest.approx(1_000_000)
        assert plan.population_of(at_rate, Rate(rate)) == 1_000_000
    assert MOBILE.at_rate(1.0).server_wait_ms == 10_000
    # A campaign scales what says how much is open at once, and nothing else.
    quick = load("campaigns", "quick", Campaign)
    scaled = quick.scaled(MOBILE)
    assert isinstance(scaled, ConnectionProfile) and scaled.open_at_once == 100_000
    short = load_profile("short-lived")
    assert quick.scaled(short) is short

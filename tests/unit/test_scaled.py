"""Tests that a campaign leaves out, profiles that it scales, and connections of two lengths."""

import pytest

from ctbench.base.errors import MissingResource, NightlyOnly
from ctbench.base.yaml_files import YamlModel, load
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.measure.campaign import Campaign, ControlPlaneSettings, TableSettings
from ctbench.sla.floor import packets_per_connection
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.software import plan

pytestmark = pytest.mark.unit

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


@pytest.mark.parametrize(("part", "key"), [
    (ControlPlaneSettings, "most"), (ControlPlaneSettings, "leave_out"), (TableSettings, "longest"),
    (EmulatedConfig, "leave_out"),
])  # fmt: skip
def test_each_earlier_way_to_leave_a_test_out_names_the_tags(part: type[YamlModel], key: str) -> None:
    assert part.gone[key].startswith("Expected skips: [")


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


def test_a_campaign_scales_what_says_how_much_is_open_at_once_and_nothing_else() -> None:
    quick = load("campaigns", "quick", Campaign)
    scaled = quick.scaled(MOBILE)
    assert isinstance(scaled, ConnectionProfile) and scaled.open_at_once == 100_000
    short = load_profile("short-lived")
    assert quick.scaled(short) is short


def test_short_connections_are_shorter_than_long_ones() -> None:
    with pytest.raises(ValueError, match="short_messages: 3 are not fewer than messages: 2"):
        ConnectionProfile(name="odd", messages=2, short_percent=50, short_messages=3)

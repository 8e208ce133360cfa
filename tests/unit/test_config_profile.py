"""A connection profile: parameters that do not go together are refused with a sentence."""

from typing import Any

import pytest
from pydantic import ValidationError

from ctbench.traffic.profiles import ConnectionProfile


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"client_port_min": 2000, "client_port_max": 1999}, "client_port_min: 2000 is above client_port_max 1999"),
        ({"client_ip": "16.0.0"}, '"16.0.0" is not an IPv4 address'),
        ({"server_ip": "::1"}, '"::1" is not an IPv4 address'),
        ({"messages": 0, "udp_percent": 1}, "UDP has no connection without data"),
        ({"client_ip": "255.255.255.0", "client_ips": 257}, "go beyond 255.255.255.255"),
        ({"client_ip": "16.0.0.0", "server_ip": "16.0.0.253"}, "overlap"),
        ({"name": "Short Lived"}, "is not a name"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        ConnectionProfile(**({"name": "mine"} | keys))
    assert said in str(error.value)
    assert "\n  Expected" in str(error.value)


@pytest.mark.parametrize("keys", [{"messages": True}, {"messages": "5"}, {"udp_percent": float("nan")}])
def test_nothing_is_silently_made_to_fit(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConnectionProfile(**({"name": "mine"} | keys))


def test_ranges_that_only_touch_are_fine() -> None:
    profile = ConnectionProfile(name="mine", client_ip="16.0.0.0", client_ips=256, server_ip="16.0.1.0", server_ips=256)
    assert profile.lifetime_s == 0

"""A connection profile: parameters that do not go together are refused with a sentence."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ctbench.base.errors import ConfigError
from ctbench.base.yaml_files import load
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

SIX = {"ip_version": 6, "client_ip": "2001:2:0:16::1", "server_ip": "2001:2:0:48::1", "client_ips": 100}


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
        ({"messages": 2, "short_percent": 50, "short_messages": 3}, "short_messages: 3 are not fewer than messages: 2"),
        ({"ended_by": "server", "udp_percent": 100}, "is about TCP"),
        (
            {"half_open_per_s": 10, "client_ips": 100, "server_ip": "16.0.0.150"},
            "which reach into those of the servers",
        ),
        ({"half_open_per_s": 10, "client_ips": 100, "client_ip": "223.255.255.100"}, "reach into 224.0.0.0/3"),
        (SIX | {"client_ip": "16.0.0.1"}, 'client_ip: "16.0.0.1" is not an IPv6 address'),
        (SIX | {"server_ip": "ff02::1"}, "reach into ff00::/8, which are not forwarded"),
        (SIX | {"client_ip": "2001:2::ffff:fff0"}, "100 addresses go beyond the last 32 bits of an address"),
        (SIX | {"server_ip": "2001:2:0:16::9"}, "overlap"),
        (SIX | {"ip_version": 4}, 'client_ip: "2001:2:0:16::1" is not an IPv4 address'),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        ConnectionProfile(**({"name": "mine"} | keys))
    assert said in str(error.value)
    assert "\n  Expected" in str(error.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"messages": True}, "a valid integer"),
        ({"messages": "5"}, "a valid integer"),
        ({"udp_percent": float("nan")}, "Input should be"),
        ({"half_open_per_s": -1}, "greater than or equal to 0"),
        ({"ended_by": "nobody"}, "Input should be"),
    ],
)
def test_nothing_is_silently_made_to_fit(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ConnectionProfile(**({"name": "mine"} | keys))


def test_ranges_that_only_touch_are_fine() -> None:
    profile = ConnectionProfile(name="mine", client_ip="16.0.0.0", client_ips=256, server_ip="16.0.1.0", server_ips=256)
    assert profile.lifetime_s == 0


def of_files(root: Path, **texts: str) -> ConnectionProfile | PacketProfile:
    """Profile `mine` of a folder with these files."""
    folder = root / "variables" / "profiles"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\n{text}")
    profile: ConnectionProfile | PacketProfile = load("profiles", "mine", Profile, root=root)  # type: ignore[arg-type]
    return profile


def test_a_profile_that_is_like_another_has_all_its_keys_but_name_and_description(tmp_path: Path) -> None:
    mine = of_files(tmp_path, mine="like: one\nflows: 7\n", one="description: x\nkind: packets\nflows: 5\nvlan: 3\n")
    assert mine == PacketProfile(name="mine", kind="packets", flows=7, vlan=3)


@pytest.mark.parametrize(
    ("mine", "one", "said"),
    [
        ("like: onne\n", "kind: packets\n", 'profiles/mine.yaml: like: "onne" is not another'),
        ("like: mine\n", "kind: packets\n", 'profiles/mine.yaml: like: "mine" is not another'),
        ("like: [one]\n", "kind: packets\n", "profiles/mine.yaml: like: "),
        ("like: one\n", "like: mine\n", 'profiles/mine.yaml: like: "one" is like another'),
        ("like: one\nflws: 5\n", "kind: packets\n", "profiles/mine.yaml: flws: unknown key"),
        ("like: one\nflows: 0\n", "kind: packets\n", "profiles/mine.yaml: flows: "),
        ("like: one\nflows: 5\n", "kind: packets\nflows: 0\n", "profiles/one.yaml: flows: "),
        ("like: one\n", "- 5\n", "profiles/one.yaml: line 2"),
    ],
)
def test_a_mistake_in_what_a_profile_is_like_names_file_and_key(tmp_path: Path, mine: str, one: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        of_files(tmp_path, mine=mine, one=one)
    assert said in str(error.value) and "\n  Expected" in str(error.value)

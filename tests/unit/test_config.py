"""Campaigns, profiles and testbeds in files: what they mean, what a person can get wrong, and that a password which was
typed into `password_env`, where the name of a variable belongs, is shown nowhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ctbench.base.errors import ConfigError, MissingResource, NightlyOnly
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load, make
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_login import password_of
from ctbench.measure.campaign import Campaign
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

from . import simulated

BISECTION = {"trial_duration": "1s", "max_iterations": 8, "relative_width": "5%"}
SHORT, SLOW = ConnectionProfile(name="short-lived"), ConnectionProfile(name="slow")
JUMBO, SMALL = (PacketProfile(name=name, kind="packets") for name in ("jumbo", "small"))

MLR = {"trial_duration": "2s", "final_duration": "5s", "relative_width": "1%"}


def campaign(**keys: Any) -> Campaign:
    loads = {"short-lived": {"min": "1k", "max": "100k"}, "slow": {"min": 5, "max": 50, "trial_duration": "9s"}}
    return simulated.campaign(**{"bisection": BISECTION, "loads": loads} | keys)


def test_a_profile_has_the_settings_of_the_campaign_and_its_own_on_top() -> None:
    assert campaign().search_for(SHORT).trial_duration == 1
    slow = campaign().search_for(SLOW)
    assert (slow.trial_duration, slow.final_duration, slow.relative_width) == (9, 9, 0.05)
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
    with pytest.raises(ConfigError, match=r"(?s): loads\.short-live: is mis.*Did you mean .short-lived"):
        campaign().load_range(SHORT.model_copy(update={"name": "short-live"}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bisection": None}, "bisection: is missing"),
        (
            {"search": "saturation"},
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
        (
            {"search": "mlr", "mlr": MLR | {"final_duration": "9s", "duration_sum": "8s"}},
            "mlr.duration_sum: 8 s is shorter than final_duration: 9 s",
        ),
        ({"partial_drop": "0.5%"}, "partial_drop: 0.5% is not for this search"),
        ({"search": "mlr", "mlr": MLR, "loss_ratio": "1%", "partial_drop": "0.5%"}, "0.5% is not for this search"),
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
        ({"messages": 2, "at_once": 2}, "at_once: 2 requests at once are of UDP"),
        ({"udp_percent": 100, "messages": 1, "at_once": 2}, "and as many messages or more"),
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
        *((SIX | {"kind": "packets", "frame_bytes": size}, "Expected 82") for size in (64, 81, "imix")),
        ({"kind": "packets", "fragments": 2, "frame_bytes": 64}, "fragments"),
        ({"kind": "packets", "fragments": 2, "frame_bytes": "imix"}, "fragments"),
        ({"kind": "packets", "fragments": 2, "frame_bytes": 1518, "vlan": 5}, "fragments"),
        ({"kind": "packets", "fragments": 5, "frame_bytes": 1518}, "fragments"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        make({"name": "mine", "kind": "connections"} | keys, "mine.yaml", Profile)
    assert said in str(error.value)
    assert "\n  Expected" in str(error.value)


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
        ("like: onne\n", "kind: packets\n", "profiles/mine.yaml: like: variables/profiles/onne.yaml: no such file"),
        ("like: mine\n", "kind: packets\n", 'profiles/mine.yaml: like: "mine" is this file'),
        ("like: ../profiles/mine.yaml\n", "kind: packets\n", 'like: "../profiles/mine.yaml" is this file'),
        ("like: [one]\n", "kind: packets\n", "profiles/mine.yaml: like: "),
        ("like: one\n", "like: mine\n", 'profiles/one.yaml: like: "mine" is this file'),
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


#: Network cards of a lab, as ports of a router.
CARDS = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}


def mistake(tmp_path: Any, change: dict[str, Any]) -> str:
    content = yaml.safe_load((ROOT / "variables/testbeds/local.yaml").read_text())
    for key, value in change.items():
        *parents, last = key.split(".")
        place = content
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[last] = value
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError) as error:
        load("testbeds", path, TestbedConfig)
    return str(error.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duts.0.type": "ovs-dpkd"}, "duts[0].type: \"ovs-dpkd\" does not fit.\n  Expected 'ovs-dpdk', "),
        ({"duts.0.ovs.prefix": "opt"}, 'duts[0].ovs.prefix: "opt" is not'),
        ({"duts.0.ports.ring_size": 1000}, "duts[0].ports.ring_size: 1000 does not fit"),
        ({"duts.1.ports.ring_size": 10}, "duts[1].ports.ring_size: 10 does not fit"),
        ({"duts.0.ports.ringsize": 1024}, "duts[0].ports.ringsize: unknown key.\n  Expected one of: kind, pairs"),
        ({"duts.0.memory_mb": 10}, "duts[0].memory_mb: 10 does not fit.\n  Expected a number greater than "),
        ({"duts.1.memory_mb": 1024}, "duts[1].memory_mb: unknown key.\n  Expected one of: conntrack, host, ports,"),
        ({"duts.1.conntrack": {"loose": True}}, "duts[1].conntrack.loose: unknown key.\n  Expected one of: tcp_be_lib"),
        ({"duts.2.conntrack": {"tcp_loose": True}}, "duts[2]: conntrack does not go with type: linux-bridge"),
        ({"duts.1.ports": CARDS | {"offloads": False}}, "duts[1].ports.offloads: false does not fit."),
        ({"duts.0.hugepages": "always"}, 'duts[0].hugepages: "always" does not fit.'),
        ({"duts.2.type": "linux-router"}, 'duts: duplicate type "linux-router".'),
        ({"duts": []}, "duts: there is no DUT."),
        ({"duts.3.kernel": "vmlinuz"}, 'duts[3].kernel: "vmlinuz" is not a kernel.'),
        ({"duts.3.ovs": {"prefix": "opt"}}, 'duts[3].ovs.prefix: "opt" is not an installation of Open vSwitch.'),
        ({"duts.3.seeds": 1}, "duts[3].seeds: 1 does not fit."),
        ({"duts.3.image": "mine.image"}, 'duts[3].image: "mine.image" is not an image.'),
        ({"duts.3.kernel": "/k.deb", "duts.3.image": "/x.image"}, 'duts[3]: kernel: "/k.deb" and image: the image'),
        ({"duts.1.host": "local"}, "duts[1]: host: local does not go with ports.kind: veth."),
        ({"duts.1.ports": CARDS}, "duts[1]: host: sandbox does not go with ports.kind: interfaces."),
        ({"duts.1.ports": CARDS | {"server": "ens1f0"}}, 'duts[1].ports: client and server are both "ens1f0".'),
        ({"duts.1.ports": CARDS | {"client": "ens 1"}}, 'duts[1].ports.client: "ens 1" is not'),
        ({"cpus.pmd": [1, 1]}, "cpus.pmd: [1, 1] is not"),
        ({"cpus.generator": []}, "cpus.generator: [] is not"),
        ({"cpus.pmd": {2: [3]}}, "cpus: pmd.2: [3] are 1 CPUs."),
        ({"cpus.pmd": [0, 1], "cpus.generator": [1]}, "cpus: CPU 1 is given to"),
        ({"cpus.pmd": {1: [1]}, "cpus.generator": [1]}, "cpus: CPU 1 is given to"),
        ({"oversubscribe": "yes"}, 'oversubscribe: "yes" does not fit.'),
        ({"rates": {"judged": False}}, "rates: judged: false without a reason."),
        ({"rates": {"judged": True, "because": "slow"}}, "rates: judged: true with a reason."),
        ({"rates": {"juged": False}}, "rates.juged: unknown key.\n  Expected one of: because, judged."),
        ({"cpus.housekeeping": "dutt"}, 'cpus.housekeeping: "dutt" does not fit.'),
        ({"trex_home": "/opt"}, "trex_home: unknown key.\n  Expected one of: cpus, description, duts, generator"),
    ],
)
def test_a_mistake_is_said_with_its_key(tmp_path: Any, change: dict[str, Any], said: str) -> None:
    found = mistake(tmp_path, change)
    assert f": {said}" in found and "\n  Expected " in found


LAB_FILE = (ROOT / "variables" / "testbeds" / "example-trex-xeon.yaml").read_text()
#: As YAML, and the parts of it that must not be seen.
TYPED = ["hunter2", "Hunter_2", "HUNTER2", '"hunter2!"', '"two words"', "hünter", "4711", "[hunter2]", "{hunter2: x}"]
TYPED += ["*hunter2", "!hunter2 x", "@hunter2", "hunter2: x", "'hunter2"]
SECRETS = ("hunter2", "Hunter_2", "HUNTER2", "two words", "hünter", "4711")


def lab(tmp_path: Path, typed: str) -> Path:
    file = tmp_path / "lab.yaml"
    first_user = next(line for line in LAB_FILE.splitlines() if line.strip().startswith("user:"))
    indent = first_user[: len(first_user) - len(first_user.lstrip())]
    file.write_text(LAB_FILE.replace(first_user, f"{first_user}\n{indent}password_env: {typed}", 1), encoding="utf-8")
    return file


@pytest.mark.parametrize("typed", TYPED)
def test_neither_a_mistake_in_the_file_nor_a_variable_that_is_not_set_shows_it(typed: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)
        for name, host in testbed.hosts.items():
            password_of(name, host)

    assert not [secret for secret in SECRETS if secret in str(caught.value)]


def test_no_record_has_it(tmp_path: Path) -> None:
    for typed in ("hunter2", "HUNTER2", "MY_SECRET", "CTBENCH_DUT_PASSWORD"):
        testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)
        assert typed not in str(testbed.model_dump(mode="json")) + testbed.model_dump_json()


def test_it_comes_from_the_variable_named_where_it_can_be_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SshConfig(address="dut", user="root", password_env="DUT_PASSWORD")
    for wrong, said in (("", "is not set"), ("hunter2\nhunter3", "more than one line")):
        monkeypatch.setenv("DUT_PASSWORD", wrong)
        with pytest.raises(ConfigError, match=said) as caught:
            password_of("dut", config)
        assert "hunter" not in str(caught.value)

    monkeypatch.setenv("DUT_PASSWORD", "hunter2")
    found = password_of("dut", config)
    assert found is not None and found.get_secret_value() == "hunter2"
    assert "hunter2" not in f"{found} {found!r} {[found]}"
    assert password_of("dut", SshConfig(address="dut", user="root")) is None

"""What the testbed file says becomes the trex_cfg.yaml that TRex reads; what is said of a server that failed, and of
releases that are known to be broken; who may end a server that a run left behind."""

import dataclasses
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from trex_recordings import DATA

from ctbench.base.errors import ConfigError, GeneratorError, MissingResource
from ctbench.base.paths import ROOT
from ctbench.hosts.base import Completed
from ctbench.hosts.local import Owner
from ctbench.traffic.profiles import load_profile
from ctbench.traffic.trex.config import LEAST_FLOWS, concurrent_flows, dp_flows, lost_flows, trex_cfg
from ctbench.traffic.trex.releases import FAULTS, Fault, judge
from ctbench.traffic.trex.server import StartedServer, by_name, excerpt
from ctbench.traffic.trex.source import TrexGeneratorConfig, TrexPort

CLIENT_MAC, SERVER_MAC = "04:3f:72:f2:8f:32", "04:3f:72:f2:8f:33"
VETH = {
    "client": TrexPort(interface="g0", dest_mac=SERVER_MAC),
    "server_port": TrexPort(interface="g1", dest_mac=CLIENT_MAC),
}


def config(**more: Any) -> TrexGeneratorConfig:
    settings: dict[str, Any] = {"type": "trex", "host": "sandbox", "server": "start", "trex_home": "/opt/trex"}
    return TrexGeneratorConfig.model_validate({**settings, **VETH, **more})


def read(text: str) -> dict[str, Any]:
    (content,) = yaml.safe_load(text)
    return dict(content)


def test_the_lab_of_the_2022_article_can_be_expressed() -> None:
    threads = [*range(1, 12), *range(13, 24)]
    lab = config(
        host="local",
        client=TrexPort(interface="18:00.2", mac=CLIENT_MAC, dest_mac=SERVER_MAC),
        server_port=TrexPort(interface="18:00.3", mac=SERVER_MAC, dest_mac=CLIENT_MAC),
        rx_descriptors=4096,
        tx_descriptors=4096,
        cores=22,
        cpus=[0, 12, *threads],
        memory={"mbuf_64": 30000, "mbuf_128": 500000, "mbuf_256": 30717, "mbuf_512": 30720, "mbuf_1024": 30720}
        | {"mbuf_2048": 4096},
    )
    ours = read(trex_cfg(lab, LEAST_FLOWS))
    added = {key: ours.pop(key) for key in ("zmq_pub_port", "zmq_rpc_port")}

    assert added == {"zmq_pub_port": 4500, "zmq_rpc_port": 4501}  # TRex' defaults
    assert ours["memory"].pop("dp_flows") == LEAST_FLOWS
    assert ours == read((DATA / "trex_cfg-2022.yaml").read_text())


def test_on_veth_all_threads_share_one_cpu_and_without_cpus_trex_chooses_them() -> None:
    ours = read(trex_cfg(config(low_end=True, cpus=[1], software=True)))

    assert (ours["low_end"], ours["low_end_core"]) == (True, 1)
    assert "platform" not in ours
    assert ours["interfaces"] == ["g0", "g1"]
    assert not {"platform", "low_end", "low_end_core"} & read(trex_cfg(config())).keys()


def test_flow_objects_are_for_connections_only_and_no_more_than_trex_holds() -> None:
    lab = config(memory={"mbuf_64": 30000, "dp_flows": 4 << 20})
    assert read(trex_cfg(lab))["memory"] == {"mbuf_64": 30000}  # STL would make stream nodes of them
    assert read(trex_cfg(lab, LEAST_FLOWS))["memory"]["dp_flows"] == 4 << 20
    assert read(trex_cfg(lab, 16 << 20))["memory"]["dp_flows"] == 16 << 20
    with pytest.raises(MissingResource, match="give the generator more cores"):
        dp_flows(20_000_000, cores=1)
    assert dp_flows(20_000_000, cores=8)
    assert dp_flows(4_000_000, cores=1, lost=9_000_000) == 16 << 20  # the most there is


@pytest.mark.parametrize(
    ("port", "info"),
    [
        # With a gateway, it is resolved.
        ({"ip": "16.0.255.254", "gateway": "16.0.255.253"}, {"ip": "16.0.255.254", "default_gw": "16.0.255.253"}),
        # Numbers of base 60 in YAML 1.1.
        (
            {"mac": "12:34:56:10:20:30", "dest_mac": "12:34:56:10:20:31"},
            {"dest_mac": "12:34:56:10:20:31", "src_mac": "12:34:56:10:20:30"},
        ),
    ],
)
def test_a_port_says_who_it_is_and_where_its_frames_go(port: dict[str, str], info: dict[str, str]) -> None:
    assert read(trex_cfg(config(client=TrexPort(interface="g0", **port))))["port_info"][0] == info


def test_servers_share_no_name_and_the_only_one_on_cards_gets_all_hugepages() -> None:
    first, second = (read(trex_cfg(config(sync_port=port))) for port in (4501, 4511))
    assert first["prefix"] != second["prefix"]
    assert second["zmq_rpc_port"] == 4511
    card = {"client": TrexPort(interface="18:00.2", dest_mac=SERVER_MAC), "host": "local"}
    card["server_port"] = TrexPort(interface="18:00.3", dest_mac=CLIENT_MAC)
    assert "prefix" not in read(trex_cfg(config(**card)))  # with one, TRex takes 1 GB
    assert "prefix" in read(trex_cfg(config(**card, sync_port=4511)))


@pytest.mark.parametrize(
    ("interface", "asked"),
    [("eth1", ["eth1"]), ("--vdev=net_af_packet0,iface=eth1", ["eth1"]), ("0000:18:00.2", []), ("--vdev=net_null", [])],
)
def test_trex_is_not_started_on_an_interface_whose_frames_the_kernel_merges(interface: str, asked: list[str]) -> None:
    looked = []

    def run(argv: list[str], **_: object) -> Completed:
        looked.extend(argv[-1:] if argv[0] == "ethtool" else [])
        said = {"ethtool": "generic-receive-offload: on\nlarge-receive-offload: off [fixed]\n", "id": "0"}
        return Completed(0, said.get(argv[0], ""), "")

    ports = {"client": TrexPort(interface=interface), "server_port": TrexPort(interface="0000:18:00.3")}
    server = StartedServer(Mock(run=run), config(host="local", **ports), "127.0.0.1", Path("/nowhere"))
    merged = pytest.raises(GeneratorError, match=r"gro of eth1 is on: .*: ethtool -K eth1 gro off$")
    with merged if asked else nullcontext():
        server._check_host()
    assert looked == asked


def test_further_options_reach_the_command_line_and_the_daemon() -> None:
    words = ["--mbuf-factor", "2", "--sleeps", "--mlx5-so=/opt/mlx5.so", "-v", "7"]
    server = StartedServer(Mock(), config(options=words), "127.0.0.1", Path("/nowhere"))
    assert server._command("stl")[-6:] == words
    assert by_name(words) == {"mbuf-factor": "2", "sleeps": True, "mlx5-so": "/opt/mlx5.so", "v": "7"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"options": ["--cfg", "/etc/mine.yaml"]}, '"--cfg" is set by the run itself'),
        ({"options": ["--iom=1"]}, '"--iom=1" is set by the run itself'),
        ({"options": ["2"]}, '"2" is not an option'),
        ({"options": ["--mbuf-factor 2"]}, "is not a word of a command line"),
        ({"options": ["--sleeps"], "server": "running", "host": "local"}, "options do not go with server: running"),
    ],
)
def test_options_that_a_run_sets_itself_or_cannot_hand_over_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config(**more)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"client": TrexPort(dest_mac=SERVER_MAC)}, "generator.client.interface: is missing"),
        ({"server_port": TrexPort(interface="g1")}, "generator.server_port: says not where its frames go"),
        ({"client": TrexPort(interface="g0", gateway="16.0.0.1")}, "generator.client: says not where its frames go"),
        ({"cpus": [0, 1, 2], "cores": 2}, r"generator.cpus: \[0, 1, 2\] are too few for cores: 2.\n  Expected 4"),
        ({"ports": [2, 3]}, r"generator.ports: \[2, 3\] does not go with server: start"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        trex_cfg(config(**settings))


@pytest.mark.parametrize(("load", "cores"), [(1_000, 1), (60_000, 1), (60_000, 22), (200_000, 8)])
def test_long_lived_connections_find_room_for_half_as_many_again(load: int, cores: int) -> None:
    short, profile = load_profile("short-lived"), load_profile("long-lived")
    assert dp_flows(concurrent_flows(short, 100_000), cores=1) == LEAST_FLOWS
    assert dp_flows(concurrent_flows(short, load), cores, lost_flows(load)) / 2 > 5.5 * load, "a lost SYN is kept 5 s"
    flows = concurrent_flows(profile, load)

    assert flows > 25 * load
    # A thread's share, half of it for the client ends of connections.
    assert dp_flows(flows, cores) / cores / 2 * cores >= 1.5 * flows


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ((DATA / "crash.log").read_text(), "Error: signal 11:"),
        (
            "Starting  TRex v3.08 please wait  ... \n zmq publisher\n\n\n",
            "Starting TRex v3.08 please wait ... | zmq publisher",
        ),
        ("\x1b[31mERROR: Could not find\x1b[0m Linux interface gx.\n", "ERROR: Could not find Linux interface gx."),
        ("one\n" + 4096 * "\0" + "./t-rex-64: line 74: 427 Killed\n", "./t-rex-64: line 74: 427 Killed"),
        ("", ""),
        ("".join(f"error {number}\n" for number in range(100)), " | ".join(f"error {n}" for n in range(94, 100))),
    ],
)
def test_an_excerpt_is_what_went_wrong_else_the_last_lines(log: str, said: str) -> None:
    assert excerpt(log) == said


@pytest.mark.parametrize(
    ("changed", "gone"),
    [
        ({}, False),
        ({"ticks": "1"}, True),  # another process with the same number
        ({"boot": "another"}, True),
        ({"pid": "4000000"}, True),
        ({"machine": "another", "pid": "4000000"}, False),  # nobody knows whether it goes on there
    ],
)
def test_a_run_that_has_ended_for_sure_does_not_keep_its_server(changed: dict[str, str], gone: bool) -> None:
    owner = dataclasses.replace(Owner.myself(), **changed)

    assert owner.is_gone() is gone
    assert Owner.parse(str(owner)) == owner


NUMBERS = re.compile(r"\d+")


@pytest.mark.parametrize(
    ("cards", "software", "met"),
    [
        ({"8086:1572"}, True, True),
        ({"8086:1572", "15b3:1017"}, True, True),  # one of two ports is enough
        ({"15b3:1017"}, True, False),
        (set(), True, False),  # virtual ports
        ({"8086:1572"}, False, False),
        (None, False, False),
        ({"15b3:1017"}, None, False),
        (None, True, None),
        ({"8086:1572"}, None, None),
    ],
)
def test_a_fault_is_met_where_all_its_conditions_are_and_unknown_where_one_is(
    cards: set[str] | None, software: bool | None, met: bool | None
) -> None:
    found = judge("v3.08", cards, software)
    assert found.state == {True: "bad", False: "ok", None: "unknown"}[met]
    if met is not False:
        assert "in ASTF with --software on X710" in found.found and "(trex-core issue 1221)" in found.found


def test_the_word_of_one_user_is_passed_on_and_not_judged() -> None:
    finding = judge("v3.05", {"8086:1592"}, software=False)
    assert (finding.state, finding.remedy) == ("unknown", "use TRex v3.03, or v3.07 or newer")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.source)
def test_the_page_of_trex_has_each_fault_with_its_releases_and_its_source(fault: Fault) -> None:
    rows = (ROOT / "docs/trex.md").read_text().splitlines()
    named = {fault.releases[0], fault.releases[-1], *NUMBERS.findall(fault.source)}
    assert any(row.startswith("|") and all(name in row for name in named) for row in rows)

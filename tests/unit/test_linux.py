"""What of the kernel's counters is a problem and what is fine, and what rulesets of iptables and nftables say."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import MissingResource
from ctbench.dut.base import queue_size
from ctbench.dut.linux import netfilter
from ctbench.dut.linux.health import LinkReading, elsewhere, new_drops, parse_softnet, placement_problem, received_since
from ctbench.dut.linux.links import OFFLOAD_SETTINGS, RING, CardLinks, InterfaceCounters, busy_cpus, parse_counters
from ctbench.dut.rulesets import Ruleset, catalogue
from ctbench.dut.topology import Topology
from ctbench.dut.veth import IpRoute
from ctbench.hosts.base import Completed
from ctbench.hosts.offloads import OFFLOADS

PRINTED = Path(__file__).parents[1] / "data" / "linux-6.1"


def reading(rx: int = 0, tx: int = 0, on: dict[int, int] | None = None, index: int = 2, **drops: int) -> LinkReading:
    """`rx` packets at r0 went out as `tx` at r1; `on`: CPU -> packets received."""
    interfaces = {"r0": InterfaceCounters(index, rx, 0, drops), "r1": InterfaceCounters(3, 0, tx, {})}
    softnet = {cpu: (count, 0) for cpu, count in (on or {0: 0, 1: 0}).items()}
    return LinkReading(interfaces, softnet, {}, (), 0.0)


def test_counters_are_read_with_what_is_lost_and_go_on_when_they_went_round() -> None:
    assert parse_softnet((PRINTED / "softnet_stat").read_text()) == {0: (0x1773826, 2), 3: (0xC96D068, 0)}
    # A kernel that does not name the CPUs has them in order.
    assert parse_softnet("00000001 00000000\n00000002 00000000\n").keys() == {0, 1}
    before, now = {0: (0xFFFFFFFF, 0)}, {0: (4, 0)}
    assert received_since(before, now) == {0: 5}
    assert netfilter.increase({"drop": 0xFFFFFFFF}, {"drop": 1}) == {"drop": 2}
    way = {"bytes": 1, "packets": 10, "errors": 1, "dropped": 2, "multicast": 3}
    found = parse_counters({"ifindex": 4, "stats64": {"rx": way, "tx": {**way, "packets": 20, "carrier_errors": 6}}})
    assert (found.index, found.rx_packets, found.tx_packets) == (4, 10, 20)
    assert {name: count for name, count in found.drops.items() if count} == {
        "rx_errors": 1, "rx_dropped": 2, "tx_errors": 1, "tx_dropped": 2, "tx_carrier_errors": 6,
    }  # fmt: skip
    counted = netfilter.parse_statistics((PRINTED / "conntrack-S.txt").read_text())
    assert (counted["found"], counted["insert_failed"], counted["search_restart"]) == (12, 3, 1)
    assert "cpu" not in counted
    (said,) = netfilter.findings(counted)  # lost connections; invalid packets are none
    assert said.startswith("conntrack: 3 ") and said.endswith("(insert_failed).")


@pytest.mark.parametrize(
    ("packets", "on", "misplaced"),
    [
        (100_000, {0: 300, 1: 200_000}, False),
        (100_000, {0: 50_000, 1: 150_000}, True),
        (100, {0: 900, 1: 200}, False),  # the machine's own
    ],
)
def test_a_dut_on_another_cpu_than_its_own_is_not_measured(packets: int, on: dict[int, int], misplaced: bool) -> None:
    now = reading(rx=packets, tx=packets, on=on)
    assert bool(placement_problem(reading(), now, ("r0", "r1"), (1,), delivered=True)) is misplaced


@given(
    received=st.dictionaries(st.integers(0, 7), st.integers(0, 10**6)),
    expected=st.integers(0, 10**7),
    cpus=st.sets(st.integers(0, 7)),
)
def test_no_cpu_of_the_dut_is_ever_named(received: dict[int, int], expected: int, cpus: set[int]) -> None:
    found = elsewhere(received, expected, cpus)

    assert not found.keys() & cpus
    assert not found or sum(found.values()) > 0.02 * expected


def test_only_new_losses_are_named_and_waiting_is_no_work() -> None:
    before, now = reading(rx_dropped=5, tx_errors=1), reading(rx_dropped=7, tx_errors=1)
    now = replace(now, softnet={**now.softnet, 1: (0, 4)})
    assert new_drops(before, now) == {"r0.rx_dropped": 2, "cpu1.backlog": 4}
    before = (100, 0, 100, 1000, 50, 0, 100, 10, 0, 0)
    now = (150, 0, 150, 9000, 90, 0, 200, 90, 0, 0)
    assert busy_cpus(before, now, 1.0) == 2.0
    assert busy_cpus(before, now, 0.0) == 0.0


@pytest.mark.parametrize(("queues", "frames"), [(1, 16384), (2, 8192), (3, 4096), (4, 4096), (8, 2048), (64, 256)])
def test_receive_queues_share_what_a_link_holds(queues: int, frames: int) -> None:
    assert queue_size(16384, queues) == frames
    assert queue_size(64, queues) == 64


FILES = [entry for (family, _), entry in catalogue().items() if family in ("iptables", "nftables")]


def test_every_ruleset_of_nftables_does_what_one_of_iptables_does() -> None:
    def of(tool: str) -> dict[str, tuple[bool, str]]:
        found = (entry for entry in FILES if entry.family == tool)
        return {entry.name.removeprefix(f"{tool}-"): (entry.tracks, entry.translates) for entry in found}

    iptables, nftables = of("iptables"), of("nftables")

    # Of those that ship: a team has rulesets of its own besides.
    assert iptables["notrack"] == (False, "nothing")
    assert nftables["stateful-inet"] == iptables["stateful"]  # of IPv4 and IPv6, as ip6tables has them apart
    for of_2019, like in (("established", "stateful"), ("snat-only", "snat")):
        assert iptables[of_2019] == iptables[like]
    for name in ("stateful", "snat", "dnat", "masquerade"):
        assert iptables[name] == nftables[name]


@pytest.mark.parametrize("ruleset", FILES, ids=lambda entry: entry.name)
def test_a_ruleset_names_the_interfaces_that_it_is_for(ruleset: Ruleset) -> None:
    rules = netfilter.read_rules(ruleset, ("ens1f0", "ens1f1"))

    assert rules
    assert "ens1f0" in rules.text or "ens1f1" in rules.text  # a firewall may name one of them alone
    assert not any("client" in line or "server" in line for line in netfilter.plain_lines(rules.text))


def test_only_whole_words_are_interfaces_and_no_comments_are_rules(tmp_path: Path) -> None:
    (tmp_path / "mine.rules").write_text("-i client -o server clients")
    rules = netfilter.read_rules(replace(FILES[0], file=tmp_path / "mine.rules"), ("r0", "r1"))
    assert rules and rules.text == "-i r0 -o r1 clients"
    text = "# Generated by iptables-save\n*filter\n:FORWARD DROP [12:3456]\n\n\t-A FORWARD -j DROP\nCOMMIT\n"
    assert netfilter.plain_lines(text) == ["*filter", ":FORWARD DROP", "-A FORWARD -j DROP", "COMMIT"]


#: Seen with `nft --stateless list ruleset` of 1.0.6 after seven packets.
SETS = """table ip fw {
    set seen {
        type ipv4_addr . inet_service
        size 65535
        flags dynamic
        elements = { 127.0.0.1 . 9000,
             127.0.0.1 . 9001 limit rate 10/second }
    }

    set fixed {
        type ipv4_addr
        elements = { 10.0.0.1, 10.0.0.2 }
    }

    map gone {
        type ipv4_addr : verdict
        flags interval,timeout
        timeout 1m
        elements = { 10.0.0.3 timeout 1h : accept }
    }
}
"""


def test_what_packets_add_to_a_set_is_no_rule() -> None:
    lines = netfilter.plain_lines(SETS)
    assert [line for line in lines if "elements" in line or "127." in line] == ["elements = { 10.0.0.1, 10.0.0.2 }"]
    assert lines.count("}") == 4 and {"flags dynamic", "timeout 1m"} <= set(lines)


def test_a_table_whose_limit_is_raised_gets_more_buckets_and_is_told_of_where_it_cannot() -> None:
    stock, keys = netfilter.TABLE_SETTINGS, netfilter.LinuxConntrackKeys(tcp_be_liberal=True)
    larger = netfilter.host_settings(stock.of(Topology(datapath="linux-router", max_connections=4_000_000)))
    assert netfilter.host_settings(stock)["net/netfilter/nf_conntrack_buckets"] == "262144"
    assert larger == {"net/netfilter/nf_conntrack_max": "4000000", "net/netfilter/nf_conntrack_buckets": "1000000"}
    own = netfilter.namespace_settings(stock, keys)
    assert (own["net/netfilter/nf_conntrack_tcp_loose"], own["net/netfilter/nf_conntrack_tcp_be_liberal"]) == ("0", "1")
    assert own.keys().isdisjoint(larger)
    assert netfilter.few_buckets(262_144, 65_536) == ""  # as kernels until 5.14 have it
    assert netfilter.few_buckets(1_048_576, 65_536).startswith("65536 hash buckets for 1048576 entries: 32 in each")


def test_a_cards_ring_is_read_back_and_given_back() -> None:
    ring = 512

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        nonlocal ring
        ring = min(4096, int(argv[4])) if argv[1] == "-G" else ring
        return Completed(0, f"Current hardware settings:\nRX:\t{ring}\n" if argv[1] == "-g" else "", "")

    links = CardLinks(IpRoute(Mock(run=run)), ("ens0", "ens1"))
    with pytest.raises(MissingResource, match="of ens0: asked 8192, and it has 4096 afterwards"):
        links._set("ens0", RING, "8192")
    assert (ring, links.facts()["ring"]["ens1"]) == (4096, "4096")
    links.remove()
    assert ring == 512


#: Seen with `ethtool -k` of a veth pair in Linux 6.1.
FEATURES = """Features for ens0:
tcp-segmentation-offload: on
	tx-tcp-segmentation: on
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
rx-gro-hw: off [fixed]
"""


def test_offloads_of_cards_are_read_and_only_where_asked_switched_off_and_given_back() -> None:
    state, told = FEATURES, list[str]()

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        nonlocal state
        if argv[1] == "-K":
            told.append(" ".join(argv[3:]))
            shown = next(shown for shown, word in OFFLOADS.items() if word == argv[3])
            state = re.sub(f"^{shown}: .*$", f"{shown}: {argv[4]}", state, flags=re.MULTILINE)
        return Completed(0, state if argv[1] == "-k" else "", "")

    links = CardLinks(IpRoute(Mock(run=run)), ("ens0", "ens0"), offloads=False)
    found = links.facts()["offloads"]["ens0"]
    assert found == {"gro": True, "lro": False, "rx-gro-hw": False, "tso": True, "gso": True}
    for setting in OFFLOAD_SETTINGS:
        links._set("ens0", setting, "off")
    assert told == ["gro off", "tso off", "gso off"] and not any(links.facts()["offloads"]["ens0"].values())
    links.remove()
    assert (told[3:], state) == (["gro on", "tso on", "gso on"], FEATURES)


#: Seen: a virtio card in Linux 6.1, and the names of Intel's and Mellanox' drivers.
INTERRUPTS = """ 38:          0          0   IR-PCI-MSI 81920-edge      virtio2-config
 39:       7665          0   IR-PCI-MSI 81921-edge      virtio2-input.0
 40:          0          0   IR-PCI-MSI 81922-edge      virtio2-output.0
 50:          0          0   IR-PCI-MSI 81924-edge      mlx5_comp3@pci:0000:18:00.2
 51:          0          0   IR-PCI-MSI 81925-edge      i40e-ens1f0-TxRx-7
"""


def test_the_interrupts_of_a_queue_go_to_one_cpu_also_those_of_a_virtio_card() -> None:
    folders, written = [], {}

    def run(argv: list[str], stdin: str = "", **_: object) -> Completed:
        folders.extend(argv[1:] if argv[0] == "ls" else [])
        written.update({argv[1].split("/")[3]: stdin} if argv[0] == "tee" else {})
        said = {"readlink": "/sys/devices/pci0000:00/0000:00:05.0/virtio2", "ls": "38\n39\n40\n50\n51"}
        return Completed(0, said.get(argv[0], ""), "")

    links = CardLinks(IpRoute(Mock(run=run, read=lambda at: INTERRUPTS if "interrupts" in at else "0-1")), ("a", "b"))
    links._cpus = (4, 5)
    links._pin("a")
    assert folders == ["/sys/class/net/a/device/../msi_irqs"]
    assert written == {"38": "4", "39": "4", "40": "4", "50": "5", "51": "5"}


def test_the_hosts_own_entries_and_expired_ones_which_are_not_listed_are_not_the_duts() -> None:
    listed = "tcp 6 58 ESTABLISHED src=192.0.2.1 dst=192.0.2.2 sport=1 dport=22\n"
    said = {"cat": "3", "ip": "2: eth0    inet 192.0.2.2/30 scope global", "ipv4": listed, "ipv6": ""}
    host = Mock(run=lambda argv, **_: Mock(stdout=said[argv[-1] if argv[0] == "conntrack" else argv[0]]))
    assert netfilter.ConntrackTable(host).count() == 0
    said["ipv4"] += listed.replace("192.0.2.", "16.0.0.")
    assert netfilter.ConntrackTable(host).count() == 1

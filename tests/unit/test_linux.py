"""What of the kernel's counters is a problem and what is fine, and what rulesets of iptables and nftables say."""

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import PortCounters, queue_size
from ctbench.dut.linux import netfilter
from ctbench.dut.linux.forwarding import LinuxRouterDut, forwarding_sysctls
from ctbench.dut.linux.found import FILE, Found
from ctbench.dut.linux.health import LinkReading, new_drops, parse_softnet, placement_problem, received_since
from ctbench.dut.linux.links import (
    BONDS,
    CHANNELS,
    RING,
    CardLinks,
    below,
    bring_up,
    busy_cpus,
    parse_counters,
    stack,
    unstack,
)
from ctbench.dut.ovs.instance import FOLDER
from ctbench.dut.rulesets import Ruleset, catalogue
from ctbench.dut.topology import PortSetup, Topology
from ctbench.dut.veth import IpRoute
from ctbench.hosts.base import Completed
from ctbench.hosts.machine import Placement

PRINTED = Path(__file__).parents[1] / "data" / "linux-6.1"


def reading(rx: int = 0, tx: int = 0, on: dict[int, int] | None = None, index: int = 2, **drops: int) -> LinkReading:
    """`rx` packets at r0 went out as `tx` at r1; `on`: CPU -> packets received."""
    interfaces = {"r0": PortCounters(rx, 0, drops, index=index), "r1": PortCounters(0, tx, {}, index=3)}
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
        "rx_errors": 1,
        "rx_dropped": 2,
        "tx_errors": 1,
        "tx_dropped": 2,
        "tx_carrier_errors": 6,
    }
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


@pytest.mark.parametrize("ruleset", FILES, ids=lambda entry: entry.name)
def test_a_ruleset_names_the_interfaces_that_it_is_for(ruleset: Ruleset) -> None:
    rules = netfilter.read_rules(ruleset, ("ens1f0", "ens1f1"))

    assert "ens1f0" in rules.text or "ens1f1" in rules.text  # a firewall may name one of them alone
    assert not any("client" in line or "server" in line for line in netfilter.plain_lines(rules.text))


def test_only_whole_words_are_interfaces_and_no_comments_are_rules(tmp_path: Path) -> None:
    (tmp_path / "mine.rules").write_text("-i client -o server clients")
    rules = netfilter.read_rules(FILES[0].model_copy(update={"rules": tmp_path / "mine.rules"}), ("r0", "r1"))
    assert rules and rules.text == "-i r0 -o r1 clients"
    text = "# Generated by iptables-save\n*filter\n:FORWARD DROP [12:3456]\n\n\t-A FORWARD -j DROP\nCOMMIT\n"
    assert netfilter.plain_lines(text) == ["*filter", ":FORWARD DROP", "-A FORWARD -j DROP", "COMMIT"]


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


IPTABLES, NFTABLES = (netfilter.Rules(family, "a rule") for family in ("iptables", "nftables"))


@pytest.mark.parametrize(
    ("said", "rules", "missing"),
    [
        ("iptables-restore v1.8.9 (nf_tables)", IPTABLES, False),
        ("iptables-restore v1.8.9 (legacy)", IPTABLES, True),
        ("iptables-restore v1.6.1", IPTABLES, True),  # before there was another one
        ("iptables-restore v1.8.9 (legacy)", NFTABLES, False),
    ],
)
def test_rules_are_not_loaded_by_iptables_legacy(said: str, rules: netfilter.Rules, missing: bool) -> None:
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], **_: object) -> Completed:
        asked.append(argv)
        return Completed(0, said if argv[1:] == ["-V"] else "-A FORWARD\n", "")

    load = netfilter.Netfilter(Mock(run=run)).load
    with pytest.raises(MissingResource, match="update-alternatives") if missing else nullcontext():
        load(rules)
    assert (rules.restore in asked) is not missing


@pytest.mark.parametrize("version", ["", "6"])
def test_tables_of_legacy_are_named_and_leave_all_else_restored(version: str) -> None:
    file, asked = f"/proc/net/ip{version}_tables_names", []

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        asked.append(" ".join(argv))
        there = {file: "filter", "/proc/sys/net/ipv4/ip_forward": "1"}
        return Completed(0, "".join(f"{path}\0{text}\n" for path, text in there.items() if path in argv), "")

    router = LinuxRouterDut(Mock(run=run, read=lambda _: ""), Mock(), Mock(), interfaces=("ens0", "ens1"))
    router._sysctls.set({"net/ipv4/ip_forward": "1"})
    router._found.links["ens0"] = (1500, True)
    router._found.affinities["ens0"] = {"/proc/irq/38/smp_affinity_list": "0-1"}
    router._touched, asked[:] = True, []
    for _ in range(2):  # a run tries it again in the end
        with pytest.raises(TestbedError, match=f"filter in {file}"):
            router.restore()
    assert {"nft flush ruleset", "tee /proc/irq/38/smp_affinity_list", "sysctl -q -w net/ipv4/ip_forward=1"} < {*asked}


def test_the_firewall_that_a_host_loads_when_it_boots_again_is_not_flushed() -> None:
    asked = []

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        asked.append(argv)
        if argv[0] == "cat":  # what it loaded is forgotten
            return Completed(1, "", "")
        return Completed(0, "table inet firewalld\n" if argv == ["nft", "list", "tables"] else "", "")

    host = Mock(run=run, read=lambda _: "the second boot")
    placed = Placement((0,), (1,), (0,))
    router = LinuxRouterDut(host, Mock(), lambda _: placed, interfaces=("ens0", "ens1"))
    router._versions, router._touched, router._boot = {"program": "6.8"}, True, "the first boot"
    with pytest.raises(TestbedError, match="netfilter rules of its own"):
        router.apply(Topology(datapath="linux-router", ruleset="forward"))
    router.restore()
    assert ["nft", "list", "tables"] in asked and ["nft", "flush", "ruleset"] not in asked


@dataclass
class Settings:
    """A host whose kernel sets more than it is asked to as it becomes a router, and as it ceases to be one."""

    values: dict[str, str]
    default_routes: set[str] = field(default_factory=lambda: {"eno1", "eno2"})

    def run(self, argv: Sequence[str], *_: object, stdin: str = "", **__: object) -> Completed:
        said = ""
        match argv:
            case ["ip", *_]:
                said = json.dumps([{"ifname": name} for name in ("lo", "eno1", "eno2")])
            case ["grep", *_]:
                there = {f"/proc/sys/{name}": value for name, value in self.values.items()}
                said = "".join(f"{path}\0{there[path]}\n" for path in argv if path in there)
            case ["sysctl", *_]:
                for name, value in (word.split("=") for word in argv if "=" in word):
                    self._write(name, value)
        return Completed(0, said, "")

    def _write(self, name: str, value: str) -> None:
        if name == "net/ipv4/ip_forward" and self.values[name] != value:
            self.values["net/ipv4/conf/all/accept_redirects"] = str(1 - int(value))
        if name == "net/ipv6/conf/all/forwarding" and value == "1" != self.values[name]:
            self.default_routes = {
                link for link in self.default_routes if self.values[f"net/ipv6/conf/{link}/accept_ra"] == "2"
            }
        self.values[name] = value


def test_a_host_that_accepted_no_redirects_accepts_none_after_it_was_a_router() -> None:
    found = {"net/ipv4/ip_forward": "0", "net/ipv4/conf/all/accept_redirects": "0"}
    host: Any = Settings(dict(found))
    settings = netfilter.Sysctls(host, Found())
    settings.set(forwarding_sysctls(4, ()))
    assert host.values["net/ipv4/ip_forward"] == "1"
    settings.restore()
    assert host.values == found


@pytest.mark.parametrize("before", ["0", "1"])
def test_a_router_of_ipv6_keeps_the_default_routes_that_its_host_learned(before: str) -> None:
    found = {f"net/ipv6/conf/{name}/accept_ra": value for name, value in (("lo", "0"), ("eno1", "1"), ("eno2", "2"))}
    found["net/ipv6/conf/all/forwarding"] = before
    host: Any = Settings(dict(found))
    router = LinuxRouterDut(host, Mock(), Mock(), interfaces=("ens0", "ens1"))
    router._keep_default_routes()
    router._set_sysctls(forwarding_sysctls(6, ()))
    assert host.default_routes == {"eno1", "eno2"}
    learns = "2" if before == "0" else "1"  # one that was a router before learned none
    assert [host.values[f"net/ipv6/conf/{name}/accept_ra"] for name in ("lo", "eno1")] == ["0", learns]
    router._sysctls.restore()
    assert host.values == found


def test_a_cards_ring_is_read_back_and_given_back() -> None:
    ring = 512

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        nonlocal ring
        ring = min(4096, int(argv[4])) if argv[1] == "-G" else ring
        return Completed(0, f"Current hardware settings:\nRX:\t{ring}\n" if argv[1] == "-g" else "", "")

    links = CardLinks(IpRoute(Mock(run=run)), Found(links={"ens0": (1500, True)}), ("ens0", "ens1"))
    with pytest.raises(MissingResource, match="of ens0: asked 8192, and it has 4096 afterwards"):
        links._set("ens0", RING, "8192")
    assert (ring, links.facts()["ring"]["ens1"]) == (4096, "4096")
    links.remove()
    assert ring == 512


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("netlink error: Device or resource busy\n", "netlink error: Device or resource busy). The driver ice"),
        (
            "netlink error: requested channel count exceeds maximum\nnetlink error: Invalid argument\n",
            "netlink error: requested channel count exceeds maximum; netlink error: Invalid argument).",
        ),
        ("", "no reason given)."),
    ],
)
@pytest.mark.parametrize(
    ("receiving", "combined"), [("n/a", "64"), ("0", "64"), ("4", "64"), ("64", "n/a"), ("64", "0")]
)
def test_why_a_card_refuses_a_number_of_queues_is_said(
    stderr: str, said: str, receiving: str, combined: str
) -> None:  # fmt: skip
    shown = f"RX:\t128\nCombined:\t128\nCurrent:\nRX:\t{receiving}\nTX:\t1\nCombined:\t{combined}\n"

    def run(argv: Sequence[str], *_: object, **__: object) -> Completed:
        return Completed(1, "", stderr) if argv[1] == "-L" else Completed(0, shown, "")

    with pytest.raises(MissingResource) as refused:
        CardLinks(IpRoute(Mock(run=run)), Found(), ("ens0",))._set("ens0", CHANNELS, "4")
    assert f"asked 4, and it has 64 afterwards (ethtool: {said}" in str(refused.value)
    assert ("rmmod irdma" in str(refused.value)) is ("busy" in stderr)


def test_vlan_devices_have_names_of_ours_and_those_of_a_host_stay() -> None:
    said: list[list[str]] = []
    links = [{"ifname": name} for name in ("lo", "ens0", "ens0.100", "ctvlan1", "ctbond0")]

    def run(argv: list[str], stdin: str = "", **_: object) -> Completed:
        said.append([*argv, stdin])
        own = "ens1" in argv  # has one already
        return Completed(2 if own else 0, json.dumps(links), "Error: 8021q: VLAN device already exists.\n")

    ip = IpRoute(Mock(run=run))
    ip.host.name = "the lab"
    assert stack(ip, "bond-vlan", ("ens0", "ens2"), 1500) == ("ctvlan0", "ctvlan1")
    assert (below("bond-vlan", ("ens0", "ens2")), below("vlan", ("ens0",)), below("plain", ("ens0",))) == (
        ("ctbond0", "ctbond1"), ("ens0",), (),
    )  # fmt: skip
    with pytest.raises(MissingResource, match="the lab: ens1 has a device of its own for VLAN 100"):
        stack(ip, "vlan", ("ens0", "ens1"), 1500)
    unstack(ip)
    assert said[-1][-1].split("\n")[:2] == ["link del ctvlan1", "link del ctbond0"]


@pytest.mark.parametrize(("ports", "first"), [("vlan", ("ens0", "ens1")), ("bond-vlan", BONDS)])
def test_a_vlan_device_comes_up_after_the_device_below_it(ports: PortSetup, first: tuple[str, ...]) -> None:
    """As Linux 6.1 was seen to answer, which says `Network is down` otherwise."""
    below_of: dict[str, str] = {}
    up: list[str] = []

    def run(argv: Sequence[str], stdin: str = "", **_: object) -> Completed:
        if argv[1:4] == ["link", "add", "link"]:
            below_of[argv[6]] = argv[4]
        for name in re.findall(r"^link set (\S+) .*\bup$", stdin, re.MULTILINE):
            if below_of.get(name, name) not in (name, *up):
                raise TestbedError("RTNETLINK answers: Network is down")
            up.append(name)
        there = [{"ifname": name, "operstate": "UP"} for name in ("ens0", "ens1", *up)]
        return Completed(0, json.dumps(there) if argv[0] == "ip" else "", "")

    ip = IpRoute(Mock(run=run, read=lambda _: ""))
    links = CardLinks(ip, Found(), ("ens0", "ens1"))
    tops = stack(ip, ports, links.interfaces, 1500)
    bring_up(ip, links, tops)
    assert set(first) < set(up) and up[-2:] == list(tops) == ["ctvlan0", "ctvlan1"]


def test_a_card_that_goes_as_it_comes_up_or_between_two_trials_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ip = IpRoute(Mock(run=lambda *_, **__: Completed(0, json.dumps([{"ifname": "r0", "operstate": "UP"}]), "")))
    monkeypatch.setattr("ctbench.dut.linux.links.UP_TIMEOUT_S", 0.0)
    with pytest.raises(TestbedError, match="r1 did not come up"):
        bring_up(ip, Mock(interfaces=("r0", "r1")), ("r0", "r1"))
    router = LinuxRouterDut(Mock(), Mock(), Mock(), interfaces=("r0", "r1"))
    router._start = reading()
    monkeypatch.setattr(router, "_read", lambda: replace(reading(), interfaces={"r0": reading().interfaces["r0"]}))
    with pytest.raises(TestbedError, match="The interface r1 is gone"):
        router.begin_trial()


@pytest.mark.parametrize(("mtu", "error"), [(1500, MissingResource), (70000, TestbedError)])
def test_what_one_card_does_not_take_back_leaves_all_else_restored(mtu: int, error: type[Exception]) -> None:
    rings, asked = {"ens0": 512, "ens1": 512}, []

    def run(argv: Sequence[str], stdin: str = "", **_: object) -> Completed:
        asked.append((argv[0], stdin))
        if "mtu 70000" in stdin:
            raise TestbedError("mtu greater than device maximum")
        if argv[1] == "-G" and (argv[2] == "ens1" or int(argv[4]) > 512):  # ens0 keeps what it was given
            rings[argv[2]] = int(argv[4])
        return Completed(0, f"Current hardware settings:\nRX:\t{rings[argv[2]]}\n" if argv[1] == "-g" else "", "")

    found = Found(links={"ens0": (mtu, True), "ens1": (1500, True)})
    links = CardLinks(IpRoute(Mock(run=run)), found, ("ens0", "ens1"))
    for name in rings:
        links._set(name, RING, "1024")
    found.affinities["ens0"] = {"/proc/irq/38/smp_affinity_list": "0-1"}
    with pytest.raises(error):
        links.remove()
    assert ("ip", "link set ens0 up\n") in asked
    assert rings == {"ens0": 1024, "ens1": 512} and ("tee", "0-1") in asked
    links.remove()  # nothing is left to restore


_LAB_SETTINGS = (*forwarding_sysctls(4, ()), *(f"net/ipv6/conf/{name}/disable_ipv6" for name in ("ens0", "ens1")))


@dataclass
class Lab(Settings):
    """A lab's host: its files below /run, and its cards, MTU and queues of each."""

    values: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_LAB_SETTINGS, "0"))
    files: dict[str, str] = field(default_factory=dict)
    cards: dict[str, list[str]] = field(default_factory=lambda: {"ens0": ["1500", "8"], "ens1": ["1500", "8"]})
    in_use: str = ""
    name: str = "the lab"
    read = staticmethod(lambda _: "")

    def run(self, argv: Sequence[str], *_: object, stdin: str = "", **__: object) -> Completed:
        match argv:
            case ["sh", "-c", write] if "mv" in write:
                self.files[write.split()[-1]] = stdin
            case ["cat", path] if path in self.files:
                return Completed(0, self.files[path], "")
            case ["rm", "-f", path]:
                self.files.pop(path, None)
            case ["ip", "link", "show", name]:
                return Completed(int(name not in self.cards), "", "")
            case ["ip", "-json", *words]:
                own = {"scope": "global", "local": "192.0.2.17", "prefixlen": 24}
                links = [
                    {"ifname": name, "mtu": mtu, "flags": ["UP"], "addr_info": [own] if name == self.in_use else []}
                    for name, (mtu, _) in self.cards.items()
                    if "dev" not in words or name in words
                ]
                return Completed(0, json.dumps(links), "")
            case ["ip", "-batch", *_]:
                for name, mtu in re.findall(r"link set (\S+) mtu (\d+)", stdin):
                    self.cards[name][0] = mtu
            case ["ethtool", "-L", name, _, queues]:
                self.cards[name][1] = queues
            case ["ethtool", "-l", name]:
                return Completed(0, f"Current hardware settings:\nCombined:\t{self.cards[name][1]}\n", "")
            case _:
                return super().run(argv)
        return Completed(0, "", "")


def run_in(lab: Lab, *cards: str) -> LinuxRouterDut:
    host: Any = lab
    router = LinuxRouterDut(host, Mock(), lambda _: Placement((0,), (1,), (0,)), interfaces=cards)
    router._versions = {"program": "6.8"}
    return router


def test_what_a_killed_run_left_on_a_labs_host_is_ended_and_restored_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []
    new = "ctbench.dut.linux.dut.OvsDaemons"
    monkeypatch.setattr(new, lambda control: Mock(stop=lambda: ended.append(control.folder)))
    lab, found = Lab(), Lab()
    killed = run_in(lab, *lab.cards)
    killed._sysctls.set(forwarding_sysctls(4, ()))
    killed._links.make(9000, 1, (1,))
    own = {f"net/ipv6/conf/{name}/disable_ipv6": "1" for name in lab.cards}
    killed._sysctls.set(own)
    assert (lab.values["net/ipv4/ip_forward"], *lab.cards.values()) == ("1", ["9000", "1"], ["9000", "1"])
    assert list(lab.files) == [FILE]

    topology = Topology(datapath="linux-router", ruleset="forward")
    changed = {name: [*card] for name, card in lab.cards.items()}
    with pytest.raises(MissingResource, match="no interface"):  # of other cards: it ends there
        run_in(lab, "ens2", "ens3").apply(topology)
    assert (lab.values, lab.cards) == (found.values | own, changed)
    assert ended == [FOLDER]

    lab.in_use = "ens1"  # since then: it is left as it is
    again = run_in(lab, "ens0", "ens1", "ens2")
    with pytest.raises(MissingResource):
        again.apply(topology)
    of_ens1 = {"net/ipv6/conf/ens1/disable_ipv6": "1"}
    assert (lab.values, lab.cards) == (found.values | of_ens1, found.cards | {"ens1": ["9000", "1"]})

    lab.in_use = ""
    with pytest.raises(MissingResource, match="no interface ens2"):
        again.apply(topology)
    assert (lab.values, lab.cards, lab.files) == (found.values, found.cards, {})


@pytest.mark.parametrize(
    "text",
    ['{"sysctls": {"net/ipv4/ip', "null", '{"links": {"ens0": [1500, true]}, "settings": {"ens0": {"new": ""}}}'],
)
def test_a_file_that_cannot_be_read_is_named_and_kept(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctbench.dut.linux.dut.OvsDaemons", Mock())
    lab = Lab(files={FILE: text})
    with pytest.raises(TestbedError, match=f"rm {FILE}"):
        run_in(lab, "ens0").apply(Topology(datapath="linux-router", ruleset="forward"))
    assert lab.files == {FILE: text}


def test_an_unknown_field_does_not_keep_the_file() -> None:
    host: Any = Lab(files={FILE: '{"since": "2027"}'})
    found = Found()
    found.read(host, set(), set())
    found.keep(host)
    assert not host.files


#: Seen: a virtio card in Linux 6.1, and the names of Intel's and Mellanox' drivers.
INTERRUPTS = """ 38:          0          0   IR-PCI-MSI 81920-edge      virtio2-config
 39:       7665          0   IR-PCI-MSI 81921-edge      virtio2-input.0
 40:          0          0   IR-PCI-MSI 81922-edge      virtio2-output.0
 50:          0          0   IR-PCI-MSI 81924-edge      mlx5_comp3@pci:0000:18:00.2
 51:          0          0   IR-PCI-MSI 81925-edge      i40e-ens1f0-TxRx-7
"""


@dataclass
class Interrupts:
    """A host with a card that requests its interrupts as it comes up, and sets their CPUs, as Intel's ice did."""

    name: str = "the lab"
    up: bool = True
    #: A card that is there no more.
    gone: str = ""
    cpus: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("38", "39", "40", "50", "51"), "0-1"))
    #: Of each card, and their scope.
    address: tuple[str, str] = ("fe80::5054:ff:fe12:3456", "link")

    def run(self, argv: Sequence[str], *_: object, check: bool = True, stdin: str = "") -> Completed:
        if self.gone and (self.gone in argv or f" {self.gone} " in stdin):
            if check:
                raise TestbedError(f'Cannot find device "{self.gone}"')
            return Completed(1, "", "")
        said = ""
        match argv:
            case ["ip", "-batch", *_]:
                for line in stdin.splitlines():
                    self.up = line.endswith(" up") or (self.up and not line.endswith(" down"))
                    self.cpus |= dict.fromkeys(self.cpus, "0") if line.endswith(" up") else {}
            case ["ip", "-json", *_]:
                found = dict(zip(("local", "scope"), self.address, strict=True))
                said = json.dumps([{"mtu": 1500, "flags": ["UP"], "addr_info": [found]}])
            case ["readlink", *_]:
                said = "/sys/devices/pci0000:00/0000:00:05.0/virtio2"
            case ["ls", "/sys/class/net/a/device/../msi_irqs"]:
                said = "\n".join(self.cpus)
            case ["grep", *_]:
                files = {f"/proc/irq/{number}/smp_affinity_list": cpus for number, cpus in self.cpus.items()}
                said = "".join(f"{path}\0{cpus}\n" for path, cpus in files.items() if path in argv)
            case ["tee", path]:
                self.cpus[path.split("/")[3]] = stdin
        return Completed(0, said, "")

    def read(self, _: str) -> str:
        return INTERRUPTS if self.up else INTERRUPTS.replace("mlx5_comp3@pci:0000:18:00.2", "").replace("-7", "")


def test_the_interrupts_of_a_queue_go_to_one_cpu_also_those_of_a_virtio_card() -> None:
    host: Any = Interrupts()
    links = CardLinks(IpRoute(host), Found(), ("a",))
    for _ in range(2):  # two topologies
        links.make(9000, 1, (4, 5))
        links.up()
        assert host.cpus == {"38": "4", "39": "4", "40": "4", "50": "5", "51": "5"}
        assert links.differences() == []
    host.cpus["51"] = "0"
    assert [line.partition(" (")[0] for line in links.differences()] == [
        "/proc/irq/51/smp_affinity_list: asked 5, found 0"
    ]
    links.remove()
    assert set(host.cpus.values()) == {"0-1"}


def test_a_card_with_an_address_of_its_own_is_not_touched() -> None:
    host: Any = Interrupts(address=("192.0.2.17", "global"))
    links = CardLinks(IpRoute(host), Found(), ("a",))
    with pytest.raises(MissingResource, match=r"the lab: a has the address 192\.0\.2\.17 of its own"):
        links.make(9000, 1, (4, 5))
    links.remove()
    assert host.up and set(host.cpus.values()) == {"0-1"}


def test_a_card_that_is_gone_leaves_the_other_one_restored() -> None:
    host: Any = Interrupts()
    links = CardLinks(IpRoute(host), Found(), ("b", "a"), offloads=False)
    links.make(9000, 1, (4, 5))
    links.up()
    links._found.settings["b"][RING.what] = "512"
    host.gone = "b"
    links.remove()
    assert set(host.cpus.values()) == {"0-1"} and host.up


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("192.0.2.1", "192.0.2.2"),
        ("0.0.0.0", "255.255.255.255"),  # DHCP
        ("192.0.2.1", "192.0.2.3"),  # NetBIOS
        ("192.0.2.1", "239.255.255.250"),
        ("fe80::1", "ff02::fb"),
    ],
)
def test_the_hosts_own_entries_and_expired_ones_which_are_not_listed_are_not_the_duts(
    source: str, destination: str
) -> None:
    listed = f"udp 17 29 src={source} dst={destination} sport=1 dport=22 [UNREPLIED]\n"
    said = {"cat": "3", "ip": "2: eth0    inet 192.0.2.2/30 brd 192.0.2.3 scope global", "ipv4": listed, "ipv6": ""}
    host = Mock(run=lambda argv, **_: Mock(stdout=said[argv[-1] if argv[0] == "conntrack" else argv[0]]))
    assert netfilter.ConntrackTable(host).count() == 0
    said["ipv6"] = "udp 17 29 src=2001:2:0:16::1 dst=2001:2:0:48::1 sport=1 dport=22 [UNREPLIED]\n"
    said["ipv4"] += "udp 17 29 src=16.0.0.1 dst=48.0.0.1 sport=1 dport=22 [UNREPLIED]\n"
    assert netfilter.ConntrackTable(host).count() == 2

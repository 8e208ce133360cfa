"""Rule files of users' own, as people write them: what counts is what the kernel makes of them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.linux.netfilter import Netfilter, Rules
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

SHIPPED = """*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -i r1 -o r0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i r0 -o r1 -m conntrack --ctstate NEW -j ACCEPT
COMMIT
"""
#: In the words that people use, and not the tools.
WRITTEN = {
    "long options": ("iptables", "*filter\n--append FORWARD --protocol udp --jump ACCEPT\nCOMMIT\n"),
    "counters before rules": ("iptables", "*filter\n:FORWARD DROP [7:420]\n[5:300] -A FORWARD -j ACCEPT\nCOMMIT\n"),
    "a chain of one's own, inserted rules": (
        "iptables",
        "*filter\n:new - [0:0]\n-A new -j ACCEPT\n-I FORWARD -m state --state NEW -g new\n"
        "-I FORWARD 1 -s 10.0.0.0/255.0.0.0 -j DROP\nCOMMIT\n",
    ),
    "one rule for two addresses": ("iptables", "*filter\n-A FORWARD ! -i r0 -s 10.0.0.1,10.0.0.2 -j DROP\nCOMMIT\n"),
    "IPv6": (
        "ip6tables",
        "# mine\n*filter\n-A FORWARD -p icmpv6 -j ACCEPT\n-A FORWARD -m conntrack --ctstate ESTABLISHED,NEW -p tcp "
        "--dport http -s 2001:0db8:0::/32 -j ACCEPT\nCOMMIT\n",
    ),
    "commands": (
        "nftables",
        "add table ip mine\nadd chain ip mine f { type filter hook forward priority 10; }\n"
        "add rule ip mine f tcp dport { 443, 80 } accept\n",
    ),
    "interfaces by their index": (
        "nftables",
        "table inet mine {\n chain f {\n  type filter hook forward priority mangle;\n"
        "  iif r0 oif r1 accept; iif lo drop;\n }\n}\n",
    ),
    "made again": ("nftables", "table ip mine\ndelete table ip mine\ntable ip mine { chain empty { }; }\n"),
    "sets in another order": (
        "nftables",
        "table ip mine {\n set ports { type inet_service; elements = { 9, 1, https }; }\n"
        " chain f {\n  type filter hook forward priority 0;\n"
        "  ct state { new, established } tcp dport @ports counter accept\n }\n}\n",
    ),
}


#: A set that packets fill, and a packet.
SEEN = "type ipv4_addr . inet_service; size 99; flags dynamic,timeout;"
SEND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))"


@pytest.fixture
def host(sandbox: Sandbox) -> Iterator[Sandbox]:
    """With two interfaces and no rules, and again without afterwards."""
    sandbox.run(["ip", "link", "add", "r0", "type", "veth", "peer", "name", "r1"])
    yield sandbox
    sandbox.run(["ip", "link", "del", "r0"])
    sandbox.run(["nft", "flush", "ruleset"])


@pytest.mark.parametrize("written", WRITTEN)
def test_a_correct_file_is_taken_however_it_is_written(host: Sandbox, written: str) -> None:
    netfilter, rules = Netfilter(host), Rules(*WRITTEN[written])

    netfilter.load(rules)

    assert netfilter.differences(rules) == []
    assert netfilter.listing(rules)
    assert set(host.run(["ls", "/sys/class/net"]).stdout.split()) == {"lo", "r0", "r1"}


def test_the_rules_that_a_killed_run_left_are_known_and_no_others(
    host: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctbench.dut.linux.netfilter._LOADED", str(tmp_path / "rules"))
    killed = Netfilter(host)
    killed.load(Rules("iptables", SHIPPED))
    killed.remember()
    Netfilter(host).require_none()
    host.run(["nft", "add", "table", "ip", "theirs"])
    with pytest.raises(TestbedError, match=r"rules of its own .*table ip theirs"):
        Netfilter(host).require_none()
    killed.forget()
    assert not any(tmp_path.iterdir())


def test_what_packets_add_to_a_set_is_no_difference(host: Sandbox) -> None:
    chain = "type filter hook output priority 0;\n add @seen { ip daddr . udp dport timeout 1m } counter accept"
    text = f"table ip mine {{\n set seen {{ {SEEN} }}\n chain f {{\n {chain}\n }}\n}}\n"
    netfilter, rules = Netfilter(host), Rules("nftables", text)
    netfilter.load(rules)
    host.run(["ip", "link", "set", "lo", "up"])
    host.run([sys.executable, "-c", SEND])
    assert "127.0.0.1 . 9" in host.run(["nft", "list", "set", "ip", "mine", "seen"]).stdout
    assert netfilter.differences(rules) == []


@pytest.mark.parametrize(
    ("family", "text", "said"),
    [
        ("iptables", "*filter\n-A FORWARD -j LOST\nCOMMIT\n", "iptables-restore does not take it"),
        ("iptables", "*filter\n-A FORWARD -j ACCEPT\n", "iptables-restore does not take it"),
        ("ip6tables", "*filter\n-A FORWARD -s 10.0.0.1 -j DROP\nCOMMIT\n", "ip6tables-restore does not take it"),
        ("nftables", "table ip mine {\n chain f { type filter hook forwards priority 0; }\n}\n", "does not take it"),
        ("nftables", "define port = 80\n# nothing more\n", "no rule"),
        ("iptables", "# *filter\n# -A FORWARD -j ACCEPT\n# COMMIT\n", "no rule"),
        # The second section removes what the first one has added.
        ("iptables", SHIPPED + SHIPPED.replace("NEW", "INVALID"), "-A FORWARD .* NEW -j ACCEPT"),
    ],
)
def test_rules_that_do_not_come_into_effect_are_refused(host: Sandbox, family: str, text: str, said: str) -> None:
    with pytest.raises(TestbedError, match=f"mine.rules: .*{said}|rules differ .*{said}") as refusal:
        Netfilter(host).load(Rules(family, text, "mine.rules"))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("iptables -I FORWARD -j DROP", "+-A FORWARD -j DROP"),
        ("iptables -t nat -A POSTROUTING -j MASQUERADE", "+*nat"),
        ("nft add rule ip filter FORWARD counter", "+counter"),
        ("nft add table inet somebodys", "+table inet somebodys {"),
        ("nft flush ruleset", "-*filter"),
    ],
)
def test_what_is_there_besides_or_not_any_more_is_found(host: Sandbox, command: str, found: str) -> None:
    netfilter, rules = Netfilter(host), Rules("iptables", SHIPPED)
    netfilter.load(rules)
    host.run(command.split())

    assert found in netfilter.differences(rules)

"""`./run doctor --write`: a testbed file from what is found, which loads, and replaces none without being asked."""

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.yaml_files import load, make
from ctbench.cli import doctor
from ctbench.doctor import found
from ctbench.doctor.found import FreeCard
from ctbench.doctor.site import plan_hosts
from ctbench.doctor.testbed_file import make_testbed_file
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import BOOT, ISOLATED, NET, NODE, PCI, Machine
from ctbench.testbed.config import TestbedConfig

from .doctor_facts import XEON, ReplayedHost

#: What ip-address(8) says of the ports of an X710 whose first one the host is reached by, and of what is not a card.
SHOWN = [
    {"ifname": "lo", "link_type": "loopback", "flags": ["UP", "LOWER_UP"]},
    {"ifname": "ens1f0", "link_type": "ether", "flags": ["UP", "LOWER_UP"], "address": "3c:fd:fe:00:00:00",
     "addr_info": [{"scope": "global", "local": "192.0.2.7"}]},
    {"ifname": "ens1f1", "link_type": "ether", "flags": ["UP"], "address": "3c:fd:fe:00:00:01"},
    {"ifname": "ens1f2", "link_type": "ether", "flags": ["UP", "LOWER_UP"], "address": "3c:fd:fe:00:00:02",
     "addr_info": [{"scope": "link", "local": "fe80::1"}]},
    {"ifname": "ens1f3", "link_type": "ether", "flags": ["UP", "LOWER_UP"], "address": "3c:fd:fe:00:00:03"},
    {"ifname": "ens2", "link_type": "ether", "flags": ["UP", "LOWER_UP"], "master": "bond0"},
    {"ifname": "ens3", "link_type": "ether", "flags": ["UP", "LOWER_UP"]},
    {"ifname": "ens4", "link_type": "ether", "flags": ["UP", "LOWER_UP"]},
    {"ifname": "vlan7", "link_type": "ether", "link": "ens3", "flags": ["UP"]},
]  # fmt: skip
TAKEN = (
    "lo is not an Ethernet card; ens1f0 has an address; ens1f1 is down, or has no link; ens2 is a part of bond0; ens3 "
    "carries vlan7; ens4 has the default route; vlan7 is not an Ethernet card."
)
OVS = "2.0 /opt/ovs-3.3/sbin\n2.5 /opt/broken/sbin\n1.5 /opt/ovs-2.17/sbin\n"
TREX = "1700000000.5 /opt/trex/scripts\n1600000000.5 /opt/trex/old\n"
VFIO = "find /sys/bus/pci/drivers/vfio-pci"
BOUND = "0000:18:00.0 /sys/bus/pci/drivers/vfio-pci\n0000:18:00.1 /sys/bus/pci/drivers/vfio-pci\nbind x\n"
#: Two nodes: the card is on the second one.
NODES = {node: (*range(node * 6, node * 6 + 6), *range(node * 6 + 12, node * 6 + 18)) for node in (0, 1)}
CORES = tuple((cpu, cpu + 12) for cpu in range(12))
MACHINE = replace(XEON, usable_cpus=tuple(range(24)), cores=CORES, numa=NODES)


def device(name: str) -> str:
    """What an interface belongs to, below /sys/devices."""
    if name in ("lo", "vlan7"):
        return f"/sys/devices/virtual/net/{name}/device"
    below = f"0000:17:00.0/0000:18:00.{name[-1]}" if name.startswith("ens1") else name
    return f"/sys/devices/pci0000:17/{below}"


def elsewhere(shown: list[dict[str, Any]], machine: int = 1) -> list[dict[str, Any]]:
    """The same cards in another machine."""
    other: list[dict[str, Any]] = json.loads(json.dumps(shown).replace("3c:fd:fe:00", f"3c:fd:fe:0{machine}"))
    return other


class LabHost(ReplayedHost):
    """A host with an X710, all CPUs isolated but those of two cores."""

    def __init__(
        self,
        shown: list[dict[str, Any]],
        trex: str = "",
        uid: str = "0",
        isolated: str = "1-11,13-23",
        pages: tuple[int, int] = (16, 16),
    ) -> None:
        names = [each["ifname"] for each in shown]
        files = {ISOLATED: isolated, "/proc/4711/comm": "ovs-vswitchd"}
        for node, free in enumerate(pages):
            files |= {
                f"{NODE}/node{node}/hugepages/hugepages-1048576kB/free_hugepages": str(free),
                f"{NODE}/node{node}/hugepages/hugepages-2048kB/free_hugepages": "512",
            }
        for port in range(4):
            files |= {
                f"{PCI}/0000:18:00.{port}/class": "0x020000",
                f"{PCI}/0000:18:00.{port}/numa_node": "1",
                f"{NET}/ens1f{port}/speed": "10000",
            }
        drivers = "\n".join(f"{device(name)}/i40e" for name in names)
        super().__init__(
            {
                "ip -json address": json.dumps(shown),
                "ip -json -4 route show default": json.dumps([{"dst": "default", "dev": "ens4"}]),
                f"readlink -m {NET}/lo/device/driver": drivers,
                f"readlink -m {NET}/lo/device": "\n".join(map(device, names)),
                "find /opt /usr/local -maxdepth 3": OVS,
                "find /opt /usr/local /home": trex,
                "grep": "\n".join(f"{path}\0{text}" for path, text in files.items()),
                "id -u": uid,
            }
        )


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> dict[str, LabHost]:
    """Two hosts with the same card, one of them with TRex."""
    hosts = {"dut": LabHost(SHOWN), "tgen": LabHost(elsewhere(SHOWN), TREX), "local": LabHost(elsewhere(SHOWN, 2))}
    monkeypatch.setattr(HostPool, "host", lambda _, name: hosts[name])
    monkeypatch.setattr(found, "read_machine", lambda _: MACHINE)
    monkeypatch.setattr(found, "_fits", lambda _host, prefix, _ports: "ovs" in prefix)
    return hosts


def read(text: str) -> TestbedConfig:
    return make(yaml.safe_load(text), "mylab.yaml", TestbedConfig)


def test_a_lab_s_file_loads_and_has_the_free_cards_their_node_s_cpus_and_what_is_installed(lab: Any) -> None:
    text = make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")
    made: Any = read(text)
    (dut,) = made.duts
    assert (dut.type, dut.host, dut.ovs.prefix) == ("ovs-dpdk", "dut", "/opt/ovs-3.3")
    assert (dut.ports.client, dut.ports.server, dut.ports.speed_gbit) == ("0000:18:00.2", "0000:18:00.3", 10)
    assert (dut.memory_mb, made.cpus.housekeeping) == (4096, [0, 12])
    # A thread of each core before the second ones, of the card's node.
    assert made.cpus.pmd == [6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23]
    trex = made.generator
    assert (trex.host, trex.trex_home, trex.socket, trex.cores) == ("tgen", "/opt/trex/scripts", 1, 12)
    assert (trex.client.interface, trex.client.mac) == ("0000:18:00.2", "3c:fd:fe:01:00:02")
    assert trex.cpus == [0, 12, *made.cpus.pmd]
    assert (made.hosts["dut"].login, made.hosts["dut"].sudo, made.wait_for_hosts_s) == ("root@dut.lab", False, 0)
    assert f"# Not taken: {TAKEN}\n" in text and "# Found: /opt/trex/scripts, /opt/trex/old.\n" in text
    assert "# Found: /opt/ovs-3.3, /opt/ovs-2.17.\n" in text
    assert "# ens1f2, 0000:18:00.2, driver i40e, 10 Gbit/s, NUMA node 1\n" in text
    assert "32 of 32 of 1048576 kB free" in text
    assert [plan.name for plan in plan_hosts(made)] == ["dut", "tgen"]


def test_without_open_vswitch_and_isolated_cpus_the_kernel_is_the_dut(lab: dict[str, LabHost]) -> None:
    lab["dut"] = LabHost(SHOWN, uid="1000\n", isolated="")
    lab["dut"].answers["find /opt /usr/local -maxdepth 3"] = ""
    made: Any = read(text := make_testbed_file("mylab", "ci@dut.lab", "root@tgen.lab"))
    assert [each.type for each in made.duts] == ["linux-router", "linux-bridge"]
    assert (made.duts[0].ports.client, made.cpus.pmd, made.hosts["dut"].sudo) == ("ens1f2", "auto", True)
    assert "No Open vSwitch with DPDK was found" in text


@pytest.mark.parametrize(
    ("dut", "generator", "trex", "kind", "places"),
    [
        ("root@dut.lab", "", "", "software", ("dut", "local")),
        ("root@dut.lab", "", TREX, "trex", ("dut", "local")),
        ("", "root@tgen.lab", "", "trex", ("local", "tgen")),
    ],
)
def test_one_of_the_hosts_may_be_this_machine(
    dut: str, generator: str, trex: str, kind: str, places: tuple[str, str], lab: dict[str, LabHost]
) -> None:
    lab["local"] = LabHost(elsewhere(SHOWN, 2), trex)
    made: Any = read(make_testbed_file("mylab", dut, generator))
    assert (made.generator.type, (made.duts[0].host, made.generator.host)) == (kind, places)


def test_without_hosts_it_is_this_machine_with_sandboxes(lab: Any) -> None:
    made: Any = read(text := make_testbed_file("here", "", ""))
    assert [(each.type, each.host, each.ports.kind) for each in made.duts] == [
        ("ovs-dpdk", "sandbox", "memif"),
        ("linux-router", "sandbox", "veth"),
        ("linux-bridge", "sandbox", "veth"),
    ]
    assert (made.generator.type, made.cpus.pmd, made.hosts) == ("software", "auto", {})
    assert "hosts:" not in text and "isolated: 1-11,13-23." in text


def test_cards_that_dpdk_has_come_first(lab: dict[str, LabHost]) -> None:
    lab["dut"].answers[VFIO] = BOUND
    made: Any = read(make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab"))
    assert (made.duts[0].ports.client, made.duts[0].ports.server) == ("0000:18:00.0", "0000:18:00.1")


@pytest.mark.parametrize(
    ("device", "place"),
    [
        ("/dev/vfio/42", "/sys/kernel/iommu_groups/42/devices/"),
        ("/dev/vfio/noiommu-0", "/sys/kernel/iommu_groups/0/devices/"),
        ("/dev/vfio/devices/vfio1", "/sys/class/vfio-dev/vfio1/device"),
        ("/dev/uio3", "/sys/class/uio/uio3/device"),
        ("/dev/infiniband/uverbs0", "/sys/class/infiniband_verbs/uverbs0/device"),
    ],
)
@pytest.mark.parametrize("login", ["root", "ci"])
@pytest.mark.parametrize("driven", ["0000:18:00.0", "0000:18:0a.1"])
def test_cards_that_a_process_drives_are_not_taken(
    device: str, place: str, login: str, driven: str, lab: dict[str, LabHost]
) -> None:
    before = "" if login == "root" else "env sudo -n "
    lab["dut"] = LabHost(SHOWN, uid="0" if login == "root" else "1000")
    lab["dut"].answers |= {
        "env sudo -n id -u": "0\n",
        f"{before}find /proc": f"/proc/4711/fd/8 /dev/vfio/vfio\n/proc/4711/fd/9 {device}\n",
        f"find {place}": f"{place} ../../0000:17:00.0/{driven}\n",
        f"find {PCI}/": f"{PCI}/0000:18:00.0/ virtfn0 ../0000:18:0a.1\n",
        VFIO: BOUND,
    }
    text = make_testbed_file("mylab", f"{login}@dut.lab", "root@tgen.lab")
    made: Any = read(text)
    assert (made.duts[0].ports.client, made.duts[0].ports.server) == ("0000:18:00.2", "0000:18:00.3")
    assert "; 0000:18:00.0 is used by ovs-vswitchd (process 4711)." in text and "is not known" not in text


def test_it_is_said_where_only_root_would_see_who_drives_a_card(lab: dict[str, LabHost]) -> None:
    lab["dut"].answers[VFIO] = BOUND
    assert "is not known" not in make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")
    lab["dut"].answers["id -u"] = "1000"  # whom sudo asks for a password
    text = make_testbed_file("mylab", "ci@dut.lab", "root@tgen.lab")
    assert read(text).hosts["dut"].sudo
    assert "  # Whether a process of another user drives one of these is not known." in text


def card(interface: str, address: str, speed: int, node: int = 0, port: str = "", driver: str = "i40e") -> FreeCard:
    return FreeCard(address, interface, driver, node, "", speed, port or address)


ONBOARD = (card("eno3", "0000:01:00.0", 1000), card("eno4", "0000:01:00.1", 1000))
#: Two virtual functions of each port of a card.
FUNCTIONS = tuple(
    card(f"v{port}{each}", f"0000:3b:{2 + 8 * port:02x}.{each}", 25_000, port=f"0000:3b:00.{port}")
    for port in (0, 1)
    for each in (0, 1)
)


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        (ONBOARD, ["eno3 eno4"]),
        ((*ONBOARD, card("a", "0000:3b:00.0", 100_000), card("b", "0000:3b:00.1", 100_000)), ["a b", "eno3 eno4"]),
        ((*ONBOARD, card("a", "0000:3b:00.0", 100_000), card("b", "0000:5e:00.0", 100_000)), ["a b", "eno3 eno4"]),
        # On two nodes.
        (
            (card("a", "0000:3b:00.0", 9000), card("b", "0000:af:00.0", 9000, 1), card("c", "0000:5e:00.0", 9000)),
            ["a c"],
        ),
        ((card("a", "0000:3b:00.0", 25_000), card("b", "0000:af:00.0", 25_000, 1)), ["a b"]),
        (
            (*ONBOARD, *(card("", f"0000:3b:00.{port}", 0, driver="vfio-pci") for port in (0, 1))),
            ["0000:3b:00.0 0000:3b:00.1", "eno3 eno4"],
        ),
        (FUNCTIONS, ["v00 v10"]),
        (FUNCTIONS[:2], ["v00 v01"]),
        ((*FUNCTIONS[:2], *ONBOARD), ["eno3 eno4"]),
        ((*FUNCTIONS[:2], card("a", "0000:af:00.0", 25_000, 1)), ["v00 a"]),
    ],
)
def test_pairs_are_of_two_ports_of_one_node_and_the_fastest_come_first(
    cards: tuple[FreeCard, ...], expected: list[str], lab: dict[str, LabHost]
) -> None:
    seen = replace(found.look(lab["dut"], "pci", sudo=False), cards=cards)
    assert [" ".join(each.interface or each.address for each in pair) for pair in seen.pairs(pci=True)] == expected


@pytest.mark.parametrize(("pages", "memory_mb"), [((16, 16), 4096), ((28, 4), 4096), ((29, 3), 1024), ((32, 0), 1024)])
def test_memory_is_as_much_as_the_card_s_node_has(
    pages: tuple[int, int], memory_mb: int, lab: dict[str, LabHost]
) -> None:
    lab["dut"] = LabHost(SHOWN, pages=pages)
    made: Any = read(make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab"))
    assert made.duts[0].memory_mb == memory_mb


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", ["/opt/trex-1.2/v3.08", "/opt/trex/v3.04", "/opt/trex/v2.106"]),
        # Where one does not tell its release, the newest by its age.
        (TREX, ["/opt/trex/scripts", "/opt/trex/v2.106", "/opt/trex/old", "/opt/trex-1.2/v3.08", "/opt/trex/v3.04"]),
    ],
)
def test_the_newest_trex_is_taken(more: str, found: list[str], lab: dict[str, LabHost]) -> None:
    releases = "1600000000.6 /opt/trex/v2.106\n1500000000.5 /opt/trex-1.2/v3.08\n1400000000.5 /opt/trex/v3.04\n"
    lab["tgen"] = LabHost(elsewhere(SHOWN), releases + more)
    made: Any = read(text := make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab"))
    assert made.generator.trex_home == found[0]
    assert f"# Found: {', '.join(found)}." in text


@pytest.mark.parametrize("name", ["2026-11-29", "7", "on", "null", "1e3"])
def test_a_name_that_yaml_takes_for_something_else_is_a_name(name: str, lab: Any) -> None:
    assert read(make_testbed_file(name, "", "")).name == name


@pytest.mark.parametrize(
    ("dut", "generator"), [("root@dut.lab", "root@alias.lab"), ("root@dut.lab", ""), ("", "root@alias.lab")]
)
def test_two_names_of_one_host_are_a_mistake(dut: str, generator: str, lab: dict[str, LabHost]) -> None:
    lab["tgen"] = lab["local"] = lab["dut"]
    names = [name or "this machine" for name in (dut, generator)]
    with pytest.raises(ConfigError, match=rf"^--dut and --generator: {' and '.join(names)} are one host: both have"):
        make_testbed_file("mylab", dut, generator)


def test_a_clone_with_the_same_mac_addresses_is_another_host(lab: dict[str, LabHost]) -> None:
    lab["tgen"] = LabHost(SHOWN)
    lab["tgen"].answers["grep"] += f"\n{BOOT}\0another"
    assert len(read(make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")).hosts) == 2


def test_further_pairs_of_free_cards_stand_in_comments_which_make_a_file_that_loads(lab: dict[str, LabHost]) -> None:
    free = [
        {**each, "flags": ["UP", "LOWER_UP"], "addr_info": []} if each["ifname"].startswith("ens1f") else each
        for each in SHOWN
    ]
    lab["dut"] = LabHost(free)
    assert "more_pairs" not in make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")
    lab["tgen"] = lab["local"] = LabHost(elsewhere(free))
    for dut, generator in (("root@dut.lab", "root@tgen.lab"), ("root@dut.lab", "")):
        text = make_testbed_file("mylab", dut, generator)
        assert read(text).duts[0].ports.pairs == 1
        made: Any = read(
            re.sub(r"^( *)# (more_pairs:|  - client:|    server_port:)", r"\1\2", text, flags=re.MULTILINE)
        )
        assert [pair.server for pair in made.duts[0].ports.more_pairs] == ["0000:18:00.3"]
    lab["dut"].answers["find /opt /usr/local -maxdepth 3"] = ""
    assert '# more_pairs: [{client: "ens1f2", server: "ens1f3"}]' in make_testbed_file("mylab", "root@dut.lab", "")


@pytest.mark.parametrize(
    ("dut", "generator", "said"),
    [
        ("root@dut.lab", "root@dut.lab", "are one host|is one host"),
        ("ro ot@dut.lab", "", r'--dut: user: "ro ot"'),
        ("root@", "", "--dut: address"),
    ],
)
def test_what_is_no_login_is_a_mistake(dut: str, generator: str, said: str, lab: Any) -> None:
    with pytest.raises(ConfigError, match=said):
        make_testbed_file("mylab", dut, generator)


def test_too_few_cards_and_a_host_out_of_reach_are_a_sentence(
    lab: dict[str, LabHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab["dut"] = LabHost(SHOWN[:4])
    with pytest.raises(
        MissingResource,
        match=r"dut: two cards with a PCI address are needed.*ens1f2, 0000:18:00\.2.* "
        "is free; lo is not an Ethernet card; ens1f0 has an address",
    ):
        make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")

    def unreachable(_: HostPool, name: str) -> Any:
        raise TestbedError(f"{name}: Name or service not known.")

    monkeypatch.setattr(HostPool, "host", unreachable)
    with pytest.raises(MissingResource, match=r"^dut: Name or service not known\.$"):
        make_testbed_file("mylab", "root@dut.lab", "")


def test_what_a_host_says_stays_in_its_comment(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile: Machine = replace(MACHINE, distribution="Debian\nname: other\x1b[31m")
    monkeypatch.setattr(found, "read_machine", lambda _: hostile)
    text = make_testbed_file("here", "", "")
    assert read(text).name == "here"
    assert "# Debian name: other\\x1b[31m, Linux" in text
    lab["dut"] = LabHost([{**each, "ifname": each["ifname"].replace("ens1f2", "ens1\x1bf2")} for each in SHOWN])
    text = make_testbed_file("mylab", "root@dut.lab", "root@tgen.lab")
    assert "      # ens1\\x1bf2, 0000:18:00.2, driver i40e" in text


class Terminal(io.StringIO):
    """Where somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdin", "status", "said"),
    [
        (io.StringIO("y\n"), 4, "mylab.yaml: is there already.\n  Expected another name, or a terminal to ask you on."),
        (Terminal("n\n"), 4, "mylab.yaml: is kept as it is."),
        (Terminal(""), 4, "mylab.yaml: is kept as it is."),
        (Terminal("y\n"), 0, ""),
    ],
)
def test_a_file_that_is_there_is_replaced_only_if_the_user_says_so(
    stdin: io.StringIO, status: int, said: str, lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    status_of: Callable[..., int], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(doctor, "own_files", lambda _: tmp_path)
    monkeypatch.setattr(doctor, "examine", lambda testbed, _: iter(()))
    monkeypatch.setattr(sys, "stdin", stdin)
    file = tmp_path / "mylab.yaml"
    file.write_text("mine")
    assert status_of("doctor", "--write", "mylab") == status
    printed = capsys.readouterr()
    assert said in printed.err
    assert (file.read_text() == "mine") == bool(status)
    if not status:
        assert load("testbeds", str(file), TestbedConfig).name == "mylab"
        assert re.search(r"^Testbed mylab \(.*mylab\.yaml\)$", printed.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--write", "My Lab"], 4, 'run: --write: "My Lab" is not a name.'),
        (["--dut", "root@dut.lab"], 2, "--dut and --generator need --write"),
        (["--write", "mylab", "local"], 2, "local is one argument too many"),
        (["no-such-testbed"], 4, "run: "),
        (["/dev/null"], 4, "run: "),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    arguments: list[str], status: int, said: str, status_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("doctor", *arguments) == status
    assert said in capsys.readouterr().err

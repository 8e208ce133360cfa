"""What the doctor says of a host: its cards, CPUs and hugepages, what is installed and runs there, rights and clock."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.yaml_files import load
from ctbench.doctor import system
from ctbench.doctor.examine import CHECKS, checks_of
from ctbench.dut.linux.dut import PROGRAMS
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.registry import KINDS
from ctbench.hosts import machine as machines
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.trex import source
from ctbench.traffic.trex.client import CLIENT as TREX_CLIENT
from ctbench.traffic.trex.client import MARK
from ctbench.traffic.trex.source import TrexGeneratorConfig

from .doctor_facts import CARDS, XEON, example, kernels_card, plans, site, vfio_links, xeon_facts

#: A situation, and what the doctor has to say of it: the state of a row, words of what is found, and of the remedy.
Said = tuple[Callable[[], machines.Finding], str, str, tuple[str, ...]]


@pytest.fixture(autouse=True)
def no_trex_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)


def row(
    what: str,
    facts: machines.HostFacts | None = None,
    answers: Mapping[str, str] | None = None,
    host: str = "dut",
    **testbed: Any,
) -> machines.Finding:
    """What is found of this on a host of the example testbed, with keys of that changed."""
    plan = plans(example(**testbed))[host]
    at = site(plan, facts, answers)
    return {finding.what: finding for _, check in checks_of(plan) for finding in check(at)}[what]


def local_row(what: str, facts: machines.HostFacts, **testbed: Any) -> machines.Finding:
    """What is found of the CPUs or the memory of this machine, for the local testbed."""
    local = load("testbeds", "local", TestbedConfig).model_dump() | testbed
    at = site(plans(TestbedConfig.model_validate(local))["local"], facts)
    return {finding.what: finding for _, check in CHECKS[1:3] for finding in check(at)}[what]


def expect(finding: machines.Finding, state: str, found: str = "", *remedy: str) -> None:
    assert finding.state == state
    assert found in finding.found
    assert all(words in finding.remedy for words in remedy), finding.remedy


# Cards.

CARD, LINK, NUMA = (f"{what} {CARDS[0]}" for what in ("card", "link of", "NUMA of"))
CLIENT, SERVER = "04:3f:72:f2:8f:32", "04:3f:72:f2:8f:33"
DUT_CLIENT, DUT_SERVER = "3c:fd:fe:00:00:02", "3c:fd:fe:00:00:03"
WITH_DRIVERCTL = kernels_card(xeon_facts(programs=frozenset({"driverctl"})), CARDS[0], "ens1f2", CLIENT)
DOWN = kernels_card(xeon_facts(), CARDS[0], "ens1f2", CLIENT, up=False)
ONE_MELLANOX = kernels_card(xeon_facts(links={}), CARDS[0], "ens1f0", CLIENT, driver="mlx5_core")
MELLANOX = kernels_card(ONE_MELLANOX, CARDS[1], "ens1f1", CLIENT, driver="mlx5_core")
WITHOUT_CARDS = {path: text for path, text in xeon_facts().files.items() if machines.PCI not in path}
NO_IOMMU = {path: target for path, target in vfio_links().items() if "iommu" not in path}
TWO_NODES = {"numa": {0: (0, 1, 2, 3), 1: tuple(range(4, 24))}}
OTHER_NODE = {f"{machines.PCI}/{card}/numa_node": "1" for card in CARDS}

OF_CARDS: dict[str, Said] = {
    # Not what a login may use (CPUs 0 and 12), and not the master and latency threads of TRex.
    **{f"the article's {host}, {what}": (partial(row, what, host=host), "ok", found, ())
       for host in ("dut", "tgen")
       for what, found in {CARD: "", "IOMMU": "", "CPUs": "", "frequency governor": "", "hugepages": "",
                           "isolated CPUs": "1-11,13-23, which cover 1-"}.items()},
    "a card of DPDK's": (partial(row, CARD), "ok", "ovs-dpdk, client: DPDK's, driver vfio-pci", ()),
    "cards in groups": (partial(row, "IOMMU"), "ok", "on, the cards are in group 40, 41", ()),
    "a link that vfio hides": (partial(row, LINK), "unknown", "", ()),
    "the article's masks": (
        partial(row, "hyper-threads"), "unknown", "CPUs 1+13, 2+14, 3+15, 4+16 share a core", ()),
    "a card in the kernel's hands": (
        partial(row, CARD, WITH_DRIVERCTL), "bad", "driver i40e",
        ("modprobe vfio-pci && driverctl set-override 0000:18:00.2 vfio-pci",)),
    "its link": (partial(row, LINK, WITH_DRIVERCTL), "ok", f"up, 10 Gbit/s; MAC {CLIENT}", ()),
    "a virtio card's link": (
        partial(row, LINK, kernels_card(xeon_facts(), CARDS[0], "enp2s0", CLIENT, below="virtio1/")), "ok",
        f"MAC {CLIENT}", ()),
    "without driverctl": (partial(row, CARD, DOWN), "bad", "", ("dpdk-devbind.py --bind=vfio-pci 0000:18:00.2",)),
    "a link that is down": (partial(row, LINK, DOWN), "bad", "", ()),
    "a card that DPDK shares with the kernel": (partial(row, CARD, MELLANOX), "ok", "", ()),
    "and needs no IOMMU": (partial(row, "IOMMU", MELLANOX), "unknown", "", ()),
    "a card that is not there": (
        partial(row, CARD, machines.HostFacts(XEON, WITHOUT_CARDS)), "bad", "there is no such card", ()),
    "an IOMMU that is off": (
        partial(row, "IOMMU", xeon_facts(files={machines.CMDLINE: "quiet"}, links=NO_IOMMU)), "bad", "",
        ("intel_iommu=on iommu=pt",)),
    "an IOMMU that was asked for": (
        partial(row, "IOMMU", xeon_facts(links=NO_IOMMU)), "bad", "asked for", ("firmware",)),
    "vfio without an IOMMU": (
        partial(row, "IOMMU", xeon_facts(files={machines.NOIOMMU: "Y"}, links=NO_IOMMU)), "unknown", "", ()),
    "CPUs on another node": (
        partial(row, NUMA, xeon_facts(TWO_NODES, {f"{machines.NODE}/node1/x": ""})), "bad",
        "node 0, and CPU 4,13,14,15,16 is on another", ()),
    "TRex on another node": (
        partial(row, NUMA, xeon_facts({"numa": {0: (), 1: tuple(range(24))}}, OTHER_NODE), host="tgen"), "bad", "",
        ("set generator.socket: 1",)),
}  # fmt: skip


def wiring(
    *, dut: str = "ovs-dpdk", dut_macs: tuple[str, str] = ("", ""), other_mac: str = SERVER, **client: str
) -> machines.Finding:
    """The row of the client's port."""
    generator = example().generator.model_dump()
    generator["client"] |= client
    generator["server_port"]["mac"] = other_mac
    macs = {machines.Card(dut, side, "0"): mac for side, mac in zip(("client", "server"), dut_macs, strict=True)}
    macs |= {machines.Card("generator", side, "1"): "" for side in ("client", "server")}
    bridges = KINDS[dut].bridges
    return next(TrexGeneratorConfig.model_validate(generator).examine_wiring(macs, bridges=bridges))


ROUTER = partial(wiring, dut="linux-router")
SHOWN = partial(ROUTER, dut_macs=(DUT_CLIENT, DUT_SERVER))
TO_CLIENT = ("generator.client.dest_mac",)

OF_WIRING: dict[str, Said] = {
    "frames through a bridge": (wiring, "ok", f"{SERVER}, TRex' other port", ()),
    "frames to oneself": (partial(wiring, dest_mac=CLIENT), "bad", "", TO_CLIENT),
    "frames without a destination": (partial(wiring, dest_mac=""), "unknown", "", ()),
    "frames to a gateway": (partial(wiring, dest_mac="", gateway="1.1.1.1"), "unknown", "gateway", ()),
    "a router does not send frames for TRex' other port on": (SHOWN, "bad", "", TO_CLIENT),
    "frames to a router": (partial(SHOWN, dest_mac=DUT_CLIENT), "ok", f"{DUT_CLIENT}, the DUT's client port", ()),
    "crossed cables": (partial(SHOWN, dest_mac=DUT_SERVER), "bad", DUT_CLIENT, TO_CLIENT),
    "a router whose kernel shows no port": (partial(ROUTER, dest_mac=DUT_CLIENT), "unknown", "", ()),
    "no address at all": (partial(wiring, dest_mac="", other_mac=""), "bad", "", ("generator.server_port.mac",)),
}

# CPUs and memory.


def small(*threads: str, **files: str) -> machines.HostFacts:
    """A machine with as many CPUs as `threads`, which hold the hyper-threads of each one's core; files of CPU 0's
    frequency policy."""
    topology = {f"{machines.CPU}/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in enumerate(threads)}
    policy = {f"{machines.CPU}/cpufreq/policy0/{name}": text for name, text in files.items()}
    groups = tuple(sorted({tuple(int(part) for part in text.split(",")) for text in threads}))
    machine = replace(
        XEON, usable_cpus=tuple(range(len(threads))), cores=groups, hugepages=(machines.Hugepages(2048, 0, 0),)
    )
    return machines.HostFacts(machine, topology | policy | {f"{machines.CPU}/online": f"0-{len(threads) - 1}"})


def on_two_nodes(facts: machines.HostFacts) -> machines.HostFacts:
    return replace(facts, machine=replace(facts.machine, numa={0: (0,), 1: (1,)}))


def dut(**keys: Any) -> dict[str, Any]:
    """The example's OVS with other keys."""
    return {"duts": [example().model_dump()["duts"][0] | keys]}


ISOLATION, GOVERNOR = "isolated CPUs", "frequency governor"
HUGEPAGES = f"{machines.NODE}/node0/hugepages/hugepages-1048576kB"
#: CPUs without a tick are isolated where tuned keeps everything else off.
WITHOUT_TICK = {machines.ISOLATED: "", machines.NOHZ_FULL: "1-11,13-23"}
FEW = xeon_facts(files={machines.ISOLATED: "1-4", f"{machines.CPU}/online": "0-4"})
SAVES = {f"{machines.CPU}/cpufreq/policy{cpu}/scaling_governor": "powersave" for cpu in (0, 2, 3)}
SHARED = {"generator": [2], "pmd": [0], "housekeeping": "auto"}
TWO_SIZES = {f"{HUGEPAGES}/{each}_hugepages": "3" for each in ("nr", "free")} | {
    f"{HUGEPAGES.replace('1048576', '2048')}/{each}_hugepages": "512" for each in ("nr", "free")
}
MORE_HUGEPAGES = ("grubby --update-kernel=ALL", "hugepages=4")

OF_CPUS: dict[str, Said] = {
    "CPUs that tuned may isolate": (
        partial(row, ISOLATION, xeon_facts(files={machines.ISOLATED: "1-2"}, programs=frozenset({"tuned-adm"}))),
        "bad", "1-2; 3-4,13-16 should be", ("isolated_cores=1-4,13-16", "tuned-adm profile cpu-partitioning")),
    "CPUs that the kernel may isolate": (
        partial(row, ISOLATION, xeon_facts({"distribution": "Ubuntu 24.04 LTS"}, {machines.ISOLATED: ""})),
        "bad", "", ("isolcpus=1-4,13-16", "update-grub")),
    "CPUs without a tick": (partial(row, ISOLATION, xeon_facts(files=WITHOUT_TICK)), "bad", "", ()),
    "CPUs of tuned's": (
        partial(row, ISOLATION, xeon_facts(files=WITHOUT_TICK | {machines.TUNED: "cpu-partitioning"})), "ok",
        "tuned: cpu-partitioning", ()),
    "CPUs that are not there, isolated": (partial(row, ISOLATION, FEW), "ok", "", ()),
    "CPUs that are not there": (partial(row, "CPUs", FEW), "bad", "", ()),
    "a governor that saves power": (
        partial(row, GOVERNOR, xeon_facts(files=SAVES)), "bad", "", ("cpupower -c 2-3 frequency-set -g performance",)),
    "one of this machine": (
        partial(local_row, GOVERNOR, small("0", "1", scaling_governor="powersave", affected_cpus="0 1")), "unknown",
        "powersave on CPU 0-1", ()),
    "too few hugepages": (
        partial(row, "hugepages", xeon_facts(files={f"{HUGEPAGES}/{each}_hugepages": "2" for each in ("nr", "free")})),
        "bad", "2048 MiB on node 0; 4096 MiB are", MORE_HUGEPAGES),
    "hugepages that somebody has": (
        partial(row, "hugepages", xeon_facts(files={f"{HUGEPAGES}/free_hugepages": "1"})), "unknown",
        "who has the others?", ()),
    "hugepages of two sizes, of which DPDK takes one": (
        partial(row, "hugepages", xeon_facts(files=TWO_SIZES)), "bad", "3072 MiB on node 0; 4096 MiB are",
        MORE_HUGEPAGES),
    "hugepages of another node": (
        partial(row, "hugepages", xeon_facts(files=OTHER_NODE)), "bad", "0 MiB on node 1", MORE_HUGEPAGES),
    "a testbed without hugepages": (
        partial(row, "hugepages", **dut(hugepages="never")), "unknown", "not asked for", ()),
    "this machine without hugepages": (
        partial(local_row, "hugepages", small("0", "1")), "unknown", "",
        ("echo 1024 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",)),
    "this machine with two nodes, over which the kernel spreads them": (
        partial(local_row, "hugepages", on_two_nodes(small("0", "1"))), "unknown", "",
        ("echo 2048 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",)),
    "one CPU": (partial(local_row, "CPUs", small("0")), "bad", "", ()),
    "CPUs that are off": (
        partial(row, "CPUs", xeon_facts(files={f"{machines.CPU}/online": "0-11"})), "bad", "12-16", ()),
    "one core": (partial(local_row, "hyper-threads", small("0,1", "0,1")), "unknown", "the only core", ()),
    "a shared core": (
        partial(local_row, "hyper-threads", small("0,2", "1,3", "0,2", "1,3"), cpus=SHARED), "bad",
        "share the core of CPUs 0+2", ()),
    "what a hypervisor took": (
        partial(row, "virtualisation", xeon_facts({"virtualisation": "KVM"},
                                                  {machines.STAT: "cpu  700 0 200 50 0 0 0 50 0 0\ncpu0 1"})),
        "unknown", "5.0 % of the CPUs' time", ()),
}  # fmt: skip


@pytest.mark.parametrize(
    ("large", "small", "state"),
    [(4, 1024, "ok"), (3, 2048, "ok"), (6, 0, "ok"), (3, 1024, "bad"), (3, 1536, "bad"), (5, 512, "bad")],
)
def test_a_dut_and_a_generator_may_have_hugepages_of_different_sizes(large: int, small: int, state: str) -> None:
    sizes = ((HUGEPAGES, large), (HUGEPAGES.replace("1048576", "2048"), small))
    files = {f"{path}/{each}_hugepages": str(pages) for path, pages in sizes for each in ("nr", "free")}
    plan = Mock(hugepages_mb=6144, generator=Mock(hugepages_mb=4096), cards=(), is_lab=True)
    (found,) = system.check_memory(Mock(plan=plan, facts=xeon_facts(files=files)))
    assert found.state == state


# What is installed, and what runs.

LOCAL_OVS = OvsInstallation(prefix="/usr/local")
#: What OVS 3.1.0 of Debian 12 says.
VERSION = "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.1\n"
RUNNING = {"pgrep -l ovs-vswitchd": "812 ovs-vswitchd\n"}
HOME = "/opt/trex/scripts"
BUILT = {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n{HOME}/_t-rex-64\n"}
#: ss of iproute2 6.1.
LISTENING = {"ss -Htln": "LISTEN 0 100 0.0.0.0:4501 0.0.0.0:*\nLISTEN 0 100 0.0.0.0:4500 0.0.0.0:*\n"}


def on_tgen(what: str, answers: Mapping[str, str], **keys: Any) -> machines.Finding:
    """A row of TRex' host; `keys` of the generator."""
    return row(what, answers=answers, host="tgen", generator=example().generator.model_dump() | keys)


def installed(ovs: OvsInstallation, version: str = VERSION, *drivers: str) -> dict[str, str]:
    """What a host with an Open vSwitch answers; its DPDK has these `drivers` in a folder."""
    plugins = "".join(f"/usr/lib/dpdk/{driver}.so.23\n" for driver in drivers)
    return {
        f"ls -d {ovs.vswitchd_path}": "\n".join(ovs.files),
        **{f"env {program} --version": version for program in ovs.programs},
        "ldd": "librte_eal.so.23 => /usr/lib/librte_eal.so.23\n",
        "grep -a -h -o -E -e DPDK_PLUGIN_PATH=": "DPDK_PLUGIN_PATH=/usr/lib/dpdk",
        "find -L /usr/lib/dpdk": plugins,
    }


WITH_DPDK = installed(LOCAL_OVS)
LINKED = WITH_DPDK | {"grep -a -h -o -E -e DPDK_PLUGIN_PATH=": "", "grep -a -h -o -E -e ring_mt_rts": "x"}
VIRTIO = xeon_facts(
    {"distribution": "Debian GNU/Linux 12 (bookworm)"}, {f"{machines.PCI}/{card}/vendor": "0x1af4" for card in CARDS}
)
#: PCI numbers of vendor and device: X710, its virtual function, E810, ConnectX-5, ConnectX-6.
X710, X710_VF, E810, CONNECTX_5, CONNECTX_6 = "8086 1572", "8086 154c", "8086 1592", "15b3 1017", "15b3 101b"
RELEASE = "TRex release"


def packaged(*drivers: str) -> machines.Finding:
    """The row of drivers for virtio cards: Debian's openvswitch-switch-dpdk brings none of them."""
    answers = installed(OvsInstallation(), VERSION, *drivers)
    return row("DPDK drivers", VIRTIO, answers, **dut(ovs={"prefix": "distribution"}))


def of_release(version: str, pci: str = "", options: str = "", **keys: Any) -> machines.Finding:
    """The row of a release that is in TRex' folder, with both cards of one kind; `options` of a TRex that runs; `keys`
    of the generator."""
    numbers = zip(("vendor", "device"), pci.split(), strict=False)
    files = [f"{machines.PCI}/{card}/{name}\0000x{number}\n" for name, number in numbers for card in CARDS]
    answers = BUILT | {f"cat {HOME}/../VERSION": f"{version}\n", "grep --null": "".join(files)}
    answers |= {"pgrep -a _t-rex-64": f"812 ./_t-rex-64 -i {options} -c 4\n"} if options else {}
    return on_tgen(RELEASE, answers, **keys)


VIRTUAL: dict[str, Any] = {"client": {"interface": "lab0"}, "server_port": {"interface": "lab1"}, "software": True}

OF_PROGRAMS: dict[str, Said] = {
    "no Open vSwitch": (partial(row, "Open vSwitch"), "bad", "/usr/local/sbin/ovs-vswitchd", ()),
    "one without DPDK": (
        partial(row, "Open vSwitch", answers=installed(LOCAL_OVS, VERSION.partition("DPDK")[0])), "bad",
        "without DPDK", ()),
    "one with DPDK": (partial(row, "Open vSwitch", answers=WITH_DPDK), "ok", "3.1.0, DPDK 22.11.1", ()),
    "another one that runs": (partial(row, "running OVS", answers=WITH_DPDK | RUNNING), "unknown", "", ()),
    "none that runs": (partial(row, "running OVS", answers=WITH_DPDK), "ok", "", ()),
    "no driver of the cards": (
        partial(packaged, "librte_mempool_ring", "librte_bus_pci"), "bad", "librte_net_virtio are not in",
        ("apt-get install librte-meta-net",)),
    "no driver of memory": (
        partial(packaged, "librte_bus_pci", "librte_net_virtio"), "bad", "librte_mempool_ring are",
        ("apt-get install librte-mempool-ring*",)),
    "all drivers": (partial(packaged, "librte_mempool_ring", "librte_bus_pci", "librte_net_virtio"), "ok", "", ()),
    "drivers that are linked in": (
        partial(row, "DPDK drivers", VIRTIO, LINKED), "unknown", "librte_net_virtio: which cards", ()),
    "no TRex": (partial(on_tgen, "TRex", {}), "bad", f"no t-rex-64 in {HOME}", ()),
    "a TRex that is not built": (
        partial(on_tgen, "TRex", {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n"}), "bad", "not built yet", ()),
    "a TRex": (partial(on_tgen, "TRex", BUILT), "ok", "", ()),
    "no client of TRex": (partial(on_tgen, "TRex client", BUILT), "bad", "", ()),
    "a client on the generator's host": (
        partial(on_tgen, "TRex client", BUILT | {f"test -f {HOME}/{TREX_CLIENT}/{MARK}": ""}), "ok", "to be copied",
        ()),
    "no server in the way": (partial(on_tgen, "TRex server", BUILT), "ok", "", ()),
    "a server in the way": (partial(on_tgen, "TRex server", BUILT | LISTENING), "bad", "", ()),
    "no server that runs": (
        partial(on_tgen, "TRex server", BUILT, server="running"), "bad", "",
        (f"cd {HOME} && ./t-rex-64 -i --astf",)),
    "no daemon": (
        partial(on_tgen, "TRex server", BUILT | LISTENING, server="daemon"), "bad", "",
        (f"cd {HOME} && ./trex_daemon_server start",)),
    "a release that is not known": (partial(on_tgen, RELEASE, {}), "unknown", "", ()),
    "a release on virtual ports": (partial(of_release, "v3.08", **VIRTUAL), "ok", "v3.08", ()),
    **{f"one that runs with {options}": (
        partial(of_release, "v3.08", X710, options, server="running"), state, "", ())
       for options, state in (("--astf --software", "bad"), ("--astf", "ok"))},
    **{f"{version} and {pci or 'no card'}, {keys}": (
        partial(of_release, version, pci, **keys), state, version, (remedy,))
       for version, pci, keys, state, remedy in (
        ("v3.04", X710, {"software": True}, "ok", ""),
        ("v3.05", X710, {"software": True}, "bad", "use TRex v3.04 for connections"),
        ("v3.08", X710, {"software": True}, "bad", "generator.software: false"),
        ("v3.08", X710, {"software": True, "server": "daemon"}, "bad", "generator.software: false"),
        ("v3.08", X710, {"software": False}, "ok", ""),
        ("v3.08", X710_VF, {"software": True}, "ok", ""),
        ("v3.08", CONNECTX_6, {"software": True}, "ok", ""),
        ("v3.08", "", {"software": True}, "unknown", "use TRex v3.04 for connections"),  # the cards are not there
        ("v3.08", X710, {"software": True, "server": "running"}, "unknown", ""),  # its command line is not known
        ("v3.04", CONNECTX_5, {}, "ok", ""),
        ("v3.04", CONNECTX_6, {}, "bad", "use TRex v3.05 or newer"),
        ("v3.04", E810, {}, "unknown", "use TRex v3.03"),
        ("v3.06", CONNECTX_6, {}, "unknown", "use another release"),
        ("v3.06", X710, {"software": True}, "bad", "use TRex v3.04"),
    )},
}  # fmt: skip

# Linux, rights and clock.

INTERFACES = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}
OF_LINUX = {"duts": [{"type": "linux-router", "host": "dut", "ports": INTERFACES}]}
BUCKETS = xeon_facts(files={machines.NF_CONNTRACK_MAX: "1048576", machines.NF_CONNTRACK_BUCKETS: "65536"})


def offloads(owner: str, features: str) -> machines.Finding:
    """The row of the offloads of a card of TRex or of the DUT, which the kernel has."""
    generator = example().generator.model_dump()
    generator["client"] |= {"interface": "ens1f0"}
    generator["server_port"] |= {"interface": "ens1f1"}
    facts = xeon_facts(files={f"{machines.NET}/ens1f0/address": CLIENT})
    return row("offloads of ens1f0", facts, {"ethtool -k ens1f0": features}, owner, generator=generator, **OF_LINUX)


def clock(ahead: float, ntp: str, can: str = "yes") -> machines.Finding:
    facts = replace(xeon_facts(), clock_ahead_s=ahead, clock_exact_s=0.3)
    return row("clock", facts, {"timedatectl": f"NTPSynchronized={ntp}\nCanNTP={can}\n"} if ntp else {})


OF_THE_REST: dict[str, Said] = {
    "Linux tools that are missing": (
        partial(row, "Linux tools", xeon_facts(programs=frozenset(PROGRAMS) - {"nft", "conntrack"}), **OF_LINUX),
        "bad", "conntrack, nft not found", ("dnf install conntrack nftables",)),
    "a firewall": (
        partial(row, "netfilter rules", xeon_facts(programs=frozenset(PROGRAMS)),
                {"nft list tables": "table inet firewalld\n"}, **OF_LINUX), "bad", "firewalld",
        ("systemctl stop firewalld", "nft flush ruleset")),
    "tables of iptables-legacy": (
        partial(row, "netfilter rules", xeon_facts(programs=frozenset(PROGRAMS)),
                {"nft list tables": "", "grep": "/proc/net/ip_tables_names\0nat\n"}, **OF_LINUX), "bad", "nat in",
        ("modprobe -r",)),
    "few buckets of a lab": (
        partial(row, "connection table", BUCKETS, **OF_LINUX), "unknown", "65536 buckets (nf_conntrack_buckets)", ()),
    "frames that TRex' card puts together": (
        partial(offloads, "tgen", "generic-receive-offload: on\nrx-gro-hw: on\n"), "bad", "",
        ("ethtool -K ens1f0 gro off rx-gro-hw off",)),
    "frames that it sends together": (
        partial(offloads, "tgen", "tcp-segmentation-offload: on\nlarge-receive-offload: off [fixed]\n"), "ok", "", ()),
    "offloads that it does not tell": (partial(offloads, "tgen", ""), "unknown", "", ()),
    "frames that the DUT's card puts together": (
        partial(offloads, "dut", "generic-receive-offload: on\n"), "unknown", "", ("ports.offloads: none",)),
    "root": (partial(row, "rights"), "ok", "", ()),
    "no root": (partial(row, "rights", replace(xeon_facts(), uid=1000)), "bad", "", ("hosts.dut.sudo: true",)),
    "a clock that is kept": (partial(clock, 0.02, "yes"), "ok", "", ()),
    "one that is not, and right": (partial(clock, -0.02, "no"), "unknown", "", ()),
    "one that is wrong": (partial(clock, -90.0, "no"), "bad", "", ()),
    "one of which only the time is known": (partial(clock, 1.2, ""), "ok", "", ()),
    "one that nothing can keep": (
        partial(clock, 0.0, "no", "no"), "unknown", "", ("dnf install chrony && timedatectl set-ntp true",)),
}  # fmt: skip

SAID = OF_CARDS | OF_WIRING | OF_CPUS | OF_PROGRAMS | OF_THE_REST


@pytest.mark.parametrize("situation", SAID)
def test_a_host_is_judged_by_what_is_found_of_it(situation: str) -> None:
    ask, state, found, remedy = SAID[situation]
    expect(ask(), state, found, *remedy)


def test_a_hypervisor_that_lscpu_does_not_know_is_no_bare_machine() -> None:
    assert "does not know" in machines._hypervisor({"Flags": "fpu hypervisor lahf_lm"})


def test_a_client_of_another_version_than_the_server_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "scripts" / TREX_CLIENT / MARK
    client.parent.mkdir(parents=True)
    client.touch()
    (tmp_path / "VERSION").write_text("v3.07\n")  # of older ones it says first that they need an older Python
    monkeypatch.setenv("TREX_HOME", str(tmp_path / "scripts"))
    monkeypatch.setattr("ctbench.traffic.trex.client.PYTHON_WITHOUT_CGI", (9, 9))  # which is said first
    finding = on_tgen("TRex client", BUILT | {f"cat {HOME}/../VERSION": "v3.08\n"})
    expect(finding, "bad", "The TRex client is v3.07 (TREX_HOME) and the server v3.08.")


def test_the_release_of_a_server_that_runs_counts_and_not_that_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"found": "trex", "version": "v3.04", "mode": "ASTF"}
    monkeypatch.setattr(source, "ask", lambda *_: said)
    answers = BUILT | LISTENING | {f"cat {HOME}/../VERSION": "v3.08\n"}
    expect(on_tgen("TRex server", answers, server="running"), "ok", "v3.04 in mode ASTF answers")
    expect(on_tgen(RELEASE, answers, server="running"), "unknown", "v3.04")


def test_few_buckets_of_this_machine_are_an_administrators_to_change() -> None:
    local = load("testbeds", "local", TestbedConfig)
    router = next(dut for dut in local.duts if dut.type == "linux-router")
    at = site(plans(local)["local"], BUCKETS)
    found = {finding.what: finding for finding in KINDS[router.type].examine(router, at)}["connection table"]
    words = "32 in each when the table is full"
    expect(found, "unknown", words, "sysctl net.netfilter.nf_conntrack_buckets=262144")

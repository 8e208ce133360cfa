"""What the doctor says of a host: its cards, CPUs and hugepages, what is installed and runs there, rights and clock."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.yaml_files import load
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


@pytest.fixture(autouse=True)
def no_trex_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)


def rows(
    facts: machines.Facts | None = None, answers: Mapping[str, str] | None = None, host: str = "dut", **testbed: Any
) -> dict[str, machines.Finding]:
    """What is found on a host of the example testbed, with keys of that changed."""
    plan = plans(example(**testbed))[host]
    at = site(plan, facts, answers)
    return {finding.what: finding for _, check in checks_of(plan) for finding in check(at)}


def local_rows(facts: machines.Facts, **testbed: Any) -> dict[str, machines.Finding]:
    """What is found of the CPUs and the memory of this machine, for the local testbed."""
    local = load("testbeds", "local", TestbedConfig).model_dump() | testbed
    at = site(plans(TestbedConfig.model_validate(local))["local"], facts)
    return {finding.what: finding for _, check in CHECKS[1:3] for finding in check(at)}


def expect(finding: machines.Finding, state: str, found: str = "", remedy: str = "") -> None:
    assert finding.state == state
    assert found in finding.found
    assert remedy in finding.remedy


# --- cards ------------------------------------------------------------------------------------------------------------

CARD, LINK = f"card {CARDS[0]}", f"link of {CARDS[0]}"
CLIENT, SERVER = "04:3f:72:f2:8f:32", "04:3f:72:f2:8f:33"
DUT_CLIENT, DUT_SERVER = "3c:fd:fe:00:00:02", "3c:fd:fe:00:00:03"


def test_the_articles_hosts_are_well() -> None:
    for host in ("dut", "tgen"):
        found = rows(host=host)
        for what in (CARD, "IOMMU", "CPUs", "frequency governor", "hugepages"):
            expect(found[what], "ok")
        # Not what a login may use (CPUs 0 and 12), and not the master and latency threads of TRex.
        expect(found["isolated CPUs"], "ok", "1-11,13-23, which cover 1-")
    found = rows()
    expect(found[CARD], "ok", "ovs-dpdk, client: DPDK's, driver vfio-pci")
    expect(found["IOMMU"], "ok", "on, the cards are in group 40, 41")
    expect(found[LINK], "unknown")  # vfio hides it
    expect(found["hyper-threads"], "unknown", "CPUs 1+13, 2+14, 3+15, 4+16 share a core")  # the article's masks
    assert [card.address for card in plans()["tgen"].cards] == list(CARDS)  # TRex names them without their domain


def test_a_card_in_the_kernels_hands_is_bound_to_vfio() -> None:
    found = rows(kernels_card(xeon_facts(programs=frozenset({"driverctl"})), CARDS[0], "ens1f2", CLIENT))
    expect(found[CARD], "bad", "driver i40e", "modprobe vfio-pci && driverctl set-override 0000:18:00.2 vfio-pci")
    expect(found[LINK], "ok", f"up, 10 Gbit/s; MAC {CLIENT}")
    virtio = kernels_card(xeon_facts(), CARDS[0], "enp2s0", CLIENT, below="virtio1/")
    expect(rows(virtio)[LINK], "ok", f"MAC {CLIENT}")
    plain = rows(kernels_card(xeon_facts(), CARDS[0], "ens1f2", CLIENT, up=False))
    expect(plain[CARD], "bad", remedy="dpdk-devbind.py --bind=vfio-pci 0000:18:00.2")
    expect(plain[LINK], "bad")


def test_cards_that_dpdk_shares_with_the_kernel_need_neither_vfio_nor_iommu() -> None:
    facts = xeon_facts(links={})
    for number, card in enumerate(CARDS):
        facts = kernels_card(facts, card, f"ens1f{number}", CLIENT, driver="mlx5_core")
    expect(rows(facts)[CARD], "ok")
    expect(rows(facts)["IOMMU"], "unknown")
    # One that is not there is not taken for one without a driver.
    files = {path: text for path, text in xeon_facts().files.items() if machines.PCI not in path}
    expect(rows(machines.Facts(XEON, files))[CARD], "bad", "there is no such card")


def test_an_iommu_that_is_off_is_switched_on_by_the_kernels_arguments() -> None:
    links = {path: target for path, target in vfio_links().items() if "iommu" not in path}
    off = rows(xeon_facts(files={machines.CMDLINE: "quiet"}, links=links))["IOMMU"]
    expect(off, "bad", remedy="intel_iommu=on iommu=pt")
    expect(rows(xeon_facts(links=links))["IOMMU"], "bad", "asked for", "firmware")
    expect(rows(xeon_facts(files={machines.NOIOMMU: "Y"}, links=links))["IOMMU"], "unknown")


def test_cpus_and_trex_belong_on_the_numa_node_of_their_card() -> None:
    what = f"NUMA of {CARDS[0]}"
    facts = xeon_facts({"numa": {0: (0, 1, 2, 3), 1: tuple(range(4, 24))}}, {f"{machines.NODE}/node1/x": ""})
    expect(rows(facts)[what], "bad", "node 0, and CPU 4,13,14,15,16 is on another")
    facts = xeon_facts(
        {"numa": {0: (), 1: tuple(range(24))}}, {f"{machines.PCI}/{card}/numa_node": "1" for card in CARDS}
    )
    expect(rows(facts, host="tgen")[what], "bad", remedy="set generator.socket: 1")


BRIDGE: dict[str, Any] = {}
ROUTER: dict[str, Any] = {"dut": "linux-router"}
SHOWN: dict[str, Any] = ROUTER | {"dut_macs": (DUT_CLIENT, DUT_SERVER)}


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


@pytest.mark.parametrize(
    ("keys", "state", "found"),
    [
        (BRIDGE, "ok", f"{SERVER}, TRex' other port"),
        (BRIDGE | {"dest_mac": CLIENT}, "bad", ""),  # to itself
        (BRIDGE | {"dest_mac": ""}, "unknown", ""),
        (BRIDGE | {"dest_mac": "", "gateway": "1.1.1.1"}, "unknown", "gateway"),
        (SHOWN, "bad", ""),  # a router does not send frames for TRex' other port on
        (SHOWN | {"dest_mac": DUT_CLIENT}, "ok", f"{DUT_CLIENT}, the DUT's client port"),
        (SHOWN | {"dest_mac": DUT_SERVER}, "bad", DUT_CLIENT),  # crossed cables
        (ROUTER | {"dest_mac": DUT_CLIENT}, "unknown", ""),  # no kernel shows it
    ],
)
def test_frames_go_to_the_port_that_sends_them_on(keys: dict[str, Any], state: str, found: str) -> None:
    expect(wiring(**keys), state, found, "generator.client.dest_mac" if state == "bad" else "")
    expect(wiring(dest_mac="", other_mac=""), "bad", remedy="generator.server_port.mac")


# --- CPUs and memory --------------------------------------------------------------------------------------------------


def small(*threads: str, **files: str) -> machines.Facts:
    """A machine with as many CPUs as `threads`, which hold the hyper-threads of each one's core; files of CPU 0's
    frequency policy."""
    topology = {f"{machines.CPU}/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in enumerate(threads)}
    policy = {f"{machines.CPU}/cpufreq/policy0/{name}": text for name, text in files.items()}
    groups = tuple(sorted({tuple(int(part) for part in text.split(",")) for text in threads}))
    machine = replace(
        XEON, usable_cpus=tuple(range(len(threads))), cores=groups, hugepages=(machines.Hugepages(2048, 0, 0),)
    )
    return machines.Facts(machine, topology | policy | {f"{machines.CPU}/online": f"0-{len(threads) - 1}"})


def test_cpus_that_are_not_isolated_are_named_with_the_command_of_tuned_or_of_the_kernel() -> None:
    tuned = rows(xeon_facts(files={machines.ISOLATED: "1-2"}, programs=frozenset({"tuned-adm"})))["isolated CPUs"]
    expect(tuned, "bad", "1-2; 3-4,13-16 should be", "isolated_cores=1-4,13-16")
    assert "tuned-adm profile cpu-partitioning" in tuned.remedy
    kernel = rows(xeon_facts({"distribution": "Ubuntu 24.04 LTS"}, {machines.ISOLATED: ""}))["isolated CPUs"]
    expect(kernel, "bad", remedy="isolcpus=1-4,13-16")
    assert "update-grub" in kernel.remedy
    # CPUs without a tick are isolated where tuned keeps everything else off.
    files = {machines.ISOLATED: "", machines.NOHZ_FULL: "1-11,13-23"}
    expect(rows(xeon_facts(files=files))["isolated CPUs"], "bad")
    tuned = xeon_facts(files=files | {machines.TUNED: "cpu-partitioning"})
    expect(rows(tuned)["isolated CPUs"], "ok", "tuned: cpu-partitioning")
    # CPUs that are not there have a row of their own.
    few = rows(xeon_facts(files={machines.ISOLATED: "1-4", f"{machines.CPU}/online": "0-4"}))
    assert (few["isolated CPUs"].state, few["CPUs"].state) == ("ok", "bad")


def test_a_governor_that_saves_power_is_named_and_judged_in_a_lab() -> None:
    facts = xeon_facts(files={f"{machines.CPU}/cpufreq/policy{cpu}/scaling_governor": "powersave" for cpu in (0, 2, 3)})
    expect(rows(facts)["frequency governor"], "bad", remedy="cpupower -c 2-3 frequency-set -g performance")
    here = small("0", "1", scaling_governor="powersave", affected_cpus="0 1")
    expect(local_rows(here)["frequency governor"], "unknown", "powersave on CPU 0-1")


HUGEPAGES = f"{machines.NODE}/node0/hugepages/hugepages-1048576kB"


@pytest.mark.parametrize(
    ("files", "state", "found"),
    [
        ({f"{HUGEPAGES}/{name}_hugepages": "2" for name in ("nr", "free")}, "bad", "2048 MiB on node 0; 4096 MiB are"),
        ({f"{HUGEPAGES}/free_hugepages": "1"}, "unknown", "who has the others?"),
        ({path: "1" for path in xeon_facts().files if path.endswith("/numa_node")}, "bad", "0 MiB on node 1"),
    ],
)
def test_hugepages_of_the_cards_node_are_counted(files: dict[str, str], state: str, found: str) -> None:
    finding = rows(xeon_facts(files=files))["hugepages"]
    expect(finding, state, found, "grubby --update-kernel=ALL" if state == "bad" else "")
    assert state != "bad" or "hugepages=4" in finding.remedy


def test_a_testbed_may_do_without_hugepages() -> None:
    expect(rows(**dut(hugepages="never"))["hugepages"], "unknown", "not asked for")
    expect(local_rows(small("0", "1"))["hugepages"], "unknown", remedy="sysctl vm.nr_hugepages=1024")


def test_too_few_cpus_or_a_shared_core_are_said_and_judged_where_that_can_be_mended() -> None:
    expect(local_rows(small("0"))["CPUs"], "bad")
    expect(rows(xeon_facts(files={f"{machines.CPU}/online": "0-11"}))["CPUs"], "bad", "12-16")
    expect(local_rows(small("0,1", "0,1"))["hyper-threads"], "unknown", "the only core")
    cpus = {"generator": [2], "pmd": [0], "housekeeping": "auto"}
    shared = local_rows(small("0,2", "1,3", "0,2", "1,3"), cpus=cpus)["hyper-threads"]
    expect(shared, "bad", "share the core of CPUs 0+2")


def test_what_a_hypervisor_took_is_said() -> None:
    facts = xeon_facts({"virtualisation": "KVM"}, {machines.STAT: "cpu  700 0 200 50 0 0 0 50 0 0\ncpu0 1"})
    expect(rows(facts)["virtualisation"], "unknown", "5.0 % of the CPUs' time")
    # QEMU without KVM, which lscpu does not know, is no bare machine.
    assert "does not know" in machines._hypervisor({"Flags": "fpu hypervisor lahf_lm"})


# --- what is installed, and what runs ---------------------------------------------------------------------------------

LOCAL_OVS = OvsInstallation(prefix="/usr/local")
#: What OVS 3.1.0 of Debian 12 says.
VERSION = "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.1\n"
RUNNING = {"pgrep -l ovs-vswitchd": "812 ovs-vswitchd\n"}
HOME = "/opt/trex/scripts"
BUILT = {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n{HOME}/_t-rex-64\n"}
#: ss of iproute2 6.1.
LISTENING = {"ss -Htln": "LISTEN 0 100 0.0.0.0:4501 0.0.0.0:*\nLISTEN 0 100 0.0.0.0:4500 0.0.0.0:*\n"}


def dut(**keys: Any) -> dict[str, Any]:
    """The example's OVS with other keys."""
    return {"duts": [example().model_dump()["duts"][0] | keys]}


def on_tgen(what: str, answers: Mapping[str, str], **keys: Any) -> machines.Finding:
    """A row of TRex' host; `keys` of the generator."""
    return rows(answers=answers, host="tgen", generator=example().generator.model_dump() | keys)[what]


def installed(ovs: OvsInstallation, version: str = VERSION, **drivers: str) -> dict[str, str]:
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


def test_ovs_has_to_be_installed_with_dpdk_and_one_that_runs_is_named() -> None:
    expect(rows()["Open vSwitch"], "bad", "/usr/local/sbin/ovs-vswitchd")
    plain = installed(LOCAL_OVS, VERSION.partition("DPDK")[0])
    expect(rows(answers=plain)["Open vSwitch"], "bad", "without DPDK")
    expect(rows(answers=WITH_DPDK)["Open vSwitch"], "ok", "3.1.0, DPDK 22.11.1")
    expect(rows(answers=WITH_DPDK | RUNNING)["running OVS"], "unknown")  # another one, besides ours
    expect(rows(answers=WITH_DPDK)["running OVS"], "ok")


def test_the_drivers_of_cards_and_of_their_bus_are_looked_for() -> None:
    """Debian's openvswitch-switch-dpdk brings none of them."""
    virtio = xeon_facts(
        {"distribution": "Debian GNU/Linux 12 (bookworm)"},
        {f"{machines.PCI}/{card}/vendor": "0x1af4" for card in CARDS},
    )
    packaged = dut(ovs={"prefix": "distribution"})
    for there, missing, remedy in (
        (["librte_mempool_ring", "librte_bus_pci"], "librte_net_virtio are not in", "apt-get install librte-meta-net"),
        (["librte_bus_pci", "librte_net_virtio"], "librte_mempool_ring are", "apt-get install librte-mempool-ring*"),
        (["librte_mempool_ring", "librte_bus_pci", "librte_net_virtio"], "", ""),
    ):
        found = rows(virtio, installed(OvsInstallation(), **dict.fromkeys(there, "")), **packaged)["DPDK drivers"]
        expect(found, "bad" if missing else "ok", missing, remedy)
    linked = installed(LOCAL_OVS) | {
        "grep -a -h -o -E -e DPDK_PLUGIN_PATH=": "",
        "grep -a -h -o -E -e ring_mt_rts": "x",
    }
    expect(rows(virtio, linked)["DPDK drivers"], "unknown", "librte_net_virtio: which cards")


def test_trex_and_its_client_are_looked_for_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(on_tgen("TRex", {}), "bad", f"no t-rex-64 in {HOME}")
    expect(on_tgen("TRex", {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n"}), "bad", "not built yet")
    expect(on_tgen("TRex", BUILT), "ok")
    expect(on_tgen("TRex client", BUILT), "bad")
    there = BUILT | {f"test -f {HOME}/{TREX_CLIENT}/{MARK}": ""}
    expect(on_tgen("TRex client", there), "ok", "to be copied")  # from the generator's host
    # One of another version than the server is bad.
    client = tmp_path / "scripts" / TREX_CLIENT / MARK
    client.parent.mkdir(parents=True)
    client.touch()
    (tmp_path / "VERSION").write_text("v3.06\n")
    monkeypatch.setenv("TREX_HOME", str(tmp_path / "scripts"))
    finding = on_tgen("TRex client", BUILT | {f"cat {HOME}/../VERSION": "v3.08\n"})
    expect(finding, "bad", "The TRex client is v3.06 (TREX_HOME) and the server v3.08.")


def test_a_server_that_is_in_the_way_or_missing_is_bad() -> None:
    expect(on_tgen("TRex server", BUILT), "ok")
    expect(on_tgen("TRex server", BUILT | LISTENING), "bad")
    expect(on_tgen("TRex server", BUILT, server="running"), "bad", remedy=f"cd {HOME} && ./t-rex-64 -i --astf")
    daemon = on_tgen("TRex server", BUILT | LISTENING, server="daemon")
    expect(daemon, "bad", remedy=f"cd {HOME} && ./trex_daemon_server start")


#: PCI numbers of vendor and device: X710, its virtual function, E810, ConnectX-5, ConnectX-6.
X710, X710_VF, E810, CONNECTX_5, CONNECTX_6 = "8086 1572", "8086 154c", "8086 1592", "15b3 1017", "15b3 101b"
RELEASE = "TRex release"


def of_release(version: str, pci: str = "", options: str = "", **keys: Any) -> machines.Finding:
    """The row of a release that is in TRex' folder, with both cards of one kind; `options` of a TRex that runs; `keys`
    of the generator."""
    numbers = zip(("vendor", "device"), pci.split(), strict=False)
    files = [f"{machines.PCI}/{card}/{name}\0000x{number}\n" for name, number in numbers for card in CARDS]
    answers = BUILT | {f"cat {HOME}/../VERSION": f"{version}\n", "grep --null": "".join(files)}
    answers |= {"pgrep -a _t-rex-64": f"812 ./_t-rex-64 -i {options} -c 4\n"} if options else {}
    return on_tgen(RELEASE, answers, **keys)


@pytest.mark.parametrize(
    ("version", "pci", "keys", "state", "remedy"),
    [
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
    ],
)
def test_a_release_with_a_fault_that_this_testbed_meets_is_bad(
    version: str, pci: str, keys: dict[str, Any], state: str, remedy: str
) -> None:
    expect(of_release(version, pci, **keys), state, version, remedy)


def test_the_release_is_unknown_where_there_is_no_trex_and_well_on_virtual_ports() -> None:
    expect(on_tgen(RELEASE, {}), "unknown")
    ports = {"client": {"interface": "lab0"}, "server_port": {"interface": "lab1"}, "software": True}
    expect(of_release("v3.08", **ports), "ok", "v3.08")


@pytest.mark.parametrize(("options", "state"), [("--astf --software", "bad"), ("--astf", "ok")])
def test_a_running_trex_shows_whether_it_was_started_with_software(options: str, state: str) -> None:
    expect(of_release("v3.08", X710, options, server="running"), state)


def test_the_release_of_a_server_that_runs_counts_and_not_that_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"found": "trex", "version": "v3.04", "mode": "ASTF"}
    monkeypatch.setattr(source, "ask", lambda *_: said)
    answers = BUILT | LISTENING | {f"cat {HOME}/../VERSION": "v3.08\n"}
    expect(on_tgen("TRex server", answers, server="running"), "ok", "v3.04 in mode ASTF answers")
    expect(on_tgen(RELEASE, answers, server="running"), "unknown", "v3.04")


INTERFACES = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}


def test_linux_tools_that_are_missing_are_installed_by_their_packages() -> None:
    router = {"duts": [{"type": "linux-router", "host": "dut", "ports": INTERFACES}]}
    some = rows(xeon_facts(programs=frozenset(PROGRAMS) - {"nft", "conntrack"}), **router)["Linux tools"]
    expect(some, "bad", "conntrack, nft not found", "dnf install conntrack nftables")
    answers = {"nft list tables": "table inet firewalld\n"}
    found = rows(xeon_facts(programs=frozenset(PROGRAMS)), answers, **router)["netfilter rules"]
    expect(found, "bad", "firewalld")


BUCKETS = {machines.NF_CONNTRACK_MAX: "1048576", machines.NF_CONNTRACK_BUCKETS: "65536"}


def test_a_table_with_few_buckets_is_said_where_only_an_administrator_can_set_them() -> None:
    facts, local = xeon_facts(files=BUCKETS), load("testbeds", "local", TestbedConfig)
    router = next(dut for dut in local.duts if dut.type == "linux-router")
    at = site(plans(local)["local"], facts)
    found = {finding.what: finding for finding in KINDS[router.type].examine(router, at)}["connection table"]
    expect(found, "unknown", "32 in each when the table is full", "sysctl net.netfilter.nf_conntrack_buckets=262144")
    lab = rows(facts, duts=[{"type": "linux-router", "host": "dut", "ports": INTERFACES}])
    expect(lab["connection table"], "unknown", "65536 buckets (nf_conntrack_buckets)")


@pytest.mark.parametrize(
    ("owner", "features", "state", "remedy"),
    [
        ("tgen", "generic-receive-offload: on\nrx-gro-hw: on\n", "bad", "ethtool -K ens1f0 gro off rx-gro-hw off"),
        ("tgen", "tcp-segmentation-offload: on\nlarge-receive-offload: off [fixed]\n", "ok", ""),
        ("tgen", "", "unknown", ""),
        ("dut", "generic-receive-offload: on\n", "unknown", "ports.offloads: none"),
    ],
)
def test_a_generator_that_receives_through_the_kernel_wants_each_frame_by_itself(
    owner: str, features: str, state: str, remedy: str
) -> None:
    generator = example().generator.model_dump()
    generator["client"] |= {"interface": "ens1f0"}
    generator["server_port"] |= {"interface": "ens1f1"}
    router = {"type": "linux-router", "host": "dut", "ports": INTERFACES}
    answers = {"ethtool -k ens1f0": features}
    facts = xeon_facts(files={f"{machines.NET}/ens1f0/address": CLIENT})
    found = rows(facts, answers, owner, duts=[router], generator=generator)["offloads of ens1f0"]
    expect(found, state, remedy=remedy)


def test_setting_a_host_up_needs_root() -> None:
    expect(rows()["rights"], "ok")
    expect(rows(replace(xeon_facts(), uid=1000))["rights"], "bad", remedy="hosts.dut.sudo: true")


@pytest.mark.parametrize(
    ("ahead", "ntp", "state"), [(0.02, "yes", "ok"), (-0.02, "no", "unknown"), (-90.0, "no", "bad"), (1.2, "", "ok")]
)
def test_a_clock_is_judged_by_what_is_certain(ahead: float, ntp: str, state: str) -> None:
    facts = replace(xeon_facts(), clock_ahead_s=ahead, clock_exact_s=0.3)
    said = {"timedatectl": f"NTPSynchronized={ntp}\nCanNTP=yes\n"} if ntp else {}
    expect(rows(facts, said)["clock"], state)


def test_what_synchronises_a_clock_is_installed_first() -> None:
    said = {"timedatectl": "NTPSynchronized=no\nCanNTP=no\n"}
    expect(rows(xeon_facts(), said)["clock"], "unknown", remedy="dnf install chrony && timedatectl set-ntp true")

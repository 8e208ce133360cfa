"""The doctor judges what is installed and what runs: Open vSwitch, TRex, the tools of Linux; rights and clock."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctbench.doctor import system
from ctbench.doctor.examine import CHECKS, checks_of
from ctbench.doctor.site import Site
from ctbench.dut.linux.dut import PROGRAMS
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.examination import Facts, Finding
from ctbench.traffic.trex.locate import CLIENT, MARK

from .doctor_facts import example, plans, site, xeon_facts

pytestmark = pytest.mark.unit

LOCAL_OVS = OvsInstallation(prefix="/usr/local")
#: What OVS 3.1.0 of Debian 12 says.
VERSION = "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.1\n"
INSTALLED = {"ls -d /usr/local/sbin/ovs-vswitchd": "\n".join(LOCAL_OVS.files)}
RUNNING = {"pgrep -l ovs-vswitchd": "812 ovs-vswitchd\n"}
HOME = "/opt/trex/scripts"
BUILT = {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n{HOME}/_t-rex-64\n"}
#: ss of iproute2 6.1.
LISTENING = {"ss -Htln": "LISTEN 0 100 0.0.0.0:4501 0.0.0.0:*\nLISTEN 0 100 0.0.0.0:4500 0.0.0.0:*\n"}
Check = Callable[[Site], Iterable[Finding]]


@pytest.fixture(autouse=True)
def no_trex_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)


def rows(
    check: Check, answers: Mapping[str, str], host: str = "dut", facts: Facts | None = None, **testbed: Any
) -> dict[str, Finding]:
    plan = plans(example(**testbed))[host]
    return {finding.what: finding for finding in check(site(plan, facts, answers))}


def of_kinds(site: Site) -> Iterator[Finding]:
    """The rows of the DUTs and of the generator."""
    for _, check in checks_of(site.plan)[len(CHECKS) :]:
        yield from check(site)


def dut(**keys: Any) -> dict[str, Any]:
    """The example's OVS with other keys."""
    return {"duts": [example().model_dump()["duts"][0] | keys]}


def generator(**keys: Any) -> dict[str, Any]:
    """The example's TRex with other keys."""
    return {"generator": example().generator.model_dump() | keys}


def test_an_installed_ovs_is_shown_with_its_dpdk() -> None:
    found = rows(of_kinds, INSTALLED | {f"{LOCAL_OVS.vswitchd_path} --version": VERSION} | RUNNING)
    assert found["Open vSwitch"].found.startswith("3.1.0, DPDK 22.11.1")
    assert {finding.state for finding in found.values()} == {"ok", "unknown"}


def test_an_ovs_that_is_missing_or_without_dpdk_is_bad() -> None:
    missing = rows(of_kinds, {})["Open vSwitch"]
    assert (missing.state, "/usr/local/sbin/ovs-vswitchd" in missing.found) == ("bad", True)
    plain = rows(of_kinds, INSTALLED | {f"{LOCAL_OVS.vswitchd_path} --version": VERSION.partition("DPDK")[0]})
    assert "without DPDK" in plain["Open vSwitch"].found


def test_a_managed_ovs_has_to_run() -> None:
    answers = INSTALLED | {f"{LOCAL_OVS.vswitchd_path} --version": VERSION}
    finding = rows(of_kinds, answers)["running OVS"]
    assert finding.remedy == "/usr/local/share/openvswitch/scripts/ovs-ctl start"


def test_an_ovs_beside_a_private_one_is_said() -> None:
    private = dut(ovs={"prefix": "/usr/local", "manage": False})
    answers = INSTALLED | {f"{LOCAL_OVS.vswitchd_path} --version": VERSION}
    assert rows(of_kinds, answers | RUNNING, **private)["running OVS"].state == "unknown"
    assert rows(of_kinds, answers, **private)["running OVS"].state == "ok"


def test_a_driver_package_that_the_distribution_lacks_is_named() -> None:
    files = OvsInstallation()
    answers = {
        f"ls -d {files.vswitchd_path}": "\n".join(files.files),
        f"{files.vswitchd_path} --version": VERSION,
        "find /usr/lib": "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0\n",
        "ls /usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0": "librte_net_i40e.so.23\n",
    }
    debian = xeon_facts({"distribution": "Debian GNU/Linux 12 (bookworm)"})
    packaged = dut(ovs={"prefix": "distribution", "manage": False})
    finding = rows(of_kinds, answers, facts=debian, **packaged)["DPDK drivers"]
    assert (finding.state, finding.remedy) == ("bad", "apt-get install librte-mempool-ring*")


def test_trex_is_looked_for_in_its_folder() -> None:
    assert rows(of_kinds, {}, "tgen")["TRex"].found == f"no t-rex-64 in {HOME}"
    source = {f"ls -d {HOME}/t-rex-64": f"{HOME}/t-rex-64\n"}
    assert "not built yet" in rows(of_kinds, source, "tgen")["TRex"].found
    assert rows(of_kinds, BUILT, "tgen")["TRex"].state == "ok"


def test_the_client_comes_from_the_generators_host_when_there_is_none_here() -> None:
    there = BUILT | {f"test -f {HOME}/{CLIENT}/{MARK}": ""}
    assert "to be copied" in rows(of_kinds, there, "tgen")["TRex client"].found
    assert rows(of_kinds, BUILT, "tgen")["TRex client"].state == "bad"


def test_a_client_of_another_version_than_the_server_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "scripts" / CLIENT / MARK
    client.parent.mkdir(parents=True)
    client.touch()
    (tmp_path / "VERSION").write_text("v3.06\n")
    monkeypatch.setenv("TREX_HOME", str(tmp_path / "scripts"))
    answers = BUILT | {f"read {HOME}/../VERSION": "v3.08\n"}
    finding = rows(of_kinds, answers, "tgen")["TRex client"]
    assert (finding.state, "v3.06" in finding.found, "v3.08" in finding.found) == ("bad", True, True)


def test_a_server_that_is_in_the_way_or_missing_is_bad() -> None:
    assert rows(of_kinds, BUILT, "tgen")["TRex server"].state == "ok"
    assert rows(of_kinds, BUILT | LISTENING, "tgen")["TRex server"].state == "bad"
    running = rows(of_kinds, BUILT, "tgen", **generator(server="running"))["TRex server"]
    assert running.remedy == f"cd {HOME} && ./t-rex-64 -i --astf"
    daemon = rows(of_kinds, BUILT | LISTENING, "tgen", **generator(server="daemon"))["TRex server"]
    assert daemon.remedy == f"cd {HOME} && ./trex_daemon_server start"


def test_linux_tools_that_are_missing_are_installed_by_their_packages() -> None:
    router = {"duts": [{"type": "linux-router", "host": "dut",
                        "ports": {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}}]}  # fmt: skip
    some = xeon_facts(programs=frozenset(PROGRAMS) - {"nft", "conntrack"})
    finding = rows(of_kinds, {}, facts=some, **router)["Linux tools"]
    assert (finding.found, finding.remedy) == ("conntrack, nft not found", "dnf install conntrack nftables")
    every = xeon_facts(programs=frozenset(PROGRAMS))
    found = rows(of_kinds, {"nft list tables": "table inet firewalld\n"}, facts=every, **router)
    assert (found["netfilter rules"].state, "firewalld" in found["netfilter rules"].found) == ("bad", True)


def test_setting_a_host_up_needs_root() -> None:
    assert rows(system.check, {})["rights"].state == "ok"
    finding = rows(system.check, {}, facts=replace(xeon_facts(), uid=1000))["rights"]
    assert (finding.state, "hosts.dut.sudo: true" in finding.remedy) == ("bad", True)


@pytest.mark.parametrize(
    ("ahead", "ntp", "state"), [(0.02, "yes", "ok"), (-0.02, "no", "unknown"), (-90.0, "no", "bad"), (1.2, "", "ok")]
)
def test_a_clock_is_judged_by_what_is_certain(ahead: float, ntp: str, state: str) -> None:
    facts = replace(xeon_facts(), clock_ahead_s=ahead, clock_exact_s=0.3)
    answers = {"timedatectl": f"{ntp}\n"} if ntp else {}
    assert rows(system.check, answers, facts=facts)["clock"].state == state

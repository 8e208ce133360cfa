"""The doctor judges a host's CPUs and its hugepages."""

from dataclasses import replace

import pytest

from ctbench.base.yaml_files import load
from ctbench.doctor import cpus, memory
from ctbench.doctor.plan import HostPlan
from ctbench.hosts.examination.facts import CPU, ISOLATED, NODE, NOHZ_FULL, STAT, TUNED, Facts
from ctbench.hosts.examination.finding import Finding
from ctbench.hosts.examination.remedy import cpu_ranges
from ctbench.hosts.machine import Hugepages
from ctbench.testbed.config import TestbedConfig

from .doctor_facts import XEON, example, plans, site, xeon_facts

pytestmark = pytest.mark.unit

NO_TUNED: frozenset[str] = frozenset()


def rows(plan: HostPlan, facts: Facts) -> dict[str, Finding]:
    return {finding.what: finding for check in (cpus.check, memory.check) for finding in check(site(plan, facts))}


def of_local(facts: Facts) -> dict[str, Finding]:
    return rows(plans(load("testbeds", "local", TestbedConfig))["this machine"], facts)


def small(*threads: str) -> Facts:
    """A machine with as many CPUs as `threads`, which hold the hyper-threads of each one's core."""
    files = {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in enumerate(threads)}
    groups = tuple(sorted({tuple(int(part) for part in text.split(",")) for text in threads}))
    machine = replace(XEON, usable_cpus=tuple(range(len(threads))), cores=groups, hugepages=(Hugepages(2048, 0, 0),))
    return Facts(machine, files | {f"{CPU}/online": f"0-{len(threads) - 1}"})


@pytest.mark.parametrize("host", ["dut", "tgen"])
def test_the_articles_hosts_are_well(host: str) -> None:
    found = rows(plans()[host], xeon_facts())
    assert {name: finding.found for name, finding in found.items() if finding.state == "bad"} == {}
    assert found["isolated CPUs"].state == found["frequency governor"].state == found["hugepages"].state == "ok"


def test_the_master_and_latency_threads_of_trex_need_no_isolated_cpus() -> None:
    assert rows(plans()["tgen"], xeon_facts())["isolated CPUs"].found.startswith("1-11,13-23, which cover 1-11,13-23")


def test_cpus_that_are_not_isolated_are_named_with_the_command_of_tuned() -> None:
    facts = xeon_facts(files={ISOLATED: "1-2"}, programs=frozenset({"tuned-adm"}))
    finding = rows(plans()["dut"], facts)["isolated CPUs"]
    assert (finding.state, finding.found) == ("bad", "1-2; 3-4,13-16 should be")
    assert "isolated_cores=1-4,13-16" in finding.remedy
    assert "tuned-adm profile cpu-partitioning" in finding.remedy


def test_without_tuned_the_kernels_own_arguments_isolate() -> None:
    facts = xeon_facts({"distribution": "Ubuntu 24.04 LTS"}, {ISOLATED: ""}, programs=NO_TUNED)
    finding = rows(plans()["dut"], facts)["isolated CPUs"]
    assert finding.found == "none; 1-4,13-16 should be"
    assert "isolcpus=1-4,13-16" in finding.remedy
    assert "update-grub" in finding.remedy


def test_cpus_without_a_tick_are_isolated_where_tuned_keeps_everything_else_off() -> None:
    files = {ISOLATED: "", NOHZ_FULL: "1-11,13-23"}
    assert rows(plans()["dut"], xeon_facts(files=files))["isolated CPUs"].state == "bad"
    finding = rows(plans()["dut"], xeon_facts(files=files | {TUNED: "cpu-partitioning"}))["isolated CPUs"]
    assert (finding.state, "tuned: cpu-partitioning" in finding.found) == ("ok", True)


def test_cpus_that_the_host_does_not_have_are_named() -> None:
    finding = rows(plans()["dut"], xeon_facts(files={f"{CPU}/online": "0-11"}))["CPUs"]
    assert (finding.state, "12-16" in finding.found) == ("bad", True)


def test_isolated_cpus_are_there_although_a_login_may_not_use_them() -> None:
    assert rows(plans()["dut"], xeon_facts())["CPUs"].state == "ok"  # its usable CPUs are 0 and 12


def test_a_governor_that_saves_power_is_named_with_its_cpus() -> None:
    facts = xeon_facts(files={f"{CPU}/cpufreq/policy{cpu}/scaling_governor": "powersave" for cpu in (0, 2, 3)})
    finding = rows(plans()["dut"], facts)["frequency governor"]
    assert (finding.state, finding.remedy) == ("bad", "cpupower -c 2-3 frequency-set -g performance")


def test_a_local_testbed_is_not_judged_by_its_governor() -> None:
    facts = small("0", "1")
    policy = {f"{CPU}/cpufreq/policy0/scaling_governor": "powersave", f"{CPU}/cpufreq/policy0/affected_cpus": "0 1"}
    finding = of_local(replace(facts, files={**facts.files, **policy}))["frequency governor"]
    assert (finding.state, "powersave on CPU 0-1" in finding.found) == ("unknown", True)


def test_hyper_threads_of_the_articles_masks_are_said_and_not_judged() -> None:
    finding = rows(plans()["dut"], xeon_facts())["hyper-threads"]
    assert (finding.state, finding.found) == ("unknown", "CPUs 1+13, 2+14, 3+15, 4+16 share a core")


def test_a_core_that_generator_and_dut_share_is_judged_where_there_is_another() -> None:
    cpus_ = {"generator": [2], "pmd": [0], "housekeeping": "auto"}
    local = load("testbeds", "local", TestbedConfig).model_dump()
    plan = plans(TestbedConfig.model_validate(local | {"cpus": cpus_}))["this machine"]
    finding = rows(plan, small("0,2", "1,3", "0,2", "1,3"))["hyper-threads"]
    assert (finding.state, "share the core of CPUs 0+2" in finding.found) == ("bad", True)


def test_the_only_core_of_a_small_machine_is_shared_and_said() -> None:
    finding = of_local(small("0,1", "0,1"))["hyper-threads"]
    assert (finding.state, "the only core" in finding.found) == ("unknown", True)


def test_one_cpu_is_not_enough_for_the_local_testbed() -> None:
    assert of_local(small("0"))["CPUs"].state == "bad"


def test_what_a_hypervisor_took_is_said() -> None:
    facts = xeon_facts({"virtualisation": "KVM"}, {STAT: "cpu  700 0 200 50 0 0 0 50 0 0\ncpu0 1"})
    assert "5.0 % of the CPUs' time" in rows(plans()["dut"], facts)["virtualisation"].found


def test_too_few_hugepages_are_reserved_at_boot() -> None:
    path = f"{NODE}/node0/hugepages/hugepages-1048576kB"
    facts = xeon_facts(files={f"{path}/nr_hugepages": "2", f"{path}/free_hugepages": "2"})
    finding = rows(plans()["dut"], facts)["hugepages"]
    assert (finding.state, finding.found) == ("bad", "2048 MiB on node 0; 4096 MiB are needed")
    assert finding.remedy.startswith("grubby --update-kernel=ALL")
    assert "hugepages=4" in finding.remedy


def test_hugepages_that_somebody_uses_are_not_called_missing() -> None:
    path = f"{NODE}/node0/hugepages/hugepages-1048576kB"
    assert rows(plans()["dut"], xeon_facts(files={f"{path}/free_hugepages": "1"}))["hugepages"].state == "unknown"


def test_hugepages_of_the_cards_node_count() -> None:
    node1 = {f"{NODE}/node1/hugepages/hugepages-1048576kB/{name}_hugepages": "0" for name in ("nr", "free")}
    cards = {path: "1" for path in xeon_facts().files if path.endswith("/numa_node")}
    assert "on node 1" in rows(plans()["dut"], xeon_facts(files=node1 | cards))["hugepages"].found


def test_a_testbed_without_hugepages_asks_for_none() -> None:
    dut = example().model_dump()["duts"][0] | {"hugepages": "never"}
    assert rows(plans(example(duts=[dut]))["dut"], xeon_facts())["hugepages"].found == "not asked for"


def test_the_local_testbed_works_without_hugepages_and_says_how_to_get_them() -> None:
    finding = of_local(small("0", "1"))["hugepages"]
    assert (finding.state, finding.remedy) == ("unknown", "sysctl vm.nr_hugepages=1024")


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([1, 2, 3, 13, 14, 16], "1-3,13-14,16"), ([2, 1, 2], "1-2")]
)
def test_cpus_are_written_as_the_kernel_writes_them(numbers: list[int], text: str) -> None:
    assert cpu_ranges(numbers) == text

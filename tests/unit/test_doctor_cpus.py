"""The doctor judges a host's CPUs and its hugepages."""

from dataclasses import replace

import pytest

from ctbench.base.yaml_files import load
from ctbench.doctor import cpus, system
from ctbench.doctor.site import HostPlan
from ctbench.hosts.examination import CPU, ISOLATED, NODE, NOHZ_FULL, STAT, TUNED, Facts, Finding, cpu_ranges
from ctbench.hosts.machine import Hugepages
from ctbench.testbed.config import TestbedConfig

from .doctor_facts import XEON, example, plans, site, xeon_facts

pytestmark = pytest.mark.unit


def rows(plan: HostPlan, facts: Facts) -> dict[str, Finding]:
    return {
        finding.what: finding for check in (cpus.check, system.check_memory) for finding in check(site(plan, facts))
    }


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
    # Not what a login may use (CPUs 0 and 12), and not the master and latency threads of TRex.
    assert found["CPUs"].state == "ok" and found["isolated CPUs"].found.startswith("1-11,13-23, which cover 1-")
    assert found["isolated CPUs"].state == found["frequency governor"].state == found["hugepages"].state == "ok"


def test_cpus_that_are_not_isolated_are_named_with_the_command_of_tuned_or_of_the_kernel() -> None:
    finding = rows(plans()["dut"], xeon_facts(files={ISOLATED: "1-2"}, programs=frozenset({"tuned-adm"})))[
        "isolated CPUs"
    ]
    assert (finding.state, finding.found) == ("bad", "1-2; 3-4,13-16 should be")
    assert "isolated_cores=1-4,13-16" in finding.remedy and "tuned-adm profile cpu-partitioning" in finding.remedy

    facts = xeon_facts({"distribution": "Ubuntu 24.04 LTS"}, {ISOLATED: ""})
    finding = rows(plans()["dut"], facts)["isolated CPUs"]
    assert "isolcpus=1-4,13-16" in finding.remedy and "update-grub" in finding.remedy


def test_a_governor_that_saves_power_is_named_and_judged_in_a_lab() -> None:
    facts = xeon_facts(files={f"{CPU}/cpufreq/policy{cpu}/scaling_governor": "powersave" for cpu in (0, 2, 3)})
    finding = rows(plans()["dut"], facts)["frequency governor"]
    assert (finding.state, finding.remedy) == ("bad", "cpupower -c 2-3 frequency-set -g performance")

    facts = small("0", "1")
    policy = {f"{CPU}/cpufreq/policy0/scaling_governor": "powersave", f"{CPU}/cpufreq/policy0/affected_cpus": "0 1"}
    finding = of_local(replace(facts, files={**facts.files, **policy}))["frequency governor"]
    assert (finding.state, "powersave on CPU 0-1" in finding.found) == ("unknown", True)


HUGEPAGES = f"{NODE}/node0/hugepages/hugepages-1048576kB"


@pytest.mark.parametrize(
    ("files", "state", "found"),
    [
        ({f"{HUGEPAGES}/{name}_hugepages": "2" for name in ("nr", "free")}, "bad", "2048 MiB on node 0; 4096 MiB are"),
        ({f"{HUGEPAGES}/free_hugepages": "1"}, "unknown", "who has the others?"),
        ({path: "1" for path in xeon_facts().files if path.endswith("/numa_node")}, "bad", "0 MiB on node 1"),
    ],
)
def test_hugepages_of_the_cards_node_are_counted(files: dict[str, str], state: str, found: str) -> None:
    finding = rows(plans()["dut"], xeon_facts(files=files))["hugepages"]
    assert (finding.state, found in finding.found) == (state, True)
    assert state != "bad" or ("grubby --update-kernel=ALL" in finding.remedy and "hugepages=4" in finding.remedy)


def test_a_testbed_may_do_without_hugepages() -> None:
    dut = example().model_dump()["duts"][0] | {"hugepages": "never"}
    assert rows(plans(example(duts=[dut]))["dut"], xeon_facts())["hugepages"].found == "not asked for"
    finding = of_local(small("0", "1"))["hugepages"]
    assert (finding.state, finding.remedy) == ("unknown", "sysctl vm.nr_hugepages=1024")


def test_a_small_machine_shares_its_only_core_and_one_cpu_is_not_enough() -> None:
    finding = of_local(small("0,1", "0,1"))["hyper-threads"]
    assert (finding.state, "the only core" in finding.found) == ("unknown", True)
    assert of_local(small("0"))["CPUs"].state == "bad"


def test_cpus_without_a_tick_are_isolated_where_tuned_keeps_everything_else_off() -> None:
    files = {ISOLATED: "", NOHZ_FULL: "1-11,13-23"}
    assert rows(plans()["dut"], xeon_facts(files=files))["isolated CPUs"].state == "bad"
    finding = rows(plans()["dut"], xeon_facts(files=files | {TUNED: "cpu-partitioning"}))["isolated CPUs"]
    assert (finding.state, "tuned: cpu-partitioning" in finding.found) == ("ok", True)


def test_cpus_that_the_host_does_not_have_are_named() -> None:
    finding = rows(plans()["dut"], xeon_facts(files={f"{CPU}/online": "0-11"}))["CPUs"]
    assert (finding.state, "12-16" in finding.found) == ("bad", True)


def test_hyper_threads_of_the_articles_masks_are_said_and_not_judged() -> None:
    finding = rows(plans()["dut"], xeon_facts())["hyper-threads"]
    assert (finding.state, finding.found) == ("unknown", "CPUs 1+13, 2+14, 3+15, 4+16 share a core")


def test_a_core_that_generator_and_dut_share_is_judged_where_there_is_another() -> None:
    cpus_ = {"generator": [2], "pmd": [0], "housekeeping": "auto"}
    local = load("testbeds", "local", TestbedConfig).model_dump()
    plan = plans(TestbedConfig.model_validate(local | {"cpus": cpus_}))["this machine"]
    finding = rows(plan, small("0,2", "1,3", "0,2", "1,3"))["hyper-threads"]
    assert (finding.state, "share the core of CPUs 0+2" in finding.found) == ("bad", True)


def test_what_a_hypervisor_took_is_said() -> None:
    facts = xeon_facts({"virtualisation": "KVM"}, {STAT: "cpu  700 0 200 50 0 0 0 50 0 0\ncpu0 1"})
    assert "5.0 % of the CPUs' time" in rows(plans()["dut"], facts)["virtualisation"].found


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([1, 2, 3, 13, 14, 16], "1-3,13-14,16"), ([2, 1, 2], "1-2")]
)
def test_cpus_are_written_as_the_kernel_writes_them(numbers: list[int], text: str) -> None:
    assert cpu_ranges(numbers) == text

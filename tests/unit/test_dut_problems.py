"""What is wrong with a DUT: for each reason its code, how bad it is, and its sentence."""

from dataclasses import replace

import pytest

from ctbench.dut.base import Problem
from ctbench.dut.linux.health import Reading, SoftnetCounters, link_problems, placement_problem
from ctbench.dut.linux.links import InterfaceCounters
from ctbench.dut.ovs.health import drop_problems, log_problems, process_problem
from ctbench.dut.ovs.processes import ProcessIdentity
from ctbench.dut.ovs.threads import ThreadTimes, sharing_problems

pytestmark = pytest.mark.unit

OVS = ProcessIdentity(7, 1000)
QUIET = Reading({"r0": InterfaceCounters(2, 0, 0, {})}, {0: SoftnetCounters(0, 0)}, {}, (), 0.0)
BUSY = Reading({"r0": InterfaceCounters(2, 90_000, 0, {})}, {0: SoftnetCounters(9_000, 0)}, {}, (), 0.0)
AGAIN = replace(QUIET, interfaces={"r0": InterfaceCounters(9, 0, 0, {})})
DROPS = {"client.ovs_tx_failure_drops": 7}


@pytest.mark.parametrize(
    ("problem", "severity", "code", "text"),
    [
        (process_problem(OVS, None), "fatal", "died", "ovs-vswitchd (process 7) died."),
        (
            process_problem(OVS, ProcessIdentity(7, 2000)),
            "fatal", "restarted", "ovs-vswitchd restarted: it was process 7 and is 7.",
        ),
        (
            log_problems(["2026-11-20T10:18:08Z|00004|dpdk|ERR|EAL: failed to attach"])[0],
            "fatal", "logged-error", "ovs-vswitchd logged an error: EAL: failed to attach (dpdk)",
        ),
        (
            log_problems(["2026-11-20T10:18:08Z|00003|ovs_rcu(urcu3)|WARN|blocked 1000 ms waiting"])[0],
            "warning", "logged-stall", "ovs-vswitchd stalled: blocked 1000 ms waiting (ovs_rcu(urcu3))",
        ),
        (
            drop_problems(DROPS, "memif")[0],
            "disturbed", "generator-rings-full",
            "the generator's receive rings were full: OVS lost 7 packets there (client.ovs_tx_failure_drops).",
        ),
        (
            drop_problems(DROPS, "pci")[0],
            "warning", "lost-packets", "OVS lost 7 packets: client.ovs_tx_failure_drops.",
        ),
        (
            sharing_problems(ThreadTimes(had={7: 0}, waited={7: 0}, slept={7: 0}),
                             ThreadTimes(had={7: 7 * 10**9}, waited={7: 0}, slept={7: 0}), 10, with_generator=True)[0],
            "stalled", "stood-still",
            "Open vSwitch stood still for 3.0 s: its PMD threads did not run, although their CPUs were free.",
        ),
        (
            sharing_problems(ThreadTimes({7: 0}), ThreadTimes({7: 40_000_000}), 2, with_generator=True)[0],
            "disturbed", "cpu-taken", "Other processes took 2.0 % of a PMD CPU of the DUT.",
        ),
        (
            sharing_problems(ThreadTimes({}, {3: 0}), ThreadTimes({}, {3: 260_000_000}), 2, with_generator=True)[0],
            "warning", "generator-cpu-taken",
            "Other threads of OVS than PMD threads took 13 % of the traffic generator's CPU.",
        ),
        (
            link_problems(QUIET, replace(QUIET, interfaces={}))[0],
            "fatal", "interface-gone", "The interface r0 is gone.",
        ),
        (link_problems(QUIET, AGAIN)[0], "fatal", "interface-replaced", "The interface r0 was created again."),
        (
            placement_problem(QUIET, BUSY, ["r0"], [1], delivered=False),
            "invalid", "other-cpus",
            "10.0 % of the DUT's packets, or as many of others, were processed on CPU 0, which is not the DUT's: its "
            "own are 1.",
        ),
    ],
)  # fmt: skip
def test_each_reason_has_a_code_and_a_sentence(problem: Problem, severity: str, code: str, text: str) -> None:
    assert (problem.severity, problem.code, problem.text) == (severity, code, text)

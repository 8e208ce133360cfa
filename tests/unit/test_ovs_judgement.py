"""What of OVS' answers is a difference, a problem, or fine."""

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Problem
from ctbench.dut.ovs.counters import new_drops, since
from ctbench.dut.ovs.cpu_contention import ThreadTimes, sharing_problems
from ctbench.dut.ovs.health import log_problems, process_problem
from ctbench.dut.ovs.instance import ProcessIdentity
from ctbench.dut.ovs.memory import Memory, choose_memory, require_room
from ctbench.dut.ovs.parse import PortCounters
from ctbench.dut.ovs.readback import differing_devices, differing_options, differing_queues
from ctbench.dut.ovs.ruleset import SIDES
from ctbench.dut.ovs.settings import DISTRIBUTION_VSWITCHD, OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Hugepages, Placement

pytestmark = pytest.mark.unit


def placement(cpus: int) -> Placement:
    return Placement((0,), tuple(range(1, cpus + 1)), (0,))


def queues(*of_each_cpu: list[tuple[str, int]]) -> dict[int, list[tuple[str, int]]]:
    return dict(enumerate(of_each_cpu, start=1))


def test_one_queue_of_each_port_per_cpu_is_fine() -> None:
    assert differing_queues(queues([("port0", 0)], [("port1", 0)]), Topology(cpus=2), placement(2)) == []


def test_more_cpus_than_queues_leave_some_idle_and_that_is_fine() -> None:
    found = queues([("port0", 0)], [("port1", 0)], [], [])

    assert differing_queues(found, Topology(cpus=4), placement(4)) == []


def test_a_cpu_of_the_mask_that_has_no_pmd_thread_is_a_difference() -> None:
    found = differing_queues(queues([("port0", 0), ("port1", 0)]), Topology(cpus=2), placement(2))

    assert found == ["CPUs of the PMD threads: asked [1, 2], found [1]"]


def test_a_queue_that_nobody_polls_is_a_difference() -> None:
    (found,) = differing_queues(queues([("port0", 0)]), Topology(), placement(1))

    assert found.startswith("receive queues polled: asked [('port0', 0), ('port1', 0)], found [('port0', 0)]")


def test_an_idle_pmd_thread_beside_a_busy_one_is_a_difference() -> None:
    (found,) = differing_queues(queues([("port0", 0), ("port1", 0)], []), Topology(cpus=2), placement(2))

    assert "none idle" in found


def test_the_links_of_a_bond_have_queues_as_well() -> None:
    found = queues([(f"port{number}", 0) for number in range(4)])

    assert differing_queues(found, Topology(), placement(1), ("port0", "port1", "port2", "port3")) == []
    assert "receive queues polled" in differing_queues(found, Topology(), placement(1))[0]


def test_an_option_that_was_not_asked_for_is_a_difference() -> None:
    other_config = {"pmd-cpu-mask": "0x2", "smc-enable": "true"}

    assert differing_options(other_config, Topology(), placement(1)) == ["smc-enable: asked None, found true"]


def test_a_port_that_is_not_there_is_a_difference() -> None:
    assert "configured_rx_queues of port0: asked 1, found None" in differing_devices({}, Topology(), 2)


def test_errors_are_fatal_and_stalls_are_warnings_and_the_rest_is_normal() -> None:
    problems = log_problems(
        [
            "2026-11-20T10:18:08Z|00001|dpif|WARN|failed to enumerate system datapaths: No such file or directory",
            "2026-11-20T10:18:08Z|00002|timeval|WARN|Unreasonably long 3160ms poll interval (227ms user)",
            "2026-11-20T10:18:08Z|00003|ovs_rcu(urcu3)|WARN|blocked 1000 ms waiting for pmd-c01/id:8 to quiesce",
            "2026-11-20T10:18:08Z|00004|dpdk|ERR|EAL: failed to attach",
            "2026-11-20T10:18:08Z|00005|dpdk|ERR|EAL: failed to attach",
            "2026-11-20T10:18:08Z|00006|util|EMER|out of memory",
            "2026-11-20T10:18:08Z|00007|coverage|INFO|blocked                    0.0/sec",
        ]
    )

    assert [problem.severity for problem in problems] == ["fatal", "fatal", "warning", "warning"]
    assert problems[0].text == "ovs-vswitchd logged an error: EAL: failed to attach (dpdk)"
    assert problems[3].text.startswith("ovs-vswitchd stalled: blocked 1000 ms waiting")


def test_a_flood_of_messages_is_cut_short() -> None:
    problems = log_problems(f"2026-11-20T10:18:08Z|0000{n}|dpdk|ERR|error {n}" for n in range(9))

    assert len(problems) == 6
    assert "and 4 more" in problems[-1].text


def test_another_process_is_a_restart_and_none_is_a_death() -> None:
    before = ProcessIdentity(7, 1000)

    assert process_problem(before, before) is None
    died = process_problem(before, None)
    recycled = process_problem(before, ProcessIdentity(7, 2000))
    assert died and died.severity == "fatal" and "died" in died.text
    assert recycled and recycled.severity == "fatal" and "restarted" in recycled.text


def test_only_drops_that_are_new_are_told() -> None:
    before = {1: PortCounters(drops={"a": 5, "b": 0}), 2: PortCounters(drops={"a": 9})}
    now = {1: PortCounters(drops={"a": 5, "b": 2}), 2: PortCounters(drops={"a": 4})}

    assert new_drops(before, now) == {"client.b": 2, "server.a": 4}


def test_drops_at_all_links_of_a_bond_are_their_sides() -> None:
    before = {number: PortCounters(drops={"a": 0}) for number in SIDES}
    now = {number: PortCounters(drops={"a": number}) for number in SIDES}

    assert new_drops(before, now) == {"client.a": 1 + 3, "server.a": 2 + 4}


def test_a_counter_that_started_again_counts_from_zero() -> None:
    assert (since(5, 8), since(5, 3)) == (3, 3)


def test_free_hugepages_are_used() -> None:
    memory = choose_memory([Hugepages(2048, total=600, free=512), Hugepages(1048576, 0, 0)], 1024)

    assert memory.hugepages
    assert memory.eal_options == "--in-memory" and memory.other_config == {"dpdk-socket-mem": "1024"}


def test_without_enough_hugepages_the_record_says_what_to_type() -> None:
    memory = choose_memory([Hugepages(2048, total=600, free=511), Hugepages(1048576, 0, 0)], 1024)

    assert not memory.hugepages
    assert "--in-memory" not in memory.eal_options  # DPDK refuses it together with --no-huge
    assert memory.as_record()["advice"] == "sysctl vm.nr_hugepages=601"  # 89 are others' and 512 are ours


def test_ordinary_pages_that_are_not_there_are_missed_before_dpdk_touches_them() -> None:
    memory = choose_memory([], 1024)
    require_room("sandbox", "MemTotal: 4096000 kB\nMemAvailable:    1048576 kB\n", memory)
    require_room("sandbox", "no such line", memory)
    with pytest.raises(MissingResource, match=r"needs 1024 MiB of memory for DPDK .* sandbox has 1023 MiB free"):
        require_room("sandbox", "MemAvailable:    1048575 kB\n", memory)
    require_room("sandbox", "MemAvailable:    1 kB\n", Memory(1024, hugepages=True))


def test_a_build_of_ones_own_is_found_below_its_prefix() -> None:
    assert OvsInstallation().vswitchd_path == DISTRIBUTION_VSWITCHD
    assert OvsInstallation(prefix="/opt/x").vswitchd_path == "/opt/x/sbin/ovs-vswitchd"
    assert OvsInstallation(vswitchd="/build/ovs-vswitchd").vswitchd_path == "/build/ovs-vswitchd"
    assert all(path.startswith("/opt/x/") for path in OvsInstallation(prefix="/opt/x").files)


def sharing(before: ThreadTimes, now: ThreadTimes, with_generator: bool = True) -> list[Problem]:
    return sharing_problems(before, now, 2, with_generator=with_generator)


def test_a_pmd_thread_that_waited_for_its_cpu_is_a_disturbance_with_its_share() -> None:
    before, now = ThreadTimes({7: 1_000, 8: 5_000}), ThreadTimes({7: 1_000, 8: 40_005_000, 9: 10**12})
    assert sharing(before, now) == [
        Problem("disturbed", "Other processes took 2.0 % of a PMD CPU of the DUT.", cpu_taken=0.02)
    ]


def test_a_pmd_thread_that_hardly_waited_is_fine_and_so_is_a_kernel_that_does_not_say() -> None:
    assert sharing(ThreadTimes({7: 0}), ThreadTimes({7: 19_000_000})) == []
    assert sharing(ThreadTimes(), ThreadTimes()) == []


def test_what_ovs_did_on_the_generators_cpu_is_said_with_its_share_and_judges_nothing() -> None:
    before, now = ThreadTimes({}, {3: 5, 4: 7}), ThreadTimes({}, {3: 200_000_005, 4: 60_000_007, 5: 10**12})
    (problem,) = sharing(before, now)
    assert problem.severity == "warning"
    assert problem.text == "Threads of OVS that are no PMD threads took 13 % of the traffic generator's CPU."
    assert sharing(before, now, with_generator=False) == []
    assert sharing(before, ThreadTimes({}, {3: 30_000_005, 4: 7})) == []


def test_answering_questions_in_a_short_time_is_no_share_of_a_trial() -> None:
    before, now = ThreadTimes({}, {3: 0}), ThreadTimes({}, {3: 15_000_000})
    assert sharing_problems(before, now, 0.1, with_generator=True) == []

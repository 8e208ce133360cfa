"""What is wrong with a DUT: for each reason its code, how bad it is, and its sentence; and what is a difference, or
fine."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import DutCounts, PortCounters, Problem, drops_since
from ctbench.dut.linux.health import LinkReading, link_problems, placement_problem
from ctbench.dut.linux.health import counted as linux_counted
from ctbench.dut.ovs.bridge import differing_devices, differing_queues
from ctbench.dut.ovs.dpdk import Memory, choose_memory, dpdk_options, require_room
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.health import counted as ovs_counted
from ctbench.dut.ovs.health import drop_problems, log_problems
from ctbench.dut.ovs.ruleset import SIDES
from ctbench.dut.ovs.threads import ThreadTimes, sharing_problems
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.hosts.machine import Hugepages, Machine, Placement, read_hugepages

QUIET = LinkReading({"r0": PortCounters(0, 0, {}, index=2)}, {0: (0, 0)}, {}, (), 0.0)
BUSY = LinkReading({"r0": PortCounters(90_000, 0, {}, index=2)}, {0: (9_000, 0)}, {}, (), 0.0)
AGAIN = replace(QUIET, interfaces={"r0": PortCounters(0, 0, {}, index=9)})
#: The generator's CPU, which the DUT's other threads share, and that of a PMD thread.
TWO_CPUS = Placement((0,), (1,), (0,))
DROPS = {"client.ovs_tx_failure_drops": 7}


@pytest.mark.parametrize(
    ("problem", "severity", "code", "text"),
    [
        (log_problems(["2026-11-20T10:18:08Z|00004|dpdk|ERR|iavf_dev_stats_get(): Get statistics failed"])[0],
         "warning", "logged-error",
         "ovs-vswitchd logged an error: iavf_dev_stats_get(): Get statistics failed (dpdk)"),
        (log_problems(["2026-11-20T10:18:08Z|00004|netdev_dpdk|ERR|Interface port0 start error: Invalid argument"])[0],
         "fatal", "logged-error",
         "ovs-vswitchd logged an error: Interface port0 start error: Invalid argument (netdev_dpdk)"),
        (log_problems(["2026-11-20T10:18:08Z|00006|util(pmd-c01/id:8)|EMER|lib/dpif-netdev.c:12: assertion failed"])[0],
         "fatal", "logged-error",
         "ovs-vswitchd logged an error: lib/dpif-netdev.c:12: assertion failed (util(pmd-c01/id:8))"),
        (log_problems(["2026-11-20T10:18:08Z|00003|ovs_rcu(urcu3)|WARN|blocked 1000 ms waiting"])[0],
         "warning", "logged-stall", "ovs-vswitchd stalled: blocked 1000 ms waiting (ovs_rcu(urcu3))"),
        (drop_problems(DROPS, "memif")[0], "disturbed", "generator-rings-full",
         "the generator's receive rings were full: OVS lost 7 packets there (client.ovs_tx_failure_drops)."),
        (drop_problems(DROPS, "pci")[0], "warning", "lost-packets", "OVS lost 7 packets: client.ovs_tx_failure_drops."),
        (sharing_problems(ThreadTimes(had={7: 0}, waited={7: 0}, slept={7: 0}),
                          ThreadTimes(had={7: 7 * 10**9}, waited={7: 0}, slept={7: 0}), 10, TWO_CPUS)[0],
         "stalled", "stood-still",
         "Open vSwitch stood still for 3.0 s: its PMD threads did not run, although their CPUs were free."),
        (sharing_problems(ThreadTimes({7: 0}), ThreadTimes({7: 40_000_000}), 2, TWO_CPUS)[0],
         "disturbed", "cpu-taken", "Other processes took 2.0 % of a PMD CPU of the DUT."),
        (sharing_problems(ThreadTimes({}, {3: 0}), ThreadTimes({}, {3: 260_000_000}), 2, TWO_CPUS)[0], "warning",
         "generator-cpu-taken", "Other threads of OVS than PMD threads took 13 % of the traffic generator's CPU."),
        (link_problems(QUIET, replace(QUIET, interfaces={}))[0],
         "fatal", "interface-gone", "The interface r0 is gone."),
        (link_problems(QUIET, AGAIN)[0], "fatal", "interface-replaced", "The interface r0 was created again."),
        (placement_problem(QUIET, BUSY, ["r0"], [1], delivered=False), "invalid", "other-cpus",
         "10.0 % of the DUT's packets, or as many of others, were processed on CPU 0, which is not the DUT's: its "
         "own are 1."),
    ],
)  # fmt: skip
def test_each_reason_has_a_code_and_a_sentence(problem: Problem, severity: str, code: str, text: str) -> None:
    assert (problem.severity, problem.code, problem.text) == (severity, code, text)


@pytest.mark.parametrize(
    ("module", "message", "severity"),
    [
        ("netdev_dpdk", "Failed to create memory pool for netdev p0, with MTU 1500 on socket 0: Cannot allocate memory",
         "fatal"),
        ("netdev_dpdk", "Interface p0(rxq:2 txq:3 lsc interrupt mode:false) configure error: Device or resource busy",
         "fatal"),
        ("netdev_dpdk(pmd-c01/id:8)", "Interface p0 start error: Invalid argument", "fatal"),
        ("dpif_netdev", "Failed to set interface p0 new configuration", "fatal"),
        ("netdev_dpdk", "Interface p0 MTU (9000) setup error: Invalid argument", "warning"),
        ("netdev_dpdk", "Can't get ETH statistics for port: 0.", "warning"),
        ("bridge", "Interface p0 start error: Invalid argument", "warning"),
    ],
)  # fmt: skip
def test_a_port_whose_device_could_not_be_set_up_again_forwards_nothing_more(
    module: str, message: str, severity: str
) -> None:
    found = log_problems([f"2026-11-20T10:18:08Z|00004|{module}|ERR|{message}"])
    assert [problem.severity for problem in found] == [severity]


def queues(*of_each_cpu: list[tuple[str, int]]) -> dict[int, list[tuple[str, int]]]:
    return dict(enumerate(of_each_cpu, start=1))


BOTH = [("port0", 0), ("port1", 0)]
BOND = [(f"port{number}", 0) for number in range(4)]


@pytest.mark.parametrize(
    ("found", "cpus", "interfaces", "difference"),
    [
        (queues(BOTH[:1], BOTH[1:]), 2, 2, ""),
        (queues(BOTH[:1], BOTH[1:], [], []), 4, 2, ""),  # more CPUs than queues
        (queues(BOTH), 2, 2, "CPUs of the PMD threads: asked [1, 2], found [1]"),
        (queues(BOTH[:1]), 1, 2, f"receive queues polled: asked {BOTH}, found {BOTH[:1]}"),
        (queues(BOTH, []), 2, 2, "queues per PMD CPU: asked none idle while another polls several, found {1: 2, 2: 0}"),
        (queues(BOND), 1, 4, ""),
        (queues(BOND), 1, 2, f"receive queues polled: asked {BOTH}, found {BOND}"),
    ],
)
def test_every_queue_is_polled_and_no_thread_idles_while_another_has_several(
    found: dict[int, list[tuple[str, int]]], cpus: int, interfaces: int, difference: str
) -> None:
    ports = [name for name, _ in BOND[:interfaces]]
    placement = Placement((0,), tuple(range(1, cpus + 1)), (0,))
    differences = differing_queues(found, Topology(cpus=cpus), placement, ports)
    assert differences == ([difference] if difference else [])


def test_a_port_that_is_not_there_is_a_difference() -> None:
    assert differing_devices("port0", None, Topology(), 2, {}) == ["port0: asked a port, found none"]
    assert differing_devices("port0", TWO_QUEUES, Topology(), 2, {}) == ["rx_queues of port0: asked 1, found 2"]


TWO_QUEUES = {"rx_queues": 2, "tx_queues": 2, "rx_descriptors": 2048, "tx_descriptors": 2048}


def test_pmd_threads_share_transmit_queues_and_a_card_with_too_few_receive_queues_is_not_measured() -> None:
    few = {"max_rx_queues": "2", "max_tx_queues": "2"}  # a virtual function
    assert differing_devices("port0", TWO_QUEUES, Topology(cpus=4, rx_queues=2), 5, few) == []
    with pytest.raises(MissingResource, match="port0: 4 receive queues are needed, and its device has 2 at most"):
        differing_devices("port0", TWO_QUEUES, Topology(rx_queues=4), 2, few)
    more = {"max_rx_queues": "64", "max_tx_queues": "64"}  # Open vSwitch follows later
    assert differing_devices("port0", TWO_QUEUES, Topology(cpus=2, rx_queues=4), 3, more) == [
        "rx_queues of port0: asked 4, found 2",
        "tx_queues of port0: asked 3, found 2",
    ]


def test_each_error_and_each_stall_is_told_once_and_the_rest_is_normal() -> None:
    problems = log_problems(
        [
            "2026-11-20T10:18:08Z|00001|dpif|WARN|failed to enumerate system datapaths: No such file or directory",
            "2026-11-20T10:18:08Z|00002|timeval|WARN|Unreasonably long 3160ms poll interval (227ms user)",
            "2026-11-20T10:18:08Z|00003|ovs_rcu(urcu3)|WARN|blocked 1000 ms waiting for pmd-c01/id:8 to quiesce",
            "2026-11-20T10:18:08Z|00004|dpdk|ERR|EAL: failed to attach",
            "2026-11-20T10:18:08Z|00005|dpdk|ERR|EAL: failed to attach",
            "2026-11-20T10:18:08Z|00006|util|EMER|out of memory",
            "2026-11-20T10:18:08Z|00007|coverage|INFO|blocked                    0.0/sec",
            "a continuation",
        ]
    )
    assert [problem.code for problem in problems] == ["logged-error"] * 2 + ["logged-stall"] * 2
    # A flood of messages is cut short.
    problems = log_problems(f"2026-11-20T10:18:08Z|0000{n}|dpdk|ERR|error {n}" for n in range(9))

    assert len(problems) == 6
    assert "and 4 more" in problems[-1].text


def test_only_drops_that_are_new_are_told_by_their_side() -> None:
    before = {1: PortCounters(drops={"a": 5, "b": 0}), 2: PortCounters(drops={"a": 9})}
    now = {1: PortCounters(drops={"a": 5, "b": 2}), 2: PortCounters(drops={"a": 4})}
    assert drops_since(before, now, SIDES) == {"client.b": 2, "server.a": 4}  # one that started again counts from zero
    before = {number: PortCounters(drops={"a": 0}) for number in SIDES}
    now = {number: PortCounters(drops={"a": number}) for number in SIDES}
    assert drops_since(before, now, SIDES) == {"client.a": 1 + 3 + 5 + 7, "server.a": 2 + 4 + 6 + 8}
    assert drops_since({}, now, SIDES) == {}  # ports that came since


def test_what_ovs_counted_of_a_trial_is_told_by_side_and_queue_and_damaged_frames_are_not_dropped() -> None:
    before = {1: PortCounters(100, 50, {}, {"rx_q0": 60}), 2: PortCounters(7, 9), 9: PortCounters(1, 1)}
    drops = {"rx_missed_errors": 3, "rx_crc_errors": 4, "rx_errors": 4}
    now = {1: PortCounters(400, 60, drops, {"rx_q0": 260, "rx_q1": 100}), 2: PortCounters(8, 2), 9: PortCounters(9, 9)}
    found = ovs_counted(before, now, "pci")
    assert found == DutCounts(
        {"client": 300, "server": 1}, {"client": 10, "server": 2}, 3, {"client.rx_q0": 200, "client.rx_q1": 100}
    )
    assert ovs_counted(before, now, "veth").received == {}  # what found its ring full is not counted
    several = {number: PortCounters(number, 10 * number) for number in SIDES}
    assert ovs_counted(dict.fromkeys(SIDES, PortCounters()), several, "memif").sent == {"client": 160, "server": 200}


def test_what_linux_counted_of_a_trial_has_what_became_of_entries() -> None:
    here = {"r0": PortCounters(10, 1, {}, index=2), "r1": PortCounters(1, 5, {"tx_dropped": 1}, index=3)}
    then = {"r0": PortCounters(90, 2, {}, index=2), "r1": PortCounters(2, 45, {"tx_dropped": 7}, index=3)}
    before = replace(QUIET, interfaces=here, conntrack={"insert_failed": (1 << 32) - 1, "found": 5, "drop": 2})
    now = replace(QUIET, interfaces=then, conntrack={"insert_failed": 2, "found": 9, "drop": 2, "clash_resolve": 4})
    found = linux_counted(before, now, ("r0", "r1"))
    kept = {"insert_failed": 3, "drop": 0, "clash_resolve": 4}
    assert found == DutCounts({"client": 80, "server": 1}, {"client": 1, "server": 40}, 6, conntrack=kept)
    assert linux_counted(before, QUIET, ("r0", "r1")) is None  # one is gone


@pytest.mark.parametrize(
    ("free", "huge", "advice"),
    [(512, True, None), (511, False, "echo 601 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")],
)
def test_free_hugepages_are_used_or_the_record_says_what_to_type(free: int, huge: bool, advice: str | None) -> None:
    memory = choose_memory([Hugepages(2048, total=600, free=free), Hugepages(1048576, 0, 0)], 1024)
    assert (memory.hugepages, memory.as_record().get("advice")) == (huge, advice)
    options = dpdk_options(memory, (0,), cards=False)
    assert ("--in-memory" in options["dpdk-extra"]) == huge  # DPDK refuses it together with --no-huge
    assert options.get("dpdk-socket-mem") == ("1024" if huge else None)
    assert options["dpdk-probe-at-init"] == "true"  # of DPDKs in parts, else the driver of each bus is needed


PAGES = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/{}_hugepages"


def two_nodes(*free: int) -> Any:
    """A host with two NUMA nodes, and so many free hugepages on each; two more of each are in use."""
    files = {
        PAGES.format(node, name): pages + more
        for node, pages in enumerate(free)
        for name, more in (("nr", 2), ("free", 0))
    }

    def run(argv: list[str], **_: object) -> Completed:
        found = "".join(f"{path}\0{pages}\n" for path, pages in files.items() if path.startswith(f"{argv[-1]}/"))
        return Completed(0, found, "")

    return Mock(run=run, read=lambda _: "")


@pytest.mark.parametrize(
    ("nodes", "free", "advice"),
    [
        ((0,), (512, 0), ()),
        ((1,), (512, 0), ((1, 514),)),
        ((0,), (256, 256), ((0, 514),)),  # as the kernel spreads them
        ((0, 1), (256, 256), ()),
        ((0, 1), (512, 0), ((1, 258),)),
        ((0, 1), (255, 0), ((0, 258), (1, 258))),
    ],
)
def test_hugepages_have_to_be_on_the_nodes_that_dpdk_asks(
    nodes: tuple[int, ...], free: tuple[int, int], advice: tuple[tuple[int, int], ...]
) -> None:
    host, whole = two_nodes(*free), [Hugepages(2048, total=516, free=512)]
    memory = choose_memory(whole, 1024, of_nodes={node: read_hugepages(host, node) for node in nodes})
    assert memory.advice == "; ".join(f"echo {number} >{PAGES.format(node, 'nr')}" for node, number in advice)
    assert memory.hugepages is not bool(advice)
    # A kernel that does not tell them by node.
    assert choose_memory(whole, 1024, of_nodes={0: (), 1: ()}).hugepages


@pytest.mark.parametrize(("pmds", "asked"), [((1,), "1024"), ((5, 6), "0,1024"), ((1, 5), "512,512"), ((64,), "1024")])
def test_hugepages_are_of_the_numa_nodes_of_the_pmd_threads(pmds: tuple[int, ...], asked: str) -> None:
    nodes = Mock(numa={0: (0, 1, 2, 3), 1: (4, 5, 6, 7)})
    memory = Memory(1024, hugepages=True)
    assert dpdk_options(memory, Machine.nodes_of(nodes, pmds), cards=True)["dpdk-socket-mem"] == asked


@pytest.mark.parametrize(("devices", "asked"), [("memif", "1024"), ("pci", "0,1024")])
def test_what_is_no_card_has_its_buffers_on_node_0_wherever_pmd_threads_are(devices: str, asked: str) -> None:
    dut = OvsDpdkDut.__new__(OvsDpdkDut)
    host, machine = two_nodes(512, 512), Mock(nodes_of=lambda _: (1,))
    vars(dut).update(_host=host, _machine=machine, _devices=Mock(kind=devices), _memory_mb=1024, _hugepages=True)
    dut._dpdk_extra = ()
    assert dut._dpdk_options(TWO_CPUS)["dpdk-socket-mem"] == asked


def test_ordinary_pages_that_are_not_there_are_missed_before_dpdk_touches_them() -> None:
    memory = choose_memory([], 1024)
    require_room("sandbox", "MemTotal: 4096000 kB\nMemAvailable:    1048576 kB\n", memory)
    require_room("sandbox", "no such line", memory)
    with pytest.raises(MissingResource, match=r"needs 1024 MiB of memory for DPDK .* sandbox has 1023 MiB free"):
        require_room("sandbox", "MemAvailable:    1048575 kB\n", memory)
    require_room("sandbox", "MemAvailable:    1 kB\n", Memory(1024, hugepages=True))


def sharing(before: ThreadTimes, now: ThreadTimes, others: int = 0) -> list[Problem]:
    return sharing_problems(before, now, 2, Placement((0,), (1,), (others,)))


def test_a_pmd_thread_that_waited_for_its_cpu_is_a_disturbance_with_its_share() -> None:
    before, now = ThreadTimes({7: 1_000, 8: 5_000}), ThreadTimes({7: 1_000, 8: 40_005_000, 9: 10**12})
    (taken,) = sharing(before, now)
    assert (taken.code, taken.cpu_taken) == ("cpu-taken", 0.02)
    assert sharing(ThreadTimes({7: 0}), ThreadTimes({7: 19_000_000})) == []
    assert sharing(ThreadTimes(), ThreadTimes()) == []  # a kernel that does not say


def test_what_ovs_did_on_cpus_is_told_by_whose_they_are() -> None:
    before, now = ThreadTimes({7: 0}, {3: 0}), ThreadTimes({7: 400_000_000}, {3: 390_000_000})
    assert sharing(before, now, others=1) == []
    (taken,) = sharing(before, ThreadTimes({7: 400_000_000}, {3: 300_000_000}), others=1)
    assert (taken.code, taken.cpu_taken) == ("cpu-taken", pytest.approx(0.05))
    assert sharing(before, now, others=2)[0].code == "cpu-taken"
    # On the generator's CPU it is said with its share, and judges nothing.
    before, now = ThreadTimes({}, {3: 5, 4: 7}), ThreadTimes({}, {3: 200_000_005, 4: 60_000_007, 5: 10**12})
    assert [problem.code for problem in sharing(before, now)] == ["generator-cpu-taken"]
    assert sharing(before, now, others=2) == []
    assert sharing(before, ThreadTimes({}, {3: 30_000_005, 4: 7})) == []
    # The questions before and after a short trial are no share of it.
    before, now = ThreadTimes({}, {3: 0}), ThreadTimes({}, {3: 15_000_000})
    assert sharing_problems(before, now, 0.1, TWO_CPUS) == []

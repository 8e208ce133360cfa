"""What real builds of Open vSwitch answer is read, of each release alike; tools/benchmarks/releases.py recorded it
after a trial whose counts the traffic generator knows."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import MissingResource, UnknownAnswer
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.answers import Command, PmdStatistics, Unread
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.control_plane import require_handlers
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.ovs.threads import Thread, misplaced, parse_threads
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.hosts.machine import Placement

DATA = Path(__file__).parents[1] / "data"
RELEASES = sorted(folder.name for folder in (DATA / "ovs").iterdir())
#: Since 3.4 the userspace datapath has no handlers.
WITH_HANDLERS = ("2.17", "3.0", "3.1", "3.3")
#: Of 3.1.0, in states that a trial does not leave.
STATES = DATA / "ovs-3.1.0"
each_release = pytest.mark.parametrize("release", RELEASES)
#: What each device was given.
SETUP = {"rx_queues": 2, "tx_queues": 2, "rx_descriptors": 2048, "tx_descriptors": 2048}
#: The policy that the testbed sets.
POLICY = {
    "udp_first": 1, "udp_single": 1, "udp_multiple": 30, "tcp_syn_sent": 1, "tcp_syn_recv": 1, "tcp_fin_wait": 1,
    "tcp_time_wait": 1, "tcp_close": 1, "tcp_established": 30,
}  # fmt: skip


def said(release: str, what: str) -> str:
    return (DATA / "ovs" / release / f"{what}.txt").read_text()


def trial(release: str) -> dict[str, Any]:
    """What the generator counted."""
    counted: dict[str, Any] = json.loads(said(release, "trial"))
    return counted


def test_each_release_that_is_gated_is_among_them() -> None:
    assert {"2.17", "3.0", "3.1", "3.3", "3.5", "3.6", "3.7", "main"} <= set(RELEASES)


def test_a_thread_that_counts_backwards_tells_nothing_of_look_ups() -> None:
    assert answers.look_ups([PmdStatistics(packets_received=10, recirculations=-3)], 1) is None
    assert answers.look_ups([PmdStatistics(packets_received=1 << 63)], 1) is None


@each_release
def test_the_statistics_of_pmd_threads_are_what_the_generator_sent(release: str) -> None:
    (pmd,) = answers.PMDS.read(said(release, "pmds")).values()
    sent = sum(trial(release)["tx_packets"].values())
    assert (pmd.packets_received, pmd.recirculations) == (sent, sent)
    found = answers.look_ups([pmd], 3)
    assert found.emc_hits + found.smc_hits + found.megaflow_hits + found.upcalls == 2 * sent
    assert found.upcalls > 0 == found.failed_upcalls
    assert pmd.packets_per_output_batch >= 1
    assert pmd.processing_cycles > 0 < pmd.idle_cycles
    use = answers.cpu_use([pmd])
    assert use and use.ns_per_packet and 0 < use.busy_cpus < 1


@each_release
def test_each_queue_is_polled_by_the_thread(release: str) -> None:
    (queues,) = answers.QUEUES.read(said(release, "queues")).values()
    assert sorted(queues) == [("port0", 0), ("port0", 1), ("port1", 0), ("port1", 1)]


@each_release
def test_a_device_has_the_queues_and_descriptors_that_it_was_given(release: str) -> None:
    shown = answers.DEVICES.read(said(release, "devices"))
    status = json.loads(said(release, "status"))
    assert answers.device_setup("port0", shown["port0"], status) == SETUP


@each_release
def test_the_ports_count_what_the_generator_sent_and_received(release: str) -> None:
    ports, counted = answers.PORTS.read(said(release, "ports")), trial(release)
    assert {1: "client", 2: "server"}.keys() == ports.keys()
    for number, side in ((1, "client"), (2, "server")):
        assert ports[number].rx_packets == counted["tx_packets"][side]
        assert ports[number].tx_packets == counted["rx_packets"][side]
        assert {"ovs_tx_failure_drops", "rx_missed_errors"} <= ports[number].drops.keys()


@each_release
def test_the_table_has_an_entry_for_each_connection_with_its_timeout(release: str) -> None:
    # A TCP connection is 4 packets of the client and 3 of the server, a UDP connection one of each.
    client, server = trial(release)["tx_packets"].values()
    tcp = client - server
    assert answers.CONNECTIONS.read(said(release, "connections")) == tcp + (server - 3 * tcp)
    assert answers.TABLE_LIMIT.read(said(release, "table-limit")) == 5_000_000
    assert answers.TABLE_FULL.read(said(release, "table-full")) == 0
    entries = answers.ENTRIES.read(said(release, "entries"))
    assert {each.zone for each in entries} == {0}
    assert {each.protocol for each in entries} <= {"tcp", "udp"}
    assert all(each.timeout_s <= (1 if each.protocol == "tcp" else 30) for each in entries)
    assert answers.ZONE_POLICIES.read(said(release, "zone-policies")) == {0: POLICY}


@each_release
def test_the_sweep_is_told_where_the_command_is_known(release: str) -> None:
    known = "dpctl/ct-get-sweep-interval" in answers.COMMANDS.read(said(release, "commands"))
    assert known == (DATA / "ovs" / release / "sweep.txt").exists()
    assert not known or answers.SWEEP.read(said(release, "sweep")) == 20.0


@each_release
def test_the_revalidators_tell_their_flows_and_bonds_their_members(release: str) -> None:
    found = answers.REVALIDATION.read(said(release, "revalidation"))
    assert found.flows > 0
    assert found.limit >= 10_000
    assert answers.BOND.read(said(release, "bond")).keys() == {"port0", "port2"}


@each_release
@pytest.mark.parametrize("command", [each for each in vars(answers).values() if isinstance(each, Command)], ids=str)
def test_what_is_told_is_a_command_of_it(release: str, command: Command[object]) -> None:
    if command.tool == "ovs-appctl" and command != answers.SWEEP:
        assert command.words[0] in answers.COMMANDS.read(said(release, "commands"))


@each_release
def test_no_thread_of_dpdks_interrupts_is_where_one_polls(release: str) -> None:
    names = said(release, "threads").split()
    threads = [Thread(number, name, (1,)) for number, name in enumerate(names)]
    beside = Placement((0,), (1,), (1,))
    assert [each.wanted(beside) for each in threads if "intr" in each.name] == [(0,)]
    assert any(each.pmd_cpu is not None for each in threads)


@each_release
def test_rows_with_handlers_are_skipped_where_there_are_no_such_threads(release: str) -> None:
    threads = [Thread(number, name, (1,)) for number, name in enumerate(said(release, "threads").split())]
    require_handlers(Topology(), [], release)
    asked, refused = Topology(handlers=2), f"2 handlers are asked for, and Open vSwitch {release} has no"
    with nullcontext() if release in WITH_HANDLERS else pytest.raises(MissingResource, match=refused):
        require_handlers(asked, threads, release)


#: Each reader of an answer with several lines, and a sample of it.
READERS = {"pmds": answers.PMDS, "queues": answers.QUEUES, "devices": answers.DEVICES, "ports": answers.PORTS,
           "revalidation": answers.REVALIDATION, "bond": answers.BOND, "commands": answers.COMMANDS,
           "entries": answers.ENTRIES, "zone-policies": answers.ZONE_POLICIES,
           "zone-limits": answers.ZONE_LIMITS}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_an_answer_in_another_form_is_not_taken_for_one_without_numbers(name: str) -> None:
    with pytest.raises(Unread):
        READERS[name].read("something else\n  packets received: 5\n")


@pytest.mark.parametrize("label", ["Used TSC cycles", "Rx packets", "Datapath passes", "EMC hits", "Lost upcalls"])
def test_statistics_that_lack_a_number_are_not_read_as_0(label: str) -> None:
    lines = [line for line in said("main", "pmds").splitlines() if label not in line]
    with pytest.raises(Unread, match=label):
        answers.PMDS.read("\n".join(lines))


def test_a_device_that_tells_no_queues_is_not_one_with_other_queues() -> None:
    shown = {"n_rxq": "2", "n_rxq_desc": "2048", "n_txq_desc": "2048"}  # asked for, since 3.3; not what it has
    with pytest.raises(Unread, match="n_rxq nor configured_rx_queues"):
        answers.device_setup("port0", shown, {})


def test_an_unknown_answer_is_kept_and_names_command_release_and_line(tmp_path: Path) -> None:
    other = "Time: 1\nMeasurement duration: 2.0 s\npmd thread numa_id 0 core_id 1:\n  Packets: 7\n"
    host = Mock(run=Mock(return_value=Completed(0, other, "")))
    control = OvsControl(host, OvsInstallation(), "/run/x")
    control.release, control.kept_in = "5.0.0", tmp_path / "dut"

    with pytest.raises(UnknownAnswer) as said_so:
        control.ask(answers.PMDS)

    for part in ("`ovs-appctl dpif-netdev/pmd-perf-show`", "Open vSwitch 5.0.0", "Rx packets"):
        assert part in str(said_so.value)
    (kept,) = (tmp_path / "dut").iterdir()
    assert kept.read_text().startswith("$ ovs-appctl dpif-netdev/pmd-perf-show\nTime: 1\n")
    assert str(kept) in str(said_so.value)


def test_drops_are_counted_by_name_and_members_in_use_are_told() -> None:
    ports = answers.PORTS.read((STATES / "dump-ports.txt").read_text())
    assert sorted(ports) == [1, 2]
    assert (ports[1].rx_packets, ports[1].tx_packets) == (11188, 8391)
    lost = {name: count for name, count in ports[1].drops.items() if count}
    assert lost == {"ovs_tx_failure_drops": 7, "rx_missed_errors": 2}  # each packet under one name
    assert ports[2].drops == {"rx_dropped": 3, "tx_dropped": 0}
    assert answers.BOND.read((STATES / "bond-show.txt").read_text()) == {"port1": True, "port3": False}


def test_a_thread_beside_a_pmd_thread_is_misplaced() -> None:
    threads = parse_threads((STATES / "threads.txt").read_text())

    assert threads[2] == Thread(37, "pmd-c01/id:8", (1,))
    assert [thread.name for thread in misplaced(threads, Placement((0,), (1,), (0,)))] == ["eal-intr-thread"]
    assert misplaced(threads, Placement((0,), (1,), (0,), oversubscribed=True)) == []
    # The others may be there on two CPUs; the one that unmaps rings may not.
    beside = Placement((0,), (1,), (1,))
    assert {thread.name: thread.wanted(beside) for thread in threads}["eal-intr-thread"] == (0,)
    assert "ovs-vswitchd-dp" in {thread.name for thread in threads if thread.wanted(beside) == (1,)}


PERF = """
Time: 13:41:51.088
Measurement duration: {seconds} s

pmd thread numa_id 0 core_id 1:

  Iterations:             25908857  (0.13 us/it)
  - Used TSC cycles:  {cycles}  (100.0 % of total cycles)
  - idle iterations:      25908841  ( 80.0 % of used cycles)
  - busy iterations:            16  ( 20.0 % of used cycles)
  Rx packets:                    0
"""


@pytest.mark.parametrize(
    ("seconds", "cycles", "rate"),
    [
        ("3.259", 7494938528, pytest.approx(2.2998e9, rel=1e-4)),
        ("0.000", 0, None),
        ("3.184", 18446744073709550000, None),  # of a thread that was stopped for seconds
        ("3.259", 0, None),  # of one without a queue, until 3.1
    ],
)
def test_the_rate_of_cycles_is_read_where_it_can_be(seconds: str, cycles: int, rate: float | None) -> None:
    text = PERF.format(seconds=seconds, cycles=cycles)
    texts = [text] if cycles else [text.replace(" 80.0", nan).replace(" 20.0", nan) for nan in ("-nan", " nan")]
    pmd, *others = [answers.PMDS.read(each)[1] for each in texts]
    assert all(other == pmd for other in others)
    assert pmd.cycles_per_second == rate
    assert rate is None or round(pmd.processing_percent) == 20


def pmd(packets: int, busy: int, idle: int, rate: float | None) -> PmdStatistics:
    seconds = (busy + idle) / rate if rate else 0.0
    return PmdStatistics(packets_received=packets, processing_cycles=busy, idle_cycles=idle, seconds=seconds)


@pytest.mark.parametrize(
    ("pmds", "rate", "busy_cpus", "ns_per_packet"),
    [
        ([(1000, 600_000, 200_000)], 2e9, 0.75, 300.0),
        ([(300, 100, 0), (100, 100, 100), (0, 0, 500)], 1e9, 1.5, 0.5),  # one that idles counts nothing
        ([(10, 50, 50)], None, 0.5, None),
        ([(0, 10, 90)], 1e9, None, None),
        ([(0, 0, 0)], 1e9, None, None),
        ([], 1e9, None, None),
    ],
)
def test_a_pmd_thread_uses_the_share_of_its_cpu_in_which_it_found_packets(
    pmds: list[tuple[int, int, int]], rate: float | None, busy_cpus: float | None, ns_per_packet: float | None
) -> None:
    use = answers.cpu_use([pmd(*each, rate) for each in pmds])
    found = (use and use.busy_cpus, use and use.ns_per_packet and round(use.ns_per_packet, 6))
    assert found == (busy_cpus, ns_per_packet)


def test_look_ups_are_those_of_all_threads_with_the_flows_of_the_datapath() -> None:
    one = PmdStatistics(packets_received=10, recirculations=10, emc_hits=7, megaflow_hits=12, upcalls=1)
    found = answers.look_ups([one, one], 5)
    assert (found.packets, found.emc_hits, found.megaflow_hits, found.upcalls) == (20, 14, 24, 2)
    assert (found.recirculations, found.failed_upcalls, found.datapath_flows) == (20, 0, 5)

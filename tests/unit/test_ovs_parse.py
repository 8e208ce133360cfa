"""What OVS prints is read, and what the cycles of PMD threads say of a trial; the texts are of OVS 3.1.0."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ctbench.dut.abilities import Revalidation
from ctbench.dut.ovs import control
from ctbench.dut.ovs.control_plane import parse_upcalls
from ctbench.dut.ovs.threads import Thread, misplaced, parse_threads
from ctbench.hosts.machine import Placement

RECORDED = Path(__file__).parents[1] / "data" / "ovs-3.1.0"


def said(what: str) -> str:
    return (RECORDED / f"{what}.txt").read_text()


ZONES = (
    "Zone:0, Timeout Policies: tcp_close=1 tcp_established=30 udp_first=1\nZone:5, Timeout Policies: udp_multiple=30\n"
)


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (control.parse_rxq_map, said("pmd-rxq-show"), {1: [("port0", 0), ("port1", 1)], 13: []}),
        (control.parse_bond_members, said("bond-show"), {"port1": True, "port3": False}),
        (parse_upcalls, said("upcall-show"), Revalidation(0.107, 50_000, 200_000)),
        (control.parse_zone_timeouts, ZONES,
         {0: {"tcp_close": 1, "tcp_established": 30, "udp_first": 1}, 5: {"udp_multiple": 30}}),
    ],
)  # fmt: skip
def test_what_is_printed_is_read(parse: Callable[[str], object], text: str, found: object) -> None:
    assert parse(text) == found


def test_the_statistics_of_pmd_threads_are_read_and_the_main_threads_left_out() -> None:
    (statistics,) = control.parse_pmd_statistics(said("pmd-stats-show")).values()

    assert (statistics.packets_received, statistics.megaflow_hits) == (19579, 39158)
    assert statistics.packets_per_output_batch == 1.45
    assert round(statistics.cycles_per_packet, 2) == 82733.03
    assert round(statistics.processing_percent, 2) == 45.61


def test_what_a_port_is_configured_to_and_counts_is_read_with_its_drops_by_name() -> None:
    ports = control.parse_port_options(said("dpif-show"))
    assert ports["br0"] == {}
    assert ports["port0"]["configured_rx_queues"] == "4"
    assert ports["port0"]["configured_tx_queues"] == "9"
    ports = control.parse_ports(said("dump-ports"))
    assert sorted(ports) == [1, 2]
    assert (ports[1].rx_packets, ports[1].tx_packets) == (11188, 8391)
    lost = {name: count for name, count in ports[1].drops.items() if count}
    assert lost == {"ovs_tx_failure_drops": 7, "rx_missed_errors": 2}  # each packet under one name
    assert ports[2].drops == {"rx_dropped": 3, "tx_dropped": 0}


def test_a_thread_beside_a_pmd_thread_is_misplaced() -> None:
    threads = parse_threads(said("threads"))

    assert threads[2] == Thread(37, "pmd-c01/id:8", (1,))
    assert [thread.name for thread in misplaced(threads, Placement((0,), (1,), (0,)))] == ["eal-intr-thread"]
    assert misplaced(threads, Placement((0,), (1,), (0,), oversubscribed=True)) == []
    # The others may be there on two CPUs; the one that unmaps rings may not.
    beside = Placement((0,), (1,), (1,))
    assert {thread.name: thread.wanted(beside) for thread in threads}["eal-intr-thread"] == (0,)
    assert "ovs-vswitchd-dp" in {thread.name for thread in threads if thread.wanted(beside) == (1,)}


def pmd(packets: int, busy: int, idle: int) -> control.PmdStatistics:
    return control.PmdStatistics(packets_received=packets, processing_cycles=busy, idle_cycles=idle)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        (said("pmd-perf-show"), pytest.approx(2.2998e9, rel=1e-4)),
        ("", None),
        ("Measurement duration: 0.000 s\n  - Used TSC cycles:  0\n", None),
        # Of a thread that was stopped for seconds.
        ("Measurement duration: 3.184 s\n  - Used TSC cycles:  18446744073709550000  (100.0 % of total)\n", None),
    ],
)
def test_the_rate_of_cycles_is_read_where_it_is_told(text: str, rate: float | None) -> None:
    assert control.parse_cycle_rate(text) == rate


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
    use = control.cpu_use([pmd(*each) for each in pmds], cycles_per_second=rate)
    assert (use and use.busy_cpus, use and use.ns_per_packet) == (busy_cpus, ns_per_packet)


def test_look_ups_are_those_of_all_threads_with_the_flows_of_the_datapath() -> None:
    shown = "dummy@ovs-dummy:\n  flows         : (current 5) (avg 4) (max 9) (limit 200000)\n  offloaded flows : 0\n"
    one = control.PmdStatistics(packets_received=10, recirculations=10, emc_hits=7, megaflow_hits=12, upcalls=1)
    found = control.look_ups([one, one], control.parse_datapath_flows(shown))
    assert (found.packets, found.emc_hits, found.megaflow_hits, found.upcalls) == (20, 14, 24, 2)
    assert (found.recirculations, found.failed_upcalls, found.datapath_flows) == (20, 0, 5)

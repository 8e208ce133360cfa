"""What OVS prints is read, and what the cycles of PMD threads say of a trial; the texts are of OVS 3.1.0."""

from collections.abc import Callable

import pytest

from ctbench.dut.ovs.control import (
    PmdStatistics,
    cpu_use,
    look_ups,
    parse_bond_members,
    parse_cycle_rate,
    parse_datapath_flows,
    parse_pmd_statistics,
    parse_port_options,
    parse_ports,
    parse_rxq_map,
    parse_zone_timeouts,
)
from ctbench.dut.ovs.threads import Thread, misplaced, parse_threads
from ctbench.hosts.machine import Placement

pytestmark = pytest.mark.unit

RXQ_SHOW = """\
Displaying last 60 seconds pmd usage %
pmd thread numa_id 0 core_id 1:
  isolated : false
  port: port0             queue-id:  0 (enabled)   pmd usage: NOT AVAIL
  port: port1             queue-id:  1 (enabled)   pmd usage: 12 %
  overhead: NOT AVAIL
pmd thread numa_id 0 core_id 13:
  isolated : false
  overhead: NOT AVAIL
"""

STATS_SHOW = """\
pmd thread numa_id 0 core_id 1:
  packets received: 19579
  packet recirculations: 19579
  avg. datapath passes per packet: 2.00
  phwol hits: 0
  mfex opt hits: 0
  simple match hits: 0
  emc hits: 0
  smc hits: 0
  megaflow hits: 39158
  avg. subtable lookups per megaflow hit: 1.57
  miss with success upcall: 0
  miss with failed upcall: 0
  avg. packets per output batch: 1.45
  idle cycles: 1931310408 (54.39%)
  processing cycles: 1619829968 (45.61%)
  avg cycles per packet: 181374.96 (3551140376/19579)
  avg processing cycles per packet: 82733.03 (1619829968/19579)
main thread:
  packets received: 7
  packet recirculations: 0
  avg. datapath passes per packet: 0.00
"""

DPIF_SHOW = """\
dummy@ovs-dummy: hit:0 missed:0
  br0:
    br0 65534/100: (dummy-internal)
    port0 1/1: (dpdk: configured_rx_queues=4, configured_rxq_descriptors=2048, configured_tx_queues=9, \
configured_txq_descriptors=2048, lsc_interrupt_mode=false, mtu=1500, requested_rx_queues=4)
"""

DUMP_PORTS = """\
OFPST_PORT reply (OF1.4) (xid=0x2): 3 ports
  port LOCAL: rx pkts=3, bytes=0, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=4, bytes=0, drop=?, errs=?, coll=?
           duration=3.484s
           CUSTOM Statistics
                      rx_custom_packets_1=0, rx_custom_packets_2=0, rx_q0_bytes=0,
  port  1: rx pkts=11188, bytes=700, drop=0, errs=0, frame=?, over=?, crc=?
           tx pkts=8391, bytes=500, drop=7, errs=0, coll=?
           duration=0.316s
           CUSTOM Statistics
                      ovs_tx_failure_drops=7, ovs_tx_mtu_exceeded_drops=0, ovs_tx_qos_drops=0,
                      ovs_rx_qos_drops=0, ovs_tx_invalid_hwol_drops=0, rx_missed_errors=2,
                      rx_errors=0, tx_errors=0, rx_mbuf_allocation_errors=0,
                      rx_q0_packets=11188, rx_q0_bytes=700, rx_q0_errors=5,
  port  2: rx pkts=1, bytes=0, drop=3, errs=0, frame=?, over=?, crc=?
           tx pkts=2, bytes=0, drop=0, errs=0, coll=?
           duration=0.256s
"""

ZONES = (
    "Zone:0, Timeout Policies: tcp_close=1 tcp_established=30 udp_first=1\nZone:5, Timeout Policies: udp_multiple=30\n"
)

TASKS = """\
/proc/20/task/20/status:Name:\tovs-vswitchd-dp
/proc/20/task/20/status:Cpus_allowed_list:\t0
/proc/20/task/21/status:Name:\teal-intr-thread
/proc/20/task/21/status:Cpus_allowed_list:\t0-1
/proc/20/task/37/status:Name:\tpmd-c01/id:8
/proc/20/task/37/status:Cpus_allowed_list:\t1
"""


BOND_SHOW = """\
---- bond1 ----
bond_mode: balance-slb
all members active: false
active member mac: 8a:36:b2:25:a5:cd(port1)

member port1: enabled
  active member
  may_enable: true

member port3: disabled
  may_enable: false
"""


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (parse_rxq_map, RXQ_SHOW, {1: [("port0", 0), ("port1", 1)], 13: []}),
        (parse_bond_members, BOND_SHOW, {"port1": True, "port3": False}),
        (
            parse_zone_timeouts, ZONES,
            {0: {"tcp_close": 1, "tcp_established": 30, "udp_first": 1}, 5: {"udp_multiple": 30}},
        ),
    ],
)  # fmt: skip
def test_what_is_printed_is_read(parse: Callable[[str], object], text: str, found: object) -> None:
    assert parse(text) == found


def test_the_statistics_of_pmd_threads_are_read_and_the_main_threads_left_out() -> None:
    (statistics,) = parse_pmd_statistics(STATS_SHOW).values()

    assert (statistics.packets_received, statistics.megaflow_hits) == (19579, 39158)
    assert statistics.packets_per_output_batch == 1.45
    assert round(statistics.cycles_per_packet, 2) == 82733.03
    assert round(statistics.processing_percent, 2) == 45.61


def test_what_a_port_is_configured_to_is_read() -> None:
    ports = parse_port_options(DPIF_SHOW)

    assert ports["br0"] == {}
    assert ports["port0"]["configured_rx_queues"] == "4"
    assert ports["port0"]["configured_tx_queues"] == "9"


def test_the_counters_of_ports_are_read_with_their_drops_by_name() -> None:
    ports = parse_ports(DUMP_PORTS)

    assert sorted(ports) == [1, 2]
    assert (ports[1].rx_packets, ports[1].tx_packets) == (11188, 8391)
    lost = {name: count for name, count in ports[1].drops.items() if count}
    assert lost == {"ovs_tx_failure_drops": 7, "rx_missed_errors": 2}  # each packet under one name
    assert ports[2].drops == {"rx_dropped": 3, "tx_dropped": 0}


def test_a_thread_beside_a_pmd_thread_is_misplaced() -> None:
    threads = parse_threads(TASKS)

    assert threads[2] == Thread(37, "pmd-c01/id:8", (1,))
    assert [thread.name for thread in misplaced(threads, Placement((0,), (1,), (0,)))] == ["eal-intr-thread"]
    assert misplaced(threads, Placement((0,), (1,), (0,), oversubscribed=True)) == []


#: Recorded from OVS 3.1.0.
PERF_SHOW = """\
Time: 13:41:51.088
Measurement duration: 3.259 s

pmd thread numa_id 0 core_id 0:

  Iterations:             25908857  (0.13 us/it)
  - Used TSC cycles:    7494938528  (100.0 % of total cycles)
  - idle iterations:      25908841  (100.0 % of used cycles)
  - busy iterations:            16  (  0.0 % of used cycles)
  - sleep iterations:            0  (  0.0 % of iterations)
  Rx packets:                   16  (0 Kpps, 105147 cycles/pkt)
"""


def pmd(packets: int, busy: int, idle: int) -> PmdStatistics:
    return PmdStatistics(packets_received=packets, processing_cycles=busy, idle_cycles=idle)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        (PERF_SHOW, pytest.approx(2.2998e9, rel=1e-4)),
        ("", None),
        ("Measurement duration: 0.000 s\n  - Used TSC cycles:  0\n", None),
        # Of a thread that was stopped for seconds.
        ("Measurement duration: 3.184 s\n  - Used TSC cycles:  18446744073709550000  (100.0 % of total)\n", None),
    ],
)
def test_the_rate_of_cycles_is_read_where_it_is_told(text: str, rate: float | None) -> None:
    assert parse_cycle_rate(text) == rate


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
    use = cpu_use([pmd(*each) for each in pmds], cycles_per_second=rate)
    assert (use and use.busy_cpus, use and use.ns_per_packet) == (busy_cpus, ns_per_packet)


def test_look_ups_are_those_of_all_threads_with_the_flows_of_the_datapath() -> None:
    shown = "dummy@ovs-dummy:\n  flows         : (current 5) (avg 4) (max 9) (limit 200000)\n  offloaded flows : 0\n"
    one = PmdStatistics(packets_received=10, recirculations=10, emc_hits=7, megaflow_hits=12, upcalls=1)
    found = look_ups([one, one], parse_datapath_flows(shown))
    assert (found.packets, found.emc_hits, found.megaflow_hits, found.upcalls) == (20, 14, 24, 2)
    assert (found.recirculations, found.failed_upcalls, found.datapath_flows) == (20, 0, 5)

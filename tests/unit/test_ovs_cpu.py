"""What the cycles of the PMD threads say of the CPUs that a trial took."""

import pytest

from ctbench.dut.ovs.cpu import cpu_use, look_ups
from ctbench.dut.ovs.parse import PmdStatistics, parse_cycle_rate, parse_datapath_flows

pytestmark = pytest.mark.unit

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


def test_the_rate_of_cycles_is_read() -> None:
    assert parse_cycle_rate(PERF_SHOW) == pytest.approx(2.2998e9, rel=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Measurement duration: 0.000 s\n  - Used TSC cycles:  0\n",
        # Of a thread that was stopped for seconds.
        "Measurement duration: 3.184 s\n  - Used TSC cycles:  18446744073709550000  (100.0 % of total cycles)\n",
    ],
)
def test_no_rate_is_read_where_none_is_told(text: str) -> None:
    assert parse_cycle_rate(text) is None


def test_a_pmd_thread_uses_the_share_of_its_cpu_in_which_it_found_packets() -> None:
    use = cpu_use([pmd(1000, busy=600_000, idle=200_000)], cycles_per_second=2e9)

    assert use is not None
    assert (use.busy_cpus, use.ns_per_packet, use.source) == (0.75, 300.0, "PMD cycles")


def test_pmd_threads_add_up_and_one_that_idles_counts_nothing() -> None:
    use = cpu_use([pmd(300, 100, 0), pmd(100, 100, 100), pmd(0, 0, 500)], cycles_per_second=1e9)

    assert use is not None
    assert (use.busy_cpus, use.ns_per_packet) == (1.5, 0.5)


def test_without_a_packet_nothing_is_said() -> None:
    assert cpu_use([pmd(0, 10, 90)], cycles_per_second=1e9) is None
    assert cpu_use([], cycles_per_second=1e9) is None


def test_without_a_rate_there_is_no_time_for_a_packet() -> None:
    use = cpu_use([pmd(10, 50, 50)], cycles_per_second=None)

    assert use is not None
    assert (use.busy_cpus, use.ns_per_packet) == (0.5, None)


def test_look_ups_are_those_of_all_threads_with_the_flows_of_the_datapath() -> None:
    shown = "dummy@ovs-dummy:\n  flows         : (current 5) (avg 4) (max 9) (limit 200000)\n  offloaded flows : 0\n"
    one = PmdStatistics(packets_received=10, recirculations=10, emc_hits=7, megaflow_hits=12, upcalls=1)
    found = look_ups([one, one], parse_datapath_flows(shown))
    assert (found.packets, found.emc_hits, found.megaflow_hits, found.upcalls) == (20, 14, 24, 2)
    assert (found.recirculations, found.failed_upcalls, found.datapath_flows) == (20, 0, 5)

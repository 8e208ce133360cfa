"""The kernel of this machine alone, for its counters do not tell whose packets a CPU received: on which CPUs a router
works, and the connection table at its limit."""

from integration.test_table import HOW, ROUTER, bench
from integration.test_traffic_interfaces import LOAD, PACKETS, router_topology
from wire import join

from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.linux.health import SOFTNET, parse_softnet, received_since
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.measure.procedures.table_limits import TABLE_EARLY_DROP
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Rate
from ctgen import Generator


def test_the_kernel_at_its_limit_refuses_what_is_beyond_it_and_says_so(testbed: Testbed) -> None:
    quick_to_open = HOW.model_copy(update={"opened_per_s": 100_000.0})
    found = TABLE_EARLY_DROP.run(bench(testbed, ROUTER, quick_to_open, forgotten_when_full=0.001))
    assert found.verdicts["forgotten_when_full"].kept is True, found.reason
    assert "packets that found the table full" in found.reason


def test_one_cpu_is_all_that_a_dut_with_one_cpu_works_on(
    sandbox: Sandbox, router: LinuxRouterDut, generator: Generator
) -> None:
    cpu = read_machine(sandbox).usable_cpus[-1]
    ports = router.apply(router_topology("iptables-stateful", rx_queues=2))
    join(generator, ports, cpus=(cpu,))
    before = parse_softnet(sandbox.read(SOFTNET))
    # So many that what this machine receives meanwhile, on any CPU, is little.
    trial = generator.run_trial(PACKETS, Rate(20 * LOAD), 0.5)
    received = received_since(before, parse_softnet(sandbox.read(SOFTNET)))
    # Each packet is received twice: by the router, and by the kernel at the generator's end.
    ours = sum(trial.total_tx_packets.values()) + sum(trial.total_rx_packets.values())
    assert received[cpu] >= ours
    assert sum(count for other, count in received.items() if other != cpu) < ours * 0.02
    assert trial.link and 0 < trial.link.busy_cpus <= 1

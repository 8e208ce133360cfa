"""How fast the software traffic generator is: over the cable, and through OVS and Linux without conntrack.

Run by hand on a quiet machine: .venv/bin/python -m tools.benchmarks.generator [--cable-only]
Prints the highest load without loss (0.02 %), confirmed once, and packets per second in both directions together."""

import argparse
import tempfile
from pathlib import Path

from ctbench.base.units import format_count, format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Bisection
from ctbench.measure.search import search
from ctbench.measure.trial import TrialRunner
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import load_profile

SEARCH = Bisection(trial_duration="2s", max_iterations=10, relative_width="3%")
#: Where to search, connections (packets) per second.
RANGES = {"short-lived": (20e3, 1.5e6), "long-lived-short": (5e3, 80e3), "udp-64-10k": (100e3, 10e6)}


def main() -> None:
    """Measure and print a row for each combination."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cable-only", action="store_true", help="without a DUT")
    cable_only = parser.parse_args().cable_only
    topologies = [CABLE.model_copy(update={"rx_queues": queues}) for queues in (1, 2, 4, 8)]
    if not cable_only:
        topologies += [Topology(ruleset="forward", rx_queues=queues) for queues in (1, 2, 4, 8)]
        topologies += [Topology(datapath="linux-router", ruleset="forward")]
    print(f"{'path':<12} {'queues':>6}  {'profile':<17} {'rate':>14} {'packets/s':>10}")
    with tempfile.TemporaryDirectory() as folder:
        testbed = Testbed(load("testbeds", "local", TestbedConfig), Path(folder))
        try:
            for topology in topologies:
                for name, (low, high) in RANGES.items():
                    profile = load_profile(name)
                    testbed.apply(topology, profile)
                    runner = TrialRunner(testbed.dut, testbed.generator, profile, {"loss_ratio": 0.0002})
                    found = search(runner, low, high, SEARCH)
                    packets = format_count(found.proof.trial.pps) if found.proof else "-"
                    path = f"{topology.datapath:<12} {topology.rx_queues:>6}  {name:<17}"
                    print(f"{path} {format_rate(found.capacity):>14} {packets:>10}", flush=True)
        finally:
            testbed.close()


if __name__ == "__main__":
    main()

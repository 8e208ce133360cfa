"""What a closed loop shows against what an open loop holds, on this machine's real DUTs: a table of verdicts.md.

Run by hand on a quiet machine: PYTHONPATH=libraries .venv/bin/python tests/benchmarks/agreement.py [--rounds 6]
Each round measures the saturation rate (1 s), and then offers shares of it, in an order of its own, for 2 s each.
Prints which share of the trials at each load was called good, bad (and how many of these lost nothing, but fell behind)
and invalid; and the highest load that held in each round, as a share of that round's saturation rate.
"""

import argparse
import random
import statistics
import tempfile
from collections import Counter
from pathlib import Path

from ctbench.base.units import format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.trial import TrialRunner
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import saturating
from ctbench.traffic.profiles import load_profile

#: What is offered, as shares of the saturation rate.
SHARES = (0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.2)
#: Conditions as in the stock SLA.
CONNECTIONS, PACKETS = {"loss_ratio": 0.0002, "packet_loss_ratio": 0.0002}, {"packet_loss_ratio": 0.0002}
CASES = (
    (Topology(ruleset="conntrack"), "short-lived"),
    (Topology(ruleset="nat"), "short-lived"),
    (Topology(ruleset="forward"), "udp-64-10k"),
    (Topology(datapath="linux-router", ruleset="iptables-stateful"), "short-lived"),
    (Topology(datapath="linux-router", ruleset="iptables-stateful"), "udp-64-10k"),
)


def main() -> None:
    """Measure and print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    heads = [f"{share:.0%}" for share in SHARES]
    print(f"| DUT | profile | saturation | held up to | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 4)}")
    with tempfile.TemporaryDirectory() as folder:
        testbed = Testbed(load("testbeds", "local", TestbedConfig), Path(folder))
        try:
            for topology, name in CASES:
                print(row(testbed, topology, name, rounds), flush=True)
        finally:
            testbed.close()


def row(testbed: Testbed, topology: Topology, name: str, rounds: int) -> str:
    """One case."""
    profile = load_profile(name)
    testbed.apply(topology, profile)
    conditions = PACKETS if profile.kind == "packets" else CONNECTIONS
    runner = TrialRunner(testbed.dut, testbed.generator, profile, conditions)
    seen: dict[float, Counter[str]] = {share: Counter() for share in SHARES}
    rates, held = [], []
    dice = random.Random(name)
    runner.offer(saturating(profile), 1.0)  # the first trial on a DUT does not count
    for _ in range(rounds):
        rate = runner.offer(saturating(profile), 1.0).trial.service_rate
        assert rate, "a closed loop has one"
        rates.append(rate)
        good = []
        for share in dice.sample(SHARES, len(SHARES)):
            trial = runner(rate * share, 2.0)
            lossless = trial.trial.loss_ratio == 0
            seen[share]["behind" if trial.state == "bad" and lossless else trial.state] += 1
            good += [share] if trial.state == "good" else []
        held.append(max(good, default=0.0))
    cells = [", ".join(f"{count} {word}" for word, count in counted.most_common()) for counted in seen.values()]
    spread = (max(rates) - min(rates)) / statistics.median(rates)
    told = f"{format_rate(statistics.median(rates))} (spread {spread:.0%})"
    return f"| {topology.key} | {name} | {told} | {statistics.median(held):.0%} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()

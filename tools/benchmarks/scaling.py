"""What 1, 2, 4 and 8 PMD threads of Open vSwitch serve on one machine, next to tables 4 to 17 of 2022.

Run by hand on a quiet machine of 18 CPUs or more, or of fewer for fewer threads:
PYTHONPATH=libraries .venv/bin/python tools/benchmarks/scaling.py [--output FILE] [PREFIX]
A closed loop for each number of PMD threads (a receive queue each), ruleset and profile, three times; the middle
counts. Writes a line of CSV for each to FILE as it is measured, and in the end prints the table. What the machine lacks
is skipped with the reason. PREFIX: of an Open vSwitch that is to be measured; else the packaged one."""

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

import yaml

from ctbench.base.errors import CtbenchError
from ctbench.base.paths import ROOT
from ctbench.base.units import format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import saturating
from ctbench.traffic.profiles import load_profile
from ctgen import Generator

THREADS, RULESETS, PROFILES = (1, 2, 4, 8), ("forward", "conntrack", "nat"), ("short-lived", "udp-64-10k")
TIMES, SECONDS = 3, 3.0


@dataclass(frozen=True)
class Served:
    """A row of the table: rates per second."""

    ruleset: str
    profile: str
    pmd_threads: int
    generator_threads: int
    served: float
    least: float
    most: float
    #: Why the generator was the limit of one of them; empty where it was of none.
    limited: str
    machine: str
    product: str


def measured(testbed: Testbed, ruleset: str, profile_name: str, threads: int) -> Served:
    """Set it up, and serve it some times."""
    profile = load_profile(profile_name)
    testbed.apply(Topology(ruleset=ruleset, cpus=threads, rx_queues=threads), profile)
    generator = testbed.generator
    assert isinstance(generator, Generator)
    trials = [generator.run_trial(profile, saturating(profile), SECONDS) for _ in range(TIMES)]
    rates = [trial.service_rate or 0.0 for trial in trials]
    facts = testbed.facts()
    return Served(
        ruleset, profile_name, threads, generator.threads, median(rates), min(rates), max(rates),
        next((trial.generator_limited for trial in trials if trial.generator_limited), ""),
        str(facts["machine"].get("cpu_model")), str(facts["dut"].get("version", "")),
    )  # fmt: skip


def every(config: TestbedConfig) -> Iterator[Served]:
    """All that this machine can have, as it is measured."""
    with tempfile.TemporaryDirectory() as folder, closing(Testbed(config, Path(folder))) as testbed:
        for profile in PROFILES:
            for ruleset in RULESETS:
                for threads in THREADS:
                    try:
                        yield measured(testbed, ruleset, profile, threads)
                    except CtbenchError as error:
                        print(f"{ruleset}, {profile}, {threads} PMD threads: {error}", file=sys.stderr, flush=True)


def published(row: Served) -> str:
    """The rate of 2022 for the same topology and profile; empty where none was published."""
    known = yaml.safe_load((ROOT / "variables" / "sla" / "published-2022.yaml").read_text(encoding="utf-8"))
    threads = row.pmd_threads
    floor = known.get(f"ovs-dpdk/{row.ruleset}/{threads}cpu-{threads}rxq", {}).get(row.profile, {})
    return str(floor.get("cps", "")).removeprefix(">= ")


def table(rows: list[Served]) -> Iterator[str]:
    """A line for each; `times one`: as a multiple of what one PMD thread serves."""
    head = f"{'ruleset':<10} {'profile':<12} {'PMD':>3} {'generator':>9} {'serves':>12} {'times one':>9}"
    yield f"{head}  {'between':<25} 2022"
    one = {(row.ruleset, row.profile): row.served for row in rows if row.pmd_threads == 1}
    for row in rows:
        base = one.get((row.ruleset, row.profile))
        times = f"{row.served / base:.2f}" if base else "-"
        between = f"{format_rate(row.least)} to {format_rate(row.most)}"
        limited = f"  at least: {row.limited}" if row.limited else ""
        yield (
            f"{row.ruleset:<10} {row.profile:<12} {row.pmd_threads:>3} {row.generator_threads:>9} "
            f"{format_rate(row.served):>12} {times:>9}  {between:<25} {published(row)}{limited}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="of an Open vSwitch")
    parser.add_argument("--output", type=Path, default=Path("scaling.csv"), metavar="FILE", help="a line for each row")
    options = parser.parse_args()
    config = load("testbeds", "local", TestbedConfig)
    rows = []
    with options.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Served)])
        writer.writeheader()
        for row in every(config.with_build(options.prefix) if options.prefix else config):
            rows.append(row)
            writer.writerow(asdict(row))
            file.flush()
            print(f"{row.ruleset}, {row.profile}, {row.pmd_threads} PMD threads: {format_rate(row.served)}", flush=True)
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    main()

"""Counts what one packet, or one connection, costs in instructions in an emulated machine (docs/emulated.md): figures
alone, of topologies with a kernel and an Open vSwitch of one's choice, and where the instructions are."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.yaml_files import load
from ctbench.compare.setups import EMULATED, kernel_setting, whole_kernel
from ctbench.dut.topology import Topology
from ctbench.measure.procedures.instruction_count import InstructionCount, workload_of
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import counter_of
from ctbench.traffic.profiles import load_profile
from tools import ending

#: As many functions are shown.
SHOWN = 10
#: What a compiler adds to the name of a part or a copy of a function, not the same way in every build.
_COPY = re.compile(r"\.(constprop|isra|part|cold)(\.\d+)*(?=\s|$|\.)")


def by_name(functions: Mapping[str, float]) -> list[tuple[str, float]]:
    """The dearest functions with their instructions, each with its parts and copies."""
    found: dict[str, float] = {}
    for name, instructions in functions.items():
        whole = _COPY.sub("", name)
        found[whole] = found.get(whole, 0.0) + instructions
    return sorted(found.items(), key=lambda each: -each[1])[:SHOWN]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each topology: what was counted with each seed, net of the wires and the traffic alone."""
    parser = argparse.ArgumentParser(prog="python -m tools.count", description=__doc__)
    add = parser.add_argument
    add("rulesets", nargs="+", metavar="RULESET", help="below resources/rulesets/emulated, such as ovs-user-conntrack")
    add("--profile", default="udp-64-1flow", metavar="NAME", help="what is sent (default: %(default)s)")
    add("--kernel", default="distribution", metavar="FILE", help="a package (.deb), or a bzImage with its modules")
    add("--ovs", default="distribution", metavar="PREFIX", help="an Open vSwitch of your own")
    add("--functions", action="store_true", help=f"the {SHOWN} functions that cost most; several times as long")
    options = parser.parse_args(arguments)
    try:
        topologies = [Topology.parse(f"{EMULATED}/{ruleset}/1cpu-1rxq") for ruleset in options.rulesets]
    except ValueError as error:
        raise ConfigError(str(error)) from None
    kernel = kernel_setting(whole_kernel("--kernel", options.kernel), Path("results/counted-kernel").absolute())
    testbed = load("testbeds", EMULATED, TestbedConfig)
    (dut,) = (each.model_dump() | {"kernel": kernel, "ovs": {"prefix": options.ovs}} for each in testbed.duts)
    testbed = TestbedConfig.model_validate(testbed.model_dump() | {"duts": [dut]})
    profile = load_profile(options.profile)
    with counter_of(testbed) as counter:
        for topology in topologies:
            outcome = InstructionCount().count(counter, topology, profile, {})
            seeds = [figure.repetitions for figure in outcome.figures.values()]
            print(f"{topology.ruleset}: {', '.join(f'{each:,.1f}' for each in seeds[0]) if seeds else outcome.reason}")
            workload = workload_of(profile, topology)
            found = counter.count_functions([topology], workload) if options.functions else {}
            for name, cost in by_name(found[topology.key].functions) if topology.key in found else ():
                print(f"  {cost:12,.1f}  {name}")
    return ExitStatus.MET


if __name__ == "__main__":
    ending.run(main)

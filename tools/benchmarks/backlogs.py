"""Whether backlogs say the same as a closed loop where the generator is not its limit: docs/evidence/backlogs.csv, to
which it appends.

Run by hand on a quiet machine: .venv/bin/python -m tools.benchmarks.backlogs [--times 24] [--beside 3] [ROW...]
Two topologies stand side by side, and are served in turn in a closed loop and from backlogs, again and again. With busy
loops on its CPU (`--beside`) the generator is the limit."""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import log
from pathlib import Path
from statistics import fmean, median

from ctbench.base.paths import ROOT
from ctbench.base.units import format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure import duet
from ctbench.measure.procedures.pair import SLICE_S
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup, SideBySide
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import load_profile

TABLE = ROOT / "docs" / "evidence" / "backlogs.csv"
#: What is tested, what it is compared with, and a profile.
ROWS = {
    "conntrack": ("ovs-dpdk/conntrack/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-64-10k"),
    "conntrack, both ways": ("ovs-dpdk/conntrack/1cpu-1rxq", "ovs-dpdk/nat/1cpu-1rxq", "udp-64-10k-both"),
    "conntrack, 4 queues": ("ovs-dpdk/conntrack/1cpu-4rxq", "ovs-dpdk/conntrack/1cpu-1rxq", "udp-64-10k"),
    "bridge, 1k flows": ("ovs-dpdk/normal/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-64-1k"),
    "bridge, 10k flows": ("ovs-dpdk/normal/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-64-10k"),
    "bridge, 1 flow": ("ovs-dpdk/normal/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-64-1flow"),
    "bridge, both ways": ("ovs-dpdk/normal/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-64-10k-both"),
    "bridge, 1518 bytes": ("ovs-dpdk/normal/1cpu-1rxq", "ovs-dpdk/forward/1cpu-1rxq", "udp-1518-10k"),
    "bridge, VLAN": ("ovs-dpdk/normal/1cpu-1rxq/ports=vlan", "ovs-dpdk/normal/1cpu-1rxq", "udp-64-10k-vlan"),
    "bridge, bonds": ("ovs-dpdk/normal/1cpu-1rxq/ports=bond", "ovs-dpdk/normal/1cpu-1rxq", "udp-64-10k"),
    "Linux bridge": ("linux-bridge/forward/1cpu-1rxq", "linux-bridge/forward/1cpu-1rxq", "udp-64-10k"),
    "Linux router": ("linux-router/iptables-stateful/1cpu-1rxq", "linux-router/forward/1cpu-1rxq", "udp-64-10k"),
}
COLUMNS = (
    "row", "busy loops", "tested", "other", "side", "closed loop", "from backlogs", "of the closed loop",
    "waited for the generator", "ratio in a closed loop", "ratio from backlogs",
)  # fmt: skip
#: Slices of a visit, after which the other way has its turn.
VISIT = duet.turns(0, 2)
SIDES: tuple[Side, Side] = ("tested", "other")


def learn(pair: SideBySide) -> None:
    """Until either side knows every flow."""
    pair.flush()
    seen = dict.fromkeys(SIDES, 0)
    while any(seen[side] < max(1, pair.known[side]) for side in SIDES):
        for part in pair.run_slices(SIDES, SLICE_S, before=True):
            seen[part.side] += part.completed


def of(slices: Sequence[Slice], side: Side) -> float:
    """What a side served per second."""
    own = [part for part in slices if part.side == side]
    return sum(part.completed for part in own) / sum(part.seconds for part in own)


def interval(logs: Sequence[float]) -> str:
    """The middle of some log ratios, with its 99 % interval."""
    found = duet.estimate(logs, duet.ERROR)
    return found.as_share(tenths=True) if found else "too few"


@contextmanager
def busy(cpus: Sequence[int], loops: int) -> Iterator[None]:
    """So many busy loops on these CPUs."""
    command = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {list(cpus)})\nwhile True: pass"]
    running = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def row(testbed: Testbed, name: str, times: int, beside: int) -> list[list[str]]:
    """Two rows of the table, one a side."""
    tested, other, profile_name = ROWS[name]
    profile = load_profile(profile_name)
    testbed.apply_pair(Setup(Topology.parse(tested)), Setup(Topology.parse(other)), profile)
    pair = testbed.side_by_side
    assert pair is not None, "both stand side by side on this machine"
    learn(pair)
    loops, backlogs = [], []
    with busy(testbed.placement(Topology.parse(tested)).generator or tuple(os.sched_getaffinity(0)), beside):
        for number in range(times):
            for from_backlogs in (False, True) if number % 2 else (True, False):
                visit = pair.run_slices(VISIT, SLICE_S, backlogs=from_backlogs)
                (backlogs if from_backlogs else loops).append(visit)
    used = [at for at in range(times) if not any(map(duet.spoilt, [*loops[at], *backlogs[at]]))]
    ratios = [
        interval([log(of(made[at], "tested") / of(made[at], "other")) for at in used]) for made in (loops, backlogs)
    ]
    return [
        [
            name,
            f"{beside}",
            tested,
            other,
            side,
            *(format_rate(median(of(made[at], side) for at in used)) for made in (loops, backlogs)),
            interval([log(of(backlogs[at], side) / of(loops[at], side)) for at in used]),
            f"{fmean(part.waited for at in used for part in loops[at] if part.side == side):.0%}",
            *ratios,
        ]
        for side in SIDES
    ]


def main() -> None:
    """Measure, and append rows to the table as they are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=24, help="visits of each way (default: %(default)s)")
    parser.add_argument("--beside", type=int, default=0, help="busy loops (default: %(default)s)")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)} (default: all)")
    given = parser.parse_args()
    new = not given.table.exists()
    with tempfile.TemporaryDirectory() as folder, given.table.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        if new:
            table.writerow(COLUMNS)
        with closing(Testbed(load("testbeds", "local", TestbedConfig), Path(folder))) as testbed:
            for name in given.rows or ROWS:
                for cells in row(testbed, name, given.times, given.beside):
                    print(*cells, sep=" | ", flush=True)
                    table.writerow(cells)
                file.flush()


if __name__ == "__main__":
    main()

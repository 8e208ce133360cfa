"""Made-up sides of a comparison for the unit tests."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctbench.compare.side import Runs
from ctbench.dut.topology import Topology
from ctbench.results.record import Environment, Record
from ctbench.results.store import Broken, Stored

from .simulated import found, made_up_record

TRUTH = 381_000.0


def environment(**facts: dict[str, Any]) -> Environment:
    dut = {"type": "ovs-dpdk", "ovs": {"prefix": "distribution"}, "memory_mb": 1024}
    known = {
        "testbed": {"name": "local", "duts": [dut]},
        "dut": {"version": "3.1.0", "dpdk_version": "22.11", "memory": {"kind": "no-huge"}},
        "generator": {},
        "machine": {"cpu_model": "Xeon", "kernel": "6.1", "hugepages": [{"size_kb": 2048, "total": 0, "free": 0}]},
    }
    return Environment(**{key: value | facts.get(key, {}) for key, value in known.items()})


def record(rates: Sequence[float], run: str = "run", rulesets: int = 0, **changes: Any) -> Record:
    """The record of a test in a run; `rulesets` tells tests apart."""
    result = found(sorted(rates)[(len(rates) - 1) // 2])
    known = {
        "run_id": run,
        "capacities": list(rates),
        "environment": environment(),
        "topology": Topology(ruleset=f"ruleset-{rulesets}"),
        "test": f"Test {rulesets}",
        "upper_bound": result.capacity * 1.01,
        "campaign": {"name": "compare", "search": "mlr"},
    }
    return made_up_record(result, **(known | changes))


def side(name: str, records: Sequence[Record], broken: int = 0) -> Runs:
    stored = tuple(Stored(Path(f"{name}/{number}.json"), each) for number, each in enumerate(records))
    return Runs(name, (Path(name),), stored, tuple(Broken(Path("x"), "x: is not JSON.") for _ in range(broken)))


def runs(name: str, rates: Sequence[float], **changes: Any) -> Runs:
    """A side of one test and a run for each rate."""
    return side(name, [record([rate], f"{name}-{number}", **changes) for number, rate in enumerate(rates)])


def around(middle: float, samples: int, seed: int = 0, noise: float = 0.01) -> list[float]:
    """Rates of so many runs, with this much noise."""
    dice = random.Random(seed)
    return [middle * dice.gauss(1, noise) for _ in range(samples)]

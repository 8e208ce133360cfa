"""Made-up sides of a comparison for the unit tests."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from ctbench.compare.sides import Runs
from ctbench.dut.topology import Topology
from ctbench.results.environment import CampaignFacts, DutFacts, Environment, GeneratorFacts, MachineFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Figure
from ctbench.results.store import Broken, Stored

from .simulated import found, made_up_record

TRUTH = 381_000.0
#: Runs the command: its exit status, and what it said on either stream.
Run = Callable[..., tuple[int, str, str]]


def environment(**facts: dict[str, Any]) -> Environment:
    dut = {"type": "ovs-dpdk", "ovs": {"prefix": "distribution"}, "memory_mb": 1024}
    product = {"product": "Open vSwitch 3.1.0", "product_details": "Open vSwitch 3.1.0, DPDK 22.11"}
    hugepages = [{"size_kb": 2048, "total": 0, "free": 0}]
    return Environment(
        testbed=TestbedFacts(**{"name": "local", "duts": [dut]} | facts.get("testbed", {})),
        dut=DutFacts(**product | {"version": "3.1.0", "memory": {"kind": "no-huge"}} | facts.get("dut", {})),
        generator=GeneratorFacts(),
        machine=MachineFacts(
            **{"cpu_model": "Xeon", "kernel": "6.1", "hugepages": hugepages} | facts.get("machine", {})
        ),
    )


def record(
    values: Sequence[float],
    run: str = "run",
    rulesets: int = 0,
    metric: str = "cps",
    upper: float | None = None,
    **changes: Any,
) -> Record:
    """The record of a test in a run that found these values of a metric, one in each repetition; `rulesets` tells tests
    apart, `upper` is the load that did not hold."""
    middle = sorted(values)[(len(values) - 1) // 2]
    known = {
        "run_id": run, "environment": environment(), "topology": Topology(ruleset=f"ruleset-{rulesets}"),
        "test": f"Test {rulesets}", "campaign": CampaignFacts(name="compare", search="mlr"),
    }  # fmt: skip
    whole = made_up_record(found(TRUTH), **(known | changes))
    figure = Figure(value=middle, unit=METRICS[metric].unit.name, samples=list(values) if len(values) > 1 else [])
    evidence = whole.evidence.model_copy(update={"upper_bound": upper or middle * 1.01})
    figures = whole.figures | {metric: figure}
    return whole.model_copy(update={"metric": metric, "figures": figures, "evidence": evidence})


def side(name: str, records: Sequence[Record], broken: int = 0) -> Runs:
    stored = tuple(Stored(Path(f"{name}/{number}.json"), each) for number, each in enumerate(records))
    return Runs(name, (Path(name),), stored, tuple(Broken(Path("x"), "x: is not JSON.") for _ in range(broken)))


def runs(name: str, *tests: Sequence[float], **changes: Any) -> Runs:
    """A side of so many tests, each with a run for each value."""
    return side(
        name,
        [
            record([value], f"{name}-{run}", **{"rulesets": number} | changes)
            for number, values in enumerate(tests)
            for run, value in enumerate(values)
        ],
    )


def around(middle: float, samples: int, seed: int = 0, noise: float = 0.01) -> list[float]:
    """Values of so many runs, with this much noise."""
    dice = random.Random(seed)
    return [middle * dice.gauss(1, noise) for _ in range(samples)]


class MadeUpSla:
    """Stands in for ./run sla: notes how it was called, and leaves what a run leaves where it ends with `status` 0."""

    def __init__(self, status: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.status = status

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls.append(list(argv[2:]))
        variables = dict(each.split(":", 1) for each in argv if each.startswith(("TESTBED:", "BASE:", "CAMPAIGN:")))
        duts = yaml.safe_load(Path(variables["TESTBED"]).read_text())["duts"]
        return self.status or self.leave(Path(argv[argv.index("--outputdir") + 1]), duts[0], variables.get("BASE", ""))

    def leave(self, folder: Path, dut: dict[str, Any], base: str) -> int:
        """Write into the folder of a run; `dut`: the first of its testbed. Returns the exit status."""
        raise NotImplementedError


#: Puts this stand-in in the place of ./run sla.
Made = Callable[[Any], Any]

"""Made-up starts of two builds side by side, for the unit tests."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctbench.compare.starts import Start, pair_starts, same_starts
from ctbench.results.environment import CampaignFacts
from ctbench.results.record import Record
from ctbench.results.record_model import Figure
from ctbench.results.store import Stored

from .compared import TRUTH, environment, record


def start_record(ratio: float | None, run: str, test: int = 0, prefix: str = "distribution", **changes: Any) -> Record:
    """The record of a test in a start that found this ratio, first to second; None: it found none."""
    dut = {"type": "ovs-dpdk", "ovs": {"prefix": prefix}, "memory_mb": 1024}
    where = environment(testbed={"duts": [dut]}, dut={"product_details": f"Open vSwitch of {prefix}"})
    whole = record([TRUTH], run, test, environment=where, campaign=CampaignFacts(name="builds", search="pair"))
    figures = {} if ratio is None else {"of_build": Figure(value=ratio, unit="ratio")}
    nothing = {"verdict": "not measured", "verdict_reason": "the generator stood still."} if ratio is None else {}
    return whole.model_copy(update={"metric": "of_build", "figures": figures, "thresholds": []} | nothing | changes)


def measured(ratios: Mapping[int, Sequence[float | None]], *, same: bool = False, **changes: Any) -> list[Start]:
    """Starts that found these ratios, candidate to base, of each test."""
    number = max(len(each) for each in ratios.values())
    plan = same_starts(Path("out"), number) if same else pair_starts(Path("out"), number)
    found = []
    for start in plan:
        records = []
        for test, values in ratios.items():
            if start.number > len(values):
                continue
            value = values[start.number - 1]
            seen = None if value is None else value**start.exponent
            made = start_record(seen, f"{start.folder}", test, start.first, **changes)
            records.append(Stored(start.folder / "records" / f"{test}.json", made))
        found.append(replace(start, stored=records))
    return found


def around(middle: float, starts: int, luck: float, seed: int = 0) -> list[float]:
    """Ratios of so many starts, with a luck (standard deviation) of each."""
    dice = random.Random(seed)
    return [middle * dice.gauss(1, luck) for _ in range(starts)]

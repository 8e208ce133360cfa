"""Made-up runs of one machine, and SLA files, for the tests of calibration."""

import math
import random

from ctbench.results.record import Record
from ctbench.sla.calibration import Stock

from .simulated import found, made_up_record, with_evidence

NONE = Stock("none", {})
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"


def runs(*capacities: float) -> list[Record]:
    """A run for each capacity, whose search could tell nearly anything apart."""
    return [
        with_evidence(made_up_record(found(capacity), run_id=f"run-{i}"), upper_bound=capacity * 1.001)
        for i, capacity in enumerate(capacities)
    ]


def around(middle: float, scatter: float, number: int, seed: int = 0) -> list[float]:
    dice = random.Random(seed)
    return [middle * math.exp(dice.gauss(0, scatter)) for _ in range(number)]


RATIO = {"to": "ovs-dpdk/forward/1cpu-1rxq", "rate": ">= 20%"}
STOCK = f"""
name: stock
description: x
source: somewhere
loss_ratio: "<= 1%"
{KEY}:
  short-lived: {{cps: ">= 1k", ratio: {{to: {RATIO["to"]}, rate: "{RATIO["rate"]}"}}}}
  http-600: &http {{cps: ">= 2k", connect_time_p99: "<= 5ms"}}
linux-bridge/bond/1cpu-1rxq:
  http-600: *http
"""

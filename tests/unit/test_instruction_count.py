"""What a packet costs: net of the baseline, decided by the range over the seeds, and nothing where it is not proved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import CountedRound, Counter, InstructionCounts, Workload
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.instruction_count import InstructionCount, workload_of
from ctbench.measure.promises import PROMISES
from ctbench.report import console
from ctbench.results.floor import Floor, parse
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code
from ctbench.run.measurement import plan
from ctbench.sla.verdict import judge
from ctbench.traffic.profiles import Profile, load_profile

from .simulated import campaign, floor_of

FORWARD = Topology(datapath="emulated", ruleset="forward")
STATEFUL = Topology(datapath="emulated", ruleset="iptables-stateful")
BASELINE = Topology(datapath="emulated", ruleset="baseline")
STREAM, TCP = load_profile("udp-64-1flow"), load_profile("tcp-no-data")
#: Instructions per packet of each topology, one for each seed.
COSTS = {BASELINE.key: (5000.0, 5001.0), FORWARD.key: (6000.0, 6001.0), STATEFUL.key: (7000.0, 7003.0)}


@dataclass
class CountingDouble(Counter):
    """Counts what it is told to."""

    costs: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: COSTS)
    doubts: Mapping[str, str] = field(default_factory=dict)
    trouble_of: str = ""

    snapshot = None  # type: ignore[assignment]

    def baseline(self, topology: Topology, workload: Workload) -> Topology | None:
        return None if workload in ("removal", "dump") else BASELINE

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[InstructionCounts]]:
        if self.trouble_of:
            raise TestbedError(self.trouble_of)
        return [
            [
                InstructionCounts(
                    each.key, seed, (CountedRound(1000, 1000, round(cost * 1000)),), self.doubts.get(each.key, "")
                )
                for seed, cost in enumerate(self.costs[each.key], 1)
            ]
            for each in topologies
        ]


def measured(counter: CountingDouble, profile: Profile = STREAM, **limits: float) -> Outcome:
    """What is found of stateful iptables, compared with forwarding where a share of it is promised."""
    other = FORWARD.key if {"relative_cost", "added_cost"} & limits.keys() else ""
    return InstructionCount().count(counter, STATEFUL, replace(floor_of(profile, **limits), relative_to=other))


def test_a_cost_is_net_of_the_baseline_seed_by_seed_and_a_line() -> None:
    found = measured(CountingDouble(), instructions_per_packet=2100)
    figure = found.figures["instructions_per_packet"]
    assert (figure.value, figure.low, figure.high, figure.samples) == (2001.0, 2000.0, 2002.0, (2000.0, 2002.0))
    assert [one.key for one in found.evidence.counts] == [BASELINE.key] * 2 + [STATEFUL.key] * 2
    every = CountingDouble().count([STATEFUL], "stream")[0]
    line = console.counted_line(STATEFUL.key, every, (2000.0, 2002.0))
    assert line.split() == [
        STATEFUL.key, "2", "seeds", "2,001.0", "instructions", "±", "0.050", "%", "7,001.5", "with", "the", "wires",
    ]  # fmt: skip
    assert len(line) <= console.WIDTH


@pytest.mark.parametrize("profile", ["udp-removal", "udp-dump"])
def test_a_removal_and_a_dump_are_net_as_they_are_counted_and_have_no_rate(profile: str) -> None:
    found = measured(CountingDouble(), load_profile(profile), relative_cost=1.2)
    assert found.figures["instructions_per_connection"].samples == (7000.0, 7003.0)
    assert found.figures["relative_cost"].samples == (7000 / 6000, 7003 / 6001)
    assert [one.key for one in found.evidence.counts] == [STATEFUL.key] * 2 + [FORWARD.key] * 2
    with pytest.raises(MissingResource, match="only the emulated machine supports"):
        plan(PROMISES["connection rate"], campaign(), Topology(), load_profile(profile))


def test_a_relative_cost_is_a_ratio_of_net_costs() -> None:
    found = measured(CountingDouble(), relative_cost=2.1)
    assert found.figures["relative_cost"].samples == (2.0, 2.002)
    assert found.verdicts["relative_cost"].kept is True
    # What is added is the rest: a tenth of it more is missed, where the whole became 5 % dearer.
    added = measured(CountingDouble(), added_cost=1.1)
    assert added.figures["added_cost"].samples == pytest.approx((1.0, 1.002))
    assert [measured(CountingDouble(), added_cost=at).verdicts["added_cost"].kept for at in (1.1, 0.99)] == [
        True,
        False,
    ]
    # Of a connection profile it is the cost of a connection.
    found = measured(CountingDouble(), TCP, instructions_per_connection=1)
    assert list(found.figures) == ["instructions_per_connection"]


PACKET, RELATIVE = "instructions_per_packet", "relative_cost"


@pytest.mark.parametrize(
    ("counter", "metric", "limit", "word", "code", "said"),
    [
        (CountingDouble(), PACKET, 2002.0, "met", Code.RANGE, ""),
        (CountingDouble(), PACKET, 1999.0, "missed", Code.RANGE, ""),
        (CountingDouble(), PACKET, 2001.0, "not measured", Code.TOO_CLOSE, ""),
        (CountingDouble(), RELATIVE, 2.01, "met", Code.RANGE, ""),
        (CountingDouble(), RELATIVE, 1.99, "missed", Code.RANGE, ""),
        (CountingDouble(), RELATIVE, 2.001, "not measured", Code.TOO_CLOSE, ""),
        *((CountingDouble(doubts={each.key: "0 came through"}), RELATIVE, 2.1, "not measured", Code.UNPROVED,
           f"{each.key} (seed 1): 0 came through") for each in (BASELINE, FORWARD, STATEFUL)),
        (CountingDouble(costs=COSTS | {FORWARD.key: COSTS[BASELINE.key]}), RELATIVE, 2.1, "not measured",
         Code.UNPROVED, ""),
        (CountingDouble(trouble_of="QEMU ended"), RELATIVE, 2.1, "not measured", Code.FAULT, "QEMU ended"),
    ],
)  # fmt: skip
def test_a_promise_is_decided_where_all_seeds_are_proved_and_on_one_side(
    counter: CountingDouble, metric: str, limit: float, word: str, code: Code, said: str
) -> None:
    found = measured(counter, **{metric: limit})
    text = f"<= {limit * 100:g}%" if metric == RELATIVE else f"<= {limit:g}"
    floor = Floor(
        STATEFUL.key,
        STREAM,
        "",
        METRICS[PACKET],
        {metric: parse(text, METRICS[metric])},
        relative_to=FORWARD.key if metric == RELATIVE else "",
    )
    verdict = judge(found, floor)
    assert (verdict.word, verdict.code, said in verdict.reason) == (word, code, True)
    assert bool(found.figures) == (counter == CountingDouble())
    assert found.limited_by == ("fault" if counter.trouble_of else "dut")


@pytest.mark.parametrize(
    ("profile", "ports", "workload"),
    [
        ("udp-64-1flow", "plain", "stream"),
        ("udp-64-1flow-vlan", "bond-vlan", "stream"),
        ("udp-64-1k", "plain", "stream-1k"),
        ("udp-64-10k", "bond", "stream-10k"),
        ("udp-exchange", "plain", "udp"),
        ("tcp-no-data", "bond", "tcp"),
        ("udp-removal", "plain", "removal"),
        ("udp-dump", "plain", "dump"),
    ],
)
def test_the_machine_sends_what_the_profile_says(profile: str, ports: Any, workload: str) -> None:
    assert workload_of(load_profile(profile), FORWARD.model_copy(update={"ports": ports})) == workload


@pytest.mark.parametrize(
    ("profile", "ports"),
    [("udp-1518-10k", "plain"), ("udp-64-1flow", "vlan"), ("udp-64-1flow-vlan", "plain"), ("short-lived", "plain")],
)
def test_what_it_cannot_send_is_said(profile: str, ports: Any) -> None:
    with pytest.raises(MissingResource, match=f"profile {profile} is something else"):
        workload_of(load_profile(profile), FORWARD.model_copy(update={"ports": ports}))


@pytest.mark.parametrize(
    ("image", "limit", "word", "code", "said"),
    [
        ("a1", 2100, "met", Code.RANGE, ""),
        ("a1", 1999, "missed", Code.RANGE, ""),
        ("b2", 2100, "not measured", Code.ANOTHER_IMAGE, "image a1; this is image b2, where 2,001.0"),
        ("b2", 1999, "not measured", Code.ANOTHER_IMAGE, ""),
        ("", 2100, "not measured", Code.ANOTHER_IMAGE, "image unknown"),
    ],
)
def test_a_count_is_judged_in_the_image_promised_of(image: str, limit: float, word: str, code: str, said: str) -> None:
    metric = METRICS["instructions_per_packet"]
    floor = Floor(
        STATEFUL.key,
        STREAM,
        "",
        metric,
        {metric.name: replace(parse(f"<= {limit}", metric), bound_to="image a1")},
        image="a1",
    )
    verdict = judge(measured(CountingDouble(), instructions_per_packet=limit), floor, image=image)
    assert (verdict.word, verdict.code, said in verdict.reason) == (word, code, True)
    assert verdict.thresholds[0].measured == 2001.0

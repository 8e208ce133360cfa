"""Simulated DUTs and made-up trials for the unit tests. Nothing here measures anything."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ctbench.dut.base import CpuUse, Dut, Problem
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import rates
from ctbench.measure.search import SearchResult
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, DutFacts, Environment, MachineFacts, TestbedFacts
from ctbench.results.evidence import Evidence
from ctbench.results.floor import BoundMachine, Floor, parse, promise
from ctbench.results.metrics import HELD, METRICS, RATE_OF
from ctbench.results.record import Record
from ctbench.sla.verdict import RowVerdict, judge
from ctbench.traffic.generator import Direction, Latency, Times, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile


class HealthyDut(Dut):
    """One that nothing is wrong with, for DUTs of tests to inherit: what a trial asks of it."""

    def apply(self, topology: Topology) -> None: ...

    def snapshot(self) -> dict[str, Any]:
        return {}


LIMITS: Conditions = {"loss_ratio": 0.0002}
#: A profile of short connections, and how their capacity is searched by a campaign of the tests.
SHORT = ConnectionProfile(name="short-lived", udp_percent=1)
TRIALS = {"trial_duration": "500ms", "max_iterations": 12, "relative_width": "5%"}
#: What relative floors are compared with in the tests.
FORWARDING = "linux-router/forward/1cpu-1rxq"


def campaign(**keys: Any) -> Campaign:
    """A campaign that bisects, with what differs."""
    base = {
        "name": "mine",
        "description": "",
        "search": "bisection",
        "loss_ratio": "0.02%",
        "bisection": TRIALS,
        "loads": {"packets": {"min": "10k", "max": "3M"}, "connections": {"min": "1k", "max": "3M"}},
    }
    return Campaign.model_validate(base | keys)


def made_up_trial(
    load: float = 10_000,
    duration: float = 10.0,
    *,
    loss: float = 0.0,
    generator_limited: str = "",
    attempted: int | None = None,
    p99_us: float | None = 200.0,
    failed: dict[str, int] | None = None,
) -> Trial:
    """A trial with the given loss ratio; packets are seven per completed connection."""
    intended = round(load * duration)
    completed = round(intended * (1 - loss))
    packets = {"client": completed * 3, "server": completed * 4}
    times = Times(p50=100, p90=150, p99=p99_us, max=p99_us * 3) if p99_us is not None else None
    return Trial(
        load=load, duration_s=duration, ramp_up_s=0, wall_s=duration + 0.5, intended=intended,
        attempted=intended if attempted is None else attempted, established=completed, completed=completed,
        failed={"no_syn_ack": intended - completed} if failed is None else failed,
        tx_packets=packets, rx_packets=packets, total_tx_packets=packets, total_rx_packets=packets,
        tx_bytes={key: count * 78 for key, count in packets.items()},
        rx_bytes={key: count * 78 for key, count in packets.items()},
        active_mean=load / 100, connect_time_us=times, generator_limited=generator_limited,
    )  # fmt: skip


def made_up_packets(
    load: float = 400_000,
    duration: float = 0.5,
    *,
    loss: float = 0.0,
    back_loss: float | None = None,
    p99_us: float | None = 80.0,
    generator_limited: str = "",
) -> Trial:
    """A trial of 64-byte packets with the given loss ratio: one way, or with `back_loss` half of them back."""
    losses = {"client": loss} if back_loss is None else {"client": loss, "server": back_loss}
    ways = {}
    for sender, lost in losses.items():
        intended = round(load * duration / len(losses))
        worse = 1.0 if sender == "client" else 2.0
        latency = Latency(p50=40, p99=p99_us * worse, max=p99_us * 4, jitter=2) if p99_us is not None else None
        received = round(intended * (1 - lost))
        ways[sender] = Direction(
            intended=intended, attempted=intended, received=received, reordered=0, latency_us=latency
        )
    other = {"client": "server", "server": "client"}
    sent = {sender: way.attempted for sender, way in ways.items()}
    came = {other[sender]: way.received for sender, way in ways.items()}
    return Trial(
        unit="packets",
        load=load,
        duration_s=duration,
        ramp_up_s=0,
        wall_s=duration + 0.3,
        intended=sum(way.intended for way in ways.values()),
        attempted=sum(way.attempted for way in ways.values()),
        completed=sum(way.received for way in ways.values()),
        tx_packets=sent,
        rx_packets=came,
        tx_bytes={port: count * 60 for port, count in sent.items()},
        rx_bytes={port: count * 60 for port, count in came.items()},
        total_tx_packets=sent,
        total_rx_packets=came,
        directions=ways,
        generator_limited=generator_limited,
    )


def seen_packets(
    problems: tuple[Problem, ...] = (), conditions: Conditions = LIMITS, cpu: CpuUse | None = None, **trial: object
) -> Observation:
    """An observation of a made-up trial of packets."""
    return Observation(made_up_packets(**trial), conditions, problems, cpu)  # type: ignore[arg-type]


def seen(problems: tuple[Problem, ...] = (), conditions: Conditions = LIMITS, **trial: object) -> Observation:
    """An observation of a made-up trial."""
    return Observation(made_up_trial(**trial), conditions, problems)  # type: ignore[arg-type]


def runner_of(trial: Callable[[float, float], Observation]) -> Any:
    """A runner whose trials are what a function of the rate and the seconds makes."""
    return SimpleNamespace(offer=lambda load, duration_s: trial(load.per_s, duration_s))


@dataclass
class SimulatedDut(HealthyDut):
    """A DUT with a capacity, and its generator: a runner and a `TrialGenerator`; remembers what it was offered. What
    is offered above the capacity is lost."""

    capacity: float
    #: Standard deviation of the capacity from trial to trial, relative.
    noise: float = 0.0
    #: Share of trials that lose one connection in a hundred for no reason of the DUT.
    disturbed: float = 0.0
    #: What is completed above the capacity, as a share of it: 1 keeps going, 0.1 collapses.
    overload: float = 1.0
    #: Offered load from which the generator cannot keep the pace.
    generator_limit: float = float("inf")
    #: Share of the capacity that is missing at first, and comes within so many seconds of traffic (slow start).
    cold: float = 0.0
    warm_after_s: float = 60.0
    seed: int = 0
    #: Whether it is offered packets instead of connections.
    packets: bool = False
    #: Called before each trial, to let something happen.
    before: Callable[[int], None] | None = None
    loads: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def offer(self, load: Load, duration_s: float) -> Observation:
        return Observation(self.run_trial(None, load, duration_s), LIMITS)

    def run_trial(self, _profile: Profile | None, load: Load, duration_s: float) -> Trial:
        """A trial; of packets where it is offered packets, whatever the profile."""
        warm = min(1.0, sum(self.durations) / self.warm_after_s)
        self.loads.append(load.per_s if isinstance(load, Rate) else 0.0)
        self.durations.append(duration_s)
        if self.before:
            self.before(len(self.loads))
        capacity = self.capacity * self.random.gauss(1, self.noise) * (1 - self.cold * (1 - warm))
        return self.serve(capacity, load, duration_s)

    def serve(self, capacity: float, load: Load, duration_s: float) -> Trial:
        """What comes of a load at this capacity."""
        loss = 0.0 if load.per_s <= capacity else 1 - capacity * self.overload / load.per_s
        return self.made_up(load.per_s, duration_s, loss)

    def made_up(self, load: float, duration_s: float, loss: float) -> Trial:
        """A trial that lost as much, or more where something disturbed it."""
        if self.random.random() < self.disturbed:
            loss = max(loss, 0.01)
        limited = f"{load:.0f} a second is too much for it" if load > self.generator_limit else ""
        made = made_up_packets if self.packets else made_up_trial
        return made(load, duration_s, loss=loss, generator_limited=limited)


def courses(
    decide: Callable[[int, int, int], Any], ways: Mapping[tuple[int, int], float], most: int
) -> tuple[dict[Any, float], float]:
    """Exactly how probable each answer of a rule is, and none, over every course that so many steps can take. By what a
    step adds to two counts (`ways`), its chance; `decide`: the answer for both counts and the number of steps, None
    while there is none."""
    found: dict[Any, float] = defaultdict(float)
    going = {(0, 0): 1.0}
    for made in range(1, most + 1):
        then: dict[tuple[int, int], float] = defaultdict(float)
        for (now, chance), (more, share) in product(going.items(), ways.items()):
            counts = now[0] + more[0], now[1] + more[1]
            answer = decide(*counts, made)
            if answer is None:
                then[counts] += chance * share
            else:
                found[answer] += chance * share
        going = then
    return found, sum(going.values())


def outcome_of(result: SearchResult | Outcome) -> Outcome:
    """What a procedure makes of a search, by what its trials counted."""
    if isinstance(result, Outcome):
        return result
    metric = RATE_OF[result.trials[0].trial.unit] if result.trials else METRICS["cps"]
    return rates.outcome_of(result, metric)


def judged(
    result: SearchResult | Outcome,
    floor: Floor,
    ceiling: float | None = None,
    **doubts: Any,
) -> RowVerdict:
    """The verdict of a result as an acceptance run comes to it."""
    return judge(outcome_of(result), floor, ceiling, **doubts)


def promises(**texts: str | None) -> dict[str, Any]:
    """Thresholds by metric, from what an SLA file has; None: not promised."""
    return {name: parse(text, METRICS[name]) for name, text in texts.items() if text is not None}


def floor_of(profile: Profile = SHORT, **limits: float) -> Floor:
    """A floor that promises so much, by metric."""
    promised = {name: promise(METRICS[name], limit, f"{limit:g}") for name, limit in limits.items()}
    return Floor("ovs-dpdk/conntrack/1cpu-1rxq", profile, "tests", RATE_OF[profile.kind], promised)


def saying(floor: Floor, *metrics: str, **said: Any) -> Floor:
    """A floor of which these thresholds say something else."""
    return replace(
        floor,
        thresholds={name: replace(each, **said if name in metrics else {}) for name, each in floor.thresholds.items()},
    )


def bound_to(floor: Floor, machine: BoundMachine) -> Floor:
    """A floor whose rates are of one machine."""
    return replace(saying(floor, *HELD & floor.thresholds.keys(), bound_to=str(machine)), machine=machine)


def made_up_floor(cps: str = ">= 48.2k", pps: str | None = ">= 334.9k", p99: str | None = None) -> Floor:
    """A floor of the topology that the made-up record has."""
    return Floor(
        key="ovs-dpdk/conntrack/1cpu-1rxq",
        profile=SHORT,
        source="the article",
        metric=METRICS["cps"],
        thresholds=promises(cps=cps, pps=pps, loss_ratio="<= 0.02%", connect_time_p99=p99),
    )


def made_up_packet_floor(
    pps: str = ">= 300k", share: str | None = None, p99: str | None = None, bps: str | None = None
) -> Floor:
    """A floor for packets, with `share` relative to plain forwarding."""
    floor = Floor(
        key="linux-router/iptables-snat/1cpu-1rxq",
        profile=PacketProfile(name="udp-64-10k", kind="packets", flows=10_000),
        source="ten runs",
        metric=METRICS["pps"],
        thresholds=promises(pps=pps, bps=bps, ratio=share, loss_ratio="<= 0.02%", latency_p99=p99),
    )
    return saying(replace(floor, relative_to=FORWARDING), "ratio", to=FORWARDING) if share else floor


def found_packets(capacity: float, limited_by: Any = "dut", **trial: Any) -> SearchResult:
    """Like `found`, for packets."""
    return found(capacity, limited_by, seen_packets, **trial)


def found(
    capacity: float, limited_by: Any = "dut", see: Callable[..., Observation] = seen, **trial: Any
) -> SearchResult:
    """The result of a search that found `capacity`, with a failing load 5 % above it; 0: nothing held."""
    upper = None if limited_by == "range" else capacity * 1.05 or 1_000.0
    above = see(load=upper, loss=0.3) if upper else see(load=capacity)
    proof = see(**{"load": capacity} | trial) if capacity else None
    made = [above, proof] if proof else [above]
    return SearchResult(capacity, upper, limited_by, "as it was tried.", proof, tuple(made), (capacity,))


def made_up_record(
    result: SearchResult | Outcome | None = None,
    floor: Floor | None = None,
    ceiling: float | None = 900_000.0,
    **changes: Any,
) -> Record:
    """The record of a test that found 381k connections per second; `changes` replace fields."""
    floor = floor or made_up_floor()
    outcome = outcome_of(result or found(381_000.0))
    verdict = judge(outcome, floor, ceiling)
    moment = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    fields: dict[str, Any] = {
        "schema_version": 2, "tool_version": "0.1", "run_id": "run-1", "suite": "OVS-DPDK With Conntrack",
        "test": "1 CPU, 1 Queue, Short-Lived Connections", "tags": ["1cpu", "conntrack"],
        "started": moment, "ended": moment, "wall_s": 20.0, "traffic_s": 11.0,
        "procedure": "at-floor" if outcome.limited_by == "floor" else "highest-rate", "metric": outcome.metric.name,
        "topology": Topology(), "profile": floor.profile, "campaign": CampaignFacts(name="quick"),
        "figures": dict(outcome.figures), "limited_by": outcome.limited_by, "thresholds": list(verdict.thresholds),
        "floor": floor.as_record(), "verdict": verdict.word, "verdict_reason": verdict.reason,
        "margin_pct": verdict.margin_pct,
        "evidence": Evidence(
            trials=[made.as_record() for made in outcome.trials],
            upper_bound=outcome.evidence.upper_bound,
            ceiling=ceiling,
        ),
        "environment": Environment(
            testbed=TestbedFacts(), dut=DutFacts(product="Open vSwitch 3.1.0", version="3.1.0"),
            generator={}, machine=MachineFacts(usable_cpus=[0, 1]),
        ),
    }  # fmt: skip
    return Record(**(fields | changes))


def with_evidence(record: Record, **parts: Any) -> Record:
    """The record with parts of its evidence."""
    return record.model_copy(update={"evidence": record.evidence.model_copy(update=parts)})


def with_environment(record: Record, **parts: Any) -> Record:
    """The record with parts of its environment."""
    return record.model_copy(update={"environment": record.environment.model_copy(update=parts)})


def with_trials(record: Record, **changes: Any) -> Record:
    """The record with changes in what each of its trials counted."""
    made = [(each, each.trial.model_copy(update=changes)) for each in record.evidence.trials]
    return with_evidence(record, trials=[each.model_copy(update={"trial": trial}) for each, trial in made])


def run_of(folder: Path, *records: Record) -> Path:
    """The folder of a run with these records."""
    for record in records:
        store.write(record, folder)
    return folder


def made_up_packet_record(
    result: SearchResult | Outcome | None = None,
    floor: Floor | None = None,
    **changes: Any,
) -> Record:
    """The record of a test of packets that found 264k a second, against a floor; `changes` replace fields."""
    fields: dict[str, Any] = {
        "suite": "NAT",
        "test": "SNAT With iptables, 10k Flows",
        "topology": Topology(datapath="linux-router", ruleset="iptables-snat"),
    }
    return made_up_record(
        result or found_packets(264_400.0, cpu=CpuUse(0.98, 3_700.0, "link threads")),
        floor or made_up_packet_floor(">= 100k"),
        3_000_000.0,
        **(fields | changes),
    )

"""An acceptance run on a simulated testbed, for the unit tests."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.base import CpuUse
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.procedure import Promise
from ctbench.measure.promises import PROMISES
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.results.verdict import Code
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.two_sides import InTurn, Setup
from ctbench.traffic.generator import Side, Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import Profile, load_profile

from .simulated import FORWARDING, HealthyDut, campaign, made_up_packets, made_up_trial
from .simulated_pair import SimulatedPair

FORWARD = Topology(datapath="linux-router", ruleset="forward")
SNAT = Topology(datapath="linux-router", ruleset="iptables-snat")
SNAT_KEY = SNAT.key
#: What a gate of a candidate is of.
OVS, CANDIDATE, BASE = Topology(), "/opt/ovs-3.3", "/opt/ovs-3.2"
CEILING = 2_500_000.0
GATING = campaign(search="gate", bisection=None, gate={"trial_duration": "500ms", "headroom": "1%"})


def floors(share: str | None = ">= 60%", **keys: Any) -> Floors:
    relative = {"ratio": {"to": FORWARDING, "rate": share}} if share else {}
    promise = {"udp-64-10k": {"pps": ">= 100k"} | relative, "short-lived": {"cps": ">= 10k"}}
    plain = {"udp-64-10k": {"pps": ">= 100k"}, "short-lived": {"cps": ">= 10k"}}
    cable = {CABLE.key: {"short-lived": {"cps": ">= 1k"}}}
    head = {"name": "mine", "description": "", "source": "tests"} | cable
    return Floors.model_validate(head | {FORWARDING: plain, SNAT_KEY: promise} | keys)


def compared(promised: Mapping[str, Any], **keys: Any) -> Floors:
    """What is promised of short-lived connections through a candidate, which is compared with its base."""
    return floors(None, **{OVS.key: {"short-lived": promised}}, **keys).compared_with(BASE)


@dataclass
class SimulatedTestbed(HealthyDut):
    """Every topology has a sharp capacity, and so has the generator; it remembers what was applied and offered."""

    capacities: dict[str, float]
    applied: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    #: Raised when this topology is applied.
    errors: dict[str, Exception] = field(default_factory=dict)
    #: Load from which the generator is the limit.
    generator_limit: float = CEILING
    #: Raised instead of a trial, by its number in the run; and what is broken from then on until it is discarded.
    faults: dict[int, Exception] = field(default_factory=dict)
    broken: str = ""
    #: Topologies that stood when everything was discarded.
    discarded: list[str] = field(default_factory=list)
    #: Standard deviation of a capacity from trial to trial, relative.
    noise: float = 0.0
    #: Share that is lost at any load, and of a pair, by which of the two.
    leak: float = 0.0
    leaks: tuple[Side, ...] = ("tested", "other")
    #: Of a closed loop: the share of its capacity at which it serves one, and what that loses (ratio).
    in_loops: float = 1.0
    lost_in_loops: float = 0.0
    offers: frozenset[type[Load]] = frozenset((Rate, Saturation))
    #: What tells the programs of a pair from others; and what it says of itself.
    programs: dict[Side, str] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Whether it is a lab, where two cannot stand side by side.
    lab: bool = False
    #: Which side stands, alone or has the turn.
    having: Side = "tested"
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    #: The kind of CPU of its machine.
    cpu_kind: str = ""
    #: Where its runs leave their records.
    output: Path = Path()

    def begin(self, folder: str = "", **settings: Any) -> "Started":
        """A run on it."""
        return Started(self.output / folder, self, **settings)

    def gate(self, **settings: Any) -> "Started":
        """A run that compares a candidate with its base."""
        return self.begin(**{"floors": compared({"cps": ">= 10k"}), "candidate": CANDIDATE} | settings)

    @property
    def dut(self) -> "SimulatedTestbed":
        return self

    @property
    def generator(self) -> "SimulatedTestbed":
        """As TRex', which is not there before it is connected to something."""
        if not self.applied:
            raise TestbedError("The generator is not connected to a DUT.")
        return self

    def program(self, topology: Topology, build: str = "") -> str:
        return self.programs.get("other" if build else "tested", "")

    def claim(self, say: object) -> None:
        """It takes no CPU."""

    def placement(self, topology: Topology) -> Placement:
        return Placement((0,), (1,), (0,))

    def apply(self, topology: Topology, profile: Profile | None = None) -> None:
        self.side_by_side = self.in_turn = None
        self.having = "tested"
        self._stands(topology.key, topology.key)

    def apply_pair(self, tested: Setup, other: Setup, profile: Profile, first: Side | None = None) -> None:
        self.side_by_side = self.in_turn = None
        if self.lab:
            turns = InTurn({"tested": tested, "other": other}, "The links end at network cards.", self._become)
            turns.turn("tested")
            self.in_turn = turns
            return
        self._stands(f"{tested.topology.key} next to {other.topology.key}", tested.topology.key)
        keys: dict[Side, str] = {"tested": tested.topology.key, "other": other.topology.key}
        own, others = (self.capacities[key] for key in keys.values())
        self.side_by_side = SimulatedPair(
            own / others, others, keys=keys, first=first or "tested", programs=self.programs, base=other.build
        )
        self.side_by_side.duts = dict.fromkeys(keys, self)

    def _become(self, setup: Setup) -> "tuple[SimulatedTestbed, SimulatedTestbed]":
        """In a lab, where a base is one with a build."""
        self.having = "other" if setup.build else "tested"
        self._stands(f"{setup.topology.key} as {self.having}", setup.topology.key)
        return self, self

    def _stands(self, named: str, key: str) -> None:
        self.applied.append(named)
        if named in self.errors:
            raise self.errors[named]
        self.standing = key

    def run_trial(self, profile: Profile, offered: Load, duration_s: float) -> Trial:
        capacity = self.capacities.get(self.standing, CEILING) * self.dice.gauss(1, self.noise)
        assert isinstance(offered, Rate | Saturation) and type(offered) in self.offers
        load = offered.per_s if isinstance(offered, Rate) else min(capacity * self.in_loops, self.generator_limit)
        self.loads.append(load)
        if len(self.loads) in self.faults:
            raise self.faults[len(self.loads)]
        if isinstance(offered, Saturation):
            made = made_up_packets if profile.kind == "packets" else made_up_trial
            parts = {"timeline_step_s": 0.05, "timeline_completed": [round(load * 0.05)] * 10}
            limited = "it was too slow" if capacity >= self.generator_limit else ""
            found = made(load, duration_s, loss=self.lost_in_loops, generator_limited=limited)
            return found.model_copy(update={"under_way": offered.under_way} | parts)
        having = self.side_by_side.having if self.side_by_side else self.having
        leak = self.leak if having in self.leaks else 0.0
        loss = leak if load <= capacity else 1 - capacity / load
        limited = "it was too slow" if load > self.generator_limit else ""
        made = made_up_packets if profile.kind == "packets" else made_up_trial
        return made(load, duration_s, loss=loss, generator_limited=limited)

    def cpu_use(self) -> CpuUse | None:
        return CpuUse(0.9, 1_000.0, "PMD cycles")

    def trouble(self) -> str:
        return self.broken

    def replace_broken(self, topology: Topology) -> str:
        broken, self.broken = self.broken, ""
        return broken

    def discard(self) -> list[str]:
        self.discarded.append(self.applied[-1])
        return ["The host does not answer."] if self.broken else []

    def capture(self) -> dict[str, str]:
        return {"log": f"{self.applied[-1]}\n"}

    def snapshot(self) -> dict[str, Any]:
        return {"version": "6.1", "program": self.programs.get(self.having, "")}

    def facts(self) -> dict[str, Any]:
        dut = {"program": self.programs.get("tested", "")}
        return {"testbed": {}, "dut": dut, "generator": {}, "machine": {"cpu_kind": self.cpu_kind}} | self.told

    def close(self) -> None: ...


def rate_of(profile: str) -> Promise:
    """The promise of a rate with this profile."""
    return PROMISES["packet rate" if load_profile(profile).kind == "packets" else "connection rate"]


def leave_undecided(output: Path, code: Code = Code.TOO_CLOSE) -> Record:
    """Let the one record of a folder say that its row was not decided; it as it was."""
    (stored,) = store.read_stored(output)[0]
    record = store.read_whole(stored.path)
    store.rewrite(record.model_copy(update={"verdict": "not measured", "verdict_code": code}), stored.path)
    return record


class Started:
    """A run on a simulated testbed, with what it said."""

    def __init__(self, output: Path, testbed: SimulatedTestbed, /, **settings: Any) -> None:
        self.said: list[str] = []
        self.testbed = testbed
        local = load("testbeds", "local", TestbedConfig)
        if candidate := settings.get("candidate"):
            local = local.with_build(candidate)
        testbed.told |= {"testbed": local.model_dump(mode="json")}
        chosen = {"testbed": local, "campaign": campaign(), "floors": floors()} | settings
        self.run = AcceptanceRun(RunSettings(**chosen), output, self.said.append)

    def goes_on(self, run_id: str) -> None:
        """It begins, as a further part of this run."""
        self.run.run_id = run_id
        self.run.begin()

    def measure(self, topology: Topology, profile: str = "udp-64-10k") -> Record:
        return self.run.measure(TestName("Suite", "Test"), topology, profile, rate_of(profile))

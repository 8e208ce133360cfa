"""A DUT with a control plane, and its generator, for the unit tests of what is measured beside a load."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import sleep

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Done, Revalidation, ThreadLook
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.control_plane import ControlPlaneTime
from ctbench.sla.floor import Floor
from ctbench.sla.verdict import Verdict, judge
from ctbench.traffic.generator import ConnectTime, Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import PacketProfile, Profile

from .simulated import LIMITS, SHORT, HealthyDut, campaign, made_up_packets, made_up_trial, promises

FLOWS = PacketProfile(name="udp-64-10k", kind="packets", flows=10_000)


@dataclass
class FakePlane(HealthyDut):
    """Its control plane takes as long as it is told to; a trial lasts until that has worked so often. Only the trial
    in which it works loses something, or has a generator that is late."""

    takes: Callable[[int], float] = lambda _number: 0.1
    size: float = 10_000.0
    works: int = 12
    loss: float = 0.0
    p99_us: float = 200.0
    limited: str = ""
    late_ms: float = 0.0
    #: Of the load alone: what it loses, and why its generator is the limit.
    alone_loss: float = 0.0
    alone_limited: str = ""
    #: What the control plane answers in the place of working, and what ends the trial.
    refused: str = ""
    dies: str = ""
    done: int = 0
    #: Ports that came, and did not go yet; how much longer a deletion takes; what is wrong with one that was added.
    ports: list[str] = field(default_factory=list)
    deletes: float = 0.5
    broken_port: str = ""
    #: Flows that its datapath says it may have, how many it was told, and how often a round was forced.
    limit: int = 200_000
    allowed: int = 0
    forced: int = 0
    #: Whether its main thread can be seen, and how often it was looked at.
    seen: bool = True
    looks: int = 0
    durations: list[float] = field(default_factory=list)

    @property
    def control_plane(self) -> "FakePlane":
        return self

    def dump_connections(self) -> Done:
        self.done += 1
        if self.refused:
            raise TestbedError(self.refused)
        return Done(self.takes(self.done), self.size)

    def add_port(self, name: str) -> Done:
        self.ports.append(name)
        return self.dump_connections()

    def delete_port(self, name: str) -> Done:
        self.ports.remove(name)
        done = self.dump_connections()
        return Done(done.seconds * self.deletes, done.size)

    def check_port(self, name: str) -> None:
        if self.broken_port:
            raise TestbedError(f"Open vSwitch cannot add port {name}: {self.broken_port}.")

    def delete_ports(self, names: Sequence[str]) -> None:
        self.ports = [name for name in self.ports if name not in names]

    def revalidation(self) -> Revalidation:
        done = self.dump_connections()
        return Revalidation(done.seconds, round(done.size), self.limit)

    def allow_flows(self, number: int) -> None:
        self.allowed = number

    def revalidate_all(self) -> None:
        self.forced += 1

    def main_thread(self) -> ThreadLook | None:
        self.looks += 1
        return ThreadLook(self.looks / 1000, self.looks % 10 != 1) if self.seen else None

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.durations.append(duration_s)
        make = made_up_packets if profile.kind == "packets" else made_up_trial
        if duration_s == campaign().control_plane.alone_duration:
            return made_up_trial(load.per_s, duration_s, loss=self.alone_loss, generator_limited=self.alone_limited)
        while self.done < self.works and self.looks < 10 * self.works:
            sleep(0.001)
        if self.dies:
            raise TestbedError(self.dies)
        made = make(load.per_s, duration_s, loss=self.loss, generator_limited=self.limited)
        times = ConnectTime(p50=50, p90=100, p99=self.p99_us, max=self.p99_us * 2)
        return made.model_copy(update={"connect_time_us": times, "late_max_ms": self.late_ms})


def measured(
    dut: FakePlane, procedure: ControlPlaneTime, profile: Profile = SHORT, **limits: str
) -> tuple[Outcome, Verdict]:
    """What a procedure finds of a DUT, without waiting between two works, and what becomes of these promises."""
    thresholds = promises(**limits)
    hurried = replace(procedure, action=lambda plane, at: replace(procedure.action(plane, at), every_s=0.001))  # type: ignore[type-var]
    bench = Bench(
        dut, dut, profile, LIMITS, campaign(), limits={name: each.limit for name, each in thresholds.items()}
    )  # fmt: skip
    outcome = hurried.run(bench)
    floor = Floor(
        key="ovs-dpdk/conntrack/1cpu-1rxq", profile=profile, source="tests", metric=procedure.metric(profile),
        thresholds=thresholds,
    )  # fmt: skip
    return outcome, judge(outcome, floor)

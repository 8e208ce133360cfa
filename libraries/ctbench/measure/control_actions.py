"""What the control plane is made to do beside a load, again and again: each is a probe whose samples are times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic as _now
from typing import Protocol

from ctbench.base.errors import TestbedError
from ctbench.dut.control_plane import ControlPlane, Done, DumpingDut
from ctbench.measure.probe import Probe


class Action(Probe, Protocol):
    """A probe that makes the control plane work; a sample is how long that took."""

    @property
    def title(self) -> str:
        """What is done, for a sentence: `dump`."""

    @property
    def sizes(self) -> str:
        """What `Done.size` counts: `entries`."""

    @property
    def expected(self) -> float:
        """How large `Done.size` should be while the load lasts; 0 where that is not known."""

    @property
    def remark(self) -> str:
        """What is to be said of it besides its times; empty where nothing is."""

    @property
    def done(self) -> Mapping[str, Sequence[Done]]:
        """All that was done so far, by the metric of its time."""


@dataclass
class TableDump:
    """Implements `Action`: the connection table is printed."""

    plane: DumpingDut
    #: Entries that the load keeps in the table.
    expected: float = 0.0
    every_s: float = 0.4
    name: str = "dump_time"
    unit: str = "s"
    title: str = "dump"
    sizes: str = "entries"
    remark: str = ""
    done: dict[str, list[Done]] = field(default_factory=lambda: {"dump_time": []})

    def before(self) -> None:
        """See `Probe.before`: nothing has to be made ready."""

    def sample(self) -> float:
        """See `Probe.sample`."""
        self.done[self.name].append(self.plane.dump_connections())
        return self.done[self.name][-1].seconds

    def after(self) -> None:
        """See `Probe.after`: nothing has to be put back."""


@dataclass
class PortChurn:
    """Implements `Action`: ports are added one after the other, then deleted, and so on, beside those that stay. A
    sample is one of both."""

    plane: ControlPlane
    expected: float = 0.0
    #: Ten a second: a cluster adds and deletes some six containers in that time (2024, `ovs-vswitchd-many-cpus`).
    every_s: float = 0.1
    name: str = "port_time"
    unit: str = "s"
    title: str = "port"
    sizes: str = "ports that stay"
    remark: str = ""
    done: dict[str, list[Done]] = field(default_factory=lambda: {"port_add_time": [], "port_delete_time": []})
    #: Those that come and go.
    names: tuple[str, ...] = tuple(f"pod{number}" for number in range(10))
    _turn: int = 0

    def before(self) -> None:
        """See `Probe.before`: one port is added, looked at and deleted."""
        first = self.names[0]
        self.plane.add_port(first)
        self.plane.check_port(first)
        self.plane.delete_port(first)

    def sample(self) -> float:
        """See `Probe.sample`."""
        round_, place = divmod(self._turn, len(self.names))
        self._turn += 1
        metric, change = (
            ("port_add_time", self.plane.add_port) if round_ % 2 == 0 else ("port_delete_time", self.plane.delete_port)
        )
        self.done[metric].append(change(self.names[place]))
        return self.done[metric][-1].seconds

    def after(self) -> None:
        """See `Probe.after`: what is left of them is deleted."""
        self.plane.delete_ports(self.names)


#: Flows that the datapath is allowed to have: as in the measurements of 2024, and Open vSwitch's own default.
FLOWS_ALLOWED = 200_000


@dataclass
class Revalidate:
    """Implements `Action`: how long the last round took is asked again and again; with `forced`, one is forced before
    each time."""

    plane: ControlPlane
    #: Flows that the load keeps in the datapath.
    expected: float = 0.0
    forced: bool = False
    #: By itself a round begins half a second after the last one has ended: each is seen once at most.
    every_s: float = 0.7
    unit: str = "s"
    title: str = "round"
    sizes: str = "flows"
    rounds: list[Done] = field(default_factory=list)
    #: Flows that the datapath was allowed to have at any time.
    limits: list[int] = field(default_factory=list)
    #: Flows that it had when it was asked last.
    _flows: int | None = None

    @property
    def name(self) -> str:
        """See `Probe.name`."""
        return "sweep_time" if self.forced else "revalidation_time"

    @property
    def done(self) -> Mapping[str, Sequence[Done]]:
        """See `Action.done`."""
        return {self.name: self.rounds}

    @property
    def remark(self) -> str:
        """See `Action.remark`."""
        least = min(self.limits, default=FLOWS_ALLOWED)
        if least < FLOWS_ALLOWED:
            return f"the flow limit was lowered from {FLOWS_ALLOWED} to {least}"
        return f"the flow limit stayed at {FLOWS_ALLOWED}"

    def before(self) -> None:
        """See `Probe.before`."""
        self.plane.allow_flows(FLOWS_ALLOWED)

    def sample(self) -> float:
        """See `Probe.sample`."""
        if self.forced:
            self.plane.revalidate_all()
        found = self.plane.revalidation()
        self.limits.append(found.limit)
        # The last round began before now, when there may have been fewer: as many as there were before.
        before, self._flows = found.flows if self._flows is None else self._flows, found.flows
        self.rounds.append(Done(found.seconds, min(before, found.flows)))
        return found.seconds

    def after(self) -> None:
        """See `Probe.after`: the limit is Open vSwitch's own."""


#: Open vSwitch collects the statistics of all interfaces each 5 s, and no setting makes it do so more often
#: (`stats-update-interval`, ovs-vswitchd.conf.db(5)).
STATISTICS_PERIOD_S = 5.0
#: Length of the stretch in which a collection is looked for, seconds: a thousand ports take some 20 ms.
_STRETCH_S = 0.06


@dataclass
class Statistics:
    """Implements `Action`: nothing is done; the main thread's CPU time is sampled, in which each collection of the
    interfaces' statistics is a burst."""

    plane: ControlPlane
    #: Ports of the bridge besides those of the load.
    ports: int
    expected: float = 0.0
    every_s: float = 0.02
    name: str = "main_thread_ran"
    unit: str = "s"
    title: str = "collection"
    sizes: str = "ports that stay"
    remark: str = ""
    #: When the thread was looked at, and its CPU time so far.
    seen: list[tuple[float, float]] = field(default_factory=list)

    @property
    def done(self) -> Mapping[str, Sequence[Done]]:
        """See `Action.done`: the largest burst of each whole period."""
        return {"statistics_time": [Done(burst, self.ports) for burst in bursts(self.seen)]}

    def before(self) -> None:
        """See `Probe.before`: nothing has to be made ready."""

    def sample(self) -> float:
        """See `Probe.sample`: CPU time since the last one."""
        look = self.plane.main_thread()
        if look is None:
            raise TestbedError("The main thread cannot be seen from this machine.")
        before = self.seen[-1][1] if self.seen else look.ran_s
        self.seen.append((_now(), look.ran_s))
        return look.ran_s - before

    def after(self) -> None:
        """See `Probe.after`: nothing has to be put back."""


def bursts(seen: Sequence[tuple[float, float]], period_s: float = STATISTICS_PERIOD_S) -> list[float]:
    """The largest CPU time of any stretch that began in each whole period: what comes once in a period, and takes
    longer than everything else, is seen once in each."""
    if not seen:
        return []
    begun, last = seen[0][0], 0
    found = [0.0] * int((seen[-1][0] - begun) / period_s)
    for first, (at, ran) in enumerate(seen):
        last = max(last, first)
        while last + 1 < len(seen) and seen[last + 1][0] <= at + _STRETCH_S:
            last += 1
        period = int((at - begun) / period_s)
        if period < len(found):
            found[period] = max(found[period], seen[last][1] - ran)
    return found

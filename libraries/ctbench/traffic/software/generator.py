"""The software traffic generator behind the TrafficGenerator interface."""

import time
from collections.abc import Callable, Sequence

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.generator import PairedGenerator, Profiles, Side, Slice, TrafficGenerator, Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Idle, Load, Rate, Saturation, require
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import engine, plan, stream_engine
from ctbench.traffic.software.hold import HeldConnections
from ctbench.traffic.software.kernel_thread import Watcher
from ctbench.traffic.software.memif import RingPlan, buffer_bytes, cable
from ctbench.traffic.software.packet_port import LinkThreads
from ctbench.traffic.software.pair import FIRST_SALT, PairedSlices
from ctbench.traffic.software.wiring import Wiring


class SoftwareTrafficGenerator(TrafficGenerator, HoldingGenerator, PairedGenerator):
    """Drives two ports from one thread. Wire it with `connect`, offer with `run_trial`, end with `close`.

    Wired to a second DUT as well (`side="other"`), `run_trial` still offers to the first one alone, and `run_slices`
    serves both in turn."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its thread may run; empty: anywhere."""
        self._cpus = tuple(cpus)
        #: By side: what it is wired to, and that in words. The other side is there in a pair only.
        self._wirings: dict[Side, Wiring] = {}
        self._wired: dict[Side, str] = {}
        self._pair: PairedSlices | None = None
        self._tables = engine.Tables()
        self._trials = 0
        #: Called about ten times a second during a trial, for progress.
        self.watcher: Watcher | None = None

    def connect(self, make: Callable[[], tuple[Wiring, str]], side: Side = "tested") -> None:
        """Let go of what it was connected to, and use the wiring that `make` gives, and what to call it. `side`: of a
        pair, the tested one being connected first."""
        if side == "tested":
            self.disconnect()
        elif set(self._wirings) != {"tested"}:
            raise GeneratorError("The other side of a pair is connected once, and after the tested one.")
        self._wirings[side], self._wired[side] = make()

    def connect_cable(
        self, queues: int = 1, ring_size: int = 2048, frame_bytes: int = 1514, side: Side = "tested"
    ) -> None:
        """Join the two ports directly, with no DUT between them: for the generator's ceiling."""
        plan = RingPlan(queues, queues, ring_size, ring_size, buffer_bytes(frame_bytes))
        self.connect(lambda: (Wiring(*cable(plan)), f"cable, {queues} rings of {ring_size} per direction"), side)

    @property
    def offers(self) -> frozenset[type[Load]]:
        return frozenset({Rate, Hold, Saturation, Idle})

    def run_trial(self, profile: ConnectionProfile | PacketProfile, load: Load, duration_s: float) -> Trial:
        require(self.offers, load, "the software traffic generator")
        if isinstance(load, Hold):
            if isinstance(profile, PacketProfile):
                raise MissingResource(f"Profile {profile.name} is of packets: no connection of it can be held open.")
            with self.hold(profile, load) as held:
                held.open(load.connections)
                time.sleep(duration_s)
                held.ask()
                return held.trial()
        wiring, salt = self._begin()
        started, tables = time.perf_counter(), self._tables
        if isinstance(profile, PacketProfile):
            timing = stream_engine.timing_of(profile, load, duration_s)
            run = stream_engine.prepare(wiring, tables, profile, load, timing, salt)
            run.go_on(wiring, self._cpus, timing.longest_s, self.watcher)
            return stream_engine.trial_of(run, wiring, profile, load, timing, started)
        timing = plan.timing_of(profile, load, duration_s)
        run = engine.prepare(wiring, tables, profile, load, timing, salt, times_messages=True)
        run.go_on(wiring, self._cpus, timing.longest_s, self.watcher)
        return engine.trial_of(run, wiring, load, timing, started)

    def hold(self, profile: ConnectionProfile, load: Hold) -> HeldConnections:
        """Until the next trial, which takes its memory."""
        wiring, salt = self._begin()
        return HeldConnections(wiring, self._tables, profile, load, self._cpus, salt)

    def run_slices(
        self, profiles: Profiles, order: Sequence[Side], slice_s: float, turn: Callable[[Side], None]
    ) -> list[Slice]:
        if self._pair is None:
            if "other" not in self._wirings:
                raise GeneratorError("The traffic generator is not connected to a pair of DUTs.")
            self._pair = PairedSlices(self._wirings["tested"], self._wirings["other"], self._cpus)
        return self._pair.run_slices(profiles, order, slice_s, turn)

    def forget(self) -> None:
        if self._pair:
            self._pair.forget()

    def snapshot(self) -> dict[str, object]:
        wired = self._wired.get("tested", "not connected")
        other = {"other_wiring": self._wired["other"]} if "other" in self._wired else {}
        return {"type": "software", "cpus": list(self._cpus), "wiring": wired, **other}

    def disconnect(self) -> None:
        """Let go of the ports, of both sides."""
        self._pair = None
        self._wired.clear()
        while self._wirings:
            self._wirings.popitem()[1].close()

    def close(self) -> None:
        self.disconnect()

    def _begin(self) -> tuple[Wiring, int]:
        """What the next trial uses, and what tells its frames from those of others."""
        if "tested" not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self.forget()  # a trial takes what waits on the rings for another one's
        self._trials += 1
        return self._wirings["tested"], 1 + self._trials % (FIRST_SALT - 1)


def warm_up() -> None:
    """Compile the kernel functions, so that no trial waits for them. About 30 s the first time, nothing after it."""
    LinkThreads.compile()
    generator = SoftwareTrafficGenerator()
    generator.connect_cable()
    try:
        generator.run_trial(ConnectionProfile(name="warm-up"), Rate(1000), 0.05)
        generator.run_trial(PacketProfile(name="warm-up", kind="packets"), Rate(1000), 0.05)
        generator.run_trial(ConnectionProfile(name="warm-up"), Hold(10, 1000), 0.0)
    finally:
        generator.close()

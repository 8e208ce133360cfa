"""The software traffic generator behind the TrafficGenerator interface; and two DUTs that it serves in turn.

A pair is served by a closed loop in slices, each side with a state and a clock of its own. While one side has its turn,
nothing of the other happens: the kernel function is not in its loop, no link thread hands it frames, and its clock
stands, so no connection of it grows old. What is under way there waits.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ctbench.base.errors import ConfigError, GeneratorError, MissingResource
from ctbench.traffic.generator import HoldingGenerator, PairedGenerator, Profiles, Side, Slice, TrafficGenerator, Trial
from ctbench.traffic.loads import Hold, Load, Rate, Saturation, saturating
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctbench.traffic.software import engine, plan
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.hold import HeldConnections
from ctbench.traffic.software.memif import RingPlan, buffer_bytes, cable
from ctbench.traffic.software.wiring import Wiring

#: What of a slice is not counted: a DUT that was stopped wakes within some milliseconds, what waited in its rings comes
#: out in a burst, and the caches are the other's.
SETTLE_S = 0.0125
#: Each side is served for this long, not counted, before the first slice with a profile: short connections were served
#: some ten times by then. That every flow is known is for the caller to see.
WARM_UP_S = 0.1
#: What tells frames of one trial from another's (9 bits): below the first of these for trials, then for pairs' loops.
_FIRST_OF_PAIRS, _OF_PAIRS = 491, 20


class SoftwareTrafficGenerator(TrafficGenerator, HoldingGenerator, PairedGenerator):
    """Drives two ports, from as many threads as it has CPUs and the DUT has PMD threads.

    Wire it with `connect`, offer with `run_trial`, end with `close`. Wired to a second DUT as well (`side="other"`),
    `run_trial` still offers to the first one alone, and `run_slices` serves both in turn."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its threads may run; empty: one, anywhere."""
        self.cpus = tuple(cpus)
        #: By side: what it is wired to, and that in words. The other side is there in a pair only.
        self._wirings: dict[Side, Wiring] = {}
        self._wired: dict[Side, str] = {}
        #: Of a pair: what it is served with, and the loop of each side.
        self._profiles: Profiles | None = None
        self._loops: dict[Side, engine.Run] = {}
        self._tables = engine.Tables()
        self._trials = self._pairs = 0
        #: Of the last trial.
        self.threads = 1

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
        self.connect(
            lambda: (Wiring(*cable(plan), most_threads=queues), f"cable, {queues} rings of {ring_size} per direction"),
            side,
        )

    @property
    def offers(self) -> frozenset[type[Load]]:
        return frozenset({Rate, Hold, Saturation})

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        if isinstance(load, Hold):
            if isinstance(profile, PacketProfile):
                raise MissingResource(f"Profile {profile.name} is of packets: no connection of it can be held open.")
            with self.hold(profile, load) as held:
                held.open(load.connections)
                time.sleep(duration_s)
                held.ask()
                return held.trial()
        wiring, salt = self._begin()
        started = time.perf_counter()
        timing = plan.timing_of(profile, load, duration_s)
        run = engine.prepare(
            wiring, self._tables, profile, load, timing, salt, times_messages=True, most_threads=len(self.cpus)
        )
        self.threads = len(run.parts)
        run.go_on(wiring, self.cpus, timing.longest_s)
        return engine.trial_of(run, wiring, profile, load, timing, started)

    def hold(self, profile: ConnectionProfile, load: Hold) -> HeldConnections:
        """Until the next trial, which takes its memory."""
        wiring, salt = self._begin()
        return HeldConnections(wiring, self._tables, profile, load, self.cpus, salt)

    def run_slices(
        self, profiles: Profiles, order: Sequence[Side], slice_s: float, turn: Callable[[Side], None]
    ) -> list[Slice]:
        """A new profile has a warm-up first, for which `turn` is called too."""
        if "other" not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a pair of DUTs.")
        if slice_s < 2 * SETTLE_S:
            raise ConfigError(
                f"A slice of {1000 * slice_s:g} ms is not possible: the first {1000 * SETTLE_S:g} ms of each are not"
                f" counted. Expected {2000 * SETTLE_S:g} ms or more."
            )
        try:
            if profiles != self._profiles:
                self.forget()
                self._profiles = profiles
                self._pairs += 1
            for side in dict.fromkeys(order):
                if side not in self._loops:
                    self._begin_pair(side, turn)
            slices = []
            for side in order:
                turn(side)
                slices.append(self._serve(side, slice_s))
        except BaseException:  # broken off in the middle of something
            self.forget()
            raise
        return slices

    def _begin_pair(self, side: Side, turn: Callable[[Side], None]) -> None:
        assert self._profiles is not None, "it was served with some"
        profile = self._profiles[list(self._wirings).index(side)]
        load, salt = saturating(profile), _FIRST_OF_PAIRS + self._pairs % _OF_PAIRS
        timing = replace(plan.timing_of(profile, load, WARM_UP_S), linger_s=0.0)
        # Of many messages, connections that begin at once are in step until they were served some times.
        many = isinstance(profile, ConnectionProfile) and profile.messages > 1
        self._loops[side] = engine.prepare(
            self._wirings[side], engine.Tables(), profile, load, timing, salt, most_threads=len(self.cpus)
        )
        turn(side)
        self._serve(side, max(WARM_UP_S, timing.settle_s) if many else WARM_UP_S)

    def _serve(self, side: Side, seconds: float) -> Slice:
        """Go on with what is under way on a side for so long."""
        run, hertz = self._loops[side], cycles_per_second()
        for part in run.parts:
            part.parameters.settle = int(SETTLE_S * hertz)
            part.parameters.sustain = int((seconds - SETTLE_S) * hertz)
            part.state.looks = part.state.looks_held = 0
        run.go_on(self._wirings[side], self.cpus, seconds)
        run = run.summed()
        counted = run.marks[1] - run.marks[0]
        looks, waited = run.s.looks, run.s.looks_held
        return Slice(
            side=side,
            seconds=(run.s.counted_until - run.s.counted_from) / hertz,
            completed=counted.all_completed,
            lost=max(0, counted.all_failed),  # less than none where some came that were given up
            pause_ms=1000 * run.s.sustain_pause / hertz,
            waited=waited / looks if looks else 0.0,
        )

    def forget(self) -> None:
        self._profiles = None
        self._loops = {}

    def snapshot(self) -> dict[str, object]:
        wired = self._wired.get("tested", "not connected")
        other = {"other_wiring": self._wired["other"]} if "other" in self._wired else {}
        return {"type": "software", "cpus": list(self.cpus), "threads": self.threads, "wiring": wired, **other}

    def disconnect(self) -> None:
        """Let go of the ports, of both sides."""
        for side in [*self._wirings]:
            self.let_go(side)

    def let_go(self, side: Side) -> None:
        self.forget()
        self._wired.pop(side, None)
        if wiring := self._wirings.pop(side, None):
            wiring.close()

    def close(self) -> None:
        self.disconnect()

    def _begin(self) -> tuple[Wiring, int]:
        """What the next trial uses, and what tells its frames from those of others."""
        if "tested" not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self.forget()  # a trial takes what waits on the rings for another one's
        self._trials += 1
        return self._wirings["tested"], 1 + self._trials % (_FIRST_OF_PAIRS - 1)

"""Two DUTs served in turn: a closed loop in slices, each side with a state and a clock of its own.

While one side has its turn, nothing of the other happens: the kernel function is not in its loop, no link thread hands
it frames, and its clock stands, so no connection of it grows old. What is under way there waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ctbench.base.errors import ConfigError
from ctbench.traffic.generator import PairedGenerator, Profiles, Side, Slice
from ctbench.traffic.loads import saturating
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import engine, plan, stream_engine
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.wiring import Wiring

#: What of a slice is not counted: a DUT that was stopped wakes within some milliseconds, what waited in its rings comes
#: out in a burst, and the caches are the other's.
SETTLE_S = 0.0125
#: Each side is served for this long, not counted, before the first slice with a profile: connections are spread over
#: their lives then, and every flow is known.
WARM_UP_S = 0.1

#: What tells frames of one profile from another's (9 bits): none that a trial has (see `generator`).
FIRST_SALT, SALTS = 491, 20


class PairedSlices(PairedGenerator):
    """A generator that is wired to two DUTs."""

    def __init__(self, tested: Wiring, other: Wiring, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where the generator's thread may run; empty: anywhere. The wirings stay whose they are."""
        self._wirings: Mapping[Side, Wiring] = {"tested": tested, "other": other}
        self._cpus = tuple(cpus)
        self._profiles: Profiles | None = None
        self._loops: dict[Side, _Loop] = {}
        self._salt = FIRST_SALT

    def run_slices(
        self, profiles: Profiles, order: Sequence[Side], slice_s: float, turn: Callable[[Side], None]
    ) -> list[Slice]:
        """A new profile has a warm-up first, for which `turn` is called too."""
        if slice_s < 2 * SETTLE_S:
            raise ConfigError(
                f"A slice of {1000 * slice_s:g} ms is not possible: the first {1000 * SETTLE_S:g} ms of each are not"
                f" counted. Expected {2000 * SETTLE_S:g} ms or more."
            )
        try:
            if profiles != self._profiles:
                self._begin(profiles, turn)
            slices = []
            for side in order:
                turn(side)
                slices.append(self._loops[side].serve(side, slice_s, self._cpus))
        except BaseException:  # broken off in the middle of something
            self.forget()
            raise
        return slices

    def _begin(self, profiles: Profiles, turn: Callable[[Side], None]) -> None:
        self._salt = FIRST_SALT + (self._salt + 1 - FIRST_SALT) % SALTS
        offered = zip(self._wirings.items(), profiles, strict=True)
        self._loops = {side: _loop(wiring, profile, self._salt) for (side, wiring), profile in offered}
        for side, loop in self._loops.items():
            turn(side)
            loop.serve(side, max(WARM_UP_S, loop.warm_up_s), self._cpus)
        self._profiles = profiles

    def forget(self) -> None:
        self._profiles = None
        self._loops = {}


@dataclass
class _Loop:
    """A side's closed loop: one of the two kernel functions, and what it works on."""

    wiring: Wiring
    run: engine.Run
    #: How long the profile has to be served before anything counts, seconds.
    warm_up_s: float

    def serve(self, side: Side, seconds: float, cpus: Sequence[int]) -> Slice:
        """Go on with what is under way for so long."""
        run, hertz = self.run, cycles_per_second()
        run.p[lay.SETTLE] = int(SETTLE_S * hertz)
        run.p[lay.SUSTAIN] = int((seconds - SETTLE_S) * hertz)
        looks, waited = int(run.s[lay.LOOKS]), int(run.s[lay.LOOKS_HELD])
        run.go_on(self.wiring, cpus, seconds)
        counted = run.marks[1] - run.marks[0]
        looks, waited = int(run.s[lay.LOOKS]) - looks, int(run.s[lay.LOOKS_HELD]) - waited
        return Slice(
            side=side,
            seconds=int(run.s[lay.COUNTED_UNTIL] - run.s[lay.COUNTED_FROM]) / hertz,
            completed=int(counted[lay.ALL_COMPLETED]),
            lost=max(0, int(counted[lay.ALL_FAILED])),  # less than none where some came that were given up
            pause_ms=1000 * int(run.s[lay.SUSTAIN_PAUSE]) / hertz,
            waited=waited / looks if looks else 0.0,
        )


def _loop(wiring: Wiring, profile: ConnectionProfile | PacketProfile, salt: int) -> _Loop:
    load, tables = saturating(profile), engine.Tables()
    if isinstance(profile, PacketProfile):
        timing = replace(stream_engine.timing_of(profile, load, WARM_UP_S), linger_s=0.0)
        return _Loop(wiring, stream_engine.prepare(wiring, tables, profile, load, timing, salt), timing.settle_s)
    timing = replace(plan.timing_of(profile, load, WARM_UP_S), linger_s=0.0)
    return _Loop(wiring, engine.prepare(wiring, tables, profile, load, timing, salt), timing.settle_s)

"""The generator, which offers loads to one DUT, or serves two DUTs in turn.

A closed loop serves a pair in slices; each side has a state and a clock of its own. During the turn of one side the
other stands still: the kernel does not serve it, no link thread hands it frames, and its clock is stopped, so its
connections do not age. What is under way there waits.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ctgen import engine, plan
from ctgen.clock import cycles_per_second
from ctgen.errors import GeneratorError, Unavailable
from ctgen.hold import HeldConnections
from ctgen.loads import Hold, Load, saturating
from ctgen.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen.trial import Profiles, Side, Slice, Trial
from ctgen.wiring import Link, Wiring

#: What of a slice is not counted: a DUT that was stopped wakes within some milliseconds, what waited in its rings comes
#: out in a burst, and the caches are the other's.
SETTLE_S = 0.0125
#: Each side is served for this long, not counted, before the first slice with a profile: short connections were served
#: some ten times by then. That every flow is known is for the caller to see.
WARM_UP_S = 0.1
#: A DUT that worked off backlogs for less than this, seconds, was not seen to.
_LEAST_WORKED_S = 1e-6
#: What tells frames of one trial from another's (8 bits): below the first of these for trials, then for pairs' loops.
_FIRST_OF_PAIRS, _OF_PAIRS = 235, 20


class Generator:
    """A generator that drives two ports, from at most as many threads as it has CPUs and the DUT has PMD threads.

    `connect` joins it to a DUT, `run_trial` offers a load, `close` ends it. Once it is joined to a second DUT as well
    (`side="other"`), `run_trial` and `hold` offer to the side that `offer_to` names, initially the first one, and
    `run_slices` serves both in turn."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its threads may run; empty: one thread, on any CPU."""
        self.cpus = tuple(cpus)
        #: What each side is wired to. The other side is there in a pair only.
        self._wirings: dict[Side, Wiring] = {}
        self._offers_to: Side = "tested"
        #: Of a pair: what it is served with, whether from backlogs, and the loop of each side.
        self._profiles: Profiles | None = None
        self._backlogs = False
        self._loops: dict[Side, engine.Run] = {}
        self._tables = engine.Tables()
        self._trials = self._pairs = 0
        #: Of the last trial.
        self.threads = 1

    def connect(self, link: Link, side: Side = "tested") -> None:
        """Join the ports as `link` says. `side`: of a pair; the tested side is connected first, and replaces all that
        was connected. Raise `GeneratorError` where the link cannot be made."""
        if side == "tested":
            self.close()
            self._offers_to = "tested"
        elif set(self._wirings) != {"tested"}:
            raise GeneratorError("The other side of a pair is connected once, and after the tested one.")
        self._wirings[side] = link.wire()

    def offer_to(self, side: Side) -> None:
        """Offer trials and held connections to this side of a pair from now on."""
        self._offers_to = side

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        """Ramp up to the steady state, offer `load` (in the profile's unit) for `duration_s`, ramp down, count. Raise
        `GeneratorError` where the generator or a link broke."""
        if isinstance(load, Hold):
            if isinstance(profile, PacketProfile):
                raise Unavailable(f"Profile {profile.name} is of packets: no connection of it can be held open.")
            with self.hold(profile, load) as held:
                held.open(load.connections)
                time.sleep(duration_s)
                held.ask()
                return held.trial()
        wiring, salt = self._begin()
        started = time.perf_counter()
        profile = plan.on_pairs(profile, len(wiring.of.ends))
        timing = plan.timing_of(profile, load, duration_s)
        run = engine.prepare(
            wiring, self._tables, profile, load, timing, salt, times_messages=True, most_threads=len(self.cpus)
        )
        self.threads = len(run.parts)
        run.go_on(wiring, self.cpus, timing.longest_s)
        return engine.trial_of(run, wiring, profile, load, timing, started)

    @contextmanager
    def hold(self, profile: ConnectionProfile, load: Hold) -> Iterator[HeldConnections]:
        """Hold at most `load.connections` connections of a profile; none is opened yet. At the end, open connections
        are not closed: the DUT forgets them."""
        wiring, salt = self._begin()
        self.threads = 1
        yield HeldConnections(wiring, self._tables, profile, load, self.cpus, salt)

    def run_slices(
        self,
        profiles: Profiles,
        order: Sequence[Side],
        slice_s: float,
        turn: Callable[[Side], None],
        *,
        backlogs: bool = False,
    ) -> list[Slice]:
        """Serve the sides in `order`, each with its profile, for `slice_s` each, in a closed loop. `turn` is called
        before each slice, to wake one DUT and stop the other. What is under way on a side waits for its next turn, as
        long as the profiles stay the same. A new profile has a warm-up first, for which `turn` is called too. Raise
        `GeneratorError` where the generator or a link broke.

        `backlogs`, for packets only: instead of a closed loop, show the DUT thousands of packets at once, again and
        again. Only the time counts in which the DUT works them off (kernel/packets.c)."""
        if "other" not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a pair of DUTs.")
        if slice_s < 2 * SETTLE_S:
            raise ValueError(
                f"A slice of {1000 * slice_s:g} ms is not possible: the first {1000 * SETTLE_S:g} ms of each are not"
                f" counted. Expected {2000 * SETTLE_S:g} ms or more."
            )
        try:
            if (profiles, backlogs) != (self._profiles, self._backlogs):
                self.forget()
                self._profiles, self._backlogs = profiles, backlogs
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

    def _profile_of(self, side: Side) -> Profile:
        assert self._profiles is not None, "it was served with some"
        return self._profiles[list(self._wirings).index(side)]

    def _begin_pair(self, side: Side, turn: Callable[[Side], None]) -> None:
        wiring = self._wirings[side]
        profile = plan.on_pairs(self._profile_of(side), len(wiring.of.ends))
        load, salt = saturating(profile), _FIRST_OF_PAIRS + self._pairs % _OF_PAIRS
        timing = replace(plan.timing_of(profile, load, WARM_UP_S), linger_s=0.0)
        # Of many messages, connections that begin at once are in step until they were served some times.
        many = isinstance(profile, ConnectionProfile) and profile.messages > 1
        if self._backlogs:
            assert isinstance(profile, PacketProfile), "connections have no backlog: each packet waits for another one"
            self._loops[side] = engine.prepare_backlogs(wiring, profile, load, timing, salt)
        else:
            self._loops[side] = engine.prepare(
                wiring, engine.Tables(), profile, load, timing, salt, most_threads=len(self.cpus)
            )
        turn(side)
        self._serve(side, max(WARM_UP_S, timing.settle_s) if many else WARM_UP_S)

    def _serve(self, side: Side, seconds: float) -> Slice:
        """Continue a side's loop for `seconds`. Return its slice."""
        run, hertz = self._loops[side], cycles_per_second()
        for part in run.parts:
            part.parameters.settle = int(SETTLE_S * hertz)
            part.parameters.sustain = int((seconds - SETTLE_S) * hertz)
            part.state.looks = part.state.looks_held = 0
        run.go_on(self._wirings[side], self.cpus, seconds)
        run = run.summed()
        counted = run.counted()
        lost = max(0, counted.all_failed)  # less than none where some came that were given up
        if self._backlogs:
            return self._of_backlogs(side, run, lost, seconds)
        looks, waited = run.s.looks, run.s.looks_held
        completed, profile = counted.all_completed, self._profile_of(side)
        if isinstance(profile, ConnectionProfile) and profile.lifetime_s > seconds:
            # In a turn that is shorter than a connection, few end, and in clumps. Its packets are a part of it as well.
            completed = round(sum(counted.rx_packets) / profile.packets_each)
        return Slice(
            side=side,
            seconds=(run.s.counted_until - run.s.counted_from) / hertz,
            completed=completed,
            lost=lost,
            pause_ms=1000 * run.s.sustain_pause / hertz,
            waited=waited / looks if looks else 0.0,
        )

    def _of_backlogs(self, side: Side, run: engine.Run, lost: int, seconds: float) -> Slice:
        """Return a slice of `seconds`, in which only the time counts that the DUT worked. Where it was never seen to
        work, this generator stood still."""
        worked_s = run.s.worked / cycles_per_second()
        if worked_s < _LEAST_WORKED_S:
            return Slice(side=side, seconds=seconds, completed=0, lost=lost, pause_ms=1000 * seconds)
        return Slice(side=side, seconds=worked_s, completed=run.s.worked_off, lost=lost)

    def forget(self) -> None:
        """Forget what is under way on both sides of a pair, after the DUTs' tables were emptied."""
        self._profiles = None
        self._loops = {}

    def snapshot(self) -> dict[str, object]:
        """Return the CPUs, the threads of the last trial, and the wiring of the ports."""
        known = {"type": "software", "cpus": list(self.cpus), "threads": self.threads, "wiring": "not connected"}
        names: dict[Side, str] = {"tested": "wiring", "other": "other_wiring"}
        return known | {names[side]: wiring.said for side, wiring in self._wirings.items()}

    def close(self, side: Side | None = None) -> None:
        """Release the ports of a side, or of all, and forget what is under way. May be called twice; `connect` works
        again afterwards."""
        self.forget()
        for each in [side] if side else [*self._wirings]:
            if wiring := self._wirings.pop(each, None):
                wiring.close()

    def _begin(self) -> tuple[Wiring, int]:
        """Return the wiring for the next trial, and the salt that tells its frames from other trials'."""
        if self._offers_to not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self.forget()  # a trial takes what waits on the rings for another one's
        self._trials += 1
        return self._wirings[self._offers_to], 1 + self._trials % (_FIRST_OF_PAIRS - 1)

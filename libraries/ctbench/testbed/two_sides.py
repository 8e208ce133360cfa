"""The two sides of a comparison: two DUTs side by side, in slices of milliseconds, or one DUT after the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ctbench.base.errors import Crashed, TestbedError
from ctbench.dut.base import Dut, Problem
from ctbench.dut.registry import describe
from ctbench.dut.topology import Topology
from ctbench.results.evidence import SideRecord
from ctbench.traffic.generator import PairedGenerator, Side, Slice, TrafficGenerator
from ctbench.traffic.profiles import PacketProfile, Profile

Answer = TypeVar("Answer")
_EXCHANGED: Mapping[Side, Side] = {"tested": "other", "other": "tested"}
#: Of the flows that came through, the share that has to be in the table then: where filling it takes long, some have
#: expired, and that it takes long is what is looked for.
_LEAST_KNOWN = 0.5
#: Seconds after which a DUT that was paused has caught up, and one whose peer has gone has noticed it.
_CAUGHT_UP_S = 0.02


@dataclass(frozen=True)
class Setup:
    """One side of a pair: its topology, its build and its profile."""

    topology: Topology
    #: Prefix of the installation; empty: the testbed's own.
    build: str = ""
    #: What is offered to it; None: the test's profile.
    profile: Profile | None = None

    def as_record(self, facts: Mapping[str, Any]) -> SideRecord:
        """Return the side for the record. `facts`: the DUT's snapshot; empty where none was taken yet."""
        return SideRecord(
            key=self.topology.key,
            build=self.build,
            product=describe(self.topology.datapath, facts),
            program=str(facts.get("program", "")),
            profile=self.profile.name if self.profile else "",
        )


class SideBySide:
    """Two DUTs on the same CPUs, and a generator that is wired to both and serves them in turn. The side without the
    turn is paused. Between runs of slices, one side has the turn for everything that the generator offers: see
    `turn`."""

    def __init__(
        self,
        duts: Mapping[Side, Dut],
        sides: Mapping[Side, SideRecord],
        generator: PairedGenerator,
        profile: Profile,
        beside: Profile | None = None,
        first: Side = "tested",
    ) -> None:
        """Take two running DUTs. `beside`: the other side's profile, where it is another one. `first`: the side that
        was wired first, which the generator calls `tested`."""
        self._duts = duts
        self._sides = sides
        self._generator = generator
        self._profiles = profile, beside or profile
        one, two = self._profiles
        self._before = _before(one, duts["tested"].learns), _before(two, duts["other"].learns)
        #: Which was wired first, and is the generator's tested side; and whose turn it is outside of slices.
        self.first = self._having = first
        self._wake(first)

    @property
    def tested(self) -> Dut:
        """The DUT of the tested side."""
        return self._duts["tested"]

    def turn(self, side: Side) -> tuple[Dut, TrafficGenerator]:
        """Give a side the turn outside of slices, from now on: it has it again after each run of slices. Return its
        DUT, and the generator, which now offers loads to this DUT."""
        self._having = side
        self._wake(side)
        self._generator.offer_to(self._wired_as(side))
        time.sleep(_CAUGHT_UP_S)
        return self._duts[side], self._generator

    def sides(self) -> Mapping[Side, SideRecord]:
        """Return the records of both sides, with their look-ups since the last flush. A broken DUT has no look-ups."""
        found = dict(self._sides)
        for side, dut in self._duts.items():
            with suppress(TestbedError):  # of one that broke there is more to say than this
                found[side] = found[side].model_copy(update={"look_ups": dut.look_ups()})
        return found

    @property
    def known(self) -> Mapping[Side, int]:
        """Packets after which each side has an entry for every flow of its warm-up; 0 without such flows."""
        flows = (each.flows * each.ways if isinstance(each, PacketProfile) else 0 for each in self._before)
        return dict(zip(_EXCHANGED, flows, strict=True))

    @property
    def differs_in_scale(self) -> bool:
        """True where one side knows more than twice as many flows as the other: one of them may learn the same
        flows both ways."""
        least, most = sorted(self.known.values())
        return most > 2 * least  # one of them may learn the same flows both ways

    @property
    def of_like_code(self) -> bool:
        """True where both sides have the same datapath and ruleset, of one build or of two."""
        tested, other = (Topology.parse(side.key) for side in self._sides.values())
        return (tested.datapath, tested.ruleset) == (other.datapath, other.ruleset)

    @property
    def one_at_a_time(self) -> bool:
        """True where the entries of one side would slow the other: each side is then filled and served alone."""
        return self.differs_in_scale and any(dut.shares_table for dut in self._duts.values())

    def flush(self) -> None:
        """Empty the connection tables of both sides, begin a trial of both DUTs, and forget what is under way."""
        self._named(self._flush)

    def count(self, side: Side) -> None:
        """Read a side's number of entries for the record. Raise `TestbedError` where under half of its flows have an
        entry."""
        entries, profile = self._duts[side].connections(), self._before[side == "other"]
        assert isinstance(profile, PacketProfile), "flows are known"
        if entries < _LEAST_KNOWN * profile.flows:
            key = self._sides[side].key
            raise TestbedError(f"{key} knows {entries} of {profile.flows} flows that came through it.")
        least = min(entries, self._sides[side].entries or entries)
        self._sides = {**self._sides, side: self._sides[side].model_copy(update={"entries": least})}

    def run_slices(
        self, order: Sequence[Side], slice_s: float, *, before: bool = False, backlogs: bool = False
    ) -> list[Slice]:
        """Serve the sides in `order`, `slice_s` seconds each; in `order`, `tested` is the side that was wired first.
        `before`: serve the warm-up's profiles; `backlogs`: serve packets in backlogs, not in a closed loop. Where a DUT
        died, the `TestbedError` names that DUT."""
        profiles = self._before if before else self._profiles
        if self.first == "other":
            profiles = profiles[1], profiles[0]

        def turn(side: Side) -> None:
            self._wake(self._wired_as(side))

        made = self._named(lambda: self._generator.run_slices(profiles, order, slice_s, turn, backlogs=backlogs))
        if self.first == "tested":
            return made
        return [part.model_copy(update={"side": self._wired_as(part.side)}) for part in made]

    def part(self) -> None:
        """Disconnect the generator from both sides, each while it is awake and has caught up. Otherwise a PMD thread
        dies that loses its CPU while it reads the rings of a peer that is gone (memif of DPDK 22.11)."""
        wired: Sequence[Side] = ("tested", "other")
        for side in wired:
            self._wake(self._wired_as(side))
            time.sleep(_CAUGHT_UP_S)
            self._generator.close(side)
            time.sleep(_CAUGHT_UP_S)

    def health(self) -> list[Problem]:
        """Return the problems of both DUTs since the last flush; the text of each names its side."""
        return [
            replace(found, text=f"{self._sides[side].key} ({side}): {found.text}")
            for side, problems in zip(self._duts, at_once(*(dut.health for dut in self._duts.values())), strict=True)
            for found in problems
        ]

    def _wired_as(self, side: Side) -> Side:
        """Translate a side of the test into the generator's name of it, or back."""
        return side if self.first == "tested" else _EXCHANGED[side]

    def _wake(self, side: Side) -> None:
        # In this order, for two that poll on one CPU would take it from each other.
        for each, dut in self._duts.items():
            if each != side:
                dut.pause()
        self._duts[side].resume()

    def _flush(self) -> None:
        at_once(*(partial(_begin_trial_of, dut) for dut in self._duts.values()))
        self._generator.forget()

    def _named(self, ask: Callable[[], Answer]) -> Answer:
        try:
            found = ask()
            self._wake(self._having)
        except TestbedError as error:
            if trouble := trouble_of(self._duts):
                crashed = self.tested.crashed() and not self._duts["other"].trouble()
                raise (Crashed if crashed else TestbedError)(trouble) from error
            raise
        return found


def _begin_trial_of(dut: Dut) -> None:
    dut.flush_state()
    dut.begin_trial()


def _before(profile: Profile, learns: bool) -> Profile:
    """Return the profile of a side's warm-up: sequential flows, and both ways where the DUT learns addresses, as it
    would flood one-way traffic. Of a million flows in random order, both ways, some may never become known: where a
    pass takes longer than an unanswered entry lives (a second), a reply comes too late and is lost, and the flows that
    wait for it make the pass longer."""
    if isinstance(profile, PacketProfile):
        both = {"directions": "both"} if learns and profile.ways == 1 else {}
        return profile.model_copy(update={"flow_order": "sequential"} | both)
    return profile.flows_known if profile.known else profile


class InTurn:
    """Two sides that are set up one after the other, where two DUTs cannot run side by side."""

    def __init__(
        self, setups: Mapping[Side, Setup], why: str, become: Callable[[Setup], tuple[Dut, TrafficGenerator]]
    ) -> None:
        """`why`: the reason why the sides cannot run side by side. `become` sets a side up."""
        self.why = why
        #: What the tested side said of itself when it was set up last.
        self.facts: Mapping[str, Any] = {}
        self._setups = setups
        self._become = become
        self._sides = {side: setup.as_record({}) for side, setup in setups.items()}
        self._now: tuple[Side, Dut, TrafficGenerator] | None = None

    def sides(self) -> Mapping[Side, SideRecord]:
        """Return the records of both sides."""
        return self._sides

    @property
    def has_tested(self) -> bool:
        """True while the tested side is the one that is set up."""
        return self._now is not None and self._now[0] == "tested"

    def turn(self, side: Side) -> tuple[Dut, TrafficGenerator]:
        """Set this side up, unless it is, and return its DUT and the generator. Raise `TestbedError` where the set-up
        fails, `MissingResource` where the testbed lacks what the side needs."""
        if self._now is None or self._now[0] != side:
            self._now = None
            dut, generator = self._become(self._setups[side])
            said = dut.snapshot()
            self._sides[side] = self._setups[side].as_record(said)
            self.facts = said if side == "tested" else self.facts
            self._now = side, dut, generator
        return self._now[1], self._now[2]


def at_once(*tasks: Callable[[], Answer]) -> list[Answer]:
    """Run all tasks, each in a thread of its own, and return their results. Once all have ended, raise the exception of
    the first task that failed. No task may make a sandbox, which would end with its thread."""
    with ThreadPoolExecutor(max(1, len(tasks))) as threads:
        return [task.result() for task in [threads.submit(task) for task in tasks]]


def trouble_of(duts: Mapping[Side, Dut]) -> str:
    """Return the DUTs' trouble, with the side that has it; empty where there is none."""
    found = {side: dut.trouble() for side, dut in duts.items()}
    if len(set(found.values())) == 1:  # what both are in, or nothing
        return found["tested"]
    return " ".join(f"{said.removesuffix('.')} ({side} side)." for side, said in found.items() if said)


def unlike(facts: Mapping[Side, Mapping[str, Any]]) -> str:
    """Return why two DUTs cannot be compared: their snapshots show different kinds of memory. Empty where they can."""
    kinds = {side: known.get("memory", {}).get("kind") for side, known in facts.items()}
    if kinds["tested"] == kinds["other"]:
        return ""
    return (
        f"Of the two side by side, one has {kinds['tested']} and the other {kinds['other']} as its memory: reserve "
        "hugepages for both, or say hugepages: never in the testbed file."
    )

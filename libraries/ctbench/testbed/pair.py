"""Two set-ups of a DUT that are compared: side by side with turns of milliseconds, or one after the other."""

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
    """What a side of a pair is."""

    topology: Topology
    #: Prefix of the installation; empty: the testbed's own.
    build: str = ""
    #: What is offered to it; None: the test's profile.
    profile: Profile | None = None

    def as_record(self, facts: Mapping[str, Any]) -> SideRecord:
        """For the record; `facts`: what the DUT said of itself, nothing where it was not asked yet."""
        return SideRecord(
            key=self.topology.key,
            build=self.build,
            product=describe(self.topology.datapath, facts),
            program=str(facts.get("program", "")),
            profile=self.profile.name if self.profile else "",
        )


class SideBySide:
    """Two DUTs on the same CPUs, and a generator that is wired to both and serves them in turn. Who does not have the
    turn is paused; outside of slices one side has it for all that the generator is asked for: see `turn`."""

    def __init__(
        self,
        duts: Mapping[Side, Dut],
        sides: Mapping[Side, SideRecord],
        generator: PairedGenerator,
        profile: Profile,
        beside: Profile | None = None,
        first: Side = "tested",
    ) -> None:
        """Both run. `beside`: what is offered to the other one, where that is another profile. `first`: which of them
        the generator knows as its tested side."""
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
        """What is tested."""
        return self._duts["tested"]

    def turn(self, side: Side) -> tuple[Dut, TrafficGenerator]:
        """Give a side the turn outside of slices, from now on, with a generator that offers loads to it."""
        self._having = side
        self._wake(side)
        self._generator.offer_to(self._wired_as(side))
        time.sleep(_CAUGHT_UP_S)
        return self._duts[side], self._generator

    def sides(self) -> Mapping[Side, SideRecord]:
        """What the two are, with where each found what to do since its table was emptied."""
        found = dict(self._sides)
        for side, dut in self._duts.items():
            with suppress(TestbedError):  # of one that broke there is more to say than this
                found[side] = found[side].model_copy(update={"look_ups": dut.look_ups()})
        return found

    @property
    def known(self) -> Mapping[Side, int]:
        """Packets after which a side knows every flow that it is to know before it is measured."""
        flows = (each.flows * each.ways if isinstance(each, PacketProfile) else 0 for each in self._before)
        return dict(zip(_EXCHANGED, flows, strict=True))

    @property
    def of_scale(self) -> bool:
        """Whether the two differ in how much they know."""
        least, most = sorted(self.known.values())
        return most > 2 * least  # one of them may learn the same flows both ways

    @property
    def of_like_code(self) -> bool:
        """Whether both do the same to a packet, of one build or of two."""
        tested, other = (Topology.parse(side.key) for side in self._sides.values())
        return (tested.datapath, tested.ruleset) == (other.datapath, other.ruleset)

    @property
    def apart(self) -> bool:
        """Whether what the one knows would slow the other as well: each has its turn alone then."""
        return self.of_scale and any(dut.shares_table for dut in self._duts.values())

    def flush(self) -> None:
        """Empty the connection tables of both."""
        self._named(self._flush)

    def count(self, side: Side) -> None:
        """Ask a side for its entries, for the record. `TestbedError` where it does not know what it is to know."""
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
        """Serve the sides in this order, `slice_s` seconds each; `tested` stands for the one that was wired first.
        `before`: with what they are to know before they are measured; `backlogs`: packets, not in a closed loop.
        `TestbedError` names the DUT that died, and not what noticed it."""
        profiles = self._before if before else self._profiles

        def turn(side: Side) -> None:
            self._wake(self._wired_as(side))

        made = self._named(lambda: self._generator.run_slices(profiles, order, slice_s, turn, backlogs=backlogs))
        if self.first == "tested":
            return made
        return [part.model_copy(update={"side": self._wired_as(part.side)}) for part in made]

    def part(self) -> None:
        """Let the generator go of both, each in its turn and with nothing to catch up: a PMD thread dies that is kept
        from its CPU while it reads the rings of a peer that has gone (memif of DPDK 22.11)."""
        wired: Sequence[Side] = ("tested", "other")
        for side in wired:
            self._wake(self._wired_as(side))
            time.sleep(_CAUGHT_UP_S)
            self._generator.close(side)
            time.sleep(_CAUGHT_UP_S)

    def health(self) -> list[Problem]:
        """What went wrong with either DUT since the last flush; each problem says which of the two it is about."""
        return [
            replace(found, text=f"{self._sides[side].key} ({side}): {found.text}")
            for side, problems in zip(self._duts, at_once(*(dut.health for dut in self._duts.values())), strict=True)
            for found in problems
        ]

    def _wired_as(self, side: Side) -> Side:
        """The side that the generator knows as this one, and the other way round."""
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
    """What a side is served with before it is measured: both ways where it learns addresses, as it would else flood
    what goes one way. A million flows in random order, both ways, may never become known: a reply comes too late where
    a pass takes longer than an entry without one lives (a second), is lost, and what waits for it makes the pass longer
    still."""
    if isinstance(profile, PacketProfile):
        both = {"directions": "both"} if learns and profile.ways == 1 else {}
        return profile.model_copy(update={"flow_order": "sequential"} | both)
    return profile.flows_known if profile.known else profile


class InTurn:
    """One DUT that becomes the one or the other: where two cannot stand side by side."""

    def __init__(
        self, setups: Mapping[Side, Setup], why: str, become: Callable[[Setup], tuple[Dut, TrafficGenerator]]
    ) -> None:
        """`why`: why they do not stand side by side. `become` sets the DUT up."""
        self.why = why
        #: What the tested side said of itself when it was set up last.
        self.facts: Mapping[str, Any] = {}
        self._setups = setups
        self._become = become
        self._sides = {side: setup.as_record({}) for side, setup in setups.items()}
        self._now: tuple[Side, Dut, TrafficGenerator] | None = None

    def sides(self) -> Mapping[Side, SideRecord]:
        """What the two are."""
        return self._sides

    @property
    def has_tested(self) -> bool:
        """Whether the tested side is what stands."""
        return self._now is not None and self._now[0] == "tested"

    def turn(self, side: Side) -> tuple[Dut, TrafficGenerator]:
        """Set the DUT up as this side, where it is not. `TestbedError` where it does not become that, `MissingResource`
        where it cannot."""
        if self._now is None or self._now[0] != side:
            self._now = None
            dut, generator = self._become(self._setups[side])
            said = dut.snapshot()
            self._sides[side] = self._setups[side].as_record(said)
            self.facts = said if side == "tested" else self.facts
            self._now = side, dut, generator
        return self._now[1], self._now[2]


def at_once(*tasks: Callable[[], Answer]) -> list[Answer]:
    """Do all of them, each in a thread of its own. What one raised is raised once all have ended; of several the first.
    None of them may make a sandbox, which would end with its thread."""
    with ThreadPoolExecutor(max(1, len(tasks))) as threads:
        return [task.result() for task in [threads.submit(task) for task in tasks]]


def trouble_of(duts: Mapping[Side, Dut]) -> str:
    """What any of them needs and is gone, and whose that is; empty where nothing is."""
    found = {side: dut.trouble() for side, dut in duts.items()}
    if len(set(found.values())) == 1:  # what both are in, or nothing
        return found["tested"]
    return " ".join(f"{said.removesuffix('.')} ({side} side)." for side, said in found.items() if said)


def unlike(facts: Mapping[Side, Mapping[str, Any]]) -> str:
    """Why two that were set up cannot be compared, by what they said of themselves; empty where they can."""
    kinds = {side: known.get("memory", {}).get("kind") for side, known in facts.items()}
    if kinds["tested"] == kinds["other"]:
        return ""
    return (
        f"Of the two side by side, one has {kinds['tested']} and the other {kinds['other']} as its memory: reserve "
        "hugepages for both, or say hugepages: never in the testbed file."
    )

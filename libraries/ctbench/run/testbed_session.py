"""The testbed during a run: set up for each test, replaced where it broke. Also what later tests begin with, the
generator's ceilings and capacities; and the lines that a run shows while it works."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError, reraise_stop, sentence_of
from ctbench.dut.base import Dut
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import tracks
from ctbench.dut.topology import Topology
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Look, Outcome
from ctbench.measure.procedures.rates import ClosedLoop, HighestRate
from ctbench.report import console
from ctbench.results import store
from ctbench.results.metrics import RATE_OF
from ctbench.run.measurement import Measurement
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup
from ctbench.traffic.generator import Side, TrafficGenerator
from ctbench.traffic.loads import Saturation
from ctbench.traffic.profiles import Profile

Say = Callable[[str], None]


class Progress:
    """The progress of a run, shown as it goes on."""

    def __init__(self, say: Say) -> None:
        """`say` takes lines to show."""
        self.say = say
        #: Seconds that the procedures of the test that runs will probably take, that which runs first; and since when.
        self._to_come: list[float] = []
        self._begun = time.monotonic()
        self._headed: Measurement | None = None

    def expect(self, seconds: Iterable[float]) -> None:
        """Set the seconds that each procedure of the test that begins will probably take; none at its end."""
        self._to_come = [0.0, *seconds]

    def next_procedure(self) -> None:
        """Move on to the test's next procedure, which begins or is left out."""
        self._to_come = self._to_come[1:]
        self._begun = time.monotonic()

    def takes(self, seconds: float) -> None:
        """Set the seconds that the running procedure will probably take, now that its DUT is set up."""
        self._to_come[:1] = [seconds]

    def heading(self, test: Measurement, version: Callable[[], str]) -> None:
        """Show the test and its DUT, once."""
        if self._headed is test:
            return
        self._headed = test
        self.say(console.heading(test.name.test, test.topology.key, version()))
        if test.plan.promise.about != "cost":  # which makes no trials
            self.say(console.trial_heading(test.profile.kind))

    def trial(self, seen: Observation, of: str = "") -> None:
        """Show a trial that has ended. `of`: whose it is, in the place of its number."""
        self.say(console.trial_line(of or str(seen.number), seen.as_record(), self._left_s()))

    def look(self, look: Look) -> None:
        """Show a look at the rounds of a pair."""
        self.say(console.look_line(look, self._left_s()))

    def _left_s(self) -> float:
        """Return the seconds that the test will probably still take."""
        if not self._to_come:
            return 0.0
        now, *then = self._to_come
        return max(0.0, now - (time.monotonic() - self._begun)) + sum(then)


#: How often a ceiling is measured at most in one run: a pause of the machine may spoil one.
TRIES = 2


class TestbedSession:
    """A testbed during one run. It notes in the test what it replaced."""

    def __init__(self, testbed: Testbed, output: Path, progress: Progress) -> None:
        """`output` takes what a DUT says of its failure."""
        self.testbed = testbed
        self._output = output
        self._progress = progress
        #: What the generator reaches over a cable, by profile, in its unit per second, and how often that was measured.
        self._ceilings: dict[str, float] = {}
        self._tries: Counter[str] = Counter()
        #: Capacities by what they are likely to be found again with.
        self._capacities: dict[tuple[str, str, str], float] = {}

    def set_up(self, test: Measurement, other: Setup | None = None, first: Side | None = None) -> None:
        """Set up the DUT of the test, as a pair with the `other` one if given, and show its name. `first`: set up both
        again, and wire this one first. A test that counts instructions needs no DUT here."""
        if test.plan.promise.about != "cost":
            self._apply(test.topology, test, other, first)
        self._progress.heading(test, lambda: self._version(test))

    def set_base_up(self, test: Measurement, base: Setup) -> tuple[Dut, TrafficGenerator]:
        """Set up the `base` of the test's candidate. Returns it, with a generator that offers loads to it."""
        self._apply(test.topology, test, base, "other")
        sides = self.testbed.side_by_side or self.testbed.in_turn
        assert sides, "two builds are compared"
        return sides.turn("other")

    def _apply(
        self, topology: Topology, test: Measurement, other: Setup | None = None, first: Side | None = None
    ) -> None:
        """Set up `topology`, on a fresh DUT where the present one is broken."""
        if replaced := self.testbed.replace_broken(topology):
            test.notes.append(f"Before it was set up for this test, a fresh DUT was needed: {replaced}")
            self._progress.say(f"  a fresh DUT is needed: {replaced}")
        try:
            if other is None:
                self.testbed.apply(topology, test.profile)
            else:
                self.testbed.apply_pair(Setup(topology), other, test.profile, first)
        except TestbedError as error:
            beside = f" next to {other.topology.key}" if other else ""
            raise type(error)(f"{topology.key} could not be set up{beside}: {error}") from error

    def _version(self, test: Measurement) -> str:
        """Return the version of the DUT: of Open vSwitch, or of the kernel."""
        measured = (
            self.testbed.dut if test.plan.promise.about != "cost" else self.testbed.counter(test.topology.datapath)
        )
        facts = measured.snapshot()
        return str(facts.get("version") or facts.get("kernel") or "")

    def capture(self, test: Measurement) -> None:
        """Keep what the DUT says of its failure, before it is discarded. An error in this becomes a note of the
        test."""
        try:
            if texts := self.testbed.capture():
                test.capture = store.write_capture(texts, self._output, store.slug(test.name.suite, test.name.test))
        except Exception as error:
            reraise_stop(error)
            test.notes.append(f"What the DUT says of its failure is not kept: {sentence_of(error, self._output)}")

    def begin_afresh(self) -> None:
        """Discard generator and DUTs, broken or not, and show what could not be put back."""
        for complaint in self.testbed.discard():
            self._progress.say(f"  while the DUT was taken down: {complaint}")

    def learn(self, test: Measurement) -> None:
        """Keep a capacity that a test found: over a cable as the generator's ceiling, else for hints. Where the
        generator was the limit, the DUT holds at least this."""
        found, topology, profile = test.outcome, test.topology, test.profile
        rate = found.result.value if found and found.result else 0.0
        if found is None or not rate or found.limited_by == "floor" or found.metric is not RATE_OF[profile.kind]:
            return
        if topology.datapath == CABLE.datapath:
            self._ceilings[profile.name] = rate
        else:
            self._capacities |= dict.fromkeys(_alike(topology, profile), rate)

    def hint(self, topology: Topology, profile: Profile) -> float | None:
        """Return the load at which a search may begin: the capacity found so far of the topology most like this one."""
        return next((self._capacities[key] for key in _alike(topology, profile) if key in self._capacities), None)

    def ceiling(self, test: Measurement) -> float | None:
        """Return what the generator reaches over a cable with the profile of a test. It is measured once per run, and
        once more where that found nothing, or less than the floor asks for. None, with a note, where no measurement
        found one, or where nothing joins the generator's ports to each other, as in a lab. Raises `TestbedError` where
        generator or cable broke."""
        name = test.profile.name
        known = self._ceilings.get(name)
        if known is not None and known >= test.floor.load(0.0):
            return known
        if self._tries[name] >= TRIES:
            if known is None:
                test.notes.append(f"The generator's ceiling is not known: {TRIES} measurements of it found nothing.")
            return known
        self._tries[name] += 1
        try:
            found = self._measure_ceiling(test)
        except MissingResource as error:
            test.notes.append(note := f"The generator's ceiling is not known: {error}")
            self._progress.say(f"    {note}")
            return None
        if found.limited_by == "fault":
            raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
        if found.result:
            self._ceilings[name] = max(known or 0.0, found.result.value)
        elif known is None:
            test.notes.append(f"The generator's ceiling is not known: {found.reason}")
        return self._ceilings.get(name)

    def _measure_ceiling(self, test: Measurement) -> Outcome:
        """Measure one closed loop over a cable; a search where the generator has no closed loop."""
        self._progress.say(f"  the generator's ceiling with {test.profile.name}, over a cable:")
        self._apply(CABLE, test)
        campaign = test.campaign
        nothing = replace(test.floor, thresholds={})
        bench = Bench(self.testbed.dut, self.testbed.generator, nothing, campaign, on_trial=self._progress.trial)
        if Saturation in self.testbed.offers:
            return ClosedLoop(campaign.saturation_for(test.profile), of_generator=True).run(bench)
        return HighestRate(campaign.search_for(test.profile, closed_loop=False)).run(bench)


def _alike(topology: Topology, profile: Profile) -> list[tuple[str, str, str]]:
    """Return the keys of a capacity, the most alike first: those of the same ruleset, then of any ruleset. For
    connections only a topology that tracks them has the second: tracking changes their rate so much that the floor says
    more."""
    anything = profile.kind == "packets" or tracks(topology)
    same = (topology.datapath, topology.ruleset, profile.name)
    return [same, (topology.datapath, "*", profile.name)] if anything else [same]

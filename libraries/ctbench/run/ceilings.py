"""What the traffic generator reaches over a cable, by profile: measured once per run."""

from collections import Counter

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.cable import CABLE
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.procedures.saturation import ClosedLoop
from ctbench.run.measurement import Measurement
from ctbench.run.standing import Standing
from ctbench.run.telling import Telling
from ctbench.traffic.loads import Saturation
from ctbench.traffic.profiles import Profile

#: How often a ceiling is measured at most in one run: a pause of the machine may spoil one.
TRIES = 2


class Ceilings:
    """The ceilings that are known, in the profiles' units per second."""

    def __init__(self, standing: Standing, telling: Telling) -> None:
        self._standing = standing
        self._telling = telling
        self._known: dict[str, float] = {}
        self._tries: Counter[str] = Counter()

    def learn(self, profile: Profile, rate: float) -> None:
        """What a test of the cable itself found."""
        self._known[profile.name] = rate

    def find(self, now: Measurement, campaign: Campaign) -> float | None:
        """The ceiling for the test `now`; None where nothing joins the generator's ports to each other, as in a lab,
        and the record notes that. `TestbedError` where it cannot be measured."""
        try:
            return self._find(now, campaign)
        except MissingResource as error:
            now.unknown_ceiling = str(error)
            return None

    def _find(self, now: Measurement, campaign: Campaign) -> float:
        """Measured where it is not known, and once more where it is below what the floor asks for."""
        name = now.profile.name
        known = self._known.get(name)
        if known is None or (known < now.floor.load(0.0) and self._tries[name] < TRIES):
            self._tries[name] += 1
            found = self._measure_twice(now, campaign)
            if found.limited_by == "fault":
                raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
            self._known[name] = max(known or 0.0, found.result.value if found.result else 0.0)
        return self._known[name]

    def _measure_twice(self, now: Measurement, campaign: Campaign) -> Outcome:
        """Measure; once more where something breaks."""
        self._telling.say(f"  the generator's ceiling with {now.profile.name}, over a cable:")
        try:
            found = self._measure(now, campaign)
            broke = found.reason if found.limited_by == "fault" else ""
        except TestbedError as error:
            broke = str(error)
        if not broke:
            return found
        now.mishaps.append(f"The generator's ceiling was measured once more, over a fresh cable: {broke}")
        self._telling.say(f"  once more: {broke}")
        self._standing.begin_afresh()
        return self._measure(now, campaign)

    def _measure(self, now: Measurement, campaign: Campaign) -> Outcome:
        """One trial of a closed loop; a search where the generator has none."""
        self._standing.set_up(CABLE, now)
        testbed, profile = self._standing.testbed, now.profile
        bench = Bench(
            testbed.dut, testbed.generator, profile, campaign.loss_limit, campaign, on_trial=self._telling.trial
        )
        if Saturation in testbed.offers:
            return ClosedLoop(campaign.saturation_for(profile), of_generator=True).run(bench)
        return HighestRate(campaign.ceiling).run(bench)

"""What the traffic generator reaches over a cable, by profile: once per run."""

from collections import Counter
from collections.abc import Callable

from ctbench.base.errors import TestbedError
from ctbench.measure.procedure import Outcome
from ctbench.traffic.profiles import Profile

#: How often a ceiling is measured at most in one run: a pause of the machine may spoil one.
TRIES = 2


class Ceilings:
    """The ceilings that are known, in the profiles' units per second."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._tries: Counter[str] = Counter()

    def learn(self, profile: Profile, rate: float) -> None:
        """What a test of the cable itself found."""
        self._known[profile.name] = rate

    def find(self, profile: Profile, floor_load: float, measure: Callable[[], Outcome]) -> float:
        """The ceiling, measured where it is not known, and once more where it is below what the floor asks for.
        `TestbedError` where it cannot be."""
        known = self._known.get(profile.name)
        if known is None or (known < floor_load and self._tries[profile.name] < TRIES):
            self._tries[profile.name] += 1
            found = measure()
            if found.limited_by == "fault":
                raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
            self._known[profile.name] = max(known or 0.0, found.result.value if found.result else 0.0)
        return self._known[profile.name]

"""The campaign: how long and how often. Read from variables/campaigns/*.yaml."""

from typing import Literal, Self, TypeVar

from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError
from ctbench.base.quantities import Load, LossRatio, Pause, Ratio, TrialDuration, Width
from ctbench.base.spelling import did_you_mean
from ctbench.base.units import format_count, format_duration
from ctbench.base.yaml_files import Name, YamlModel
from ctbench.traffic.profiles import PacketProfile, Profile

#: The ends of a range that is searched are at least so far apart, as a factor: farther than any width (below 100%),
#: or there would be nothing to try.
_LEAST_RANGE = 2
#: Every flow is sent once before a trial counts: a load that needs longer for that is a mistake in the file.
_LONGEST_FIRST_PASS_S = 1800


class Bisection(YamlModel):
    """How the capacity is searched."""

    #: Length of the sustain phase of a trial.
    trial_duration: TrialDuration
    #: The next load: halfway between the bounds (as in 2022), or their geometric mean, which suits a wide range.
    middle: Literal["arithmetic", "geometric"] = "geometric"
    #: `max` tries the upper end of the range first: one trial is enough when the DUT holds it.
    start: Literal["middle", "max"] = "middle"
    #: Trials at most until the bounds are believed to be near enough.
    max_iterations: int = Field(ge=1, le=64)
    #: Stop when the bounds are this near to each other, relative to the lower one. None: all iterations, as in 2022.
    relative_width: Width | None = None
    #: Try the lowest load that failed a second time, so that one disturbed trial does not decide the result.
    recheck: bool = False
    #: Length of the trial that confirms the result. None: no such trial, as in 2022.
    final_duration: TrialDuration | None = None
    #: How many more trials the confirmation may take: once more at the same load, then each a width lower.
    final_retries: int = Field(3, ge=0, le=10)


class Mlr(YamlModel):
    """How the capacity is searched with MLRsearch (RFC 9971)."""

    #: Length of the trials that bring the search near the capacity.
    trial_duration: TrialDuration
    #: Length of the trials that the bounds stand on in the end.
    final_duration: TrialDuration
    #: Stop when the bounds are this near to each other, relative to the lower one.
    relative_width: Width
    #: Steps from the first bounds to the last ones, each with longer trials and half as wide.
    preceding_targets: int = Field(1, ge=1, le=8)
    #: Two trials have to fail before a load counts as too high, so that one disturbed trial does not decide the result.
    recheck: bool = True
    #: Trials at most until the bounds are believed to be near enough.
    max_iterations: int = Field(64, ge=1, le=999)


class GateSettings(YamlModel):
    """How the gate tries the floor. Two of three trials decide (research: 100 % right where one trial is 94 %)."""

    trial_duration: TrialDuration
    #: Offer this much more than the floor: what a permitted loss and the packets in flight at the end of
    #: a trial take away must not push the measured rate below the floor.
    headroom: Ratio
    #: Trials at most, those that the generator spoilt included.
    max_trials: int = Field(5, ge=3, le=9)


class LoadRange(YamlModel):
    """Where the search looks for a profile, and what differs from the campaign's settings there."""

    #: Connections or packets per second, as the profile counts.
    min: Load
    max: Load
    trial_duration: TrialDuration | None = None
    final_duration: TrialDuration | None = None
    relative_width: Width | None = None
    max_iterations: int | None = Field(None, ge=1, le=64)
    #: false: no trial of the bisection confirms the result, whose trials are long enough here.
    confirm: bool = True
    #: How the generator's ceiling is searched with this profile.
    ceiling: Bisection | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min >= self.max:
            raise ValueError(f"min: {self.min:g} is not below max: {self.max:g}.\n  Expected min < max.")
        if self.max < self.min * _LEAST_RANGE:
            raise ValueError(
                f"min: {self.min:g} is too near to max: {self.max:g}.\n"
                f"  Expected max to be {_LEAST_RANGE} times min or more: nothing is searched between them."
            )
        return self

    def up_to(self, most: float | None) -> Self:
        """This range, or what of it is not above `most`: at least a tenth of that is searched."""
        if most is None or most >= self.max:
            return self
        return self.model_copy(update={"max": most, "min": min(self.min, most / 10)})


Search = TypeVar("Search", bound=YamlModel)


def _with(settings: Search, own: LoadRange) -> Search:
    """The settings of a search, with what a range has of its own."""
    update = own.model_dump(include=set(type(settings).model_fields), exclude_none=True)
    return settings.model_copy(update=update if own.confirm else update | {"final_duration": None})


class Campaign(YamlModel):
    """How long and how often a test measures."""

    name: Name
    #: One sentence for the report, deviations from the RFCs included.
    description: str
    #: `mlr` (MLRsearch) and `bisection` find the capacity, `gate` only tries the floor.
    search: Literal["mlr", "bisection", "gate"]
    #: Loss ratio up to which a trial is good, for tests whose floor names none.
    loss_ratio: LossRatio
    #: Pause between the flush of the DUT's state and a trial.
    settle: Pause = 0.0
    #: How often the whole search is done; the median capacity is the result.
    repetitions: int = Field(1, ge=1, le=99)
    #: How far the capacities of the repetitions may be apart, relative to their median: beyond it nothing was measured.
    #: None: as far as they like.
    max_spread: Width | None = None
    #: What is sampled in every trial of a test: `table_entries`, ten times a second. It costs CPU time.
    probes: list[Literal["table_entries"]] = Field(default_factory=list)
    #: Profiles that replace others here: `{long-lived: long-lived-short}`.
    profiles: dict[str, Name] = Field(default_factory=dict)
    mlr: Mlr | None = None
    bisection: Bisection | None = None
    gate: GateSettings | None = None
    #: How the generator's ceiling is searched over the cable.
    ceiling: Bisection
    #: By the profile's name, or by its kind (`connections`, `packets`) for all that are not named.
    loads: dict[str, LoadRange]

    #: No load above this, by kind of profile (`connections`, `packets`): a testbed whose generator is slow adds it.
    most: dict[str, Load] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_what_it_searches_with(self) -> Self:
        if getattr(self, self.search) is None:
            raise ValueError(f"{self.search}: is missing.\n  Expected it, because search is {self.search}.")
        if self.search == "gate" and self.repetitions > 1:
            raise ValueError(f"repetitions: {self.repetitions} is not for a gate.\n  Expected 1, or no such key.")
        if self.max_spread is not None and self.repetitions == 1:
            raise ValueError(
                f"max_spread: {self.max_spread * 100:g}% is for several repetitions.\n"
                "  Expected repetitions of 2 or more."
            )
        return self

    @model_validator(mode="after")
    def _confirms_where_it_must(self) -> Self:
        for name, own in self.loads.items():
            if not own.confirm and self.search != "bisection":
                raise ValueError(
                    f"loads.{name}.confirm: false is for the bisection, and search is {self.search}.\n"
                    "  Expected no such key."
                )
        return self

    @model_validator(mode="after")
    def _trials_grow(self) -> Self:
        if self.search != "mlr" or self.mlr is None:
            return self
        for key, settings in {
            "": self.mlr,
            **{f"loads.{name}.": _with(self.mlr, own) for name, own in self.loads.items()},
        }.items():
            if settings.final_duration < settings.trial_duration:
                raise ValueError(
                    f"{key}trial_duration: {settings.trial_duration:g} s is longer than final_duration: "
                    f"{settings.final_duration:g} s.\n  Expected trials that grow, or two of the same length."
                )
        return self

    @property
    def _source(self) -> str:
        return self.file or f"campaign {self.name}"

    def profile_for(self, profile: str) -> str:
        """Name of the profile that is really offered where a test asks for `profile`."""
        return self.profiles.get(profile, profile)

    def load_range(self, profile: Profile) -> LoadRange:
        """Where to search for a profile; `ConfigError` names the key to add."""
        found = self.loads.get(profile.name) or self.loads.get(profile.kind)
        if found is None:
            raise ConfigError(
                f"{self._source}: loads.{profile.name}: is missing.\n  Expected the range to search, for example "
                f"{{min: 1k, max: 100k}}, here or under {profile.kind}.{did_you_mean(profile.name, list(self.loads))}"
            )
        span = found.up_to(self.most.get(profile.kind))
        if isinstance(profile, PacketProfile):
            self._check_first_pass(profile, span)
        return span

    def _check_first_pass(self, profile: PacketProfile, span: LoadRange) -> None:
        packets = profile.flows * (2 if profile.directions == "both" else 1)
        if packets / span.min > _LONGEST_FIRST_PASS_S:
            raise ConfigError(
                f"{self._source}: loads.{profile.name}.min: at {format_count(span.min)} packets/s a trial begins after "
                f"{format_duration(packets / span.min)}, when each of the {profile.flows} flows was sent once.\n"
                f"  Expected a min of {format_count(packets / 60)} or so, or a profile with fewer flows."
            )

    def search_for(self, profile: Profile) -> Bisection | Mlr:
        """Search settings for a profile: the campaign's, with what `loads` has for this profile. A gate has no search
        of its own, so there those of the ceiling serve."""
        settings = self.mlr if self.search == "mlr" else self.bisection
        if settings is None:
            return self.ceiling_for(profile)
        return _with(settings, self.load_range(profile))

    def ceiling_for(self, profile: Profile) -> Bisection:
        """Search settings for the generator's ceiling with a profile."""
        return self.load_range(profile).ceiling or self.ceiling

    def gate_settings(self) -> GateSettings:
        """Settings of the gate; `ConfigError` when the campaign has none."""
        if self.gate is None:
            raise ConfigError(f"{self._source}: gate: is missing.\n  Expected it here.")
        return self.gate

"""The campaign: lengths, numbers and loads of trials, read from variables/campaigns/*.yaml."""

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError, NightlyOnly
from ctbench.base.quantities import Budget, Connections, Load, LossRatio, Pause, Ratio, TrialDuration, Width
from ctbench.base.units import did_you_mean, format_count, format_duration
from ctbench.base.yaml_files import Name, YamlModel
from ctbench.results.metrics import LOSS_OF
from ctbench.traffic.profiles import PacketProfile, Profile

#: Seconds within which every flow of a load comes again: Open vSwitch forgets one after 10 s (`max-idle`), and looks at
#: the least of them for longer than that.
_EACH_WITHIN_S = 4.0


class ControlPlaneSettings(YamlModel):
    """Settings of control-plane measurements: the load alone first, then with the control plane at work."""

    #: Length of the trial in which the control plane works, and of the one before it with the load alone.
    trial_duration: TrialDuration = 4.0
    alone_duration: TrialDuration = 2.0
    #: What is offered, in the profile's unit per second. It is well below any capacity, so that the load by itself
    #: loses nothing, and low enough for half of a CPU that the generator shares with the control plane.
    connections: Load = 10_000
    packets: Load = 20_000

    def rate(self, profile: Profile) -> float:
        """Return the load of a profile, in its unit per second: with very many flows, enough to keep each alive."""
        if not isinstance(profile, PacketProfile):
            return self.connections
        return max(self.packets, profile.flows * profile.ways / _EACH_WITHIN_S)


class TableTrials(YamlModel):
    """Settings of table measurements: connections are opened, held and left to expire."""

    #: Connections opened per second at most: a rate that every DUT keeps. Only so many are under way that no ring
    #: overflows, so a slower DUT sets its own.
    opened_per_s: Load = 100_000.0
    #: How long they stay open with nothing sent, before each is asked something.
    hold: Pause = 1.0
    #: So many are tried to be held, where a floor promises fewer; None: as many as it promises.
    connections: Connections | None = None
    #: So many are left to expire.
    drained: Connections = 50_000.0
    #: Trials of the search for the highest sustained rate, and one at its floor where none held; of candidates from 4.
    sustained: int = Field(0, ge=0, le=9)
    #: Connections per second at which the table settles, one after the other.
    steady: list[Load] = Field(default_factory=lambda: [5_000.0], min_length=1)


#: The ends of a range that is searched are at least so far apart, as a factor: farther than any width (below 100%),
#: or there would be nothing to try.
_LEAST_RANGE = 2
#: Every flow is sent once before a trial counts: a load that needs longer for that is a mistake in the file.
_LONGEST_FIRST_PASS_S = 1800

#: Share of the saturation rate.
FirstShare = Annotated[Ratio, Field(ge=0.5, lt=1)]


class Bisection(YamlModel):
    """Settings of a capacity search by bisection of the load range."""

    #: Length of the sustain phase of a trial.
    trial_duration: TrialDuration
    #: The next load: halfway between the bounds (as in 2022), or their geometric mean, which suits a wide range.
    middle: Literal["arithmetic", "geometric"] = "geometric"
    #: Trials at most until the bounds are believed to be near enough.
    max_iterations: int = Field(ge=1, le=64)
    #: Stop when the bounds are this near to each other, relative to the lower one. None: all iterations, as in 2022.
    relative_width: Width | None = None

    @property
    def final_duration(self) -> float:
        """Length of the trials that the result stands on, seconds: a bisection has trials of one length."""
        return self.trial_duration


class Mlr(YamlModel):
    """Settings of a capacity search with MLRsearch (RFC 9971)."""

    #: Length of the trials that bring the search near the capacity.
    trial_duration: TrialDuration
    #: Length of the trials that the bounds stand on in the end.
    final_duration: TrialDuration
    #: Seconds of full-length trials that classify a load; half of it may be bad. None: two trials, the goal that RFC
    #: 9971 calls equivalent to TST009.
    duration_sum: TrialDuration | None = None
    #: Stop when the bounds are this near to each other, relative to the lower one.
    relative_width: Width
    #: Trials at most until the bounds are believed to be near enough.
    max_iterations: int = Field(64, ge=1, le=999)

    @property
    def classified_by_s(self) -> float:
        """Seconds of full-length trials that classify a load."""
        return self.duration_sum or 2 * self.final_duration


class SaturationSettings(YamlModel):
    """Settings of the closed loop that measures the saturation rate, and of the capacity search below that rate."""

    #: Length of the closed loop's sustain phase.
    trial_duration: TrialDuration = 0.5
    #: Length of the trials with an open loop that the capacity stands on.
    final_duration: TrialDuration = 1.0
    #: Share of the saturation rate that is offered first. Each step down is twice as far as the one before.
    first: FirstShare = 0.92
    #: Trials with an open loop at most.
    max_trials: int = Field(5, ge=1, le=9)


class GateSettings(YamlModel):
    """Settings of the sequential test that tries a promised rate (`ctbench.measure.sequential`)."""

    trial_duration: TrialDuration
    #: Offer so much more than the floor that a permitted loss and the packets in flight at the end of a trial do not
    #: push the measured rate below it.
    headroom: Ratio = 0.01


#: How a campaign without a search of its own searches what has to be searched all the same.
_UNSAID = Mlr.model_construct(trial_duration=1.0, final_duration=1.0, relative_width=0.1, max_iterations=12)

#: How a capacity is searched.
SearchSettings = Bisection | Mlr | SaturationSettings


class LoadRange(YamlModel):
    """The load range of a profile's search, and the settings that replace the campaign's for that profile."""

    #: Connections or packets per second, as the profile counts.
    min: Load
    max: Load
    trial_duration: TrialDuration | None = None
    final_duration: TrialDuration | None = None
    relative_width: Width | None = None
    max_iterations: int | None = Field(None, ge=1, le=64)
    #: Of a search that begins with a closed loop: see `SaturationSettings.first`.
    first: FirstShare | None = None

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
        """Return the range cut off at `most`. Its lower end is then a tenth of `most` or less."""
        if most is None or most >= self.max:
            return self
        return self.model_copy(update={"max": most, "min": min(self.min, most / 10)})


Settings = TypeVar("Settings", bound=YamlModel)


def _with(settings: Settings, own: LoadRange, *, without: str = "") -> Settings:
    """Return search settings with the values that a load range sets itself, except for the key `without`."""
    known = set(type(settings).model_fields) - {without}
    return settings.model_copy(update=own.model_dump(include=known, exclude_none=True))


class Campaign(YamlModel):
    """A campaign: the search of a test, and the lengths and numbers of its trials."""

    name: Name
    #: One sentence for the report, deviations from the RFCs included.
    description: str
    #: `mlr` (MLRsearch), `bisection` and `saturation` (a little below what a closed loop shows) find the capacity,
    #: `gate` only tries the floor. With `saturation`, a generator without a closed loop uses MLRsearch.
    search: Literal["mlr", "bisection", "saturation", "gate"]
    #: Loss ratio up to which a trial is good, for tests whose floor names none.
    loss_ratio: LossRatio
    #: What is counted for it, and for a floor's own `loss_ratio`, with a connection profile: connections that failed,
    #: of which one lost packet is enough; or packets, as in the 2022 article.
    loss_unit: Literal["connections", "packets"] = "connections"
    #: Loss ratio of the partial drop rate (PDR): the search looks for it in the same run as for the rate up to
    #: `loss_ratio`. 0%: for that alone.
    partial_drop: LossRatio = 0.0
    #: Pause between the flush of the DUT's state and a trial.
    settle: Pause = 0.0
    #: How often the whole search is done; the median capacity is the result.
    repetitions: int = Field(1, ge=1, le=99)
    #: How long invalid trials may be made again, their pauses included, and pairs be looked at a third and a fourth
    #: time, in all tests of a run together.
    repeating: Budget = 1800.0
    #: How far the capacities of the repetitions may be apart, relative to their median: beyond it nothing was measured.
    #: None: as far as they like.
    max_spread: Width | None = None
    #: Tags of tests that are left to a campaign with more time: they are skipped, unless `--include` names the tag.
    skips: list[Name] = Field(default_factory=list)
    #: Profiles that replace others here: `{long-lived: long-lived-short}`.
    profiles: dict[str, Name] = Field(default_factory=dict)
    mlr: Mlr | None = None
    bisection: Bisection | None = None
    #: The closed loop that every test begins with, where the generator has one.
    saturation: SaturationSettings = SaturationSettings()
    #: How floors are tried; None: with trials as long as the final ones of the search.
    gate: GateSettings | None = None
    #: How often a candidate and its base are set up at most, for one row, or in a lab its blocks of searches. Most rows
    #: are decided by four.
    starts: int = Field(16, ge=4, le=64, multiple_of=2)
    #: How long rows that so many starts leave open are started further, up to four times as often, in all tests of a
    #: run together; blocks are not.
    more_starts: Budget = 300.0
    #: Shares of what is held at which a test of a rate then times packets, connections and replies, in trials as long
    #: as those at a floor; none: only half, where an SLA promises something of it.
    latency: list[Annotated[Ratio, Field(gt=0, lt=1)]] = Field(default_factory=list)
    #: The load under which the control plane works.
    control_plane: ControlPlaneSettings = ControlPlaneSettings()
    #: How many connections are held, and how.
    table: TableTrials = TableTrials()
    #: Of a profile that says how many connections are open at once, so many: a small machine takes a share of them.
    scale: Annotated[Ratio, Field(gt=0)] = 1.0
    #: By the profile's name, or by its kind (`connections`, `packets`) for all that are not named.
    loads: dict[str, LoadRange]

    #: No load above this, by kind of profile (`connections`, `packets`): a testbed whose generator is slow adds it.
    most: dict[str, Load] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_what_it_searches_with(self) -> Self:
        needed = "mlr" if self.search == "saturation" else self.search
        if getattr(self, needed) is None:
            why = ", for generators without a closed loop" if self.search == "saturation" else ""
            raise ValueError(f"{needed}: is missing.\n  Expected it, because search is {self.search}{why}.")
        if self.partial_drop and (self.search != "mlr" or self.partial_drop <= self.loss_ratio):
            raise ValueError(
                f"partial_drop: {self.partial_drop * 100:g}% is not for this search.\n"
                "  Expected search: mlr, and more than loss_ratio."
            )
        if self.search == "gate" and self.repetitions > 1:
            raise ValueError(
                f"repetitions: {self.repetitions} is not for a {self.search}.\n  Expected 1, or no such key."
            )
        if self.max_spread is not None and self.repetitions == 1:
            raise ValueError(
                f"max_spread: {self.max_spread * 100:g}% is for several repetitions.\n"
                "  Expected repetitions of 2 or more."
            )
        return self

    @model_validator(mode="after")
    def _trials_grow(self) -> Self:
        if self.mlr is None:
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
            if settings.classified_by_s < settings.final_duration:
                raise ValueError(
                    f"mlr.duration_sum: {settings.classified_by_s:g} s is shorter than {key}final_duration: "
                    f"{settings.final_duration:g} s.\n  Expected one such trial or more."
                )
        return self

    @property
    def _source(self) -> str:
        return self.file or f"campaign {self.name}"

    def limited_to(self, most: Mapping[str, float]) -> Self:
        """Return the campaign with its loads capped, per second, by kind of profile. `opened` caps the rate at which
        connections that stay open are opened."""
        opened_per_s = min(self.table.opened_per_s, most.get("opened", math.inf))
        table = self.table.model_copy(update={"opened_per_s": opened_per_s})
        kinds = {kind: load for kind, load in most.items() if kind not in ("opened", "held")}
        return self.model_copy(update={"most": {**self.most, **kinds}, "table": table})

    def profile_for(self, profile: str) -> str:
        """Return the name of the profile that this campaign offers where a test asks for `profile`."""
        return self.profiles.get(profile, profile)

    def scaled(self, profile: Profile) -> Profile:
        """Return a profile with its connections open at once multiplied by `scale`, others unchanged."""
        if isinstance(profile, PacketProfile) or profile.open_at_once is None:
            return profile
        return profile.model_copy(update={"open_at_once": max(1, round(self.scale * profile.open_at_once))})

    def require_time_for(self, tags: Collection[str]) -> None:
        """Raise `NightlyOnly` for a test with a tag that this campaign skips."""
        if skipped := next((tag for tag in self.skips if tag in tags), ""):
            raise NightlyOnly(
                f"Campaign {self.name} skips tests tagged {skipped} (skips): run them with test_lists/nightly.args, "
                f"with another campaign, such as tables, or name the tag: --include {skipped}."
            )

    @property
    def loss_limit(self) -> dict[str, float]:
        """The highest loss ratio of a good trial, by the metric of `loss_unit`."""
        return {LOSS_OF[self.loss_unit].name: self.loss_ratio}

    def load_range(self, profile: Profile) -> LoadRange:
        """Return the load range to search for a profile. `ConfigError` names a key that is missing or unusable."""
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
        packets = profile.flows * profile.ways
        if packets / span.min > _LONGEST_FIRST_PASS_S:
            raise ConfigError(
                f"{self._source}: loads.{profile.name}.min: at {format_count(span.min)} packets/s a trial begins after "
                f"{format_duration(packets / span.min)}, when each of the {profile.flows} flows was sent once.\n"
                f"  Expected a min of {format_count(packets / 60)} or so, or a profile with fewer flows."
            )

    def search_for(self, profile: Profile, *, closed_loop: bool = True) -> SearchSettings:
        """Return the search settings for a profile, with the values that its range in `loads` sets. `closed_loop`:
        whether the generator offers a closed loop."""
        own = self.load_range(profile)
        if self.search == "bisection" and self.bisection is not None:
            return _with(self.bisection, own)
        if closed_loop and self.search in ("saturation", "gate"):
            return self.saturation_for(profile)
        return _with(self.mlr or _UNSAID, own)

    def saturation_for(self, profile: Profile) -> SaturationSettings:
        """Return the settings of a profile's closed loop and of the search below its rate."""
        return _with(self.saturation, self.load_range(profile), without="trial_duration")

    def floor_trials(self, profile: Profile) -> GateSettings:
        """Return the settings of trials at a floor for a profile."""
        if self.gate is not None:
            return self.gate
        return GateSettings.model_construct(trial_duration=self.search_for(profile).final_duration)

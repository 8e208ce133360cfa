"""What is known of the test that is measured, as it becomes known: whatever ends it, this much is in its record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome, Procedure
from ctbench.measure.trial import Step, series_of
from ctbench.results import thrown_away
from ctbench.results.environment import CampaignFacts, Environment
from ctbench.results.evidence import Evidence, TrialRecord
from ctbench.results.metrics import Metric
from ctbench.results.record import LimitedBy, PoolMember, Record
from ctbench.run import feasibility
from ctbench.run.choice import Plan
from ctbench.sla.floor import Floor
from ctbench.sla.verdict import Verdict
from ctbench.traffic.profiles import ConnectionProfile, Profile


@dataclass(frozen=True)
class TestName:
    """Which test a measurement belongs to."""

    __test__ = False  # not a pytest class

    suite: str
    test: str
    tags: tuple[str, ...] = ()


@dataclass
class Measurement:
    """What is known of the test that runs."""

    name: TestName
    topology: Topology
    profile: Profile
    floor: Floor
    plan: Plan
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: The trials at the topology as they were made.
    steps: list[Step] = field(default_factory=list)
    #: None as long as the trials did not come to one.
    outcome: Outcome | None = None
    ceiling: float | None = None
    #: What ends the range of the search early.
    bounds: list[feasibility.Bound] = field(default_factory=list)
    #: Why the ceiling is not known; empty where it is.
    unknown_ceiling: str = ""
    #: What broke and was replaced, and did not end the measurement.
    mishaps: list[str] = field(default_factory=list)
    #: Share of the connections that its profile has open at once.
    scale: float = 1.0
    #: Whether its heading was shown.
    shown: bool = False
    #: Folder of what the DUT said of its failure.
    capture: str | None = None

    @property
    def procedure(self) -> Procedure:
        """What the record is called after."""
        return self.plan.named_after(self.floor)

    def add(self, found: Outcome) -> None:
        """One procedure more has ended."""
        self.outcome = self.outcome.merged(found) if self.outcome else found

    def knows(self, metric: Metric) -> bool:
        """Whether a figure was found already."""
        return self.outcome is not None and metric.name in self.outcome.figures

    @property
    def broken(self) -> bool:
        """Whether one of its procedures came to a fault, so that no other follows."""
        return self.outcome is not None and self.outcome.limited_by == "fault"

    @property
    def broke_off(self) -> bool:
        """Whether something broke, so that DUT and generator cannot be trusted any more."""
        return self.outcome is None or self.outcome.limited_by == "fault"

    def record(
        self,
        verdict: Verdict,
        *,
        run_id: str,
        campaign: CampaignFacts,
        environment: Environment,
        pool: PoolMember | None,
        oversubscribed: bool,
    ) -> Record:
        """The record of it, with all trials that were made."""
        found = self.outcome
        limited_by: LimitedBy = found.limited_by if found else "fault"
        steps: Sequence[Step] = found.steps if found else self.steps
        trials = [step.as_record() for step in steps]
        ended = datetime.now(UTC)
        return Record(
            tool_version=__version__,
            run_id=run_id,
            suite=self.name.suite,
            test=self.name.test,
            tags=list(self.name.tags),
            started=self.started,
            ended=ended,
            wall_s=(ended - self.started).total_seconds(),
            traffic_s=sum(step.observation.trial.counted_s for step in steps),
            topology=self.topology,
            profile=self.profile,
            campaign=campaign,
            procedure=self.procedure.name,
            metric=self.procedure.metric(self.profile).name,
            figures=dict(found.figures) if found else {},
            limited_by=limited_by,
            thresholds=list(verdict.thresholds),
            floor=self.floor.as_record(),
            verdict=verdict.word,
            verdict_reason=verdict.reason,
            margin_pct=verdict.margin_pct,
            evidence=Evidence(
                trials=trials,
                series=series_of(steps),
                upper_bound=found.upper_bound if found else None,
                ceiling=self.ceiling,
                pairs=list(found.pairs) if found else [],
                counts=list(found.counts) if found else [],
                control=list(found.control) if found else [],
                profiles=list(found.profiles) if found else [],
                table=list(found.table) if found else [],
                goal=found.goal if found else None,
            ),
            environment=environment,
            capture=self.capture,
            pool=pool,
            notes=self._notes(trials, oversubscribed=oversubscribed),
        )

    def _notes(self, trials: Sequence[TrialRecord], *, oversubscribed: bool) -> list[str]:
        notes = [*self.floor.notes, *([said] if (said := thrown_away.note(trials)) else [])]
        if self.floor.derivation:
            notes.append(f"{self.profile.description} Its floor follows {self.floor.derivation}.".strip())
        if oversubscribed:
            notes.append("Threads share CPUs: what this test shows is that the topology works, not how fast it is.")
        if isinstance(self.profile, ConnectionProfile) and self.profile.open_at_once:
            notes.append(f"Scaled by {self.scale:g}: {self.profile.open_at_once} connections are open at once.")
        if self.unknown_ceiling:
            notes.append(f"The generator's ceiling is not known: {self.unknown_ceiling}")
        found = self.outcome.result if self.outcome else None
        return notes + self.mishaps + feasibility.notes(self.bounds, found.value if found else None)

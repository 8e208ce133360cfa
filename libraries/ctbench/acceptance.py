"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ctbench import __version__
from ctbench.config import load
from ctbench.dut.base import Topology
from ctbench.dut.cable import CABLE
from ctbench.errors import TestbedError
from ctbench.measure.campaign import Campaign
from ctbench.measure.gate import GateResult, gate
from ctbench.measure.search import SearchResult, repeat, search
from ctbench.measure.trial import Limits, OnTrial, Step, TrialRunner
from ctbench.report import console
from ctbench.results import store
from ctbench.results.record import Environment, LimitedBy, Record
from ctbench.sla.floors import Floor, Floors, topology_key
from ctbench.sla.verdict import Verdict, judge
from ctbench.testbed import Testbed
from ctbench.testbed_config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile

#: A search tries the floor and this much more, never the bare floor.
FLOOR_HEADROOM = 0.01

Say = Callable[[str], None]
Result = SearchResult | GateResult


@dataclass(frozen=True)
class Settings:
    """What a run was asked for: the testbed, the campaign, the floors."""

    testbed: TestbedConfig
    campaign: Campaign
    floors: Floors

    @classmethod
    def load(cls, testbed: str = "local", campaign: str = "quick", sla: str = "local") -> "Settings":
        """Read the three files, by name below variables/ or by path. `ConfigError` says what is wrong with one."""
        return cls(
            load("testbeds", testbed, TestbedConfig),
            load("campaigns", campaign, Campaign),
            load("sla", sla, Floors),
        )


@dataclass(frozen=True)
class TestName:
    """Which test a measurement belongs to."""

    __test__ = False  # not a pytest class

    suite: str
    test: str
    tags: tuple[str, ...] = ()


@dataclass
class _Measurement:
    """What is known of the test that runs."""

    name: TestName
    topology: Topology
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    profile: ConnectionProfile | None = None
    floor: Floor | None = None
    result: Result | None = None
    ceiling: float | None = None


class AcceptanceRun:
    """Keeps what belongs to one run: the testbed, the ceilings of the generator, the records."""

    def __init__(self, settings: Settings, output: Path, say: Say = print) -> None:
        """Nothing is started yet. Records and logs go below `output`; `say` takes lines for the console."""
        self.settings = settings
        self.output = output
        self.testbed = Testbed(settings.testbed, output)
        self.run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self.records: list[Record] = []
        self._say = say
        self._ceilings: dict[str, float] = {}
        #: Capacity of each datapath, ruleset and profile: where the search of the next topology begins.
        self._hints: dict[tuple[str, str, str], float] = {}

    def measure(self, name: TestName, topology: Topology, profile_name: str) -> Record:
        """Set the DUT up, measure, judge, write the record.

        `profile_name` may be replaced by the campaign's stand-in. Raises `ConfigError` for a missing floor or range,
        `MissingResource` where the testbed lacks what the topology needs; then nothing was measured and no record is
        written. A testbed that breaks is a record: *not measured*.
        """
        campaign = self.settings.campaign
        profile = load("profiles", campaign.profile_for(profile_name), ConnectionProfile)
        floor = self.settings.floors.find(topology, profile)
        now = _Measurement(name, topology, profile=profile, floor=floor)
        try:
            if topology.datapath != CABLE.datapath:
                now.ceiling = self._ceiling(profile)
            self.testbed.apply(topology, profile)
            self._say(console.heading(name.test, topology_key(topology), str(self._dut_facts().get("version", ""))))
            self._say(console.trial_heading())
            now.result = self._search(topology, profile, floor, self._tell)
            if topology.datapath == CABLE.datapath and isinstance(now.result, SearchResult):
                self._ceilings[profile.name] = now.result.capacity
            verdict = judge(now.result, floor, now.ceiling, oversubscribed=self.settings.testbed.oversubscribe)
        except TestbedError as error:
            verdict = Verdict("not measured", str(error), None, ())
        record = self._record(now, verdict)
        store.write(record, self.output)
        self.records.append(record)
        self._say(console.verdict_line(record))
        return record

    def summary(self) -> str:
        """The table of what was measured so far."""
        return console.summary(self.records)

    def close(self) -> None:
        """Leave nothing behind. May be called twice."""
        self.testbed.close()

    def _search(self, topology: Topology, profile: ConnectionProfile, floor: Floor, on_trial: OnTrial) -> Result:
        campaign, cable = self.settings.campaign, topology.datapath == CABLE.datapath
        runner = TrialRunner(
            self.testbed.dut, self.testbed.generator, profile, floor.limits(campaign.loss_ratio), campaign.settle
        )
        if campaign.search == "gate" and not cable:
            settings = campaign.gate_settings()
            return gate(runner, floor.gate_load(profile, settings.headroom), settings, on_trial)
        span = campaign.load_range(profile.name)
        bisection = campaign.ceiling if cable else campaign.bisection_for(profile.name)
        like = (topology.datapath, topology.ruleset, profile.name)
        # A little above the floor, so that packets in flight at the end of a trial do not decide.
        floor_load = floor.gate_load(profile, FLOOR_HEADROOM)
        hint = None if cable else self._hints.get(like, floor_load)
        found = repeat(
            1 if cable else campaign.repetitions,
            lambda: search(runner, span.min, span.max, bisection, on_trial, hint=hint, landmark=floor_load),
        )
        if found.capacity:
            self._hints[like] = found.capacity
        return found

    def _ceiling(self, profile: ConnectionProfile) -> float:
        """The generator's capacity over the cable with this profile, measured once per run."""
        if profile.name not in self._ceilings:
            self._say(f"  the generator's ceiling with {profile.name}, over a cable, once per run:")
            self.testbed.apply(CABLE, profile)
            campaign = self.settings.campaign
            runner = TrialRunner(
                self.testbed.dut, self.testbed.generator, profile, Limits(campaign.loss_ratio), campaign.settle
            )
            span = campaign.load_range(profile.name)
            found = search(runner, span.min, span.max, campaign.ceiling, self._tell)
            if found.limited_by == "fault":
                raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
            self._ceilings[profile.name] = found.capacity
        return self._ceilings[profile.name]

    def _tell(self, step: Step) -> None:
        self._say(console.trial_line(step.number, step.as_record(), step.left_s))

    def _dut_facts(self) -> dict[str, object]:
        return self.testbed.dut.snapshot()

    def _record(self, now: _Measurement, verdict: Verdict) -> Record:
        assert now.profile and now.floor
        steps = now.result.steps if now.result else ()
        found = now.result if isinstance(now.result, SearchResult) else None
        limited_by: LimitedBy = now.result.limited_by if now.result else "fault"
        return Record(
            tool_version=__version__,
            run_id=self.run_id,
            suite=now.name.suite,
            test=now.name.test,
            tags=list(now.name.tags),
            started=now.started,
            ended=datetime.now(UTC),
            wall_s=(datetime.now(UTC) - now.started).total_seconds(),
            traffic_s=sum(step.observation.trial.duration_s for step in steps),
            topology=now.topology,
            profile=now.profile,
            campaign=self.settings.campaign.model_dump(mode="json"),
            floors=now.floor.as_record(),
            thresholds=list(verdict.thresholds),
            measured=now.result.measured if now.result else None,
            limited_by=limited_by,
            capacities=list(found.capacities) if found else [],
            upper_bound_cps=found.upper if found else None,
            verdict=verdict.word,
            verdict_reason=verdict.reason,
            margin_pct=verdict.margin_pct,
            ceiling=now.ceiling,
            trials=[step.as_record() for step in steps],
            environment=Environment(**self.testbed.facts()),
            notes=self._notes(now),
        )

    def _notes(self, now: _Measurement) -> list[str]:
        assert now.profile and now.floor
        notes = []
        if now.floor.derivation:
            notes.append(f"{now.profile.description} Its floor follows {now.floor.derivation}.".strip())
        if self.settings.testbed.oversubscribe:
            notes.append("Threads share CPUs: what this test shows is that the topology works, not how fast it is.")
        return notes

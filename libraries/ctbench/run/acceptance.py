"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import tracks
from ctbench.dut.topology import Topology
from ctbench.measure.expected import Expected, expected
from ctbench.measure.gate import gate
from ctbench.measure.repetition import repeat
from ctbench.measure.result import SearchResult
from ctbench.measure.search import search
from ctbench.measure.trial import Limits, OnTrial, Step, TrialRunner
from ctbench.report import console
from ctbench.results import store
from ctbench.results.record import Baseline, Environment, Record, TrialRecord
from ctbench.run import feasibility
from ctbench.run.measurement import Measurement, Result, TestName
from ctbench.run.pool_member import PoolRun, new_run_id
from ctbench.run.settings import RunSettings
from ctbench.sla.verdict import Verdict, judge
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import Profile, load_profile

#: A search tries the floor and this much more, never the bare floor.
FLOOR_HEADROOM = 0.01
#: How often a ceiling or a baseline is measured at most in one run: a pause of the machine may spoil one.
TRIES = 2

Say = Callable[[str], None]


class AcceptanceRun:
    """Keeps what belongs to one run: the testbed, the ceilings of the generator, the baselines, the records."""

    def __init__(self, settings: RunSettings, output: Path, say: Say = print, pool: PoolRun | None = None) -> None:
        """Nothing is started yet. `output` gets logs, and records unless `pool` does; `say` takes lines to show."""
        most = settings.campaign.most | settings.testbed.generator.most
        self.settings = replace(settings, campaign=settings.campaign.model_copy(update={"most": most}))
        self.output, self.run_id = (pool.output, pool.run_id) if pool else (output, new_run_id())
        self.testbed = Testbed(settings.testbed, output)
        self._member = pool.member if pool else None
        self.records: list[Record] = []
        self._say = say
        self._ceilings: dict[str, float] = {}
        #: What relative floors compare with, by topology and profile.
        self._baselines: dict[tuple[Topology, str], Baseline] = {}
        self._tries: Counter[tuple[Topology, str]] = Counter()
        #: Capacities found so far, by what they are likely to be found again with (`_alike`).
        self._hints: dict[tuple[str, str, str], float] = {}
        #: All trials, those of ceilings and comparisons too.
        self._trials: list[TrialRecord] = []
        #: What the test that runs measures after the search that runs.
        self._to_come: list[Expected] = []

    def profile(self, name: str) -> Profile:
        """The profile that is offered where a test asks for `name`: it, or the campaign's stand-in."""
        return load_profile(self.settings.campaign.profile_for(name))

    def measure(self, name: TestName, topology: Topology, profile_name: str) -> Record:
        """Set the DUT up, measure, judge, write the record.

        `profile_name` may be replaced by the campaign's stand-in. Raises `ConfigError` for a missing floor or range
        and for files that contradict each other, `MissingResource` where the testbed lacks what the topology or its
        floor needs; then nothing was measured and no record is written. Whatever breaks is a record: *not measured*,
        with the trials made until then, and the next test gets a fresh DUT. Raises `OutputError` where the record
        cannot be written.
        """
        profile = self.profile(profile_name)
        now = Measurement(name, topology, profile, self.settings.floor(topology, profile))
        if self.settings.reference:
            self.settings.reference.check(self.settings.testbed.name, self.testbed.machine.as_record())
        try:
            verdict = self._measure(now)
        except Exception as error:
            reraise_stop(error)
            if isinstance(error, (ConfigError, MissingResource)):
                raise
            verdict = Verdict("not measured", sentence_of(error, self.output), None, ())
        try:
            record = self._record(now, verdict)
            # Shown first: a disk that takes no record is no reason not to say what it would hold.
            self.records.append(record)
            self._say(console.verdict_line(record))
            store.write(record, self.output)
        finally:
            if now.broke_off:
                self._begin_afresh()
        return record

    def _measure(self, now: Measurement) -> Verdict:
        """Measure and judge; what becomes known on the way is in `now`."""
        topology, profile, shared = now.topology, now.profile, self.settings.testbed.oversubscribe
        if topology.datapath != CABLE.datapath:
            case = feasibility.Case(self.settings.testbed, self.settings.campaign, topology, profile, now.floor)
            now.bounds = feasibility.check(case, self.testbed.placement(topology))
            self._to_come = self._expected(now)
            now.ceiling = self._ceiling_or_none(now)
            self._to_come = self._to_come[-1:]
            now.baseline = None if shared else self._baseline(now)
        self._apply(topology, now)
        self._say(console.heading(now.name.test, topology.key, self._version()))
        self._say(console.trial_heading(now.floor.unit))
        now.result = self._search(now, lambda step: self._keep(step, now))
        self._remember(now)
        return judge(
            now.result, now.floor, now.ceiling, now.baseline, oversubscribed=shared,
            max_spread=self.settings.campaign.max_spread,
        )  # fmt: skip

    def summary(self) -> str:
        """The table of what was measured so far."""
        return console.summary(self.records, self._trials)

    def close(self) -> None:
        """Leave nothing behind. May be called twice."""
        self.testbed.close()

    def _apply(self, topology: Topology, now: Measurement) -> None:
        """Set `topology` up for the test `now`; on a fresh DUT, which is said, where the one that stands is broken."""
        if replaced := self.testbed.replace_broken(topology):
            now.mishaps.append(f"Before it was set up for this test, a fresh DUT was needed: {replaced}")
            self._say(f"  a fresh DUT is needed: {replaced}")
        try:
            self.testbed.apply(topology, now.profile)
        except TestbedError as error:
            raise TestbedError(f"{topology.key} could not be set up: {error}") from error

    def _begin_afresh(self) -> None:
        """Let go of whatever broke, and say what could not be put back."""
        for complaint in self.testbed.discard():
            self._say(f"  while the DUT was taken down: {complaint}")

    def _keep(self, step: Step, now: Measurement) -> None:
        now.steps.append(step)
        self._tell(step)

    def _runner(self, profile: Profile, limits: Limits) -> TrialRunner:
        return TrialRunner(self.testbed.dut, self.testbed.generator, profile, limits, self.settings.campaign.settle)

    def _search(self, now: Measurement, on_trial: OnTrial) -> Result:
        campaign, cable = self.settings.campaign, now.topology.datapath == CABLE.datapath
        profile, floor = now.profile, now.floor
        runner = self._runner(profile, floor.limits(campaign.loss_ratio))
        base = now.baseline.rate if now.baseline else None
        self._to_come = []
        if campaign.search == "gate" and not cable:
            settings = campaign.gate_settings()
            return gate(runner, floor.gate_load(profile, settings.headroom, base), settings, on_trial)
        span = campaign.load_range(profile)
        how = campaign.ceiling_for(profile) if cable else campaign.search_for(profile)
        # A little above the floor, so that packets in flight at the end of a trial do not decide.
        floor_load = floor.gate_load(profile, FLOOR_HEADROOM, base)
        hint = None if cable else self._hint(now.topology, profile) or floor_load
        times = 1 if cable else campaign.repetitions
        self._to_come = [expected(how, span)] * times

        def once(last: float | None) -> SearchResult:
            self._to_come.pop()
            return search(runner, span.min, span.max, how, on_trial, hint=last or hint, floor_load=floor_load)

        return repeat(times, once)

    def _expected(self, now: Measurement) -> list[Expected]:
        """What a test measures after the generator's ceiling: what it is compared with, and itself."""
        campaign, relative = self.settings.campaign, now.floor.relative
        span, how = campaign.load_range(now.profile), campaign.search_for(now.profile)
        own = expected(campaign.gate_settings() if campaign.search == "gate" else how, span)
        whole = Expected(own.trials * campaign.repetitions, own.traffic_s * campaign.repetitions)
        if relative is None or (Topology.parse(relative.to), now.profile.name) in self._baselines:
            return [whole]
        return [expected(how, span), whole]

    def _ceiling_or_none(self, now: Measurement) -> float | None:
        """The ceiling; None where nothing joins the generator's ports to each other, as in a lab, and the record notes
        that."""
        try:
            return self._ceiling(now)
        except MissingResource as error:
            now.unknown_ceiling = str(error)
            return None

    def _ceiling(self, now: Measurement) -> float:
        """The generator's capacity over the cable with this profile, measured once per run, and once more where it
        is below the floor."""
        profile = now.profile
        asked = (CABLE, profile.name)
        known = self._ceilings.get(profile.name)
        if known is None or (known < now.floor.rate.limit and self._tries[asked] < TRIES):
            self._tries[asked] += 1
            self._say(f"  the generator's ceiling with {profile.name}, over a cable:")
            found = self._twice(lambda: self._measure_ceiling(now), now)
            if found.limited_by == "fault":
                raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
            self._ceilings[profile.name] = max(known or 0.0, found.capacity)
        return self._ceilings[profile.name]

    def _measure_ceiling(self, now: Measurement) -> SearchResult:
        self._apply(CABLE, now)
        campaign, profile = self.settings.campaign, now.profile
        runner, span = self._runner(profile, Limits(campaign.loss_ratio)), campaign.load_range(profile)
        return search(runner, span.min, span.max, campaign.ceiling_for(profile), self._tell)

    def _baseline(self, now: Measurement) -> Baseline | None:
        """What a relative floor compares with: what a test of this run found, else measured for it once per run."""
        if now.floor.relative is None:
            return None
        other = Topology.parse(now.floor.relative.to)
        asked = (other, now.profile.name)
        known = self._baselines.get(asked)
        # Where something broke, or the generator was the limit, the next test tries once more.
        if known is None or (known.doubt and self._tries[asked] < TRIES):
            self._tries[asked] += 1
            self._say(f"  {other.key} with {now.profile.name}, to compare with:")
            self._baselines[asked] = self._measure_baseline(other, now)
        return self._baselines[asked]

    def _measure_baseline(self, other: Topology, now: Measurement) -> Baseline:
        """The capacity of another topology with the profile and the loss limit of this test."""
        key = other.key
        try:
            found = self._twice(lambda: self._search_baseline(other, now), now)
        except MissingResource as error:
            self._tries[other, now.profile.name] = TRIES  # it would be missing again
            return Baseline(key=key, rate=None, doubt=str(error))
        except TestbedError as error:
            self._begin_afresh()
            return Baseline(key=key, rate=None, doubt=str(error))
        if found.limited_by == "fault":
            self._begin_afresh()
        if found.limited_by == "fault" or not found.capacity:
            return Baseline(key=key, rate=None, doubt=found.reason)
        self._learn(other, now.profile, found)
        return Baseline(key=key, rate=found.capacity, doubt="" if found.limited_by == "dut" else found.reason)

    def _search_baseline(self, other: Topology, now: Measurement) -> SearchResult:
        """A gate has no search of its own, so there the settings of the ceiling serve."""
        campaign, profile = self.settings.campaign, now.profile
        span = campaign.load_range(profile)
        self._apply(other, now)
        runner = self._runner(profile, Limits(now.floor.limits(campaign.loss_ratio).loss_ratio))
        hint = self._hint(other, profile) or now.floor.gate_load(profile, FLOOR_HEADROOM)
        return search(runner, span.min, span.max, campaign.search_for(profile), self._tell, hint=hint)

    def _twice(self, measure: Callable[[], SearchResult], now: Measurement) -> SearchResult:
        """Measure what the test needs beside itself; once more on a fresh DUT where something breaks."""
        try:
            found = measure()
            broke = found.reason if found.limited_by == "fault" else ""
        except TestbedError as error:
            broke = str(error)
        if not broke:
            return found
        now.mishaps.append(f"What it is compared with was measured once more, on a fresh DUT: {broke}")
        self._say(f"  once more, on a fresh DUT: {broke}")
        self._begin_afresh()
        return measure()

    def _remember(self, now: Measurement) -> None:
        """Keep what later tests begin with or compare with: a capacity that the DUT limited, nothing less certain."""
        found = now.result
        if not isinstance(found, SearchResult) or not found.capacity:
            return
        if now.topology.datapath == CABLE.datapath:
            self._ceilings[now.profile.name] = found.capacity
            return
        self._learn(now.topology, now.profile, found)
        if found.limited_by == "dut":
            key = now.topology.key
            self._baselines[now.topology, now.profile.name] = Baseline(key=key, rate=found.capacity)

    def _learn(self, topology: Topology, profile: Profile, found: SearchResult) -> None:
        """Let later searches begin here. Where the generator was the limit, the DUT holds at least this."""
        self._hints |= dict.fromkeys(_alike(topology, profile), found.capacity)

    def _hint(self, topology: Topology, profile: Profile) -> float | None:
        """The capacity of the topology found so far that is most like this one."""
        return next((self._hints[key] for key in _alike(topology, profile) if key in self._hints), None)

    def _tell(self, step: Step) -> None:
        made = step.as_record()
        self._trials.append(made)
        overhead_s = max(0.0, made.trial.wall_s - made.trial.duration_s)
        left = step.left_s + sum(each.seconds(overhead_s) for each in self._to_come)
        self._say(console.trial_line(step.number, made, left))

    def _version(self) -> str:
        """The version of the DUT: of Open vSwitch, or of the kernel."""
        facts = self.testbed.dut.snapshot()
        return str(facts.get("version") or facts.get("kernel") or "")

    def _record(self, now: Measurement, verdict: Verdict) -> Record:
        return now.record(
            verdict,
            run_id=self.run_id,
            campaign=self.settings.campaign.model_dump(mode="json"),
            environment=Environment(**self.testbed.facts()),
            pool=self._member,
            oversubscribed=self.settings.testbed.oversubscribe,
        )


def _alike(topology: Topology, profile: Profile) -> list[tuple[str, str, str]]:
    """What a capacity is likely to be found again with, the likelier first: the same work, then another ruleset. Of
    connections, one that tracks them if this one does: what tracking makes of them is so far off that the floor says
    more."""
    anything = profile.kind == "packets" or tracks(topology)
    same = (topology.datapath, topology.ruleset, profile.name)
    return [same, (topology.datapath, "*", profile.name)] if anything else [same]

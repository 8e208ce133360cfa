"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import abilities
from ctbench.dut.topology import Topology
from ctbench.measure.expected import Expected
from ctbench.measure.probe import Probe, TableEntries
from ctbench.measure.procedure import Bench, Outcome, require
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.trial import Step
from ctbench.report import console
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, MachineFacts
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Baseline, Record, TrialRecord
from ctbench.run import feasibility
from ctbench.run.choice import RATE, choose
from ctbench.run.environment import environment_of
from ctbench.run.hints import Hints
from ctbench.run.measurement import Measurement, TestName
from ctbench.run.pool_member import PoolRun, new_run_id
from ctbench.run.settings import RunSettings
from ctbench.sla.verdict import Verdict, judge
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import Profile, load_profile

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
        self._hints = Hints()
        #: All trials, those of ceilings and comparisons too.
        self._trials: list[TrialRecord] = []
        #: What the test that runs measures after the search that runs.
        self._to_come: list[Expected] = []

    def profile(self, name: str) -> Profile:
        """The profile that is offered where a test asks for `name`: it, or the campaign's substitute."""
        return load_profile(self.settings.campaign.profile_for(name))

    def measure(self, name: TestName, topology: Topology, profile_name: str, what: str = RATE) -> Record:
        """Set the DUT up, measure, judge, write the record. `what`: see `ctbench.run.choice`.

        `profile_name` may be replaced by the campaign's substitute. Raises `ConfigError` for a missing floor or range
        and for files that contradict each other, `MissingResource` where the testbed lacks what the topology or its
        floor needs; then nothing was measured and no record is written. Whatever breaks is a record: *not measured*,
        with the trials made until then, and the next test gets a fresh DUT. Raises `OutputError` where the record
        cannot be written.
        """
        profile = self.profile(profile_name)
        procedure = choose(what, self.settings.campaign, topology, profile)
        now = Measurement(name, topology, profile, self.settings.floor(topology, profile, procedure), procedure)
        if self.settings.reference:
            self.settings.reference.check(self.settings.testbed.name, MachineFacts(**self.testbed.machine.as_record()))
        try:
            verdict = self._measure(now)
        except Exception as error:
            reraise_stop(error)
            if isinstance(error, (ConfigError, MissingResource)):
                raise
            verdict = Verdict.not_measured(sentence_of(error, self.output), now.floor)
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
        require(now.procedure, self.testbed.generator.offers, abilities(topology.datapath))
        if topology.datapath != CABLE.datapath:
            case = feasibility.Case(self.settings.testbed, self.settings.campaign, topology, profile, now.floor)
            now.bounds = feasibility.check(case, self.testbed.placement(topology))
            self._to_come = self._expected(now)
            # Of what is no rate, a generator over a cable says nothing.
            now.ceiling = self._ceiling_or_none(now) if now.floor.metric is RATE_OF[profile.kind] else None
            self._to_come = self._to_come[-1:]
            now.baseline = None if shared else self._baseline(now)
        self._to_come = []
        self._apply(topology, now)
        self._say(console.heading(now.name.test, topology.key, self._version()))
        self._say(console.trial_heading(profile.kind))
        base = now.baseline.rate if now.baseline else None
        now.outcome = now.procedure.run(self._bench(now, base)).relative_to(base)
        self._remember(now)
        return judge(
            now.outcome, now.floor, now.ceiling, now.baseline, oversubscribed=shared,
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

    def _bench(self, now: Measurement, baseline: float | None) -> Bench:
        """Where the test `now` is measured."""
        cable = now.topology.datapath == CABLE.datapath
        floor_load = now.floor.load(now.procedure.headroom, baseline) or None
        return Bench(
            self.testbed.dut, self.testbed.generator, now.profile,
            now.floor.conditions(self.settings.campaign.loss_ratio), self.settings.campaign,
            on_trial=lambda step: self._keep(step, now), floor_load=floor_load,
            hint=None if cable else self._hints.find(now.topology, now.profile) or floor_load,
            probes=self._probes(now.topology),
        )  # fmt: skip

    def _probes(self, topology: Topology) -> list[Probe]:
        """What the campaign wants to be sampled, as far as the DUT can be asked for it."""
        asked = "table_entries" in self.settings.campaign.probes and "connections" in abilities(topology.datapath)
        return [TableEntries(self.testbed.dut.connections)] if asked else []

    def _bare_bench(self, profile: Profile, loss_ratio: float, hint: float | None = None) -> Bench:
        """Where something is measured that the test needs besides itself."""
        return Bench(
            self.testbed.dut, self.testbed.generator, profile, {"loss_ratio": loss_ratio}, self.settings.campaign,
            on_trial=self._tell, hint=hint,
        )  # fmt: skip

    def _expected(self, now: Measurement) -> list[Expected]:
        """What a test measures after the generator's ceiling: what it is compared with, and itself."""
        campaign, profile = self.settings.campaign, now.profile
        whole = now.procedure.expected(profile, campaign)
        to = now.floor.relative_to
        if not to or (Topology.parse(to), profile.name) in self._baselines:
            return [whole]
        return [HighestRate(campaign.search_for(profile)).expected(profile, campaign), whole]

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
        if known is None or (known < now.floor.main.limit and self._tries[asked] < TRIES):
            self._tries[asked] += 1
            self._say(f"  the generator's ceiling with {profile.name}, over a cable:")
            found = self._twice(lambda: self._measure_ceiling(now), now)
            if found.limited_by == "fault":
                raise TestbedError(f"The generator's ceiling could not be measured: {found.reason}")
            self._ceilings[profile.name] = max(known or 0.0, _value(found))
        return self._ceilings[profile.name]

    def _measure_ceiling(self, now: Measurement) -> Outcome:
        self._apply(CABLE, now)
        campaign = self.settings.campaign
        return HighestRate(campaign.ceiling_for(now.profile)).run(self._bare_bench(now.profile, campaign.loss_ratio))

    def _baseline(self, now: Measurement) -> Baseline | None:
        """What a relative floor compares with: what a test of this run found, else measured for it once per run."""
        if not now.floor.relative_to:
            return None
        other = Topology.parse(now.floor.relative_to)
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
        rate = _value(found)
        if found.limited_by == "fault" or not rate:
            return Baseline(key=key, rate=None, doubt=found.reason)
        self._hints.learn(other, now.profile, rate)
        return Baseline(key=key, rate=rate, doubt="" if found.limited_by == "dut" else found.reason)

    def _search_baseline(self, other: Topology, now: Measurement) -> Outcome:
        """A gate has no search of its own, so there the settings of the ceiling serve."""
        campaign, profile = self.settings.campaign, now.profile
        self._apply(other, now)
        hint = self._hints.find(other, profile) or now.floor.load(now.procedure.headroom)
        bench = self._bare_bench(profile, now.floor.conditions(campaign.loss_ratio)["loss_ratio"], hint)
        return HighestRate(campaign.search_for(profile)).run(bench)

    def _twice(self, measure: Callable[[], Outcome], now: Measurement) -> Outcome:
        """Measure what the test needs besides itself; once more on a fresh DUT where something breaks."""
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
        found, rate = now.outcome, _value(now.outcome)
        if found is None or not rate or found.limited_by == "floor" or found.metric is not RATE_OF[now.profile.kind]:
            return
        if now.topology.datapath == CABLE.datapath:
            self._ceilings[now.profile.name] = rate
            return
        self._hints.learn(now.topology, now.profile, rate)
        if found.limited_by == "dut":
            self._baselines[now.topology, now.profile.name] = Baseline(key=now.topology.key, rate=rate)

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
            campaign=CampaignFacts(**self.settings.campaign.model_dump(mode="json")),
            environment=environment_of(now.topology, self.testbed.facts()),
            pool=self._member,
            oversubscribed=self.settings.testbed.oversubscribe,
        )


def _value(outcome: Outcome | None) -> float:
    """What a procedure found; 0 where it found nothing."""
    return outcome.result.value if outcome and outcome.result else 0.0

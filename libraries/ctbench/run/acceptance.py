"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import abilities
from ctbench.dut.topology import Topology
from ctbench.measure.expected import Expected
from ctbench.measure.probe import Probe, TableEntries
from ctbench.measure.procedure import Bench, Decision, Look, Outcome, Procedure, require
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.saturation import ClosedLoop
from ctbench.measure.trial import Step
from ctbench.report import console
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, Environment, MachineFacts
from ctbench.results.evidence import TrialRecord
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Record
from ctbench.run import feasibility
from ctbench.run.ceilings import Ceilings
from ctbench.run.choice import RATE, choose, others
from ctbench.run.environment import environment_of
from ctbench.run.hints import Hints
from ctbench.run.measurement import Measurement, TestName
from ctbench.run.pool_member import PoolRun, new_run_id
from ctbench.run.settings import RunSettings
from ctbench.sla.verdict import Verdict, judge, judge_builds
from ctbench.testbed.pair import Setup
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Saturation
from ctbench.traffic.profiles import Profile, load_profile

Say = Callable[[str], None]


class AcceptanceRun:
    """Keeps what belongs to one run: the testbed, the ceilings of the generator, the records."""

    def __init__(self, settings: RunSettings, output: Path, say: Say = print, pool: PoolRun | None = None) -> None:
        """Nothing is started yet. `output` gets logs, and records unless `pool` does; `say` takes lines to show."""
        most = settings.campaign.most | settings.testbed.generator.most
        self.settings = replace(settings, campaign=settings.campaign.model_copy(update={"most": most}))
        self.output, self.run_id = (pool.output, pool.run_id) if pool else (output, new_run_id())
        self.testbed = Testbed(settings.testbed, output)
        self._member = pool.member if pool else None
        self.records: list[Record] = []
        self._say = say
        self._ceilings = Ceilings()
        self._hints = Hints()
        #: All trials, those of ceilings too.
        self._trials: list[TrialRecord] = []
        #: What the test that runs measures after the procedure that runs.
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
        plan = choose(what, self.settings.campaign, topology, profile)
        floor = self.settings.floor(topology, profile, plan.main)
        now = Measurement(name, topology, profile, floor, plan)
        if self.settings.reference:
            self.settings.reference.check(self.settings.testbed.name, MachineFacts(**self.testbed.machine.as_record()))
        try:
            verdict = self._measure(now)
        except Exception as error:
            reraise_stop(error)
            if isinstance(error, (ConfigError, MissingResource)):
                raise
            now.outcome = None  # it was not brought to its end
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
        offered = self.testbed.generator.offers
        require(now.procedure, offered, abilities(topology.datapath))
        alone = now.plan.alone(now.floor, offered)
        compared = others(now.floor, topology) if now.plan.compares and not shared else {}
        pairs = [now.plan.pair(metric) for metric in compared]
        self._to_come = [each.expected(profile, self.settings.campaign) for each in (*pairs, *alone)]
        if topology.datapath != CABLE.datapath and now.plan.makes_trials:
            case = feasibility.Case(self.settings.testbed, self.settings.campaign, topology, profile, now.floor)
            now.bounds = feasibility.check(case, self.testbed.placement(topology))
            # Of what is no rate, a generator over a cable says nothing.
            now.ceiling = self._ceiling_or_none(now) if now.floor.metric is RATE_OF[profile.kind] else None
        for pair in pairs:
            self._compare(now, pair, compared[pair.promise])
        self._measure_alone(now, alone, in_pair=bool(pairs))
        self._to_come = []
        if self.settings.base:
            return judge_builds(now.outcome, now.floor)
        assert now.outcome is not None
        self._remember(now)
        around = self._environment(topology)
        return judge(
            now.outcome, now.floor, now.ceiling, machine=around.dut_machine, image=str(around.dut.image),
            oversubscribed=shared, max_spread=self.settings.campaign.max_spread,
        )  # fmt: skip

    def _compare(self, now: Measurement, pair: Pair, other: Setup) -> None:
        """Measure a ratio that is promised; where the testbed lacks what the comparison needs, that is not decided."""
        if now.broken:
            return
        try:
            self._set_up(now, other)
        except MissingResource as error:
            self._to_come = self._to_come[1:]
            undecided = {pair.promise: Decision(None, str(error))}
            now.add(Outcome(pair.metric(now.profile), {}, "dut", str(error), held=False, steps=(), decisions=undecided))
            return
        self._step(now, pair)

    def _measure_alone(self, now: Measurement, procedures: Sequence[Procedure], *, in_pair: bool) -> None:
        """Measure what is about the DUT itself, one procedure after the other: each knows what was found before.
        `in_pair`: this test has set pairs up, so the tested side may stand there."""
        if not procedures or now.broken:
            return
        if not in_pair or self.testbed.pair is None:  # a pair that is there may be of the test before
            self._set_up(now)
        for procedure in procedures:
            known = isinstance(procedure, ClosedLoop) and now.knows(procedure.metric(now.profile))
            if known or now.broken:
                self._to_come = self._to_come[1:]
            else:
                self._step(now, procedure)

    def _step(self, now: Measurement, procedure: Procedure) -> None:
        self._to_come = self._to_come[1:]
        now.add(procedure.run(self._bench(now, procedure)))

    def _set_up(self, now: Measurement, other: Setup | None = None) -> None:
        """Set the DUT of the test up, as a pair with the `other` one where there is one."""
        self._apply(now.topology, now, other)
        if not now.shown:
            now.shown = True
            self._say(console.heading(now.name.test, now.topology.key, self._version()))
            if now.plan.makes_trials:
                self._say(console.trial_heading(now.profile.kind))

    def summary(self) -> str:
        """The table of what was measured so far."""
        return console.summary(self.records, self._trials)

    def close(self) -> None:
        """Leave nothing behind. May be called twice."""
        self.testbed.close()

    def _apply(self, topology: Topology, now: Measurement, other: Setup | None = None) -> None:
        """Set `topology` up for the test `now`, or as a pair with the `other`; on a fresh DUT, which is said, where the
        one that stands is broken."""
        if replaced := self.testbed.replace_broken(topology):
            now.mishaps.append(f"Before it was set up for this test, a fresh DUT was needed: {replaced}")
            self._say(f"  a fresh DUT is needed: {replaced}")
        try:
            if other is None:
                self.testbed.apply(topology, now.profile)
            else:
                self.testbed.apply_pair(Setup(topology), other, now.profile)
        except TestbedError as error:
            beside = f" beside {other.topology.key}" if other else ""
            raise TestbedError(f"{topology.key} could not be set up{beside}: {error}") from error

    def _begin_afresh(self) -> None:
        """Let go of whatever broke, and say what could not be put back."""
        for complaint in self.testbed.discard():
            self._say(f"  while the DUT was taken down: {complaint}")

    def _keep(self, step: Step, now: Measurement) -> None:
        numbered = replace(step, number=len(now.steps) + 1)
        now.steps.append(numbered)
        self._tell(numbered)

    def _look(self, look: Look) -> None:
        to_come = sum(each.seconds(0.0) for each in self._to_come)
        self._say(console.look_line(replace(look, left_s=look.left_s + to_come)))

    def _bench(self, now: Measurement, procedure: Procedure) -> Bench:
        """Where a procedure of the test `now` measures."""
        cable = now.topology.datapath == CABLE.datapath
        return Bench(
            self.testbed.dut, self.testbed.generator, now.profile,
            now.floor.conditions(self.settings.campaign.loss_limit), self.settings.campaign,
            on_trial=lambda step: self._keep(step, now), floor_load=now.floor.load(procedure.headroom) or None,
            hint=None if cable else self._hints.find(now.topology, now.profile),
            ceiling=None if cable else now.ceiling, earlier=now.outcome,
            probes=self._probes(now.topology), pair=self.testbed.pair, turns=self.testbed.turns, on_look=self._look,
            promised_ratio=now.floor.limit(procedure.promise) if isinstance(procedure, Pair) else None,
            topology=now.topology, compared_with=Topology.parse(to) if (to := now.floor.relative_to) else None,
            limits={name: each.limit for name, each in now.floor.thresholds.items()},
            on_counted=lambda *counted: self._say(console.counted_line(*counted)),
        )  # fmt: skip

    def _probes(self, topology: Topology) -> list[Probe]:
        """What the campaign wants to be sampled, as far as the DUT can be asked for it."""
        asked = "table_entries" in self.settings.campaign.probes and "connections" in abilities(topology.datapath)
        return [TableEntries(self.testbed.dut.connections)] if asked else []

    def _ceiling_or_none(self, now: Measurement) -> float | None:
        """The ceiling; None where nothing joins the generator's ports to each other, as in a lab, and the record notes
        that."""
        try:
            return self._ceiling(now)
        except MissingResource as error:
            now.unknown_ceiling = str(error)
            return None

    def _ceiling(self, now: Measurement) -> float:
        def measure() -> Outcome:
            self._say(f"  the generator's ceiling with {now.profile.name}, over a cable:")
            return self._twice(lambda: self._measure_ceiling(now), now)

        return self._ceilings.find(now.profile, now.floor.load(0.0), measure)

    def _measure_ceiling(self, now: Measurement) -> Outcome:
        """One trial of a closed loop; a search where the generator has none."""
        self._apply(CABLE, now)
        campaign, profile = self.settings.campaign, now.profile
        bench = Bench(
            self.testbed.dut, self.testbed.generator, profile, campaign.loss_limit, campaign, on_trial=self._tell
        )
        if Saturation in self.testbed.generator.offers:
            return ClosedLoop(campaign.saturation_for(profile), of_generator=True).run(bench)
        return HighestRate(campaign.ceiling).run(bench)

    def _twice(self, measure: Callable[[], Outcome], now: Measurement) -> Outcome:
        """Measure what the test needs besides itself; once more where something breaks."""
        try:
            found = measure()
            broke = found.reason if found.limited_by == "fault" else ""
        except TestbedError as error:
            broke = str(error)
        if not broke:
            return found
        now.mishaps.append(f"The generator's ceiling was measured once more, over a fresh cable: {broke}")
        self._say(f"  once more: {broke}")
        self._begin_afresh()
        return measure()

    def _remember(self, now: Measurement) -> None:
        """Keep what later tests begin with: a capacity that was searched."""
        found, rate = now.outcome, _value(now.outcome)
        if found is None or not rate or found.limited_by == "floor" or found.metric is not RATE_OF[now.profile.kind]:
            return
        if now.topology.datapath == CABLE.datapath:
            self._ceilings.learn(now.profile, rate)
        else:
            self._hints.learn(now.topology, now.profile, rate)

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

    def _environment(self, topology: Topology) -> Environment:
        return environment_of(topology, self.testbed.facts())

    def _record(self, now: Measurement, verdict: Verdict) -> Record:
        return now.record(
            verdict,
            run_id=self.run_id,
            campaign=CampaignFacts(**self.settings.campaign.model_dump(mode="json")),
            environment=self._environment(now.topology),
            pool=self._member,
            oversubscribed=self.settings.testbed.oversubscribe,
        )


def _value(outcome: Outcome | None) -> float:
    """What a procedure found; 0 where it found nothing."""
    return outcome.result.value if outcome and outcome.result else 0.0

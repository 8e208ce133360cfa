"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import abilities
from ctbench.dut.topology import Topology
from ctbench.measure.probe import Probe, TableEntries
from ctbench.measure.procedure import Bench, Decision, Outcome, Procedure, require
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.saturation import ClosedLoop
from ctbench.measure.trial import Step
from ctbench.report import console
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, Environment, MachineFacts
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Record
from ctbench.run import feasibility, ip_version, table_feasibility
from ctbench.run.ceilings import Ceilings
from ctbench.run.choice import RATE, choose, others
from ctbench.run.environment import environment_of
from ctbench.run.hints import Hints
from ctbench.run.measurement import Measurement, TestName
from ctbench.run.pool_member import PoolRun, new_run_id
from ctbench.run.settings import RunSettings
from ctbench.run.standing import Standing
from ctbench.run.telling import Say, Telling
from ctbench.sla.verdict import Verdict, judge, judge_builds
from ctbench.testbed.pair import Setup
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import Profile, load_profile


class AcceptanceRun:
    """Keeps what belongs to one run: the testbed, the ceilings of the generator, the records."""

    def __init__(self, settings: RunSettings, output: Path, say: Say = print, pool: PoolRun | None = None) -> None:
        """Nothing is started yet. `output` gets logs, and records unless `pool` does; `say` takes lines to show."""
        self.settings = replace(settings, campaign=settings.campaign.limited_to(settings.testbed.generator.most))
        self.output, self.run_id = (pool.output, pool.run_id) if pool else (output, new_run_id())
        self.testbed = Testbed(settings.testbed, output)
        self._member = pool.member if pool else None
        self.records: list[Record] = []
        self._telling = Telling(say)
        self._standing = Standing(self.testbed, self.output, say)
        self._ceilings = Ceilings(self._standing, self._telling)
        self._hints = Hints()

    def profile(self, name: str) -> Profile:
        """The profile that is offered where a test asks for `name`: it, or the campaign's substitute."""
        return self.settings.campaign.scaled(load_profile(self.settings.campaign.profile_for(name)))

    def measure(self, name: TestName, topology: Topology, profile_name: str, what: str = RATE) -> Record:
        """Set the DUT up, measure, judge, write the record. `what`: see `ctbench.run.choice`.

        `profile_name` may be replaced by the campaign's substitute. Raises `ConfigError` for a missing floor or range
        and for files that contradict each other, `MissingResource` where the testbed lacks what the topology or its
        floor needs; then nothing was measured and no record is written. Whatever breaks is a record: *not measured*,
        with the trials made until then, and the next test gets a fresh DUT. Raises `OutputError` where the record
        cannot be written.
        """
        self.settings.campaign.require_time_for(name.tags)
        profile = self.profile(profile_name)
        ip_version.require(topology, profile)
        plan = choose(what, self.settings.campaign, topology, profile)
        floor = self.settings.floor(topology, profile, plan.main)
        now = Measurement(name, topology, profile, floor, plan, scale=self.settings.campaign.scale)
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
            if now.broke_off or verdict.word == "missed":
                self._standing.capture(now)
            record = self._record(now, verdict)
            # Shown first: a disk that takes no record is no reason not to say what it would hold.
            self.records.append(record)
            self._telling.say(console.verdict_line(record))
            store.write(record, self.output)
        finally:
            if now.broke_off:
                self._standing.begin_afresh()
        return record

    def _measure(self, now: Measurement) -> Verdict:
        """Measure and judge; what becomes known on the way is in `now`."""
        topology, profile, shared = now.topology, now.profile, self.settings.testbed.oversubscribe
        offered = self.testbed.offers
        beside = self.profile(now.floor.relative_profile) if now.floor.relative_profile else None
        require(now.procedure, offered, abilities(topology.datapath))
        alone = now.plan.alone(now.floor, offered)
        compared = others(now.floor, topology, beside) if now.plan.compares and not shared else {}
        pairs = [now.plan.pair(metric) for metric in compared]
        self._telling.expect(each.expected(profile, self.settings.campaign) for each in (*pairs, *alone))
        case = feasibility.Case(self.settings.testbed, self.settings.campaign, topology, profile, now.floor)
        if now.plan.of_table:
            promised = now.floor.limit("held_connections") or 0.0 if now.plan.holds else 0.0
            now.bounds = table_feasibility.check(case, promised, held=Hold in now.plan.main.loads)
        elif topology.datapath != CABLE.datapath and now.plan.makes_trials:
            now.bounds = feasibility.check(case, self.testbed.placement(topology))
            # Of what is no rate, a generator over a cable says nothing.
            if now.floor.metric is RATE_OF[profile.kind]:
                now.ceiling = self._ceilings.find(now, self.settings.campaign)
        for pair in pairs:
            self._compare(now, pair, compared[pair.promise])
        self._measure_alone(now, alone, in_pair=bool(pairs))
        self._telling.expect(())
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
            self._telling.next_procedure()
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
                self._telling.next_procedure()
            else:
                self._step(now, procedure)

    def _step(self, now: Measurement, procedure: Procedure) -> None:
        self._telling.next_procedure()
        now.add(procedure.run(self._bench(now, procedure)))

    def _set_up(self, now: Measurement, other: Setup | None = None) -> None:
        """Set the DUT of the test up, as a pair with the `other` one where there is one."""
        self._standing.set_up(now.topology, now, other)
        if not now.shown:
            self._telling.heading(now, self._standing.version())

    def summary(self) -> str:
        """The table of what was measured so far."""
        return console.summary(self.records, self._telling.trials)

    def close(self) -> None:
        """Leave nothing behind. May be called twice."""
        self.testbed.close()

    def _keep(self, step: Step, now: Measurement) -> None:
        numbered = replace(step, number=len(now.steps) + 1)
        now.steps.append(numbered)
        self._telling.trial(numbered)

    def _bench(self, now: Measurement, procedure: Procedure) -> Bench:
        """Where a procedure of the test `now` measures."""
        cable = now.topology.datapath == CABLE.datapath
        return Bench(
            self.testbed.dut, self.testbed.generator, now.profile,
            now.floor.conditions(self.settings.campaign.loss_limit), self.settings.campaign,
            on_trial=lambda step: self._keep(step, now), floor_load=now.floor.load(procedure.headroom) or None,
            hint=None if cable else self._hints.find(now.topology, now.profile),
            ceiling=None if cable else now.ceiling, earlier=now.outcome,
            probes=self._probes(now.topology), pair=self.testbed.pair, turns=self.testbed.turns,
            on_look=self._telling.look,
            promised_ratio=now.floor.limit(procedure.promise) if isinstance(procedure, Pair) else None,
            topology=now.topology, compared_with=Topology.parse(to) if (to := now.floor.relative_to) else None,
            limits={name: each.limit for name, each in now.floor.thresholds.items()},
            most_held=now.bounds[0].rate if now.plan.of_table and now.bounds else None,
            on_counted=lambda *counted: self._telling.say(console.counted_line(*counted)),
        )  # fmt: skip

    def _probes(self, topology: Topology) -> list[Probe]:
        """What the campaign wants to be sampled, as far as the DUT can be asked for it."""
        asked = "table_entries" in self.settings.campaign.probes and "connections" in abilities(topology.datapath)
        return [TableEntries(self.testbed.dut.connections)] if asked else []

    def _remember(self, now: Measurement) -> None:
        """Keep what later tests begin with: a capacity that was searched."""
        found, rate = now.outcome, _value(now.outcome)
        if found is None or not rate or found.limited_by == "floor" or found.metric is not RATE_OF[now.profile.kind]:
            return
        if now.topology.datapath == CABLE.datapath:
            self._ceilings.learn(now.profile, rate)
        else:
            self._hints.learn(now.topology, now.profile, rate)

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

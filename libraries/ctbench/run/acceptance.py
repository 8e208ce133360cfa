"""The acceptance run: measures one test after another on a testbed, judges each by its floor and writes its record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ctbench.base.errors import (
    ConfigError,
    Crashed,
    MissingResource,
    TestbedError,
    UnknownAnswer,
    reraise_stop,
    sentence_of,
)
from ctbench.base.text import brief, one_line
from ctbench.base.version import SUITE_VERSION
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import abilities, rules_of
from ctbench.dut.topology import Topology
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import (
    Bench,
    BenchProcedure,
    Outcome,
    Procedure,
    Promise,
    figures_by_name,
    require,
)
from ctbench.measure.procedures.instruction_count import InstructionCount
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.rates import ClosedLoop
from ctbench.measure.procedures.starts import Starts, first
from ctbench.measure.start_rule import Scatter
from ctbench.measure.trial import Repetitions
from ctbench.report import console
from ctbench.results import gate, store
from ctbench.results.environment import CampaignFacts, Environment, TestbedFacts
from ctbench.results.evidence import PairRecord
from ctbench.results.floor import Threshold
from ctbench.results.metrics import METRICS, RATE_OF
from ctbench.results.record import Record
from ctbench.results.store import Stored
from ctbench.results.verdict import Code, Verdict, by_figure, confirms
from ctbench.run import feasibility
from ctbench.run.measurement import Measurement, TestName, environment_of, facts_of, others, plan
from ctbench.run.run_folder import PoolRun, TestKey, new_run_id
from ctbench.run.settings import OwnEntry, RunSettings
from ctbench.run.testbed_session import Progress, Say, TestbedSession
from ctbench.sla.verdict import RowVerdict, judge
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import InTurn, Setup, SideBySide
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import Profile, load_profile

#: Characters of what a step of a test failed with, in its record.
MOST_FAILED = 500


class AcceptanceRun:
    """One run: its testbed, its settings, and the records that it has made."""

    def __init__(self, settings: RunSettings, output: Path, say: Say = print, pool: PoolRun | None = None) -> None:
        """Start nothing yet. `output` takes the logs, and the records unless `pool` does; `say` takes lines to show."""
        #: What is left of each campaign; over the rows so far, by campaign and kind of profile, side by side and in
        #: turn: see `Bench.scatter`; how the candidate crashed so far.
        self._left: dict[str, tuple[Repetitions, Repetitions]] = {}
        self._scatters: dict[str, dict[tuple[str, bool], tuple[Scatter, Scatter]]] = {}
        self._crashes: list[str] = []
        self._take(settings)
        self.output, self.run_id = (pool.output, pool.run_id) if pool else (output, new_run_id())
        self.testbed = Testbed(settings.testbed, output)
        self._member = pool.member if pool else None
        self.records: list[Record] = []
        self._files: dict[TestKey, Path] = {}
        #: Of a run that goes on: what was measured before, of tests that have measured nothing yet; and of the test
        #: that runs, without what its rows have taken for their own.
        self._earlier: dict[TestKey, list[Stored]] = {}
        self._of_test: list[Stored] = []
        #: Earlier records that count.
        self._counting: list[Record] = []
        self._gated_rows = 1
        self._progress = Progress(say)
        self._session = TestbedSession(self.testbed, self.output, self._progress)

    def judge_by(self, settings: RunSettings) -> None:
        """Measure and judge by these `settings` from now on. Raises `ConfigError` for another testbed, or candidate,
        than that of this run, which stands until its end."""
        if settings is self._asked:
            return
        if settings.testbed.model_dump() != self._asked.testbed.model_dump():
            raise ConfigError(
                f"Open Testbed: this run has begun on {_place(self._asked)}, and a suite asks for {_place(settings)}.\n"
                "  Expected one testbed, and one candidate, in all suites of a run; else a run for each."
            )
        self._take(settings)

    def _take(self, settings: RunSettings) -> None:
        self._asked, campaign = settings, settings.campaign
        self.settings = replace(settings, campaign=campaign.limited_to(settings.testbed.generator.most))
        self._scatter = self._scatters.setdefault(campaign.file, {})
        whole = Repetitions(campaign.repeating), Repetitions(campaign.more_starts)
        self._repetitions, self._more_starts = self._left.setdefault(campaign.file, whole)

    def profile(self, name: str) -> Profile:
        """Return the profile that is offered where a test asks for `name`: that one, or the campaign's substitute,
        scaled."""
        return self.settings.campaign.scaled(load_profile(self.settings.campaign.profile_for(name)))

    def measure(
        self, name: TestName, topology: Topology, profile_name: str, promise: Promise, own: OwnEntry | None = None
    ) -> Record:
        """Set the DUT up, measure what the promise is about, judge, write the record. Where an earlier record of this
        run counts for the row, return that one.

        The campaign's substitute may replace `profile_name`; `own` is what the row itself promises, in the place of the
        SLA. Raises `ConfigError` for a missing floor or range and for files that contradict each other,
        `MissingResource` where the testbed lacks what the topology or its floor needs; no record is written then.
        Whatever breaks is a record with the trials made until then: *not measured*, or missed where a comparison was
        lost before; of a further gate that the testbed broke off it is the earlier one, with its starts. The next test
        gets a fresh DUT. Raises `OutputError` where the record cannot be written.
        """
        self.settings.require_asked(topology, [tag for tag in name.tags if tag not in name.asked])
        profile = self.profile(profile_name)
        feasibility.require_ip_version(topology, profile)
        planned = plan(promise, self.settings.campaign, topology, profile)
        settings = self.settings.promising(topology, load_profile(profile_name), own) if own else self.settings
        floor = settings.floor(topology, profile, planned.main)
        test = Measurement(name, topology, profile, self.settings.campaign, floor, planned, rules_of(topology))
        if (before := self._measured_before(test)) is not None:
            return before
        kept: Stored | None = None
        try:
            verdict = self._measure(test)
        except Exception as error:
            reraise_stop(error)
            if isinstance(error, (ConfigError, MissingResource)):
                store.set_aside(test.earlier)  # no record takes its place, and it does not count any more
                raise
            code = Code.UNKNOWN_ANSWER if isinstance(error, UnknownAnswer) else Code.FAULT
            verdict = self._broke_off(test, sentence_of(error, self.output), code)
            # A further gate that the testbed broke off takes no starts away: the record that has them stays. One that a
            # crash of the candidate broke off counts.
            if verdict.kept is None and not isinstance(error, Crashed) and test.earlier:
                kept = test.earlier.pop()
        try:
            if test.broke_off or verdict.word == "missed":
                self._session.capture(test)
            if kept:
                record = _broken_off_again(kept, test, verdict)
            else:
                record = test.record(
                    verdict,
                    run_id=self.run_id,
                    environment=environment_of(topology, self.testbed.facts(), test.rules),
                    pool=self._member,
                    oversubscribed=self.settings.testbed.oversubscribe,
                )
            # Shown first: a disk that takes no record does not keep us from saying what it would hold.
            self.records.append(record)
            self._progress.say(console.verdict_line(record))
            if kept:
                store.rewrite(record, kept.path)
            self._files[record.suite, record.test] = kept.path if kept else store.write(record, self.output)
            store.set_aside(test.earlier)  # not before: a run that ends in the middle keeps its starts
        finally:
            if test.broke_off:
                self._session.begin_afresh()
        return record

    def _measured_before(self, test: Measurement) -> Record | None:
        """Return the earlier record of this run that counts for the row; None where it is to be measured. A record of
        the row that does not count is set aside. Starts of a candidate's row that is gated again add up."""
        key = (test.name.suite, test.name.test)
        self._of_test += self._earlier.pop(key, [])
        of_row = [each for each in self._of_test if _is_of_row(each.record, test)]
        for each in (each for each in of_row if self._is_of_now(each.record, test)):
            record = each.record
            if not _is_gated_again(record):
                store.set_aside(test.earlier)  # a run was killed before it did so
                self._of_test = [other for other in self._of_test if other not in (each, *test.earlier)]
                self._progress.say(f"  {said_of_earlier(record)}")
                record = store.read_whole(each.path)
                self.records.append(record)
                self._counting.append(record)
                self._files[key] = each.path
                return record
            test.before = record
            test.earlier.append(each)
        self._of_test = [each for each in self._of_test if each not in of_row]
        store.set_aside(each for each in of_row if each not in test.earlier)
        return None

    def _is_of_now(self, record: Record, test: Measurement) -> bool:
        """Return True where a record has the row, promise, campaign, testbed, programs and rules of the test, and this
        version, and no other step of its test failed. On a pool any of its testbeds may have measured it."""
        if record.failed:  # such as a step that was stopped
            return False
        pooled = record.pool is not None and self._member is not None
        testbed = (
            record.environment.testbed
            if pooled
            else facts_of(TestbedFacts, self.settings.testbed.model_dump(mode="json"))
        )
        alike = (
            (record.topology, test.topology),
            (record.profile.model_dump(), test.profile.model_dump()),
            (record.campaign, CampaignFacts(**test.campaign.model_dump(mode="json"))),
            (record.floor, test.floor.as_record()),
            (_promised(record.thresholds), _promised(test.floor.thresholds.values())),
            (record.environment.testbed, testbed),
            (record.environment.dut.rules, test.rules),
            (record.tool_version, SUITE_VERSION),
        )
        return all(then == now for then, now in alike) and self._is_of_programs(record)

    def _is_of_programs(self, record: Record) -> bool:
        """Return True where the DUT's program, and those of the compared sides, are the ones installed now."""
        compared = [pair.other for pair in record.evidence.pairs]
        return record.environment.dut.program == self.testbed.program(record.topology) and all(
            each.program == self.testbed.program(Topology.parse(each.key), each.build) for each in compared
        )

    def look(self, name: TestName, topology: Topology, profile_name: str, promise: Promise) -> str:
        """Measure a test that has no floor yet, and return what was found. Nothing is judged, and no record is
        written."""
        profile = self.profile(profile_name)
        planned = plan(promise, self.settings.campaign, topology, profile)
        floor = self.settings.floors.without_promise(topology, profile, planned.main.metric(profile))
        test = Measurement(name, topology, profile, self.settings.campaign, floor, planned)
        require(test.procedure, self.testbed.offers, abilities(topology.datapath))
        try:
            self._make(test, test.plan.alone(floor, self.testbed.offers), {})
        finally:
            if test.broke_off:  # the next test gets a fresh DUT
                self._session.begin_afresh()
        found = test.outcome.figures if test.outcome else {}
        shown = [f"{each.title} {each.format(found[key].value)}" for key, each in METRICS.items()
                 if key in found and each.role == "promise"]  # fmt: skip
        return ", ".join(shown) or (test.outcome.reason if test.outcome else "nothing was measured")

    def _measure(self, test: Measurement) -> RowVerdict:
        """Measure and judge; `test` takes what becomes known on the way."""
        topology, profile, promise = test.topology, test.profile, test.plan.promise
        on, offered = self.settings.testbed, self.testbed.offers
        beside = self.profile(test.floor.relative_profile) if test.floor.relative_profile else None
        require(test.procedure, offered, abilities(topology.datapath))
        comparable = (promise.about == "rate" or promise.in_turn) and on.rates.judged and not on.oversubscribe
        compared = others(test.floor, topology, beside) if comparable else {}
        beside_others = test.plan.compared(test.floor, compared)
        alone = test.plan.alone(test.floor, offered, after=beside_others)
        if not on.rates.judged:  # what would only decide is left out
            alone = [each for each in alone if each is test.plan.main or each is not test.plan.decides]
        if promise.holds:
            held = Hold in test.plan.main.loads
            test.bounds = feasibility.check_table(on, test.campaign, topology, test.floor, held=held)
        elif topology.datapath != CABLE.datapath and promise.about != "cost":
            test.bounds = feasibility.check(on, test.campaign, topology, test.floor)
            # Of what is not a rate, a generator over a cable says nothing, and in a pair each slice tells who waited.
            if test.floor.metric is RATE_OF[profile.kind] and test.floor.load(0.0):
                test.ceiling = self._session.ceiling(test)
        self._make(test, [*beside_others, *alone], compared)
        self._session.learn(test)
        return self._judge(test)

    def _judge(self, test: Measurement) -> RowVerdict:
        assert test.outcome is not None
        around, on = environment_of(test.topology, self.testbed.facts()), self.settings.testbed
        return judge(
            test.outcome, test.floor, test.ceiling, machine=around.dut_machine, image=str(around.dut.image),
            oversubscribed=on.oversubscribe, unjudged=on.rates.because, max_spread=test.campaign.max_spread,
            broken_before=partial(self._broken_before, test, around.dut_machine.cpu_kind),
        )  # fmt: skip

    def _broken_before(self, test: Measurement, cpu_kind: str, promised: Threshold) -> bool:
        """Return True where another run, whose folder is next to this run's, found the same row below the same floor:
        on the same kind of CPU, of any build."""
        row = (cpu_kind, test.topology, test.profile.name, promised.to, promised.limit)
        for record in store.of_other_runs(test.name.suite, test.name.test, self.output):
            then, kind = record.threshold(promised.metric), record.environment.dut_machine.cpu_kind
            if record.run_id == self.run_id or then is None:
                continue
            same = (kind, record.topology, record.profile.name, then.to, then.limit) == row
            if same and confirms(then, record.verdict):
                return True
        return False

    def _broke_off(self, test: Measurement, why: str, code: Code) -> RowVerdict:
        """Return the verdict on a test that did not come to its end. A comparison that was lost before stays lost."""
        if not (test.outcome and test.outcome.lost):
            test.outcome = None
            return RowVerdict.not_measured(why, test.floor, code)
        test.outcome = replace(test.outcome, limited_by="fault", reason=why, trials=tuple(test.trials))
        return self._judge(test)

    def _make(self, test: Measurement, procedures: Sequence[Procedure], compared: Mapping[str, Setup]) -> None:
        """Measure by one procedure after the other; each knows what those before it found. Those of a pair come first,
        with what they are `compared` with, by their promises. Where the testbed lacks what a pair needs, its promise is
        not decided."""
        if test.plan.promise.fresh:
            self._session.begin_afresh()
        self._progress.expect(each.expected_s(test.profile, test.campaign) for each in procedures)
        stands = False  # the DUT of this test, alone or as the tested side of a pair
        for procedure in procedures:
            self._progress.next_procedure()
            in_turn = procedure is test.plan.in_turn
            promise = procedure.promise if isinstance(procedure, Pair) else "of_build" if in_turn else ""
            other = compared.get(promise)
            figures = test.outcome.figures if test.outcome else {}
            known = isinstance(procedure, ClosedLoop) and procedure.metric(test.profile).name in figures
            if known or test.broken:
                continue
            try:
                if (other or not stands) and not (in_turn and procedure is not procedures[0]):  # whose sides stand
                    self._session.set_up(test, other, first(0) if isinstance(procedure, Starts) else None)
            except MissingResource as error:
                if not isinstance(procedure, Pair):
                    raise
                undecided = {procedure.promise: Verdict(None, Code.NOTHING, str(error))}
                metric = procedure.metric(test.profile)
                test.add(Outcome(metric, {}, "dut", str(error), False, verdicts=undecided))
                continue
            test.add(self._found(test, procedure, other))
            if other and self.testbed.side_by_side and not test.broken:
                self.testbed.side_by_side.turn("tested")
            stands = other is None or self.testbed.side_by_side is not None
        self._progress.expect(())
        if "memory_of_build" in test.floor.thresholds and not test.broken:
            self._compare_memory(test, procedures[-1])

    def _compare_memory(self, test: Measurement, procedure: Procedure) -> None:
        """Add a candidate's memory per connection as a share of its base's, which is set up again and measured for
        that."""
        metric, memory = METRICS["memory_of_build"], METRICS["memory_per_connection"]
        assert test.outcome is not None and isinstance(procedure, BenchProcedure), "it measured memory"
        if (ours := test.outcome.figure(memory)) is None:
            return
        self._progress.say("  the same of the base:")
        try:
            dut, generator = self._session.set_base_up(test, Setup(test.topology, test.floor.base_build))
            earlier, tell = replace(test.outcome, trials=()), self._progress.trial
            bench = replace(self._bench(test), dut=dut, generator=generator, earlier=earlier, on_trial=tell)
            found = procedure.run(bench)
        except (TestbedError, MissingResource) as error:
            found = Outcome.nothing(memory, "fault", str(error))
        said, figures = f"what the base takes is not known: {found.reason}", dict(test.outcome.figures)
        verdict = Verdict(None, Code.NOTHING, said)
        if theirs := found.figure(memory):
            figures |= figures_by_name({metric.name: ours / theirs})
            said = f"{memory.format(ours)}, and {memory.format(theirs)} in the base"
            verdict = by_figure(metric, ours / theirs, test.floor.thresholds[metric.name].limit, said)
        verdicts = {**test.outcome.verdicts, metric.name: verdict}
        test.outcome = replace(test.outcome, figures=figures, verdicts=verdicts)

    def _found(self, test: Measurement, procedure: Procedure, other: Setup | None) -> Outcome:
        """Return what one procedure finds, with the `other` side where it compares."""
        if isinstance(procedure, InstructionCount):
            counter = self.testbed.counter(test.topology.datapath)
            return procedure.count(
                counter, test.topology, test.floor, lambda *told: self._progress.say(console.counted_line(*told))
            )
        assert isinstance(procedure, BenchProcedure), "it measures"
        bench = self._bench(test)
        if other:
            place = test.profile.kind, self.testbed.side_by_side is not None
            bench = replace(
                bench,
                scatter=self._scatter.setdefault(place, (Scatter(), Scatter())),
                set_up_again=partial(self._again, test, other),
                before=self._starts_before(test),
            )
        self._progress.takes(procedure.expected_at(bench))
        return procedure.run(bench)

    def _starts_before(self, test: Measurement) -> PairRecord | None:
        """Return the starts that an earlier gate of this row made on this machine and these CPUs; None without any."""
        if test.before is None:
            return None
        now, then = environment_of(test.topology, self.testbed.facts()), test.before.environment
        return gate.starts_of(test.before) if _place_of(now) == _place_of(then) else None

    def _again(self, test: Measurement, other: Setup, number: int) -> SideBySide | InTurn | None:
        self._session.set_up(test, other, first(number))
        return self.testbed.side_by_side or self.testbed.in_turn

    @property
    def measured(self) -> list[Record]:
        """The records of what this part of the run has measured, without the earlier ones that count."""
        return [record for record in self.records if not any(record is each for each in self._counting)]

    def note_end(self, suite: str, test: str, failed: str, skipped: bool = False) -> list[Record]:
        """Note the end of a test, and return its records. The last one takes over what the test `failed` with, unless a
        verdict says it, or it is of an earlier part of the run. Earlier records that no row of the test has taken for
        its own are set aside, unless it `failed` and did not come to all its rows, and all of them where the test is
        `skipped` now. Raises `OutputError` where the record cannot be written."""
        file = self._files.get((suite, test))  # none where the disk was full
        written = self.records if file else []
        own = [number for number, each in enumerate(written) if (each.suite, each.test) == (suite, test)]
        now = own and any(self.records[own[-1]] is each for each in self.measured)
        if failed and file and now and {self.records[number].outcome for number in own} <= {"met", "missed, accepted"}:
            last = self.records[own[-1]].model_copy(update={"failed": brief(one_line(failed), MOST_FAILED)})
            self.records[own[-1]] = last
            store.rewrite(last, file)
        if skipped and not own:
            self._of_test += self._earlier.pop((suite, test), [])
        unclaimed, self._of_test = self._of_test, []
        if not failed:
            store.set_aside(unclaimed)
        return [self.records[number] for number in own]

    def begin(self) -> None:
        """Read what this run has measured, where it goes on, and wait until no other run measures on the same CPUs."""
        for each in store.read_stored(self.output)[0]:
            if each.record.run_id == self.run_id:
                self._earlier.setdefault((each.record.suite, each.record.test), []).append(each)
        self.testbed.claim(self._progress.say)

    def share_error(self, rows: int) -> None:
        """Set how many rows of this run compare two builds, before the first row: they share its error. Where the run
        goes on, there may have been more."""
        earlier = chain.from_iterable(self._earlier.values())
        before = [pair.gated_rows or 0 for each in earlier for pair in each.record.evidence.pairs]
        self._gated_rows = max(1, rows, *before)

    def close(self) -> None:
        """Close the testbed and leave nothing behind. May be called twice."""
        self.testbed.close()

    def _keep(self, seen: Observation, test: Measurement) -> None:
        if seen.phase == "base":
            self._progress.trial(seen, "base")
            return
        numbered = replace(seen, number=len(test.trials) + 1)
        test.trials.append(numbered)
        self._progress.trial(numbered)

    def _bench(self, test: Measurement) -> Bench:
        """Return the bench that the procedures of a test measure at."""
        cable = test.topology.datapath == CABLE.datapath
        return Bench(
            self.testbed.dut, self.testbed.generator, test.floor, test.campaign,
            on_trial=lambda seen: self._keep(seen, test),
            repetitions=self._repetitions, more_starts=self._more_starts,
            hint=None if cable else self._session.hint(test.topology, test.profile),
            ceiling=None if cable else test.ceiling, earlier=test.outcome,
            sides=self.testbed.side_by_side or self.testbed.in_turn,
            on_look=self._progress.look,
            gated_rows=self._gated_rows,
            crashes=self._crashes,
            topology=test.topology,
            most_held=test.bounds[0].rate if test.plan.promise.holds and test.bounds else None,
            most_filled=next((bound.rate for bound in test.bounds if bound.of_memory), None),
        )  # fmt: skip


def _place(settings: RunSettings) -> str:
    """Return the testbed and the candidate of a run, for a sentence."""
    candidate = f" with the candidate {settings.candidate}" if settings.candidate else ""
    return f"{settings.testbed.file or settings.testbed.name}{candidate}"


def said_of_earlier(record: Record) -> str:
    """Return what is said of an earlier record in the place of a measurement."""
    return f"{record.outcome.capitalize()}: its record of {record.started:%Y-%m-%d %H:%M} UTC counts."


def _is_of_row(record: Record, test: Measurement) -> bool:
    """Return True where a record is of the test's row that is measured: a test may have several."""
    row = test.topology, test.profile.name, test.procedure.name, test.procedure.metric(test.profile).name
    return (record.topology, record.profile.name, record.procedure, record.metric) == row


def _promised(thresholds: Iterable[Threshold]) -> dict[str, tuple[str, str | None]]:
    """Return the promises of a row by metric, as its SLA file has them. Its conditions are compared with its floor: of
    those that no trial tells of, a record has no threshold."""
    return {each.metric: (each.written, each.to) for each in thresholds if each.is_promise}


def _is_gated_again(record: Record) -> bool:
    """Return True where starts are added to those of a record: it was too close to call, whether or not a further gate
    broke off since. Where a fault ended its own gate, it counts."""
    codes = Code.TOO_CLOSE, Code.FAULT, Code.UNKNOWN_ANSWER
    return record.verdict_code in codes and record.limited_by != "fault" and gate.starts_of(record) is not None


def _broken_off_again(earlier: Stored, test: Measurement, verdict: RowVerdict) -> Record:
    """Return the record of an earlier gate with the verdict on a further one that broke off."""
    record = store.read_whole(earlier.path)
    said = f"the gate of {test.started:%Y-%m-%d %H:%M} UTC had a fault, and the starts before it stay: {verdict.reason}"
    return record.model_copy(
        update={
            "verdict_reason": said,
            "verdict_code": verdict.code,
            "capture": test.capture or record.capture,
            "notes": [*record.notes, *test.notes],
        }
    )


def _place_of(environment: Environment) -> tuple[Any, ...]:
    """Return the testbed, CPUs and machine of a measurement: starts of several runs are of one row only where these are
    the same."""
    machine = environment.dut_machine
    named = machine.cpu_model, machine.usable_cpus, machine.kernel, machine.virtualisation
    return environment.testbed, environment.dut.placement, *named

"""The ConntrackSLA keyword library: thin and typed. It translates between Robot Framework and `ctbench`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary

from pydantic import ValidationError
from robot.api import Failure, FatalError, SkipExecution, logger
from robot.api.deco import keyword, library
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.result import TestCase as TestResult
from robot.result import TestSuite as SuiteResult
from robot.running import TestCase as RunningTest
from robot.running import TestSuite as RunningSuite
from robot.running.context import EXECUTION_CONTEXTS

from ConntrackSLA.arguments import CONVERTERS, Datapath, Offered, PromiseName, RulesetName, signature
from ConntrackSLA.promising import KEYWORDS, ROW, Form, no_option, promised_in, topology_of
from ConntrackSLA.rows import all_rows, asked_for, gated_rows, given_to_open, named, no_topology, row_of
from ctbench import __version__
from ctbench.base.errors import (
    ConfigError,
    CtbenchError,
    MissingResource,
    NightlyOnly,
    NoFloorYet,
    OutputError,
    let_pass,
    sentence_of,
)
from ctbench.base.yaml_files import shown_path
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import check_set_up
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES, Promise
from ctbench.report import console
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.results.store import Ending, WithoutRecord
from ctbench.run.acceptance import AcceptanceRun, said_of_earlier
from ctbench.run.exit_status import note_mistake
from ctbench.run.measurement import TestName, find_promise
from ctbench.run.run_folder import POOL_VARIABLE, PoolRun
from ctbench.run.settings import VARIABLES, OwnEntry, RunSettings, check_references

#: Tests that are skipped although nothing is missing for them, and how these are counted.
_LEFT: tuple[tuple[type[CtbenchError], Ending], ...] = ((NightlyOnly, "nightly only"), (NoFloorYet, "no floor yet"))


def _keyword_of_rows(promise: Promise, form: Form) -> Callable[..., None]:
    """Return the keyword method for rows of a promise: set up, measure, judge."""
    first, words = tuple(form.first), form.conditions(promise)

    def judge(self: "ConntrackSLA", *arguments: Any, **by_name: Any) -> None:
        row = dict(zip((*first, *ROW), arguments, strict=False)) | by_name
        own = {name: str(row.pop(name)) for name in (*first, *words) if row.get(name) is not None}
        profile = str(row.pop("profile"))
        self._set_up({name: value for name, value in row.items() if value is not None})
        self._measure(promise.name, profile, promised_in(promise, form, own))
        self.should_meet_sla()

    judge.__name__ = form.name(promise).lower().replace(" ", "_")
    judge.__doc__ = form.documentation(promise)
    arguments = signature(first, words)
    judge.__signature__ = arguments  # type: ignore[attr-defined]
    # Robot Framework reads the types here.
    judge.__annotations__ = {name: each.annotation for name, each in arguments.parameters.items() if name != "self"}
    made: Callable[..., None] = keyword(name=form.name(promise), tags=["promise"])(judge)
    return made


@library(scope="GLOBAL", version=__version__, doc_format="ROBOT", converters=CONVERTERS)
class ConntrackSLA:
    __doc__ = """Measures connection tracking of a device under test (DUT) and judges it by a service level agreement.

    A test sets a topology up, measures what is promised with a profile, and compares the result with the floor that the
    SLA file has for them:

    | Use Topology    ovs-dpdk    conntrack    cpus=2    rx_queues=2
    | Measure    connection rate    short-lived
    | Should Meet SLA

    There is a keyword for each promise that does the three, whose arguments are the row of a suite: the kind of DUT,
    the ruleset, CPUs, receive queues for each port, the profile, and by name what differs from the default. The floor
    is in the SLA file, or in the row:

    | Connection Rate Should Meet SLA        ovs-dpdk    conntrack    2    2    short-lived
    | Connection Rate Should Be At Least    50k    ovs-dpdk    conntrack    2    2    short-lived    loss=0.02%
    | Connection Rate Should Keep    66%    ovs-dpdk/forward/1cpu-1rxq    ovs-dpdk    conntrack    1    1    short-lived

    `robot --dryrun` finds a column that is missing and a name that is misspelt.

    A test is *met*, *missed* or *not measured*: then it fails with that word first. Where the testbed lacks what the
    topology needs (CPUs, a kernel module, a NIC) the test is skipped and says so. Each test carries the metadata
    ``Floor``, ``Measured``, ``Margin`` and ``Verdict``, and leaves a record as JSON in ``records/`` of the output
    directory. ``Kind`` is there where the floor is a smoke test or was made on one machine; ``Relative`` where it
    promises a ratio to another topology that is measured side by side.

    Which testbed, campaign and SLA a run uses is decided by `Open Testbed`.

    = Promises =

    """ + "\n    ".join(f"| {each.name} | it {each.says} |" for each in PROMISES.values())

    #: Of a run of Robot Framework, by what takes its output. A run has one testbed.
    _of_runs: ClassVar["WeakKeyDictionary[object, ConntrackSLA]"] = WeakKeyDictionary()

    def __new__(cls) -> "ConntrackSLA":
        """Return the library of this run: Robot Framework makes one for each way in which suites import it, by name and
        by path."""
        context = EXECUTION_CONTEXTS.current
        return cls._of_runs.setdefault(context.output, super().__new__(cls)) if context else super().__new__(cls)

    def __init__(self) -> None:
        if hasattr(self, "_run"):
            return  # imported in another way before
        let_pass(RobotError)  # so Robot Framework ends a test when it is told to stop
        # The library hears of the end of the run, however it comes, and takes the testbed down.
        self.ROBOT_LIBRARY_LISTENER = self
        self._run: AcceptanceRun | None = None
        #: What was read, by the arguments of `Open Testbed`; and for which suites, by their IDs in Robot Framework.
        self._read: dict[tuple[str, ...], RunSettings] = {}
        #: What later suites will open: read, and not yet checked against the run.
        self._planned: dict[tuple[str, ...], RunSettings] = {}
        self._opened: dict[str, RunSettings] = {}
        #: All suites of this run.
        self._root: RunningSuite | None = None
        self._topology: Topology | None = None
        self._record: Record | None = None
        self._without_record: list[WithoutRecord] = []
        #: Why the last test was left out although nothing is missing for it, and how it is counted.
        self._left: tuple[str, Ending] | None = None
        #: Why the run ended before its end; empty while it goes on.
        self._ended_by = ""
        #: The patterns of `--include`.
        self._include: Sequence[str] = ()
        #: In a dry run: what of the row of this test stands for nothing although each argument does.
        self._wrong = ""
        #: The test that began, and the one that ended: where a suite imports the library in two ways, its listener
        #: hears of each twice.
        self._began: TestResult | None = None
        self._ended: TestResult | None = None

    @keyword(tags=["testbed"])
    def open_testbed(
        self,
        testbed: str = "local",
        campaign: str = "quick",
        sla: str = "local",
        base: str = "",
        candidate: str = "",
        all_rows: str = "",
    ) -> None:
        """Reads the testbed, campaign and SLA files and checks that this machine can run them.

        Each is a name below ``variables/`` or the path of a file. ``candidate`` is an installation of Open vSwitch that
        replaces the testbed's: its rows are compared with ``base``, or with the package, by several starts of both.
        Other rows are left out unless ``all_rows`` has a value. A mistake in a file ends the whole run, with a sentence
        that names the file, the key and what was expected.

        The files apply to the suite that uses this keyword and to the suites in it. Each suite is judged by its own
        SLA, whatever the order of the suites. All have one testbed and one candidate; a suite that asks for another one
        ends the run. The testbed is closed when the run is over.

        In a run on several testbeds (``./run sla --testbeds``) each process has one of them as its ``${TESTBED}``.

        Example:
        | Open Testbed    local    campaign=gate    sla=/srv/sla/release-3.yaml
        """
        # Here, for a keyword of a row may have options of its own.
        self._include = BuiltIn().get_variable_value("${OPTIONS}")["include"]
        asked = (testbed, campaign, sla, base, candidate, all_rows)
        try:
            settings = self._read.get(asked) or self._load(*asked)
        except CtbenchError as error:
            if isinstance(error, ConfigError):
                note_mistake(_output_folder(), str(error))
            raise self._ending_the_run(error) from None
        self._read[asked] = self._opened[_suite_id()] = settings

    @keyword(tags=["testbed"])
    def use_the_testbed(self, *, testbed: str = "", campaign: str = "", sla: str = "") -> None:
        """Opens the testbed that the variables of this run name, as `Open Testbed` does. An argument replaces its
        variable.

        | = Variable =     | = Default = | = What it is = |
        | ``TESTBED``      | local   | a name below ``variables/``, or the path of a file |
        | ``CAMPAIGN``     | quick   | the same |
        | ``SLA``          | local   | the same |
        | ``CANDIDATE``    |         | an installation of Open vSwitch that is tested in place of the testbed's |
        | ``BASE``         |         | the build that the candidate is compared with; without it the SLA's |
        | ``ALL``          |         | whether rows of DUTs that do not come from the candidate are measured too |

        Example:
        | Suite Setup    Use The Testbed
        | Suite Setup    Use The Testbed    sla=${CURDIR}/our-sla.yaml
        """
        self.open_testbed(*_variables({"TESTBED": testbed, "CAMPAIGN": campaign, "SLA": sla}))

    def _load(self, *asked: str) -> RunSettings:
        """Read the files that a suite asks for; the first call begins the run."""
        settings = RunSettings.load(*asked)
        found = named(self._root) if self._root else []
        whole = self._root is None or len(found) == self._root.test_count
        check_references(settings.floors, settings.campaign, found, whole=whole)
        if self._run:
            self._run.judge_by(settings)
            return settings
        settings.testbed.check_machine()
        given = os.environ.get(POOL_VARIABLE)
        pool = PoolRun.model_validate_json(given) if given else None
        self._run = AcceptanceRun(settings, _output_folder(), _say, pool)
        # ./run sla goes on with the run of its folder; plain Robot Framework, which has its own status, never does.
        self._run.run_id = BuiltIn().get_variable_value("${RUN_ID}") or self._run.run_id
        self._run.begin()
        if self._root:
            place, resolve = self._run.testbed.placement, BuiltIn().replace_variables
            rows = gated_rows(
                self._root, lambda suite: self._to_be_opened(suite) or settings, place, self._include, resolve
            )
            self._run.share_error(rows + (pool.other_tests if pool else 0))
        return settings

    def _to_be_opened(self, suite: RunningSuite | None) -> RunSettings | None:
        """Return the settings that a suite will open; None where its set-up does not show them."""
        instead = given_to_open(suite, BuiltIn().replace_variables, ["use the testbed"])
        if instead is None:
            return None
        asked = _variables(instead)
        if asked not in self._planned:
            self._planned[asked] = RunSettings.load(*asked)
        return self._planned[asked]

    def start_suite(self, data: RunningSuite, result: SuiteResult) -> None:
        """Listener method: keeps the root suite, so that all names in its rows are checked before the first row."""
        while data.parent:
            data = data.parent
        self._root = data

    def start_test(self, data: RunningTest, result: TestResult) -> None:
        """Listener method: resets the topology and the record of the test before, and adds what the test promises to
        its documentation. In a dry run, notes what is wrong with its row."""
        if result is self._began:
            return
        self._began = result
        self._topology = self._record = None
        self._wrong = ""
        try:
            row = row_of(data, BuiltIn().replace_variables)
            if row and _is_dry_run():
                check_set_up(row.topology)
            if row and (settings := self._settings(data, result)):
                promised = settings.promised(row.topology, row.profile, row.promise, row.own)
                result.doc = "\n\n".join(filter(None, [result.doc, promised]))
        except (CtbenchError, RobotError, ValueError) as error:  # when it runs, the keyword says so
            if _is_dry_run():
                self._wrong = no_topology(error) if isinstance(error, ValidationError) else str(error)

    def _settings(self, test: RunningTest, result: TestResult) -> RunSettings | None:
        """Return the settings that judge a test; None where they are unknown. In a dry run no suite opens a testbed,
        and the files of `Use The Testbed` are read here."""
        opened = self._opened_for(result.parent.id)
        return self._to_be_opened(test.parent) if opened is None and _is_dry_run() else opened

    def end_test(self, data: RunningTest, result: TestResult) -> None:
        """Listener method: in a dry run, reports the line that is wrong. Else notes for the report what no verdict
        shows: a test that was skipped or failed without a record, or that failed although its SLA is met."""
        if result is self._ended:
            return
        self._ended = result
        if _is_dry_run():
            self._say_what_is_wrong(data, result)
            return
        if result.passed and (unasked := self._not_asked_for()):
            result.status, result.message = "FAIL", unasked
        suite = data.parent.full_name if data.parent else ""
        failed = result.message if result.failed else ""
        records = self._run.note_end(suite, result.name, failed, result.skipped) if self._run else []
        if self._run and records and not any(each in self._run.measured for each in records):
            self._show_as_before(data, result, records)
        if (result.skipped or result.failed) and not records:
            ending = self._ending(result)
            reason = (ending == "not begun" and self._ended_by) or result.message
            test = WithoutRecord(suite=suite, test=result.name, outcome=ending, reason=reason)
            self._without_record.append(test)
            store.note_without_record(self._without_record, _output_folder())

    def _not_asked_for(self) -> str:
        """Return the message of a test that measured an SLA that is not met, and did not ask; empty for any other."""
        record = self._record
        if record is None or record.verdict == "met" or record.accepted:
            return ""
        return f"{record.message} (The test has no Should Meet SLA.)"

    def _show_as_before(self, data: RunningTest, result: TestResult, records: Sequence[Record]) -> None:
        """Skip a test that measured nothing, as its earlier records count: where Robot Framework's outputs are merged,
        that of the measurement is kept for it. A failure of another kind is that of a DUT that was not set up, where
        all rows of the test have records, and else one of the test's own."""
        missed = [record.message for record in records if record.verdict != "met"]
        if result.passed or any(said in result.message for said in missed) or all_rows(data) == len(records):
            result.status, result.message = "SKIP", said_of_earlier(records[-1])

    def _ending(self, result: TestResult) -> Ending:
        """Return how a test without a record ended. Robot Framework tags the tests that a stopped run did not begin."""
        if result.failed:
            return "not begun" if "robot:exit" in result.tags else "failed"
        return self._left[1] if self._left and result.message == self._left[0] else "skipped"

    def _say_what_is_wrong(self, data: RunningTest, result: TestResult) -> None:
        """Fail a row that Robot Framework accepts although it names what only another DUT has, or makes an impossible
        promise. Add file and line to every failure."""
        if self._wrong:
            result.status, result.message = "FAIL", self._wrong
        if result.failed:
            result.message = f"{shown_path(data.source or Path())}, line {data.lineno}: {result.message}"

    def close(self) -> None:
        """Listener method, called when the run is over: takes the testbed down and shows the table of verdicts."""
        if self._run is None:
            return
        run, self._run = self._run, None
        try:
            run.close()
        except Exception as error:  # whatever stays: what was measured is shown all the same
            logger.error(f"The testbed could not be taken down: {sentence_of(error, run.output)}")
        finally:
            if run.measured:
                logger.console(
                    "\n".join(["", console.summary(run.measured), *console.without_figure(self._without_record)])
                )

    @keyword(tags=["topology"])
    def use_topology(
        self, datapath: Datapath, ruleset: RulesetName, cpus: int = 1, rx_queues: int = 1, **options: str
    ) -> None:
        """Chooses a kind of DUT with a ruleset, a number of CPUs and of receive queues per port.

        ``datapath`` is ``ovs-dpdk``, ``linux-router``, ``linux-bridge`` or ``emulated``. The rulesets of each are files
        below ``resources/rulesets``: those of OVS in ``ovs``; a router has ``forward``, without netfilter, and those of
        ``iptables`` and ``nftables`` with the folder in front, as in ``iptables-snat``; a bridge has ``forward``; those
        of an emulated machine are in ``emulated``.

        ``options`` name what differs from the default:

        | ports | what the two ports are: ``plain`` links, trunks of a ``vlan``, a ``bond``, or ``bond-vlan`` |
        | mtu | the largest IP packet, bytes |
        | timeout_s | every timeout of the connection table, seconds |
        | max_connections | entries of the connection table at most |
        | idle_ports | extra bridge ports without test traffic |
        | revalidators | threads of Open vSwitch that look at the flows of its datapath |
        | handlers | threads that a datapath in the kernel asks for packets of unknown flows |
        | emc_insert_inv_prob | ``0`` switches the exact match cache of Open vSwitch off |

        Skips the test where the testbed lacks what the topology needs, such as CPUs or a kernel module. The DUT is set
        up, and its settings are read back, when the measurement begins.

        Example:
        | Use Topology    ovs-dpdk    conntrack    cpus=2    rx_queues=2
        | Use Topology    linux-router    nftables-snat
        | Use Topology    linux-bridge    forward    ports=bond    mtu=9000
        """
        named = {"datapath": datapath, "ruleset": ruleset, "cpus": cpus, "rx_queues": rx_queues}
        self._set_up(named | options)

    def _set_up(self, row: Mapping[str, Any]) -> None:
        try:
            if unknown := [name for name in row if name not in Topology.model_fields]:
                raise ConfigError(no_option(unknown[0]))
            topology = topology_of(row)
            check_set_up(topology)
            self._open().testbed.placement(topology)
        except ValidationError as error:
            self._end_test(ConfigError(no_topology(error)))
        except CtbenchError as error:
            self._end_test(error)
        self._topology = topology

    @keyword(tags=["topology"])
    def use_cable(self) -> None:
        """Chooses a cable in place of the DUT, to measure the traffic generator itself.

        Example:
        | Use Cable
        | Measure    connection rate    short-lived
        """
        self._topology = CABLE

    @keyword(tags=["measure"])
    def measure(self, promise: PromiseName, profile: Offered) -> Record:
        """Measures the metric of a promise for the topology of the test with a profile, and returns the record.

        ``promise`` is a name of the table of promises (`Promises`). The campaign sets durations and repetitions; it may
        replace the profile by a substitute (``quick`` shortens ``long-lived``), which the record names. Shows a line
        per trial on the console. Where the floor compares with another topology, both are measured in turn.

        Example:
        | Measure    connection rate    long-lived
        | Measure    table dump time    short-lived
        """
        return self._measure(promise, profile)

    def _measure(self, promise: str, profile: str, own: OwnEntry | None = None) -> Record:
        run, topology, unasked = self._open(), self._topology, self._not_asked_for()
        self._record = None
        variables = BuiltIn().get_variables()
        if "${TEST NAME}" not in variables:
            self._end_test(
                ConfigError("A set-up or teardown of a suite measures.\n  Expected it in a test, which has a record.")
            )
        if unasked:
            raise Failure(unasked)
        if topology is None:
            raise Failure("No topology: use Use Topology or Use Cable first, in this test.")
        logger.console("")
        try:
            wanted = find_promise(promise)
            offered = run.profile(profile)
            if offered.kind not in wanted.profiles:
                fitting = next((each.name for each in PROMISES.values() if each.profiles == {offered.kind}), "")
                raise ConfigError(
                    f"{offered.name} is a profile of {offered.kind}, which {promise} cannot use: a promise such as "
                    f"{fitting} can."
                )
            tags = tuple(variables["@{TEST TAGS}"])
            asked = asked_for(tags, self._include)
            name = TestName(variables["${SUITE NAME}"], variables["${TEST NAME}"], tags, asked)
            try:
                self._record = run.measure(name, topology, profile, wanted, own)
            except NoFloorYet:
                if not asked and not variables.get("${BY_NAME}"):
                    raise
                found = run.look(name, topology, profile, wanted)
                raise NoFloorYet(f"No floor yet: {found}. ./run calibrate promises it.") from None
        except CtbenchError as error:
            self._end_test(error)
        _show(self._record)
        return self._record

    @keyword(tags=["promise"])
    def generator_ceiling_should_meet_sla(self, profile: Offered) -> None:
        """A row that is judged: the rate that the traffic generator itself holds over a cable in place of the DUT.

        Example:
        | Generator Ceiling Should Meet SLA    short-lived
        """
        self.use_cable()
        self._measure("connection rate", profile)
        self.should_meet_sla()

    @keyword(name="Should Meet SLA", tags=["judge"])
    def should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what `Measure` measured in this test.

        The message begins with *Missed* or *Not measured* and gives the reason. A miss that the SLA file accepts for a
        while (`accepted`) skips the test instead, so that a test that passes has met its SLA. The test is also skipped
        where the traffic generator was the limit of candidate and base, and saw the candidate no slower.

        Example:
        | Should Meet SLA
        """
        record, self._record = self._record, None
        if record is None:
            raise Failure("Nothing was measured in this test: use Measure first.")
        if record.accepted or record.outcome == "no slower seen":
            raise SkipExecution(record.message)
        if record.verdict != "met":
            raise Failure(record.message)
        logger.info(record.message)
        BuiltIn().set_test_message(record.message)

    def _end_test(self, error: CtbenchError) -> NoReturn:
        """Raise Robot Framework's exception for an error that ends a test."""
        if isinstance(error, OutputError):
            raise self._ending_the_run(error) from None  # what else is measured could not be kept either
        if isinstance(error, MissingResource):
            self._left = next(((str(error), word) for kind, word in _LEFT if isinstance(error, kind)), None)
            raise SkipExecution(str(error)) from None
        if isinstance(error, ConfigError):
            note_mistake(_output_folder(), str(error))
        raise Failure(str(error)) from None

    def _ending_the_run(self, error: CtbenchError) -> FatalError:
        """Return Robot Framework's exception for an error that ends the whole run, and keep the reason, which Robot
        Framework does not pass on."""
        self._ended_by = str(error)
        return FatalError(self._ended_by)

    def _open(self) -> AcceptanceRun:
        opened = self._opened_for(_suite_id())
        if self._run is None or opened is None:
            raise Failure("No testbed: use Open Testbed in the set-up of this suite, or of one that it is in.")
        self._run.judge_by(opened)
        return self._run

    def _opened_for(self, suite: str) -> RunSettings | None:
        """Return the settings that the suite (its ID, `s1-s2`), or the innermost suite around it, has opened."""
        above = [other for other in self._opened if f"{suite}-".startswith(f"{other}-")]
        return self._opened[max(above, key=len)] if above else None


for _promise, _form in KEYWORDS.values():
    _made = _keyword_of_rows(_promise, _form)
    setattr(ConntrackSLA, _made.__name__, _made)


def _variables(instead: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments of `Open Testbed`: the values of a run's variables, or those given `instead`."""
    values = {name: BuiltIn().get_variable_value(f"${{{name}}}", default) for name, default in VARIABLES.items()}
    return tuple(str(instead.get(name) or value) for name, value in values.items())


def _is_dry_run() -> bool:
    context = EXECUTION_CONTEXTS.current
    return bool(context and context.dry_run)


def _suite_id() -> str:
    """Return the ID of the suite, which begins with those of the suites around it. A name does not: a file's may have
    dots."""
    return str(EXECUTION_CONTEXTS.current.suite.id)


def _output_folder() -> Path:
    return Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))


def _say(line: str) -> None:
    logger.console(line)
    logger.info(line, html=False)


def _show(record: Record) -> None:
    """Show the figures as metadata of the test, and a link to the DUT's reports where the test failed."""
    for name, value in console.metadata(record).items():
        BuiltIn().set_test_metadata(name, value)
    if record.capture:  # of letters, digits, dots and dashes: nothing in it is HTML
        logger.info(f'The test failed: <a href="{record.capture}/">what the DUT said then</a>.', html=True)

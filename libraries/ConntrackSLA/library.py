"""The ConntrackSLA keyword library: thin and typed. It translates between Robot Framework and `ctbench`."""

from pathlib import Path

from pydantic import ValidationError
from robot.api import Failure, FatalError, SkipExecution, logger
from robot.api.deco import keyword, library
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.result import TestCase as TestResult
from robot.running import TestCase as RunningTest

from ConntrackSLA import pool
from ConntrackSLA.control_plane import ControlPlaneKeywords
from ConntrackSLA.table import TableKeywords
from ctbench import __version__
from ctbench.base.errors import ConfigError, CtbenchError, LeftForTheNight, MissingResource, OutputError, TestbedError
from ctbench.base.unexpected import let_pass, sentence_of
from ctbench.base.units import quoted
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import ruleset_of
from ctbench.dut.topology import PortSetup, Topology
from ctbench.report import console
from ctbench.results import without_record
from ctbench.results.metrics import CONTROL, COSTS, METRICS
from ctbench.results.record import Record
from ctbench.results.without_record import Outcome, WithoutRecord
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.choice import COST, RATE
from ctbench.run.exit_status import note_mistake
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.run.tags import tags_of
from ctbench.testbed import checks
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import load_profile

#: The keyword that measures each kind of profile.
_MEASURES: dict[LoadUnit, str] = {"connections": "Measure Connection Rate", "packets": "Measure Packet Rate"}

#: The keyword that measures what another one judges.
_FIRST: dict[str, str] = {
    **{str(kind): name for kind, name in _MEASURES.items()},
    "instructions": "Measure Instructions",
    "table entries": "a keyword such as Measure Table Capacity",
    "times of the control plane": "a keyword such as Measure Table Dump",
}


@library(scope="GLOBAL", version=__version__, doc_format="ROBOT")
class ConntrackSLA(TableKeywords, ControlPlaneKeywords):
    """Measures connection tracking of a device under test (DUT) and judges it by a service level agreement.

    A test sets a topology up, measures it with a connection profile and compares the result with the floor that the
    SLA file has for both:

    | Use Topology    ovs-dpdk    conntrack    cpus=2    rx_queues=2
    | Measure Connection Rate    short-lived
    | Connection Rate Should Meet SLA

    A packet profile, which is a stateless stream, has keywords of its own:

    | Use Topology    linux-router    iptables-stateful
    | Measure Packet Rate    udp-64-10k
    | Packet Rate Should Meet SLA

    A test is *met*, *missed* or *not measured*: then it fails with that word first. Where the testbed lacks what the
    topology needs (CPUs, a kernel module, a NIC) the test is skipped and says so. Each test carries the metadata
    ``Floor``, ``Measured``, ``Margin`` and ``Verdict``, and leaves a record as JSON in ``records/`` of the output
    directory. ``Kind`` is there where the floor is a smoke test or was made on one machine; ``Relative``, and the tag
    ``ratio``, where it promises a ratio to another topology that is measured side by side.

    Which testbed, campaign and SLA a run uses is decided by `Open Testbed`.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        let_pass(RobotError)  # so Robot Framework ends a test when it is told to stop
        # The library hears of the end of the run, however it comes, and takes the testbed down.
        self.ROBOT_LIBRARY_LISTENER = self
        self._run: AcceptanceRun | None = None
        self._topology: Topology | None = None
        self._record: Record | None = None
        self._without_record: list[WithoutRecord] = []
        #: Why the last test was left for the night that was.
        self._left: str | None = None

    @keyword(tags=["testbed"])
    def open_testbed(
        self, testbed: str = "local", campaign: str = "quick", sla: str = "local", reference: str = "", base: str = ""
    ) -> None:
        """Reads the testbed, campaign and SLA files and checks that this machine can run them.

        Each is a name below ``variables/`` or the path of a file; ``reference`` is the folder of an earlier run, of
        which the SLA promises a share (its key ``of_reference``); ``base`` is an installation of Open vSwitch, with
        which a campaign of ``search: pair`` compares that of the testbed, test by test. A mistake in one ends the
        whole run before any test, with a sentence that names the file, the key and what was expected. A testbed that is
        open stays so: every suite may open it. It is closed when the run is over.

        In a run on several testbeds (``./run sla --testbeds``) each process opens the one that it was given, and
        ``testbed`` is not used.

        Example:
        | Open Testbed    local    campaign=gate    sla=/srv/sla/release-3.yaml
        """
        if self._run is not None:
            return
        output = _output_folder()
        try:
            share = pool.share()
            testbed = share.testbed if share else testbed
            settings = RunSettings.load(testbed, campaign, sla, reference, base)
            checks.check_machine(settings.testbed)
        except CtbenchError as error:
            if isinstance(error, ConfigError):
                note_mistake(output, str(error))
            raise FatalError(str(error)) from None
        self._run = AcceptanceRun(settings, output, _say, pool.pool_run(share) if share else None)
        # ./run sla knows it: a run that was stopped and goes on is one run.
        self._run.run_id = BuiltIn().get_variable_value("${RUN_ID}") or self._run.run_id

    def end_test(self, data: RunningTest, result: TestResult) -> None:
        """Listener method: notes a test that was skipped, or failed, before it left a record, for the report."""
        measured = {(record.suite, record.test) for record in self._run.records} if self._run else set()
        suite = data.parent.full_name if data.parent else ""
        if (result.skipped or result.failed) and (suite, data.name) not in measured:
            left: Outcome = "left for the night" if result.message == self._left else "skipped"
            test = WithoutRecord(
                suite=suite, test=data.name, outcome=left if result.skipped else "failed", reason=result.message
            )
            self._without_record.append(test)
            without_record.note(self._without_record, _output_folder())

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
            if run.records:
                logger.console("\n".join(["", run.summary(), *console.without_figure(self._without_record)]))

    @keyword(tags=["topology"])
    def use_topology(
        self,
        datapath: str,
        ruleset: str,
        cpus: int = 1,
        rx_queues: int = 1,
        ports: PortSetup = "plain",
        mtu: int = 1500,
        idle_ports: int = 0,
        revalidators: int | None = None,
        handlers: int | None = None,
        timeout_s: int | None = None,
        max_connections: int | None = None,
        emc_insert_inv_prob: int | None = None,
        smc: bool | None = None,
    ) -> None:
        """Chooses a kind of DUT with a ruleset, a number of CPUs and of receive queues per port.

        ``datapath`` is ``ovs-dpdk``, ``linux-router``, ``linux-bridge`` or ``emulated``. The rulesets of each are files
        below ``resources/rulesets``: those of OVS in ``ovs``; a router has ``forward``, without netfilter, and those of
        ``iptables`` and ``nftables`` with the folder in front, as in ``iptables-snat``; a bridge has ``forward``; those
        of an emulated machine are in ``emulated``.
        ``ports`` says what the two ports are: ``plain`` links, trunks of a ``vlan``, a ``bond``, or ``bond-vlan``.
        ``mtu`` is the largest IP packet in bytes; ``timeout_s`` every timeout of the connection table, and
        ``max_connections`` its entries at most, where they are not the DUT's usual ones. ``idle_ports`` is a number of
        ports besides, which nothing of the load passes; ``revalidators`` the threads of Open vSwitch that look at the
        flows of its datapath, ``handlers`` those that a datapath in the kernel asks for packets of unknown flows;
        ``emc_insert_inv_prob=0`` switches its exact match cache off, ``smc=True`` its signature match cache on. Skips
        the test where the testbed lacks what the topology needs, CPUs or a kernel module for example. The DUT is set
        up, and read back, when the measurement begins.

        Example:
        | Use Topology    ovs-dpdk    conntrack    cpus=2    rx_queues=2
        | Use Topology    linux-router    nftables-snat
        | Use Topology    linux-bridge    forward    ports=bond    mtu=9000
        """
        try:
            topology = Topology(
                datapath=datapath, ruleset=ruleset, cpus=cpus, rx_queues=rx_queues, ports=ports, mtu=mtu,
                idle_ports=idle_ports, revalidators=revalidators, handlers=handlers,
                timeout_s=timeout_s, max_connections=max_connections,
                emc_insert_inv_prob=emc_insert_inv_prob, smc=smc,
            )  # fmt: skip
            ruleset_of(topology)
        except ValidationError as error:
            raise Failure(_no_topology(error)) from None
        except ConfigError as error:
            note_mistake(_output_folder(), str(error))
            raise Failure(str(error)) from None
        try:
            self._open().testbed.placement(topology)
        except MissingResource as error:
            raise SkipExecution(str(error)) from None
        self._topology = topology

    @keyword(tags=["topology"])
    def use_cable(self) -> None:
        """Chooses a cable in the place of the DUT: what is measured is the traffic generator itself.

        Example:
        | Use Cable
        | Measure Connection Rate    short-lived
        """
        self._topology = CABLE

    @keyword(tags=["measure"])
    def measure_connection_rate(self, profile: str) -> Record:
        """Measures the topology with a connection profile, as the campaign says, and returns the record.

        The campaign may replace the profile by a substitute (``quick`` shortens ``long-lived``); the record says so.
        Shows a line per trial on the console. Where the floor compares with another topology that was not measured in
        this run yet, that one is measured first.

        Example:
        | Measure Connection Rate    long-lived
        """
        return self._measure(profile, "connections")

    @keyword(tags=["measure"])
    def measure_packet_rate(self, profile: str) -> Record:
        """Measures the topology with a packet profile, as the campaign says, and returns the record.

        Loss, latency, throughput and the DUT's CPU time are measured with the rate. Shows a line per trial on the
        console. Where the floor compares with another topology that was not measured in this run yet, that one is
        measured first.

        Example:
        | Measure Packet Rate    udp-64-10k
        """
        return self._measure(profile, "packets")

    @keyword(tags=["measure"])
    def measure_instructions(self, profile: str) -> Record:
        """Counts the instructions that the topology spends on a packet, or a new connection, and returns the record.

        This takes an emulated machine, whose clock is its own instruction count: the figure is the same on every host.
        It is net of the wires and the traffic alone. Shows a line per topology on the console. What is counted with a
        packet profile is a packet, with a connection profile a connection that is opened, or with ``udp-removal`` one
        that is removed from the table, with ``udp-dump`` one that is read out of it.

        Example:
        | Use Topology    emulated    iptables-stateful
        | Measure Instructions    udp-64-1flow
        """
        return self._measure(profile, None, COST)

    @keyword(tags=["judge"])
    def instructions_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what `Measure Instructions` counted in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Instructions Should Meet SLA
        """
        self._judge("instructions")

    @keyword(tags=["judge"])
    def connection_rate_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what `Measure Connection Rate` measured in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Connection Rate Should Meet SLA
        """
        self._judge("connections")

    @keyword(tags=["judge"])
    def packet_rate_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what `Measure Packet Rate` measured in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Packet Rate Should Meet SLA
        """
        self._judge("packets")

    def _measure(self, profile: str, kind: LoadUnit | None, what: str = RATE) -> Record:
        """`kind`: of the profile that a keyword expects; None where it takes any."""
        run, topology, self._record = self._open(), self._topology, None
        if topology is None:
            raise Failure("No topology: use Use Topology or Use Cable first.")
        variables = BuiltIn().get_variables()
        logger.console("")
        try:
            BuiltIn().set_tags(*tags_of(topology, load_profile(profile), run.settings.floors, what))
            tags = tuple(BuiltIn().get_variable_value("@{TEST TAGS}"))
            name = TestName(variables["${SUITE NAME}"], variables["${TEST NAME}"], tags)
            offered = run.profile(profile)
            if kind and offered.kind != kind:
                raise Failure(f"{offered.name} is a profile of {offered.kind}: use {_MEASURES[offered.kind]}.")
            self._record = run.measure(name, topology, profile, what)
        except MissingResource as error:
            self._left = str(error) if isinstance(error, LeftForTheNight) else None
            raise SkipExecution(str(error)) from None
        except ConfigError as error:
            note_mistake(_output_folder(), str(error))
            raise Failure(str(error)) from None
        except TestbedError as error:
            raise Failure(str(error)) from None
        except OutputError as error:
            raise FatalError(str(error)) from None  # what else is measured could not be kept either
        _show_as_metadata(self._record)
        _link_capture(self._record)
        return self._record

    def _judge(self, what: str) -> None:
        """`what`: a key of `_FIRST`."""
        record, self._record = self._record, None
        if record is None or _about(record) != what:
            raise Failure(f"No {what} were measured in this test: use {_FIRST[what]} first.")
        if record.verdict != "met":
            raise Failure(record.message)
        logger.info(record.message)
        BuiltIn().set_test_message(record.message)

    def _open(self) -> AcceptanceRun:
        if self._run is None:
            raise Failure("No testbed: use Open Testbed in the suite set-up.")
        return self._run


def _about(record: Record) -> str:
    """What a record is about, as `_FIRST` calls it."""
    if record.metric in COSTS:
        return "instructions"
    if record.metric in CONTROL:
        return "times of the control plane"
    return "table entries" if METRICS[record.metric].of_table else record.profile.kind


def _output_folder() -> Path:
    return Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))


def _no_topology(error: ValidationError) -> str:
    """The first thing about a topology that cannot be, as one sentence."""
    first = error.errors(include_url=False)[0]
    return f"{first['loc'][0]} is {quoted(first['input'])}: {first['msg'].lower()}."


def _say(line: str) -> None:
    logger.console(line)
    logger.info(line, html=False)


def _link_capture(record: Record) -> None:
    if record.capture:  # of letters, digits, dots and dashes: nothing in it is HTML
        logger.info(f'The test failed: <a href="{record.capture}/">what the DUT said then</a>.', html=True)


def _show_as_metadata(record: Record) -> None:
    for name, value in console.metadata(record).items():
        BuiltIn().set_test_metadata(name, value)

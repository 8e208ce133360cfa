"""The ConntrackSLA keyword library: thin and typed. It translates between Robot Framework and `ctbench`."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError
from robot.api import Failure, FatalError, SkipExecution, logger
from robot.api.deco import keyword, library
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.result import TestCase as TestResult
from robot.running import TestCase as RunningTest

from ConntrackSLA import pool
from ctbench import __version__, preflight
from ctbench.acceptance import AcceptanceRun
from ctbench.base.unexpected import let_pass, sentence_of
from ctbench.dut.base import Topology
from ctbench.dut.cable import CABLE
from ctbench.errors import ConfigError, CtbenchError, MissingResource, OutputError, TestbedError
from ctbench.exit_status import note_mistake
from ctbench.report import console
from ctbench.results import without_record
from ctbench.results.record import Record
from ctbench.results.without_record import WithoutRecord
from ctbench.run.measurement import TestName
from ctbench.run_settings import Settings
from ctbench.traffic.generator import LoadUnit
from ctbench.units import quoted

OvsRuleset = Literal["forward", "conntrack", "conntrack-normal", "nat", "normal", "vlan", "bond", "bond-vlan"]
RouterRuleset = Literal[
    "forward",
    "notrack",
    "vlan",
    "bond",
    "bond-vlan",
    "iptables-stateful",
    "iptables-snat",
    "iptables-dnat",
    "iptables-masquerade",
    "nftables-stateful",
    "nftables-snat",
    "nftables-dnat",
    "nftables-masquerade",
]
BridgeRuleset = Literal["forward", "vlan", "bond", "bond-vlan"]

#: The keyword that measures each kind of profile.
_MEASURES: dict[LoadUnit, str] = {"connections": "Measure Connection Rate", "packets": "Measure Packet Rate"}


@library(scope="GLOBAL", version=__version__, doc_format="ROBOT")
class ConntrackSLA:
    """Measures connection tracking of a device under test (DUT) and judges it by a service level agreement.

    A test sets a topology up, measures it with a connection profile and holds the result against the floor that the
    SLA file has for both:

    | Apply OVS-DPDK Topology    conntrack    pmd_cpus=2    rx_queues=2
    | Measure Connection Rate    short-lived
    | Connection Rate Should Meet SLA

    A packet profile, which is a stateless stream, has keywords of its own:

    | Apply Linux Router Topology    iptables-stateful
    | Measure Packet Rate    udp-64-10k
    | Packet Rate Should Meet SLA

    A test is *met*, *missed* or *not measured*: then it fails with that word first. Where the testbed lacks what the
    topology needs (CPUs, a kernel module, a NIC) the test is skipped and says so. Each test carries the metadata
    ``Floor``, ``Measured``, ``Margin`` and ``Verdict`` (and ``Relative`` where its floor compares it with another
    topology), and leaves a record as JSON in ``records/`` of the output
    directory.

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

    @keyword(tags=["testbed"])
    def open_testbed(
        self, testbed: str = "local", campaign: str = "quick", sla: str = "local", reference: str = ""
    ) -> None:
        """Reads the testbed, campaign and SLA files and checks that this machine can run them.

        Each is a name below ``variables/`` or the path of a file; ``reference`` is the folder of an earlier run, of
        which the SLA promises a share (its key ``of_reference``). A mistake in one ends the whole run before any
        test, with a sentence that names the file, the key and what was expected. A testbed that is open stays so:
        every suite may open it. It is closed when the run is over.

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
            settings = Settings.load(testbed, campaign, sla, reference)
            preflight.check_machine(settings.testbed)
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
            outcome: Literal["skipped", "failed"] = "skipped" if result.skipped else "failed"
            test = WithoutRecord(suite=suite, test=data.name, outcome=outcome, reason=result.message)
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
                logger.console(f"\n{run.summary()}")

    @keyword("Apply OVS-DPDK Topology", tags=["topology"])
    def apply_ovs_dpdk_topology(self, ruleset: OvsRuleset, pmd_cpus: int, rx_queues: int, mtu: int = 1500) -> None:
        """Chooses OVS-DPDK with a ruleset, a number of PMD CPUs and of receive queues per port.

        ``mtu`` is the largest IP packet in bytes. Skips the test where the testbed lacks what the topology needs. The
        DUT is set up, and read back, when the measurement begins.

        Example:
        | Apply OVS-DPDK Topology    nat    pmd_cpus=1    rx_queues=1
        """
        self._apply("ovs-dpdk", ruleset, pmd_cpus, rx_queues, mtu)

    @keyword(tags=["topology"])
    def apply_linux_router_topology(
        self, ruleset: RouterRuleset, cpus: int = 1, rx_queues: int = 1, mtu: int = 1500
    ) -> None:
        """Chooses the Linux kernel as a router with a ruleset, a number of CPUs and of receive queues per port.

        ``forward`` has no netfilter at all, ``notrack`` has it and keeps the traffic out of connection tracking;
        ``vlan``, ``bond`` and ``bond-vlan`` forward over such devices. ``mtu`` is the largest IP packet in bytes.
        Skips the test where the testbed lacks what the topology needs, a kernel module for example. The DUT is set
        up, and read back, when the measurement begins.

        Example:
        | Apply Linux Router Topology    nftables-snat    cpus=1    rx_queues=2
        """
        self._apply("linux-router", ruleset, cpus, rx_queues, mtu)

    @keyword(tags=["topology"])
    def apply_linux_bridge_topology(
        self, ruleset: BridgeRuleset, cpus: int = 1, rx_queues: int = 1, mtu: int = 1500
    ) -> None:
        """Chooses a bridge of the Linux kernel, with a number of CPUs and of receive queues per port.

        ``forward`` bridges the two ports, ``vlan`` filters by VLAN, ``bond`` and ``bond-vlan`` bridge over bonds.
        ``mtu`` is the largest IP packet in bytes. Skips the test where the testbed lacks what the topology needs, a
        kernel module for example. The DUT is set up, and read back, when the measurement begins.

        Example:
        | Apply Linux Bridge Topology    forward    mtu=9000
        """
        self._apply("linux-bridge", ruleset, cpus, rx_queues, mtu)

    @keyword(tags=["topology"])
    def apply_cable(self) -> None:
        """Chooses a cable in the place of the DUT: what is measured is the traffic generator itself.

        Example:
        | Apply Cable
        | Measure Connection Rate    short-lived
        """
        self._topology = CABLE

    @keyword(tags=["measure"])
    def measure_connection_rate(self, profile: str) -> Record:
        """Measures the topology with a connection profile, as the campaign says, and returns the record.

        The campaign may replace the profile by a stand-in (``quick`` shortens ``long-lived``); the record says so.
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

    def _apply(self, datapath: str, ruleset: str, cpus: int, rx_queues: int, mtu: int) -> None:
        try:
            topology = Topology(datapath=datapath, ruleset=ruleset, pmd_cpus=cpus, rx_queues=rx_queues, mtu=mtu)
        except ValidationError as error:
            raise Failure(_no_topology(error)) from None
        try:
            self._open().testbed.placement(topology)
        except MissingResource as error:
            raise SkipExecution(str(error)) from None
        self._topology = topology

    def _measure(self, profile: str, kind: LoadUnit) -> Record:
        run, topology, self._record = self._open(), self._topology, None
        if topology is None:
            raise Failure("No topology: use one of the keywords that apply one first, such as Apply Cable.")
        variables = BuiltIn().get_variables()
        name = TestName(variables["${SUITE NAME}"], variables["${TEST NAME}"], tuple(variables["@{TEST TAGS}"]))
        logger.console("")
        try:
            offered = run.profile(profile)
            if offered.kind != kind:
                raise Failure(f"{offered.name} is a profile of {offered.kind}: use {_MEASURES[offered.kind]}.")
            self._record = run.measure(name, topology, profile)
        except MissingResource as error:
            raise SkipExecution(str(error)) from None
        except ConfigError as error:
            note_mistake(_output_folder(), str(error))
            raise Failure(str(error)) from None
        except TestbedError as error:
            raise Failure(str(error)) from None
        except OutputError as error:
            raise FatalError(str(error)) from None  # what else is measured could not be kept either
        _show_as_metadata(self._record)
        return self._record

    def _judge(self, kind: LoadUnit) -> None:
        record, self._record = self._record, None
        if record is None or record.profile.kind != kind:
            raise Failure(f"No {kind} were measured in this test: use {_MEASURES[kind]} first.")
        message = f"{record.verdict.capitalize()}: {record.verdict_reason}"
        if record.verdict != "met":
            raise Failure(message)
        logger.info(message)
        BuiltIn().set_test_message(message)

    def _open(self) -> AcceptanceRun:
        if self._run is None:
            raise Failure("No testbed: use Open Testbed in the suite set-up.")
        return self._run


def _output_folder() -> Path:
    return Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))


def _no_topology(error: ValidationError) -> str:
    """The first thing about a topology that cannot be, as one sentence."""
    first = error.errors(include_url=False)[0]
    return f"{first['loc'][0]} is {quoted(first['input'])}: {first['msg'].lower()}."


def _say(line: str) -> None:
    logger.console(line)
    logger.info(line, html=False)


def _show_as_metadata(record: Record) -> None:
    for name, value in console.metadata(record).items():
        BuiltIn().set_test_metadata(name, value)

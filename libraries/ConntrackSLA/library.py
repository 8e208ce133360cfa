"""The ConntrackSLA keyword library: thin and typed. It translates between Robot Framework and `ctbench`."""

from pathlib import Path
from typing import Literal

from robot.api import Failure, FatalError, SkipExecution, logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from ctbench import __version__, preflight
from ctbench.acceptance import AcceptanceRun, Settings, TestName
from ctbench.dut.base import Topology
from ctbench.dut.cable import CABLE
from ctbench.errors import ConfigError, CtbenchError, MissingResource, TestbedError
from ctbench.report import console
from ctbench.results.record import Record
from ctbench.units import format_margin

Ruleset = Literal["forward", "conntrack", "conntrack-normal", "nat"]


@library(scope="GLOBAL", version=__version__, doc_format="ROBOT")
class ConntrackSLA:
    """Measures connection tracking of a device under test (DUT) and judges it by a service level agreement.

    A test sets a topology up, measures it with a connection profile and holds the result against the floor that the
    SLA file has for both:

    | Apply OVS-DPDK Topology    conntrack    pmd_cpus=2    rx_queues=2
    | Measure Connection Rate    short-lived
    | Connection Rate Should Meet SLA

    A test is *met*, *missed* or *not measured*: then it fails with that word first. Where the testbed lacks what the
    topology needs (CPUs, a kernel module, a NIC) the test is skipped and says so. Each test carries the metadata
    ``Floor``, ``Measured``, ``Margin`` and ``Verdict``, and leaves a record as JSON in ``records/`` of the output
    directory.

    Which testbed, campaign and SLA a run uses is decided by `Open Testbed`.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        # The library hears of the end of the run, however it comes, and takes the testbed down.
        self.ROBOT_LIBRARY_LISTENER = self
        self._run: AcceptanceRun | None = None
        self._topology: Topology | None = None
        self._record: Record | None = None

    @keyword(tags=["testbed"])
    def open_testbed(self, testbed: str = "local", campaign: str = "quick", sla: str = "local") -> None:
        """Reads the testbed, campaign and SLA files and checks that this machine can run them.

        Each is a name below ``variables/`` or the path of a file. A mistake in one ends the whole run before any
        test, with a sentence that names the file, the key and what was expected. A testbed that is open stays so:
        every suite may open it. It is closed when the run is over.

        Example:
        | Open Testbed    local    campaign=gate    sla=/srv/sla/release-3.yaml
        """
        if self._run is not None:
            return
        try:
            settings = Settings.load(testbed, campaign, sla)
            preflight.check_machine()
        except CtbenchError as error:
            raise FatalError(str(error)) from None
        output = Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))
        self._run = AcceptanceRun(settings, output, _say)

    def close(self) -> None:
        """Listener method, called when the run is over: takes the testbed down and shows the table of verdicts."""
        if self._run is None:
            return
        run, self._run = self._run, None
        run.close()
        if run.records:
            logger.console(f"\n{run.summary()}")

    @keyword("Apply OVS-DPDK Topology", tags=["topology"])
    def apply_ovs_dpdk_topology(self, ruleset: Ruleset, pmd_cpus: int, rx_queues: int) -> None:
        """Chooses OVS-DPDK with a ruleset, a number of PMD CPUs and of receive queues per port.

        Skips the test where the testbed lacks what the topology needs. The DUT is set up, and read back, when the
        measurement begins.

        Example:
        | Apply OVS-DPDK Topology    nat    pmd_cpus=1    rx_queues=1
        """
        self._topology = Topology(datapath="ovs-dpdk", ruleset=ruleset, pmd_cpus=pmd_cpus, rx_queues=rx_queues)
        try:
            self._open().testbed.placement(self._topology)
        except MissingResource as error:
            raise SkipExecution(str(error)) from None

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
        Shows a line per trial on the console.

        Example:
        | Measure Connection Rate    long-lived
        """
        run = self._open()
        if self._topology is None:
            raise Failure("No topology: use Apply OVS-DPDK Topology or Apply Cable first.")
        variables = BuiltIn().get_variables()
        name = TestName(variables["${SUITE NAME}"], variables["${TEST NAME}"], tuple(variables["@{TEST TAGS}"]))
        logger.console("")
        try:
            self._record = run.measure(name, self._topology, profile)
        except MissingResource as error:
            raise SkipExecution(str(error)) from None
        except (ConfigError, TestbedError) as error:
            raise Failure(str(error)) from None
        _show_as_metadata(self._record)
        return self._record

    @keyword(tags=["judge"])
    def connection_rate_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what `Measure Connection Rate` measured in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Connection Rate Should Meet SLA
        """
        record, self._record = self._record, None
        if record is None:
            raise Failure("Nothing was measured in this test: use Measure Connection Rate first.")
        message = f"{record.verdict.capitalize()}: {record.verdict_reason}"
        if record.verdict != "met":
            raise Failure(message)
        logger.info(message)
        BuiltIn().set_test_message(message)

    def _open(self) -> AcceptanceRun:
        if self._run is None:
            raise Failure("No testbed: use Open Testbed in the suite set-up.")
        return self._run


def _say(line: str) -> None:
    logger.console(line)
    logger.info(line, html=False)


def _show_as_metadata(record: Record) -> None:
    margin = "-" if record.margin_pct is None else format_margin(record.margin_pct)
    shown = {
        "Floor": console.floor_text(record),
        "Measured": console.measured_text(record),
        "Margin": margin,
        "Verdict": record.verdict,
    }
    for name, value in shown.items():
        BuiltIn().set_test_metadata(name, value)

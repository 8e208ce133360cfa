"""An acceptance run on the real OVS-DPDK: every kind of verdict is reached for its real reason, and written down."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from integration.small_testbed import small
from real_duts import tried
from whole_records import read_all

from ctbench.dut.ovs import threads
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES
from ctbench.results.record import Record
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctgen import engine, plan

HERE = Path(__file__).parent
#: What the connection table is cut down to where the DUT is to fail: less than a hundredth of what a trial opens.
FEW_CONNECTIONS = 5
#: What the generator demands of itself; the other tests are not that strict (fixture `unhurried`).
LATE_RATIO_LIMIT, ATTEMPTED_LIMIT = engine.LATE_RATIO_LIMIT, engine.ATTEMPTED_LIMIT
LATE_LIMIT_S = plan.LATE_LIMIT_S
STATEFUL_ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful")
#: Threads that compete for the generator's CPU where the generator is to fail.
NEIGHBOURS = 6


#: With loads far below what a DUT serves.
pytestmark = [pytest.mark.usefixtures("resting", "unhurried"), pytest.mark.beside_others]


def settings() -> RunSettings:
    """The default testbed, with a campaign and the floors of this folder."""
    read = RunSettings.load(campaign=str(HERE / "gate.yaml"), sla=str(HERE / "floors.yaml"))
    return replace(read, testbed=small(read.testbed))


def measure(
    run: AcceptanceRun, asked: RunSettings | None = None, topology: Topology | None = None, profile: str = "short-lived"
) -> Record:
    run.settings = asked or settings()
    promise = PROMISES["packet rate" if profile.startswith("udp-64") else "connection rate"]
    return run.measure(TestName("Suite", "Test", ("tag",)), topology or Topology(), profile, promise)


def judged(measured: Callable[[], Record]) -> Record:
    """A record that says something of the DUT: what others left too little of the machine for is measured again."""
    return tried(measured, lambda record: record.verdict != "not measured" or record.limited_by == "fault")


def started(output: Path, asked: RunSettings) -> Iterator[AcceptanceRun]:
    """A run that is closed in the end; what it says on the console goes to its file `console`."""
    with (output / "console").open("w") as console:
        run = AcceptanceRun(asked, output, lambda line: print(line, file=console, flush=True))
        try:
            yield run
        finally:
            run.close()


@pytest.fixture(scope="module")
def run(able_machine: None, unhurried: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptanceRun]:
    """A run that has measured: its record is met, and it knows the generator's ceiling."""
    for run in started(tmp_path_factory.mktemp("run"), settings()):
        judged(partial(measure, run))
        yield run


def test_a_floor_that_is_held_is_met_and_the_record_says_all_about_it(run: AcceptanceRun) -> None:
    records, broken = read_all(run.output)  # held against the schema

    assert broken == []
    first = records[-1]
    assert first.to_json() == run.records[-1].to_json()
    assert (first.verdict, first.limited_by) == ("met", "floor"), first.verdict_reason
    assert (first.suite, first.test, first.tags) == ("Suite", "Test", ["tag"])
    assert first.result and first.result.value >= 1000
    assert first.margin_pct is not None and first.margin_pct >= 0
    assert first.evidence.ceiling and first.evidence.ceiling > 1000
    # One of the closed loop, and one or more at the floor: more where a busy machine spoilt one.
    assert sum(made.state == "good" for made in first.evidence.trials) >= 2
    assert all(made.trial.duration_s == 0.2 for made in first.evidence.trials if made.phase != "saturation")
    assert first.environment.dut.product.startswith("Open vSwitch ")
    assert first.environment.dut.model_extra["rxq_map"]
    assert first.environment.generator["type"] == "software"
    assert "MET" in (run.output / "console").read_text()


def test_a_dut_that_loses_connections_misses_its_floor(run: AcceptanceRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MOST_WAITING", 1.0)  # a rival for its CPU does not excuse a small table
    begin_trial = OvsDpdkDut.begin_trial

    def with_a_small_table(dut: OvsDpdkDut) -> None:
        dut.control.appctl("dpctl/ct-set-maxconns", str(FEW_CONNECTIONS))
        begin_trial(dut)

    with monkeypatch.context() as patch:
        patch.setattr(OvsDpdkDut, "begin_trial", with_a_small_table)
        patch.setattr(plan, "REPLY_TIMEOUT_S", 0.5)  # what never comes need not be waited for
        record = judged(lambda: measure(run))

    assert record.verdict == "missed", record.verdict_reason
    assert "of the connections were lost, mostly no syn ack" in record.verdict_reason
    assert record.margin_pct is not None and record.margin_pct < 0
    told = {path.stem: path.read_text() for path in (run.output / record.capture).iterdir()}
    assert told["conntrack-limit"].endswith(f"\n{FEW_CONNECTIONS}\n")
    assert "emc hits" in told["pmd-stats"] and "isolated" in told["pmd-rxq"] and "ct(" in told["flows"]
    assert all("exit status" not in text and "answer" not in text for name, text in told.items() if name != "dmesg")
    again = judged(lambda: measure(run))
    assert (again.verdict, again.capture) == ("met", None)  # nothing of it is left


def test_a_generator_whose_cpu_is_taken_measures_nothing(run: AcceptanceRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LATE_RATIO_LIMIT", LATE_RATIO_LIMIT)
    monkeypatch.setattr(engine, "ATTEMPTED_LIMIT", ATTEMPTED_LIMIT)
    monkeypatch.setattr(plan, "LATE_LIMIT_S", LATE_LIMIT_S)
    (cpu,) = run.testbed.placement(Topology()).generator
    endless = ["taskset", "-c", str(cpu), sys.executable, "-S", "-c", "while True: pass"]
    neighbours = [subprocess.Popen(endless) for _ in range(NEIGHBOURS)]
    try:
        record = measure(run)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()

    assert record.verdict == "not measured", record.verdict_reason
    assert record.limited_by == "generator"
    assert all(made.state == "invalid" for made in record.evidence.trials if made.phase != "saturation")


def test_packets_are_measured_through_the_same_ovs(run: AcceptanceRun) -> None:
    record = judged(lambda: measure(run, topology=Topology(ruleset="normal"), profile="udp-64-1flow"))

    assert record.verdict == "met", record.verdict_reason
    assert record.result and record.result.unit == "packets/s"
    assert record.result.value == record.figures["pps"].value >= 1000
    assert record.figures["latency_p50"].value > 0
    assert record.figures["busy_cpus"].value > 0
    assert {made.cpu.source for made in record.evidence.trials if made.cpu} == {"PMD cycles"}


def test_a_linux_router_is_held_against_plain_forwarding(run: AcceptanceRun) -> None:
    record = judged(lambda: measure(run, topology=STATEFUL_ROUTER, profile="udp-64-1flow"))

    (pair,) = record.evidence.pairs
    assert (pair.other.key, pair.how) == ("linux-router/forward/1cpu-1rxq", "side by side")
    assert record.figures["ratio"].value > 0
    assert record.figures["saturation_pps"].value > 10_000
    assert {made.cpu.source for made in record.evidence.trials if made.cpu} == {"link threads"}
    assert record.environment.dut.model_extra["kind"] == "linux-router"

"""The control plane of the real OVS-DPDK under a real load: what it does is measured, a promise can be missed, and one
that is killed in the middle is named, looked at, and replaced."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from integration.small_testbed import small
from integration.test_faults import process_of, said, sandbox_of
from integration.test_suites_records import HERE, judged, started
from wire import watching

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs import control_plane
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import ControlPlaneSettings
from ctbench.measure.procedures import control_plane as procedures
from ctbench.measure.procedures import highest_load
from ctbench.measure.procedures.control_plane import STATISTICS, STATISTICS_PERIOD_S
from ctbench.measure.promises import PROMISES
from ctbench.results.record import Record
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.traffic.software import SoftwareTrafficGenerator
from ctgen import plan
from ctgen.engine import Run

PLAIN = Topology()
PORTS = Topology(idle_ports=8)
FLOWS = Topology(ruleset="flow-each", revalidators=1)
#: Promises by what is done.
DUMP, CHURN, REVALIDATE, FORCE = "table dump time", "port churn time", "revalidation time", "forced revalidation time"
COLLECT, CONTENTION, UPCALLS, HELD_DUMP = "statistics time", "lock share", "new flow rate", "held dump time"
#: What is done under a load, of which topology, with which profile.
ALL = [
    (DUMP, PLAIN, "short-lived"),
    (CHURN, PORTS, "short-lived"),
    (REVALIDATE, FLOWS, "udp-64-10k"),
    (FORCE, FLOWS, "udp-64-10k"),
]
#: What else is measured of the control plane, and in which phase its first trial is.
HELD = Topology(timeout_s=120)
NEW = Topology(ruleset="flow-each", handlers=1)
MORE = [
    (COLLECT, PORTS, "short-lived", "alone"),
    (CONTENTION, PLAIN, "short-lived", "saturation"),
    (UPCALLS, NEW, "udp-exchange", "saturation"),
]
FEW_PORTS, MANY_PORTS = (Topology(idle_ports=number) for number in (16, 96))
LOADS = ControlPlaneSettings.model_construct(trial_duration=2.5, alone_duration=0.5, connections=2_000, packets=20_000)

#: Whether it happens, and what remains of it, is looked at: others may use the machine as well.
pytestmark = [pytest.mark.usefixtures("resting", "unhurried"), pytest.mark.beside_others]


def settings(**promises: str) -> RunSettings:
    """The default testbed, with a small load, and these promises of each of the topologies."""
    read = RunSettings.load(campaign=str(HERE / "gate.yaml"), sla=str(HERE / "floors.yaml"))
    promised: dict[str, dict[str, dict[str, str]]] = {}
    for topology, profile in (
        *(each[1:3] for each in (*ALL, *MORE)),
        (HELD, "held"),
        *((ports, "short-lived") for ports in (FEW_PORTS, MANY_PORTS)),
    ):
        own = {name: text for name, text in promises.items() if _is_of(name, profile)}
        promised.setdefault(topology.key, {})[profile] = own
    head = {"name": "mine", "description": "", "source": "tests"}
    campaign = read.campaign.model_copy(update={"control_plane": LOADS})
    return replace(read, testbed=small(read.testbed), campaign=campaign, floors=Floors.model_validate(head | promised))


def _is_of(name: str, profile: str) -> bool:
    if name in ONLY:
        return profile in ONLY[name]
    return profile in ("short-lived", "held") and (profile == "short-lived" or name == "dump_time")


#: Promises that only some profiles can have.
ONLY = {
    "revalidation_time": ["udp-64-10k"],
    "sweep_time": ["udp-64-10k"],
    "new_flow_rate": ["udp-exchange"],
    "held_connections": ["held"],
}
EASY = {
    "statistics_time": "<= 30s", "mutex_share": "<= 100%", "new_flow_rate": ">= 1", "held_connections": ">= 2k",
    "dump_time": "<= 30s", "port_add_time": "<= 30s", "port_delete_time": "<= 30s", "revalidation_time": "<= 30s",
    "sweep_time": "<= 30s",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(able_machine: None, unhurried: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptanceRun]:
    """The run that everything happens to. What never comes need not be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", 0.5)
        patch.setattr(highest_load, "TRIAL_S", 0.2)
        yield from started(tmp_path_factory.mktemp("control"), settings(**EASY))


def measure(run: AcceptanceRun, what: str, topology: Topology, profile: str, **promises: str) -> Record:
    run.settings = settings(**(EASY | promises))
    return run.measure(TestName("Suite", what, ("tag",)), topology, profile, PROMISES[what])


@pytest.mark.parametrize(("what", "topology", "profile"), ALL)
def test_it_is_measured_and_nothing_of_it_stays(
    run: AcceptanceRun, what: str, topology: Topology, profile: str
) -> None:
    record = judged(lambda: measure(run, what, topology, profile))

    assert record.verdict == "met", record.verdict_reason
    assert [trial.phase for trial in record.evidence.trials] == ["alone", "beside"]
    sizes = {DUMP: 2_000, CHURN: 8, REVALIDATE: 10_000, FORCE: 10_000}
    for done in record.evidence.control:
        assert done.number >= 3 and 0 <= done.median <= done.most
        assert 0.8 * sizes[what] <= done.size <= 2 * sizes[what]
    assert record.figures["main_thread_longest"].value >= 0
    assert ("loss_meanwhile" in record.figures) or record.evidence.trials[1].state == "invalid"
    dut = run.testbed.dut
    ports = dut.control.vsctl("list-ports", dut.control.bridge).split()
    assert len([name for name in ports if name.startswith("stay")]) == topology.idle_ports
    assert not [name for name in ports if name.startswith("pod")]
    dut.verify()


def test_as_many_revalidators_run_as_the_topology_asks_for(run: AcceptanceRun) -> None:
    run.testbed.apply(FLOWS)
    dut = run.testbed.dut
    pid = dut.snapshot()["pid"]
    names = dut.control.host.run(["sh", "-c", f"cat /proc/{pid}/task/*/comm"]).stdout
    assert len(re.findall(r"^revalidator", names, re.MULTILINE)) == 1


def test_every_new_connection_gets_flows_of_its_own(run: AcceptanceRun) -> None:
    try:
        record = judged(lambda: measure(run, UPCALLS, NEW, "udp-exchange"))
    except MissingResource as error:  # Open vSwitch has no handlers for its userspace datapath since 3.4
        pytest.skip(str(error))
    assert record.verdict == "met", record.verdict_reason
    assert len(record.evidence.trials) >= 9 and record.figures["new_flow_rate"].value > 100


def test_the_table_is_printed_while_connections_are_held(run: AcceptanceRun) -> None:
    record = judged(lambda: measure(run, HELD_DUMP, HELD, "held", dump_time="<= 1us"))
    assert record.verdict == "missed", record.verdict_reason
    (done,) = record.evidence.control
    assert done.number >= 9 and done.size == record.figures["held_connections"].value == 2000
    assert record.figures["loss_meanwhile"].value == 0


@pytest.mark.parametrize(
    ("what", "topology", "profile", "first"),
    # Of what asks the same program, under a load or in closed loops, one is enough.
    [(*each, "alone") for each in ALL if each[0] in (DUMP, CHURN)] + [each for each in MORE if each[0] != UPCALLS],
)
def test_one_that_is_killed_in_the_middle_is_named_and_looked_at_and_the_next_test_has_a_fresh_one(
    run: AcceptanceRun, what: str, topology: Topology, profile: str, first: str
) -> None:
    trials: list[float] = []
    run_trial = SoftwareTrafficGenerator.run_trial
    # The testbed has to stand before its generator can be watched.
    run.testbed.apply(topology, run.profile(profile))

    def counted(generator: SoftwareTrafficGenerator, *arguments: object) -> object:
        trials.append(0.0)
        return run_trial(generator, *arguments)  # type: ignore[arg-type]

    def watch(_run: Run) -> None:
        if len(trials) == 2:
            trials.append(0.0)
            os.kill(process_of(sandbox_of(run), "ovs-vswitchd"), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch, watching(watch):
        patch.setattr(SoftwareTrafficGenerator, "run_trial", counted)
        patch.setattr(control_plane, "_TAKE_OVER_S", 1)  # what has died takes no port over
        record = measure(run, what, topology, profile)

    assert (record.verdict, record.limited_by) == ("not measured", "fault"), record.verdict_reason
    assert re.search(r"ovs-vswitchd \(process \d+\) was killed by SIGKILL, in trial \d+", record.verdict_reason)
    # This trial had the one that is fresh after the test before.
    assert [trial.phase for trial in record.evidence.trials] == [first]
    assert "log" in said(run, record)


def test_a_bridge_with_many_ports_takes_longer_to_collect_statistics(
    run: AcceptanceRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One collection, and a second for what is not a whole period.
    monkeypatch.setattr(procedures, "LEAST_DONE", 1)
    times, action, _ = STATISTICS.script.args  # type: ignore[attr-defined]
    once = replace(STATISTICS, script=partial(procedures._measure, times, action, STATISTICS_PERIOD_S + 1))
    monkeypatch.setitem(PROMISES, COLLECT, replace(PROMISES[COLLECT], procedure=once))
    for _ in range(3):  # of one collection each, another process can make the first one the longer one
        few = judged(lambda: measure(run, COLLECT, FEW_PORTS, "short-lived"))
        assert few.verdict == "met", few.verdict_reason
        promise = f"<= {few.figures['statistics_time'].value * 1e6:.0f}us"
        many = measure(run, COLLECT, MANY_PORTS, "short-lived", statistics_time=promise)
        if many.verdict == "missed":
            break
    assert many.verdict == "missed", many.verdict_reason
    assert re.search(r"instead of at most [\d.]+ [mu]s", many.verdict_reason)
    assert [done.number for done in (*few.evidence.control, *many.evidence.control)] == [1, 1]

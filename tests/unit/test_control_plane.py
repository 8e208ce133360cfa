"""What the control plane does beside a load: the figures, what each promise is decided by, and what says nothing."""

import os
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.control_plane import ThreadLook
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.control_plane import OvsControlPlane
from ctbench.dut.ovs.counters import new_drops
from ctbench.dut.ovs.idle_ports import IdlePorts
from ctbench.dut.ovs.parse import PortCounters
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.hosts.local import LocalHost
from ctbench.measure.control_actions import bursts
from ctbench.measure.control_plane_settings import ControlPlaneSettings
from ctbench.measure.main_thread import longest_busy
from ctbench.measure.procedures.control_plane import PORT_CHURN, STATISTICS, TABLE_DUMP
from ctbench.report.charts.control import control_charts
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.results import store
from ctbench.results.evidence import Evidence
from ctbench.results.metrics import CONTROL, METRICS
from ctbench.run.choice import COLLECT, DUMP, OF_CONTROL, UPCALLS, choose
from ctbench.run.tags import tags_of
from ctbench.sla.verdict import Verdict
from ctbench.traffic.profiles import PacketProfile

from .control_double import FLOWS, SHORT, FakePlane, campaign, measured
from .simulated import made_up_floor, made_up_record, promises

pytestmark = pytest.mark.unit

#: Each of its flows comes again within 4 s.
MANY = PacketProfile(name="udp-64-100k-both", kind="packets", flows=100_000, directions="both", client_ips=256)


def verdict_of(dut: FakePlane, **limits: str) -> Verdict:
    return measured(dut, TABLE_DUMP, **limits)[1]


def test_the_load_is_offered_alone_first_and_the_figure_is_the_median_of_the_times() -> None:
    dut = FakePlane(takes=lambda number: 0.1 + number / 1000, works=21)
    found, verdict = measured(dut, TABLE_DUMP, dump_time="<= 2s")
    assert dut.durations == [2.0, 4.0]
    assert [step.phase for step in found.steps] == ["alone", "beside"]
    (record,) = found.control
    assert (record.action, record.size, record.sizes) == ("dump", 10_000, "entries")
    assert record.number == dut.done >= 21
    assert found.result is not None and found.result.low is not None and found.result.high is not None
    assert record.low <= record.median <= record.high <= record.p99 <= record.most == 0.1 + dut.done / 1000
    assert (found.result.value, found.result.low, found.result.high) == (record.median, record.low, record.high)
    assert found.figures["loss_meanwhile"].value == 0
    assert found.figures["connect_time_meanwhile"].value == pytest.approx(200e-6)
    assert (verdict.word, "99 % interval" in verdict.reason or "median of" in verdict.reason) == ("met", True)


def test_what_a_probe_saw_is_in_the_record_sample_by_sample() -> None:
    found, _ = measured(FakePlane(), TABLE_DUMP, dump_time="<= 2s")
    (seen,) = found.steps[1].observation.samples
    assert seen.name == "dump_time" and seen.unit == "s"
    assert 0.1 in seen.values
    assert not found.steps[0].observation.samples


def test_a_control_plane_that_is_slower_than_promised_is_missed() -> None:
    verdict = verdict_of(FakePlane(), dump_time="<= 50ms")
    assert verdict.word == "missed"
    assert "100.0 ms instead of at most 50.0 ms" in verdict.reason
    assert verdict.margin_pct == pytest.approx(-50)


def test_times_on_both_sides_of_the_promise_decide_nothing() -> None:
    verdict = verdict_of(FakePlane(takes=lambda number: (0.04, 0.06)[number % 2]), dump_time="<= 50ms")
    assert (verdict.word, "too close to call" in verdict.reason) == ("not measured", True)


@pytest.mark.parametrize(
    ("dut", "word", "why"),
    [
        (FakePlane(loss=0.005), "met", ""),
        (FakePlane(loss=0.05), "missed", "lost meanwhile: 5"),
        (FakePlane(loss=0.05, limited="it was 300 ms late"), "not measured", "it was 300 ms late"),
    ],
    ids=["kept", "broken", "by the generator"],
)
def test_what_the_load_loses_meanwhile_is_judged_unless_the_generator_lost_it(
    dut: FakePlane, word: str, why: str
) -> None:
    verdict = verdict_of(dut, dump_time="<= 2s", loss_meanwhile="<= 1%")
    assert (verdict.word, why in verdict.reason) == (word, True)


def test_what_the_generator_lost_is_no_figure_and_what_it_held_though_late_is_one() -> None:
    found, _ = measured(FakePlane(loss=0.1, limited="it was 300 ms late"), TABLE_DUMP, dump_time="<= 2s")
    assert set(found.figures) == {"dump_time", "main_thread_longest"}
    found, _ = measured(FakePlane(limited="it was 300 ms late"), TABLE_DUMP, dump_time="<= 2s")
    assert found.figures["loss_meanwhile"].value == 0


def test_a_trial_that_loses_much_is_not_ended_early() -> None:
    dut = FakePlane(loss=0.9)
    found, _ = measured(dut, TABLE_DUMP, dump_time="<= 2s")
    assert found.steps[1].observation.trial.ended_after_s is None
    assert (found.steps[1].observation.state, found.figures["loss_meanwhile"].value) == ("bad", pytest.approx(0.9))


@pytest.mark.parametrize(("late_ms", "word"), [(0.5, "missed"), (18.0, "not measured")])
def test_the_load_waits_for_the_dut_unless_the_generator_was_as_late(late_ms: float, word: str) -> None:
    dut = FakePlane(p99_us=5_000, late_ms=late_ms)
    verdict = verdict_of(dut, dump_time="<= 2s", connect_time_meanwhile="<= 2ms")
    assert verdict.word == word
    assert ("up to 18.0 ms late" in verdict.reason) == (word == "not measured")


@pytest.mark.parametrize(
    ("dut", "trials", "limited_by"),
    [(FakePlane(alone_loss=0.1), 1, "dut"), (FakePlane(alone_limited="its CPU was taken"), 3, "generator")],
)
def test_a_load_that_is_not_held_alone_says_nothing(dut: FakePlane, trials: int, limited_by: str) -> None:
    found, verdict = measured(dut, TABLE_DUMP, dump_time="<= 2s")
    assert (verdict.word, found.limited_by, len(found.steps), dut.done) == ("not measured", limited_by, trials, 0)
    assert "the load alone is not held here" in verdict.reason


def test_what_was_done_with_half_a_table_or_seldom_says_nothing() -> None:
    for dut in (FakePlane(size=5_000), FakePlane(works=12, refused="`ovs-appctl` failed")):
        found, verdict = measured(dut, TABLE_DUMP, dump_time="<= 2s")
        assert (verdict.word, found.figures) == ("not measured", {})
        assert "0 of " in verdict.reason and "8.0 k entries or more" in verdict.reason


def test_a_dut_that_dies_meanwhile_is_a_fault_with_the_trials_made_until_then() -> None:
    found, verdict = measured(FakePlane(dies="ovs-vswitchd (process 7) was killed by SIGKILL."), TABLE_DUMP)
    assert (found.limited_by, len(found.steps)) == ("fault", 1)
    assert "killed by SIGKILL, in trial 2" in verdict.reason


def test_ports_come_and_go_ten_at_a_time_and_none_is_left() -> None:
    dut = FakePlane(works=45, size=128)
    found, verdict = measured(dut, PORT_CHURN, port_add_time="<= 1s", port_delete_time="<= 10ms")
    added, deleted = found.control
    assert [each.metric for each in found.control] == ["port_add_time", "port_delete_time"]
    assert (added.size, added.median, deleted.median) == (128, 0.1, 0.05)
    assert 20 <= added.number < 45 and deleted.number >= 20
    assert dut.ports == []
    assert (verdict.word, "deleting a port: 50.0 ms instead of at most 10.0 ms" in verdict.reason) == ("missed", True)


def test_a_port_that_cannot_be_added_is_a_fault_before_anything_is_timed() -> None:
    found, verdict = measured(FakePlane(broken_port="no tap devices"), PORT_CHURN, port_add_time="<= 1s")
    assert (found.limited_by, verdict.word) == ("fault", "not measured")
    assert "no tap devices" in verdict.reason


def test_the_longest_time_without_an_answer_is_that_between_two_waits() -> None:
    waits = [True, False, False, False, True, False, True]
    looks = [(number / 10, ThreadLook(number / 10, waits[number])) for number in range(len(waits))]
    assert longest_busy(looks) == pytest.approx(0.2)
    assert longest_busy(looks[:1]) == 0


def test_a_main_thread_that_answers_nobody_for_too_long_is_missed_and_one_that_is_not_seen_says_nothing() -> None:
    found, verdict = measured(FakePlane(), TABLE_DUMP, dump_time="<= 2s", main_thread_longest="<= 1us")
    assert found.figures["main_thread_longest"].value == 0  # single looks between waits
    assert verdict.word == "met"
    unseen = verdict_of(FakePlane(seen=False), dump_time="<= 2s", main_thread_longest="<= 1us")
    assert (unseen.word, "cannot be seen from this machine" in unseen.reason) == ("not measured", True)


def test_a_collection_is_the_largest_burst_of_each_whole_period() -> None:
    # CPU time of a thread that works 0.2 ms in each 20 ms, and for 20 ms each 5 s, in two samples.
    seen, ran = [], 0.0
    for number in range(1, 801):
        ran += 0.0002 + (0.010 if number % 250 in (120, 121) else 0.0)
        seen.append((number * 0.02, ran))
    assert bursts(seen) == [pytest.approx(0.0206, abs=0.0003)] * 3
    assert bursts(seen[:249]) == bursts([]) == []


def test_statistics_are_seen_for_three_periods_at_least_or_say_nothing() -> None:
    found, verdict = measured(FakePlane(), STATISTICS, statistics_time="<= 500ms")
    assert found.steps[1].observation.trial.duration_s == STATISTICS.least_s == 16
    assert (verdict.word, "0 of 0 times" in verdict.reason) == ("not measured", True)
    assert ControlPlaneSettings().traffic_s(SHORT, STATISTICS.least_s) == 18
    with pytest.raises(MissingResource, match="takes 18 s of traffic"):
        choose(COLLECT, campaign(control_plane={"most": "10s"}), Topology(), SHORT)


def test_a_campaign_can_say_that_a_test_takes_too_long() -> None:
    assert choose(DUMP, campaign(), Topology(), MANY).main is TABLE_DUMP
    with pytest.raises(MissingResource, match=r"takes 14 s of traffic, and campaign mine gives it 10 s"):
        choose(DUMP, campaign(control_plane={"most": "10s"}), Topology(), MANY)
    with pytest.raises(MissingResource, match="leaves upcalls out"):
        choose(UPCALLS, campaign(control_plane={"leave_out": ["upcalls"]}), Topology(), SHORT)
    with pytest.raises(MissingResource, match="compares two builds"):
        choose(DUMP, campaign(search="pair", pair={"rounds": 24}), Topology(), SHORT)


def test_settings_count_the_first_pass_of_the_flows() -> None:
    settings = ControlPlaneSettings.model_validate({"packets": "50k"})
    assert settings.traffic_s(SHORT) == 6
    assert settings.traffic_s(MANY) == 6 + 2 * 4
    assert (settings.rate(SHORT), settings.rate(FLOWS)) == (10_000, 50_000)


def test_tags_say_what_is_done_and_not_which_rate() -> None:
    tags = tags_of(Topology(), SHORT, what=DUMP)
    assert {"control-plane", "dump", "ovs-dpdk", "conntrack"} <= set(tags)
    assert not {"cps", "short-lived", "ratio"} & set(tags)


def test_everything_that_is_measured_is_a_metric_and_only_of_flows_more_is_better() -> None:
    times = {made(campaign(), SHORT).metric(SHORT).name for made in OF_CONTROL.values()} | {"port_delete_time"}
    assert times == CONTROL
    assert {METRICS[name].role for name in times} == {"promise"}
    assert {name for name in times if METRICS[name].better == "higher"} == {"new_flow_rate"}


class Prints(LocalHost):
    """Instead of Open vSwitch's tool, something prints."""

    def __init__(self, *command: str) -> None:
        self.command = command

    def run(self, argv: object, *rest: object, **named: object) -> Completed:  # type: ignore[override]
        return super().run(["sh", "-c", argv[2], "sh", *self.command], 10)  # type: ignore[index]


def test_a_dump_counts_its_lines_and_one_without_any_is_an_error() -> None:
    def plane(*command: str) -> OvsControlPlane:
        control = OvsControl(Prints(*command), OvsInstallation(), "/nowhere")
        return OvsControlPlane(control, IdlePorts(control), os.getpid())

    done = plane("seq", "7").dump_connections()
    assert (done.size, 0 < done.seconds < 10) == (7, True)
    with pytest.raises(TestbedError, match="printed no connection"):
        plane("false").dump_connections()


def test_ports_that_came_since_lose_no_packet_of_the_load() -> None:
    counted = PortCounters(rx_packets=1, tx_packets=1, drops={"rx_dropped": 5})
    assert new_drops({}, {171: counted}) == {}


def test_the_page_has_a_line_and_a_chart_of_it(tmp_path: Path) -> None:
    output = tmp_path
    floor = made_up_floor()
    for name in ("Dump Of 10 000 Entries", "Dump Of 100 000 Entries"):
        found, _ = measured(FakePlane(), TABLE_DUMP, dump_time="<= 2s")
        record = made_up_record(
            found,
            type(floor)(floor.key, SHORT, "tests", METRICS["dump_time"], promises(dump_time="<= 2s")),
            None,
            test=name,
            evidence=Evidence(trials=[step.as_record() for step in found.steps], control=list(found.control)),
        )
        store.write(record, output)
    runs = read_runs([output])
    page = compose(runs, output)
    assert [(line.row.test, line.what) for line in page.control] == [
        ("Dump Of 10 000 Entries", "dump of the connection table, 10.0 k entries"),
        ("Dump Of 100 000 Entries", "dump of the connection table, 10.0 k entries"),
    ]
    assert page.control[0].times[2] == "100.0 ms" and page.control[0].lost == "0.000 %"
    (chart,) = control_charts([each.record for each in runs.newest])
    assert chart.title == "Dump of the connection table"

"""The first screen, and what the report says of kinds of promises, of pairs, of trials that were thrown away, of
saturation."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctbench.dut.topology import Topology
from ctbench.report import console, figures, headline, setups
from ctbench.report.charts.chart import Bars
from ctbench.report.write import write_reports
from ctbench.results.environment import MachineFacts
from ctbench.results.evidence import Evidence, GoalRecord, LookRecord, PairRecord, SideRecord
from ctbench.results.floor import BoundMachine, promise
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.store import Stored
from ctbench.results.verdict import Code, Verdict
from ctbench.sla.verdict import judge

from .counted import PER_PACKET, counted_record
from .simulated import (
    FORWARDING,
    bound_to,
    found,
    made_up_floor,
    made_up_packet_floor,
    made_up_packet_record,
    made_up_record,
    outcome_of,
    run_of,
    saying,
    with_evidence,
    with_trials,
)


def tally(met: int = 0, missed: int = 0, not_measured: int = 0, *others: int) -> headline.Tally:
    words = ("met", "missed", "not measured", "skipped", "failed", "unreadable")
    return headline.Tally(dict(zip(words, (met, missed, not_measured, *others), strict=False)))


@pytest.mark.parametrize(
    ("found", "said", "color"),
    [
        (tally(59), "All 59 SLAs that were measured are met.", "met"),
        (tally(1), "The SLA that was measured is met.", "met"),
        (tally(56, 2, 1), "2 of 59 SLAs are missed; 1 is not measured, 56 are met.", "missed"),
        (tally(1, 1), "1 of 2 SLAs is missed; 1 is met.", "missed"),
        (tally(0, 1, 1), "1 of 2 SLAs is missed; 1 is not measured.", "missed"),
        (tally(0, 1), "The only SLA is missed.", "missed"),
        (tally(0, 3), "3 of 3 SLAs are missed.", "missed"),
        (tally(4, 0, 6), "6 of 10 SLAs are not measured; 4 are met.", "unmeasured"),
        (tally(0, 0, 2), "2 of 2 SLAs are not measured.", "unmeasured"),
        (tally(0, 0, 1), "The only SLA is not measured.", "unmeasured"),
        (tally(), "Nothing was measured.", "unmeasured"),
        (tally(0, 0, 0, 25), "Nothing was measured.", "unmeasured"),
        (
            tally(5) + headline.Tally({"no slower seen": 2}),
            "2 of 7 SLAs are no slower than the traffic generator can see; 5 are met.",
            "met",
        ),
        (tally(1234), "All 1\u202f234 SLAs that were measured are met.", "met"),
    ],
)
def test_the_verdict_is_one_sentence(found: headline.Tally, said: str, color: str) -> None:
    assert (headline.sentence(found), headline.tone(found)) == (said, color)


def test_skipped_tests_leave_a_verdict_green_and_cpus_are_said_first() -> None:
    found = tally(59, 0, 0, 25)
    assert headline.tone(found) == "met"
    assert headline.unseen(found, []) == ("25 tests skipped: not possible on this testbed, or left out of this run.",)
    assert [(number, shown.word) for number, shown in headline.counts(found)] == [
        (59, "met"), (0, "missed"), (0, "not measured"), (25, "skipped"),
    ]  # fmt: skip
    stored = [Stored(Path("x"), made_up_record(), trials=4, thrown_away=1)]
    assert headline.unseen(tally(1), stored) == (
        "More than 2 CPUs: its machine had no more.",
        "Whether another build is slower: no candidate was compared with a base (--candidate).",
        "1 of 4 trials was thrown away: they say nothing about the device under test.",
    )


@pytest.mark.parametrize("found", [tally(59, 0, 0, 0, 1), tally(59, 0, 0, 0, 0, 1)])
def test_a_failed_test_or_a_file_that_cannot_be_read_is_never_green(found: headline.Tally) -> None:
    assert headline.tone(found) == "unmeasured"
    assert len(headline.details(found, [])) == 1


SNAT = "linux-router/iptables-snat/1cpu-1rxq"


def pair(**changes: Any) -> PairRecord:
    look = LookRecord(rounds=12, value=0.642, low=0.631, high=0.65)
    sides = {"tested": SideRecord(key=SNAT, rate=264_400.0), "other": SideRecord(key=FORWARDING, rate=412_000.0)}
    ratios = [0.63 + 0.002 * number for number in range(12)]
    return PairRecord(**(sides | {"how": "side by side", "slice_s": 0.05, "ratios": ratios, "looks": [look]} | changes))


def compared(low: float = 0.631, *, smoke: bool = False, **changes: Any) -> Record:
    """The record of a ratio with its pair, and of a saturation."""
    floor = made_up_packet_floor(share=">= 60%")
    ratio_only = {name: each for name, each in floor.thresholds.items() if name != "pps"}
    floor = saying(replace(floor, thresholds=ratio_only), "ratio", smoke=smoke)
    figures = {
        "ratio": Estimate(value=0.642, unit="ratio", low=low, high=0.65),
        "saturation_pps": Estimate(value=264_400.0, unit="packets/s"),
    }
    outcome = replace(outcome_of(found(1.0)), metric=floor.metric, figures=figures, trials=())
    verdict = Verdict(None if low < 0.6 else True, Code.INTERVAL, "12 rounds")
    outcome = replace(outcome, verdicts={"ratio": verdict})
    return made_up_packet_record(
        outcome, floor, **({"metric": "pps", "evidence": Evidence(trials=[], pairs=[pair()])} | changes)
    )


def test_the_rates_beside_a_ratio_make_it_or_the_row_says_that_they_do_not() -> None:
    def shown(tested: dict[str, Any], other: dict[str, Any]) -> str:
        sides = {
            "tested": SideRecord.model_validate({"key": SNAT, **tested}),
            "other": SideRecord.model_validate({"key": FORWARDING, **other}),
        }
        row = compared(evidence=Evidence(trials=[], pairs=[pair(**sides)]))
        assert row.thresholds[0].found
        return figures.made_of(row, "ratio", row.thresholds[0].found)

    def served(value: float) -> dict[str, float]:
        return {"value": value, "low": value, "high": value}

    # The ratio is that of all the time: one side stood still for a third of it.
    still = {"rate": 262_000, "middle": 410_000, "serves": served(262_000)}
    assert shown(still, {"rate": 409_000, "middle": 413_000, "serves": served(409_000)}) == "262.0 k of 409.0 k pps"
    # The ratio is that of the middle, and stalls would make another one.
    stalls = {"rate": 100_000, "middle": 260_000, "serves": served(100_000)}
    assert shown(stalls, {"rate": 400_000, "middle": 405_000, "serves": served(400_000)}) == "260.0 k of 405.0 k pps"
    # Neither makes it.
    assert shown({"rate": 410_000, "middle": 412_000}, {"rate": 400_000, "middle": 400_000}) == (
        "410.0 k of 400.0 k pps, which make 102 %: they scatter"
    )


def test_a_row_and_the_run_say_the_smallest_slowdown_that_would_be_missed() -> None:
    # 64.2 %, up to 65 %, of which 60 % are promised: all of it is below that at 60/65 of the speed.
    row, fast, open_one = compared(verdict="met"), bound(381_000, "Gold 5118"), compared(0.59)
    assert (figures.catches(row), figures.catches(open_one)) == (pytest.approx(1 - 0.6 / 0.65), None)
    assert figures.catches(fast) == pytest.approx(fast.threshold("cps").catches) == pytest.approx(1 - 48_200 / 381_000)
    limited = fast.model_copy(update={"limited_by": "generator"})
    assert figures.catches(limited) is None  # the device under test may do better
    assert len(headline.judged([open_one, limited])) == 1
    _, said = headline.judged([row, fast, open_one])
    assert re.findall(r"[\d.]+ %|\d tests|\d CPU", said) == ["2 tests", "87.3 %", "7.7 %", "87.3 %", "1 CPU"]


def test_a_run_without_a_candidate_says_first_what_it_would_not_see() -> None:
    ratio, far, near = compared(verdict="met"), bound(381_000, "Gold 5118"), bound(50_000, "Gold 5118")
    # Only the floor was tried: it may hold far more.
    tried = ratio.model_copy(update={"limited_by": "floor", "thresholds": [*near.thresholds, *ratio.thresholds]})
    for records in ([ratio], [ratio, far], [tried]):
        assert "10 % slower in everything would pass" in headline.would_pass(records, "met")
    assert "3.6 % slower in everything would fail" in headline.would_pass([ratio, far, near], "met")
    assert headline.would_pass([ratio], "met").startswith("Set up and working.")
    assert "working" not in headline.would_pass([ratio], "missed")
    assert headline.would_pass([], "unmeasured") == ""
    counted = ratio.model_copy(update={"metric": "instructions_per_packet"})
    assert headline.would_pass([counted], "met") == ""
    assert headline.would_pass([counted, ratio], "met")


def sustained(record: Record, seconds: float, **changes: Any) -> Record:
    """A record of the rate that lasts, whose trials are so long."""
    rate = {"sustained_cps": record.figures["cps"]}
    floor = replace(record.thresholds[0], metric="sustained_cps", limit=20_000.0)
    known = {"metric": "sustained_cps", "figures": rate, "thresholds": [floor]}
    return with_trials(record, duration_s=seconds).model_copy(update=known | changes)


@pytest.mark.parametrize(
    ("seconds", "limited_by", "said"),
    [
        (40.0, "floor", "at least 20.0 k CPS for 40 s"),
        (40.0, "range", "at least 20.0 k CPS for 40 s"),
        (120.0, "dut", "20.0 k CPS for 120 s"),
        (1.0, "range", "20.0 k CPS for 1 s"),
    ],
)
def test_at_least_is_said_only_of_a_trial_that_tells_what_lasts(seconds: float, limited_by: str, said: str) -> None:
    record = sustained(made_up_record(found(20_000.0)), seconds, limited_by=limited_by, verdict="met")
    assert figures.measured(record) == said
    # A search that ended far from the next load that did not last found the least.
    stopped = {"sustained_cps": replace(record.figures["sustained_cps"], high=30_000.0)}
    least = "at least " if seconds >= 40 else ""
    assert figures.measured(record.model_copy(update={"figures": stopped})) == f"{least}{said.removeprefix(least)}"


def test_the_first_screen_answers_what_each_set_up_sustains_and_holds_and_says_what_was_not_measured() -> None:
    nat = in_turn(Topology(ruleset="nat"), "ovs-dpdk/conntrack/1cpu-1rxq", 96_300.0, 150_000.0)
    firewall = Topology(datapath="linux-router", ruleset="iptables-stateful")
    router = in_turn(firewall, FORWARDING, 32_100.0, 50_000.0)
    others = [made_up_record(topology=Topology(ruleset=each)) for each in ("forward", "ours", "conntrack-ipv6")]
    lasting = sustained(made_up_record(found(20_000.0)), 40.0, limited_by="floor")
    records = [*others[:2], made_up_record(), others[2], nat, router, lasting]
    answer = setups.charts(records, [[each] for each in records])
    (bars,) = answer
    assert isinstance(bars, Bars)
    # Each floor is one of the very rate that its bar shows, and what costs something has both rates.
    assert [(row.value, row.floor, row.ideal) for row in bars.rows] == [
        (20_000, 20_000, None), (381_000, 48_200, None), (96_300, 90_000, 150_000), (32_100, 30_000, 50_000),
    ]  # fmt: skip
    assert [words for _, words in bars.ticks] == ["0", "100 k", "200 k", "300 k"] and bars.scale
    lasting_one, held, translating, linux = setups.lines(answer)
    tracking = "Open vSwitch 3.1.0, Connection tracking: sustains at least 20.0 k new connections a second for 40 s"
    assert lasting_one == f"{tracking} (floor 20.0 k)."
    assert held == "It holds 381.0 k a second for 10 s, from an empty connection table (floor 48.2 k)."
    assert translating == (
        "NAT costs 35.8 % ± 1.1 % in Open vSwitch 3.1.0 (allowed: 40 %): it serves 96.3 k a second with NAT, 150.0 k "
        "without, in turn."
    )
    assert "serves 32.1 k a second with Stateful iptables, 50.0 k with Plain forwarding, in turn: 35.8 %" in linux
    # A rate that has a floor of its own is shown besides, and one alone where nothing decided the ratio.
    promised = nat.model_copy(update={"thresholds": [*made_up_record().thresholds, *nat.thresholds]})
    undecided = nat.model_copy(update={"thresholds": [replace(each, undecided=True) for each in nat.thresholds]})
    # What has to serve more than the other one costs nothing.
    faster = nat.model_copy(update={"thresholds": [replace(each, limit=1.07) for each in nat.thresholds]})
    for record, values in ((promised, [150_000, 96_300]), (undecided, [150_000]), (faster, [150_000])):
        (bars,) = setups.charts([record], [[record]])
        assert isinstance(bars, Bars) and [row.value for row in bars.rows] == values
    # Of what is hardly known, the end that decided is said as well.
    wide = nat.model_copy(update={"thresholds": [replace(each, low=0.61, high=0.9) for each in nat.thresholds]})
    assert setups.lines(setups.charts([wide], [[wide]]))[-1].startswith("NAT costs 35.8 %, at most 39.0 %, in")
    assert setups.charts(others[:2], []) == () == setups.lines(())


def in_turn(topology: Topology, other: str, ours: float, theirs: float) -> Record:
    """The record of a set-up that serves 64.2 % of what another one does, and holds 150 k connections a second."""
    record, sides = made_up_record(found(150_000.0), topology=topology), {"tested": ours, "other": theirs}
    share = replace(compared().thresholds[0], to=other, undecided=False)
    both = {side: SideRecord(key=other if side == "other" else topology.key, rate=rate) for side, rate in sides.items()}
    return with_evidence(record, pairs=[pair(**both)]).model_copy(update={"thresholds": [share]})


@pytest.mark.parametrize("missed", [False, True])
def test_the_rate_that_lasts_is_the_headline_unless_something_is_missed(tmp_path: Path, missed: bool) -> None:
    lasting = sustained(made_up_record(found(20_000.0), test="Sustained"), 40.0, limited_by="floor", verdict="met")
    slow = made_up_record(found(10.0), test="Slow", topology=Topology(cpus=2))
    records = [made_up_record(), lasting, *([slow] if missed else [])]
    run = written(tmp_path, *records)
    page = write_reports([run], run)
    answers, would_pass = ("sustains at least 20.0 k", "It holds 381.0 k"), "slower in everything would"
    counted = ("1 of 3 SLAs is missed",) if missed else ("All 2 SLAs that were measured are met.",)
    expected = (*counted, *answers, would_pass) if missed else (*answers, would_pass, *counted)
    assert len(page.headline) == len(expected)
    assert all(said in text for said, text in zip(expected, page.headline, strict=True))
    html, merge_request = (run / "sla.html").read_text(), (run / "sla.md").read_text()
    shown = re.sub("\u00a0", " ", html.partition("<main>")[0])
    for text in (shown, merge_request, console.report(page).replace("\n", " ")):
        places = [text.index(said) for said in expected]
        assert places == sorted(places)
    assert expected[0] in shown.partition("</h1>")[0]
    assert re.search(r'class="bar-row scale".*?>0</text>', html, re.DOTALL)


def bound(capacity: float, machine: str) -> Record:
    floor = bound_to(made_up_floor(), BoundMachine(cpu_model="Gold 5118"))
    outcome = outcome_of(found(capacity))
    verdict = judge(outcome, floor, 900_000.0, machine=MachineFacts(cpu_model=machine))
    return made_up_record(
        outcome, floor, verdict=verdict.word, thresholds=list(verdict.thresholds), margin_pct=verdict.margin_pct,
        verdict_reason=verdict.reason,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1 CPU, 1 queue, Connection tracking, short-lived"),
        ({"cpus": 2, "rx_queues": 4, "mtu": 9000}, "2 CPUs, 4 queues, Connection tracking, MTU 9000, short-lived"),
        (
            {"ruleset": "nat", "timeout_s": 5},
            "1 CPU, 1 queue, Connection tracking and SNAT, timeouts of 5 s, short-lived",
        ),
        ({"datapath": "cable", "ruleset": "none"}, "traffic generator alone, short-lived"),
    ],
)
def test_a_topology_is_said_in_words(changes: dict[str, Any], said: str) -> None:
    assert figures.subject(made_up_record(topology=Topology(**changes))) == said


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (FORWARDING, "against Plain forwarding"),
        ("linux-router/iptables-snat/2cpu-1rxq", "against 2 CPUs, 1 queue"),
        ("no topology", "against no topology"),
    ],
)
def test_a_ratio_says_against_what_it_is_as_far_as_that_differs(other: str, said: str) -> None:
    record = compared()
    promises = [replace(each, to=other) for each in record.thresholds]
    assert f", {said}" in figures.subject(record.model_copy(update={"thresholds": promises}))


def test_each_kind_is_counted_once_in_a_test_and_only_where_it_was_judged() -> None:
    smoke = made_up_record(floor=saying(made_up_floor(), "cps", "pps", smoke=True))
    here, there = bound(50_000, "Gold 5118"), bound(50_000, "EPYC")
    shown_only = bound(40_000, "EPYC")
    assert shown_only.verdict == "not measured"
    counted = counted_record("forward", [4000, 4001])
    count = replace(promise(METRICS[PER_PACKET], 4022.0), measured=4000.0, met=True, bound_to="image a1")
    counted = counted.model_copy(update={"thresholds": [count], "verdict": "met"})
    records = [compared(), compared(smoke=True), compared(low=0.5), smoke, here, there, shown_only, made_up_record()]
    records.append(counted)
    assert headline.kinds(records) == {
        "ratios": 1, "smoke": 2, "of_this_machine": 1, "of_build": 0, "of_any_machine": 1, "of_another": 1,
        "of_image": 1,
    }  # fmt: skip
    assert headline.kinds_sentence(records) == (
        "Judged: 1 ratio of like code, 2 smoke tests (builds 30 % slower would pass), 1 floor of this machine, "
        "1 floor of any machine, 1 floor of another machine or image, 1 instruction count of this image."
    )
    assert headline.kinds_sentence([]) == "Judged: no ratio of like code, no smoke test, no floor of this machine."


def written(folder: Path, *records: Record) -> Path:
    write_reports([run_of(folder, *records)], folder)
    return folder


def test_a_search_of_rfc_9971_reports_its_goal_and_its_bounds() -> None:
    goal = GoalRecord(
        loss_ratio=0.0002, final_duration_s=2, duration_sum_s=4, exceed_ratio=0.5, relative_width=0.03,
        relevant_lower_bound=381_000, relevant_upper_bound=None, conditional_throughput=380_930,
    )  # fmt: skip
    assert figures.goal(with_evidence(made_up_record(), goal=goal)) == (
        "Goal of the search (RFC 9971): loss ratio 0.020 %, final trial duration 2.0 s, duration sum 4.0 s, exceed "
        "ratio 50.0 %, width 3.0 %. Relevant lower bound 381.0 k/s; relevant upper bound unknown; conditional "
        "throughput 380.9 k/s."
    )
    assert figures.goal(made_up_record()) == ""


def test_ndr_and_pdr_of_one_search_stand_on_page_console_and_in_the_files(tmp_path: Path) -> None:
    goal = GoalRecord(
        loss_ratio=0.0, final_duration_s=1, duration_sum_s=21, exceed_ratio=0.5, relative_width=0.005,
        relevant_lower_bound=381_000, relevant_upper_bound=382_900, conditional_throughput=381_000,
    )  # fmt: skip
    record = made_up_record()
    rates = record.figures | {"pdr_cps": Estimate(value=402_500, unit="connections/s", low=402_500, high=406_400)}
    partial = goal.model_copy(update={"loss_ratio": 0.005})
    record = with_evidence(record, goal=goal, partial_goal=partial).model_copy(update={"figures": rates})
    said = "NDR 381.0 k CPS (0 % lost), PDR 402.5 k CPS (0.5 % lost), in trials of 1 s"
    assert console.verdict_line(record).split("\n")[1:] == [f"    {said}"]
    assert "PDR" not in figures.also_measured(record)
    assert [figures.goal(record).count(word) for word in ("Goal of the search", "loss ratio 0.500 %")] == [2, 1]
    run = written(tmp_path, record)
    assert said in (run / "sla.html").read_text().replace("\u00a0", " ")
    line = next(csv.DictReader(io.StringIO((run / "results.csv").read_text())))
    assert (float(line["cps"]), float(line["pdr_cps"]), line["pdr_pps"]) == (381_000, 402_500, "")
    without = record.model_copy(update={"figures": made_up_record().figures})
    assert figures.drop_rates(without).endswith("PDR unknown (0.5 % lost), in trials of 1 s")
    assert figures.drop_rates(made_up_record()) == ""

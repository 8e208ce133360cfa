"""What a run says of a candidate and its base: the headline, what it could see, and what each row serves."""

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pages import read_page, rows_of

from ctbench.dut.topology import Topology
from ctbench.report import candidate, console, figures, headline, method
from ctbench.report.runs import read_runs
from ctbench.report.write import write_reports
from ctbench.results import gate, store
from ctbench.results.evidence import Evidence, LookRecord, SideRecord, StartRecord
from ctbench.results.floor import Accepted, Threshold
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code
from ctbench.run.exit_status import ExitStatus, Verdicts, exit_status, read_verdicts, sentence

from .simulated import made_up_record, run_of, with_environment, with_evidence
from .test_report_verdict import pair

KEY = "ovs-dpdk/nat/1cpu-1rxq"


def row(ratio: float, *, met: bool = True, undecided: bool = False, base: str = "3.1.0", **changes: Any) -> Record:
    """A row whose base serves 120.4 k/s; the interval is ± 1.4 %, or `reach`. `held`: by the generator."""
    held, reach = changes.pop("held", 0.0), changes.pop("reach", 0.014)
    share = Threshold(
        metric="of_build", operator=">=", limit=0.97, written=">= 97%", to="distribution", measured=ratio,
        low=ratio - reach, high=ratio + reach, margin_pct=(ratio / 0.97 - 1) * 100, met=met, undecided=undecided,
    )  # fmt: skip
    rates = {"tested": 120_400 * ratio, "other": 120_400.0}
    products = {"tested": f"Open vSwitch {changes.pop('ours', '3.3.0')}", "other": f"Open vSwitch {base}"}
    sides = {
        side: SideRecord(
            key=KEY, product=products[side], build="distribution" if side == "other" else "",
            serves=Estimate(value=rate, low=rate, high=rate), held=held,
        )
        for side, rate in rates.items()
    }  # fmt: skip
    made = [StartRecord(first="other", found=None, tested=1, other=1)]
    looks = [LookRecord(rounds=4, value=ratio, low=max(0.0, ratio - 0.014), high=ratio + 0.014)]
    more = {"sees": changes.pop("sees", 0.024), "gated_rows": changes.pop("gated_rows", None)}
    evidence = Evidence(trials=[], pairs=[pair(**sides, starts=made, looks=looks, **more)])
    word = changes.pop("word", "not measured" if undecided else "met" if met else "missed")
    return made_up_record(thresholds=[share], evidence=evidence, verdict=word, **changes)


def numbered(rows: Iterable[Record]) -> list[Record]:
    """The same, each of a test of its own."""
    return [each.model_copy(update={"test": f"Row {number}"}) for number, each in enumerate(rows)]


def unmeasured() -> Record:
    """A row of whose share nothing is known."""
    share = replace(row(1.0).thresholds[0], measured=None, met=False, undecided=True)
    return made_up_record(thresholds=[share], verdict="not measured")


def crashed() -> Record:
    """A row in which the candidate crashed, and its base did not."""
    share = replace(unmeasured().thresholds[0], undecided=False, reason="it crashed in 2 starts")
    return made_up_record(thresholds=[share], verdict="missed")


def test_a_candidate_that_was_compared_with_no_base_is_named_and_the_page_says_so() -> None:
    alone = unmeasured()
    dut = {**alone.environment.dut.model_dump(), "vswitchd": "/opt/ovs-3.3/sbin/ovs-vswitchd"}
    alone = with_environment(alone, dut=type(alone.environment.dut).model_validate(dut))
    said = headline.unseen(Counter(), [store.Stored(Path("x"), alone, trials=1, thrown_away=0)])
    assert any("no candidate was compared with a base" in each for each in said)
    assert "in /opt/ovs-3.3" in str(method.first_screen([alone], 1)["Device under test"])
    assert "no candidate" not in str(headline.unseen(Counter(), [store.Stored(Path("x"), crashed())]))


#: A floor that may be missed for a while, in a gate.
ACCEPTED = made_up_record().floor.model_copy(
    update={
        "accepted": Accepted(
            because="NAT is rewritten", by="release", until="2125-12-31", ticket="OVS-1234", metrics=["of_build"]
        )
    }
)


def alike() -> Record:
    """A row in which the generator was the limit of both."""
    return row(1.0, met=False, undecided=True, held=0.9, verdict_code=Code.NO_SLOWER_SEEN)


def of_table(word: str) -> Record:
    """A row that is not compared with a base."""
    made = made_up_record()
    share = replace(made.thresholds[0], met=False, undecided=word == "not measured")
    return made.model_copy(update={"thresholds": [share], "verdict": word})


def accepted_of_table() -> Record:
    known = ACCEPTED.model_copy(update={"accepted": ACCEPTED.accepted.model_copy(update={"metrics": ["cps"]})})
    return of_table("missed").model_copy(update={"floor": known})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(0.996)], "the topology keeps at least 97 %. Difference: -0.4 % ± 1.4 %."),
        ([row(1.0), row(1.01)], "2 of 2 topologies keep at least 97 %. Over all rows: +0.5 % ± 0.8 %."),
        (
            [row(1.0), row(0.938, met=False)],
            "1 of 2 topologies keeps at least 97 %; {} lost 6.2 % ± 1.4 %. Over all rows: -3.1 % ± 0.8 %.",
        ),
        (
            [row(1.0), row(0.98, met=False, undecided=True)],
            "1 of 2 topologies keeps at least 97 %; 1 is too close to call. Over all rows: -1.0 % ± 0.8 %.",
        ),
        (
            [
                row(0.98, met=False, word="not measured", verdict_code=Code.FAULT),
                row(1.0, met=False, undecided=True, verdict_code=Code.GENERATOR),
            ],
            "0 of 2 topologies keep at least 97 %; 1 is limited by the generator; 1 is not measured. Over all rows: "
            "-1.0 % ± 0.8 %.",
        ),
        (
            [row(1.0), alike()],
            "1 of 2 topologies keeps at least 97 %; 1 is no slower than the traffic generator can see. Difference: "
            "+0.0 % ± 1.4 %.",
        ),
        (
            [alike(), alike()],
            "0 of 2 topologies keep at least 97 %; 2 are no slower than the traffic generator can see. Not measured "
            "as a whole: what the candidate keeps is told by 0 of 2 rows, as the traffic generator was the limit of "
            "the others.",
        ),
        (
            [row(1.0), row(0.0, met=False)],
            "1 of 2 topologies keeps at least 97 %; {} lost everything. Over all rows through which something came: "
            "+0.0 % ± 1.4 %.",
        ),
        (
            [row(1.0), unmeasured(), crashed(), row(1.0).model_copy(update={"verdict": "missed"})],
            "2 of 4 topologies keep at least 97 %; 1 is not measured; 1 is missed: it crashed; 1 is missed by another "
            "promise. Over all rows: +0.0 % ± 0.8 %.",
        ),
        (
            [row(0.9, met=False).model_copy(update={"floor": ACCEPTED})],
            "{} lost 10.0 % ± 1.4 %, accepted until 2125-12-31.",
        ),
        (
            [row(1.0), of_table("missed"), accepted_of_table(), of_table("not measured")],
            "the topology keeps at least 97 %; 1 is missed and accepted; 1 is missed by another promise; 1 is not "
            "measured for another promise. Difference: +0.0 % ± 1.4 %.",
        ),
        (
            [row(1.0, word="not measured")],
            "the topology keeps at least 97 %; 1 is not measured for another promise. Difference: +0.0 % ± 1.4 %.",
        ),
    ],
)
def test_the_headline_has_the_figures_of_the_run(rows: list[Record], said: str) -> None:
    named = said.format("Connection tracking with short-lived connections")
    assert candidate.sentence(rows) == f"Open vSwitch 3.3.0 against 3.1.0: {named}"


def test_packages_are_named_whole() -> None:
    of_packages = row(1.0, ours="3.1.0 (switch 3.1.0-2)", base="3.1.0 (switch 3.1.0-3)")
    assert candidate.sentence([of_packages]).startswith(
        "Open vSwitch 3.1.0 (switch 3.1.0-2) against 3.1.0 (switch 3.1.0-3): "
    )


def test_a_row_that_lost_is_named_with_its_cpus_and_queues_where_those_of_the_rows_differ() -> None:
    other = row(1.0, topology=Topology(rx_queues=2))
    said = candidate.sentence([row(0.9, met=False), other])
    assert "Connection tracking with short-lived connections (1 CPU, 1 queue) lost 10.0 %" in said


def of_gate(version: str, day: int, *rows: Record) -> list[Record]:
    """The rows of a run that compared this version with its base."""
    made = []
    for number, each in enumerate(rows):
        dut = each.environment.dut.model_copy(update={"product": f"Open vSwitch {version}"})
        (both,) = each.evidence.pairs
        tested = both.tested.model_copy(update={"product": dut.product})
        known = {"run_id": f"gate {day}", "started": each.started.replace(day=day, minute=number)}
        compared = with_evidence(each, pairs=[both.model_copy(update={"tested": tested})])
        made.append(with_environment(compared, dut=dut).model_copy(update=known))
    return made


def _on(record: Record, testbed: str, program: str) -> Record:
    """The record as it is from another host."""
    where = record.environment.testbed.model_copy(update={"name": testbed})
    dut = record.environment.dut.model_copy(update={"program": program})
    return with_environment(record, testbed=where, dut=dut)


def test_of_several_gates_only_the_newest_candidate_is_spoken_of() -> None:
    older = of_gate("3.3.0", 1, row(0.7, met=False, sees=0.5))
    newest = of_gate("3.4.0", 3, *[row(1.0)] * 8, close(0.98))
    records = [*older, *of_gate("3.4.0", 2, row(1.0)), *newest]  # a row of the same build, which the last gate left out
    assert candidate.sentence(records) == (
        "Open vSwitch 3.4.0 against 3.1.0: 9 of 10 topologies keep at least 97 %; Connection tracking with short-lived "
        "connections stays open (at least 96.6 %); 1 is missed by other builds. Over all rows: -0.2 % ± 0.3 %."
    )
    assert candidate.could_see(records) == candidate.could_see(newest)
    # The same builds on another host have other libraries.
    elsewhere = [_on(each, "lab-b", program="other libraries") for each in of_gate("3.4.0", 1, row(0.7, met=False))]
    assert "lost 30.0 %" in candidate.sentence([*elsewhere, *newest])
    each_row, of_gates = candidate.charts(records, records)
    assert each_row.title == "Open vSwitch 3.4.0 against 3.1.0: each row" and len(each_row.rows) == 10
    assert [bar.text.partition(",")[0] for bar in of_gates.rows] == [
        "-30.0 % ± 1.4 %", "+0.0 % ± 1.4 %", "-0.2 % ± 0.4 %",
    ]  # fmt: skip


def test_the_worst_that_was_not_accepted_is_named() -> None:
    accepted = row(0.5, met=False).model_copy(update={"floor": ACCEPTED})
    said = candidate.sentence([accepted, *(row(ratio, met=False) for ratio in (0.93, 0.9, 0.92))])
    assert " lost 10.0 % ± 1.4 %; 2 more are missed; 1 more is missed and accepted." in said


def test_what_such_a_run_could_see_is_said() -> None:
    seen = candidate.could_see([row(1.0, sees=each) for each in (0.02, 0.024, 0.05)])
    assert seen.startswith("This run could see a loss of 2.4 % in the median row, 5.0 % in the worst")
    assert "1 CPU only" in seen and "like build" not in seen
    # One by its starts, one by loads in turn with rates that last: tests/unit/test_starts.py and test_same_load.py.
    assert "at most 1 of 100 such runs (35 rows)" in candidate.could_see([row(1.0, sees=0.02, gated_rows=35)])


def close(ratio: float, **changes: Any) -> Record:
    """A row that is too close to call."""
    return row(ratio, met=False, undecided=True, verdict_code=Code.TOO_CLOSE, **changes)


def close_and_unknown() -> Record:
    """A row that is too close to call, and of which another promise is not known either."""
    seen = close(0.98)
    (share,) = seen.thresholds
    return seen.model_copy(update={"thresholds": [share, replace(share, metric="saturation_cps", to="")]})


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([close(0.98)], 1),
        ([close(0.98), close(0.975)], 2),
        ([close(0.98)] * 3, 0),  # too many
        ([close(0.968)], 0),  # may have lost 4.6 %
        ([close(0.98), row(0.85, met=False)], 0),  # in the mean of all rows too much is lost
        ([row(0.98, met=False, undecided=True, verdict_code=Code.FAULT)], 0),
        ([close_and_unknown()], 0),
        ([unmeasured()], 0),
    ],
)
def test_a_gate_may_leave_two_rows_open_that_keep_nearly_their_share(rows: list[Record], count: int) -> None:
    every = [*(row(1.0) for _ in range(8)), *rows]
    assert len(gate.left_open(every)) == count
    assert ("stays open (at least" in candidate.sentence(every)) is (count > 0)


def test_rows_left_open_do_not_count_in_a_run(tmp_path: Path) -> None:
    run_of(tmp_path, *numbered([*(row(1.0) for _ in range(8)), close(0.98)]))
    assert read_verdicts(tmp_path) == Verdicts({"met": 8, "left open": 1})
    # Nor in a build of Jenkins, which would be unstable by an error.
    write_reports([tmp_path], tmp_path)
    cases = ET.parse(tmp_path / "junit.xml").getroot()
    assert [each.get("type") for each in cases.iter("skipped")] == ["left open"]
    assert not [*cases.iter("error"), *cases.iter("failure")]
    # Nor for programs that read what the page says.
    said = json.loads((tmp_path / "summary.json").read_text())
    assert (said["verdict"], said["counts"]["left open"], said["counts"]["not measured"]) == ("met", 1, 0)
    assert Counter(test["outcome"] for test in said["tests"]) == Counter(said["counts"])
    assert Counter(test["verdict"] for test in said["tests"]) == {"met": 8, "not measured": 1}
    assert headline.tone(headline.tally_of(read_runs([tmp_path]))) == "met"


def test_rows_that_the_generator_limits_do_not_let_others_stay_open(tmp_path: Path) -> None:
    told = [close(0.975, reach=0.019), close(0.975, reach=0.019), *(row(0.985, reach=0.012) for _ in range(3))]
    found = read_verdicts(run_of(tmp_path, *numbered([*told, *(alike() for _ in range(9))])))
    assert (found["left open"], found["no slower seen"]) == (0, 9)
    assert exit_status(2, found) is ExitStatus.NOT_MEASURED
    assert "Over all rows: -1.9 % ± 0.5 %" in candidate.sentence(told)
    assert candidate.sentence([*told, alike()]).endswith(candidate.sentence(told).rpartition(" Over")[2])


@pytest.mark.parametrize(
    ("rows", "green"),
    [
        ([row(0.995)] * 3, True),
        # Each keeps 97 %, and all together less than a like build does.
        ([row(0.982, reach=0.012)] * 9, False),
        # Of two rows the mean says little more than each.
        ([row(0.982, reach=0.012)] * 2, True),
        # What is accepted may lose.
        ([*[row(1.0)] * 3, row(0.6, met=False).model_copy(update={"floor": ACCEPTED})], True),
        ([row(1.0), alike()], True),
        ([row(1.0), alike(), alike()], False),
        ([close(0.99, reach=0.004), *[alike()] * 22], False),
    ],
)
def test_a_gate_whose_rows_are_met_is_not_measured_where_it_loses_in_the_mean_or_few_rows_tell(
    rows: list[Record], green: bool, tmp_path: Path
) -> None:
    found = read_verdicts(run_of(tmp_path, *numbered(rows)))
    status = exit_status(found["left open"], found)
    assert status is (ExitStatus.MET if green else ExitStatus.NOT_MEASURED)
    assert (", 1 gate not measured as a whole" in sentence(status, found)) is not green
    assert ("Not measured as a whole" in candidate.sentence(rows)) is not green
    write_reports([tmp_path], tmp_path)
    doubts = [] if green else ["gate not measured"]
    assert [each.get("type") for each in ET.parse(tmp_path / "junit.xml").getroot().iter("error")] == doubts
    said = json.loads((tmp_path / "summary.json").read_text())
    assert (said["verdict"] == "not measured", said["counts"]["gate not measured"]) == (not green, len(doubts))


def test_where_a_row_is_missed_nothing_is_said_of_the_gate_as_a_whole() -> None:
    assert gate.doubt([row(0.9, met=False)] * 3) == ""


def test_without_a_candidate_nothing_is_said() -> None:
    assert candidate.sentence([made_up_record()]) == candidate.could_see([made_up_record()]) == ""


def test_a_row_says_what_both_serve_the_floor_as_a_number_and_the_difference() -> None:
    shown = console.metadata(row(0.988))
    assert shown["Floor"] == "97 % of 120.4 k CPS = 116.8 k CPS"
    assert shown["Measured"] == "119.0 k CPS (-1.2 % ± 1.4 %)"
    assert "serves 119.0 k CPS (-1.2 % ± 1.4 %)   floor 97 % of 120.4 k CPS" in console.verdict_line(row(0.988))


def test_the_page_shows_base_candidate_and_difference_and_charts_them(tmp_path: Path) -> None:
    gates = {
        "one": [row(1.0), row(0.99, suite="Other", test="Slower")],
        "two": [row(0.938, met=False), row(0.98, met=False, undecided=True, suite="Other", test="Slower")],
    }
    for number, (name, records) in enumerate(gates.items(), 1):
        known = {"run_id": name, "started": records[0].started.replace(day=number)}
        run_of(tmp_path / name, *(each.model_copy(update=known) for each in records))
    write_reports([tmp_path / "one", tmp_path / "two"], tmp_path)
    page = read_page((tmp_path / "sla.html").read_text())
    shown = next(each for each in rows_of(page) if each["test"] != "Slower")
    assert shown["subject"] == "1 CPU, 1 queue, Connection tracking, short-lived"
    assert {name: shown[name] for name in ("Base", "Candidate", "Difference")} == {
        "Base": "120.4 k CPS", "Candidate": "112.9 k CPS", "Difference": "-6.2 % ± 1.4 %",
    }  # fmt: skip
    rows, gates_after = page.by_id("charts").all("figure")[:2]
    assert [each.one("b").text for each in rows.all("div", "span-row")] == ["-6.2 % ± 1.4 %", "-2.0 % ± 1.4 %"]
    assert "-3.0 %: the SLA" in rows.one("ul", "legend").text
    assert [each.text for each in gates_after.all("div", "span-row")] == [
        "2025-01-01, Open vSwitch 3.3.0 against 3.1.0 -0.5 % ± 0.8 %, 2 of 2 met",
        "2025-01-02, Open vSwitch 3.3.0 against 3.1.0 -4.1 % ± 0.8 %, 0 of 2 met",
    ]
    assert "| Topology and traffic | Base | Candidate | Difference | Verdict |" in (tmp_path / "sla.md").read_text()


def test_what_is_shown_of_a_candidate_is_its_share_unless_something_else_alone_is_broken() -> None:
    smoke = Threshold(
        metric="cps", operator=">=", limit=48_200, written=">= 48.2k", measured=48_700, margin_pct=1.0, met=True
    )
    good = row(1.0)
    good = good.model_copy(update={"thresholds": [smoke, *good.thresholds]})
    assert figures.deciding(good) is good.thresholds[1]
    broken = replace(smoke, met=False, margin_pct=-1.0)
    assert figures.deciding(good.model_copy(update={"thresholds": [broken, good.thresholds[1]]})) is broken

"""The keyword library without a testbed: what a wrong word is answered with; a known miss that the SLA file accepts."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from robot.api import Failure, SkipExecution

from ConntrackSLA import ConntrackSLA, library
from ConntrackSLA.promising import KEYWORDS
from ctbench.base.errors import ConfigError, ExitStatus, MissingResource, NightlyOnly, NoFloorYet
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Code
from ctbench.measure.promises import Promise
from ctbench.report.console import summary
from ctbench.report.write import write_reports
from ctbench.results import store
from ctbench.results.record import Record, from_json
from ctbench.results.record_model import Accepted
from ctbench.results.store import write
from ctbench.run.exit_status import MISTAKES_FILE, exit_status, read_verdicts
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import load_profile

from .simulated import FORWARDING, Baseline, made_up_packet_floor, made_up_packet_record, made_up_record


class Asked:
    """In the place of an acceptance run: gives a record, or raises."""

    def __init__(self, answer: Record | Exception) -> None:
        self.answer = answer
        self.topologies: list[Topology] = []
        self.records: list[Record] = []
        self.settings = SimpleNamespace(floors=load("sla", "local", Floors))
        self.testbed = SimpleNamespace(placement=self.topologies.append)

    profile = staticmethod(load_profile)

    def judge_by(self, settings: Any) -> None: ...

    def note_end(self, suite: str, test: str, failed: str) -> bool:
        return (suite, test) in {(record.suite, record.test) for record in self.records}

    def measure(self, name: Any, topology: Topology, profile: str, promise: Promise, own: object = None) -> Record:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """What the library would show as metadata of the test; Robot Framework itself does not run here."""
    shown: dict[str, str] = {}
    variables = {
        "${SUITE NAME}": "Suite", "${TEST NAME}": "Test", "@{TEST TAGS}": ["1cpu"], "${OPTIONS}": {"include": []},
        "${OUTPUT DIR}": str(tmp_path),
    }  # fmt: skip
    robot = SimpleNamespace(
        get_variables=lambda: variables,
        get_variable_value=variables.get,
        replace_variables=str,
        set_test_metadata=shown.__setitem__,
        set_test_message=lambda message: shown.__setitem__("message", message),
    )
    monkeypatch.setattr(library, "BuiltIn", lambda: robot)
    return shown


def opened(answer: Record | Exception) -> tuple[ConntrackSLA, Asked]:
    keywords, run = ConntrackSLA(), Asked(answer)
    keywords._run, keywords._opened = run, {"Suite": run.settings}  # type: ignore[assignment,dict-item]
    return keywords, run


def sentence_of(action: Callable[[], object]) -> str:
    with pytest.raises(Failure) as failure:
        action()
    return str(failure.value)


def test_topologies_are_what_their_keywords_say_or_one_sentence(metadata: dict[str, str]) -> None:
    keywords, run = opened(made_up_record())
    keywords.use_topology("linux-router", "nftables-snat", rx_queues="2")
    keywords.use_topology("linux-bridge", "forward", mtu="9000")
    keywords.use_topology("ovs-dpdk", "normal", "1", "1", mtu="9000")
    assert run.topologies == [
        Topology(datapath="linux-router", ruleset="nftables-snat", rx_queues=2),
        Topology(datapath="linux-bridge", ruleset="forward", mtu=9000),
        Topology(datapath="ovs-dpdk", ruleset="normal", mtu=9000),
    ]
    keywords, _ = opened(made_up_record())
    said = sentence_of(lambda: keywords.use_topology("linux-router", "forward", mtu="100"))
    assert said == 'mtu is "100": input should be greater than or equal to 576.'
    assert sentence_of(lambda: keywords.use_topology("linux-router", "forward", mut="100")).startswith("mut is not an")


@pytest.mark.parametrize(
    ("promise", "profile", "named"),
    [
        ("connection rate", "udp-64-10k", "packet rate"),
        ("packet rate", "short-lived", "connection rate"),
        ("conection rate", "short-lived", "connection rate"),
    ],
)
def test_a_promise_that_is_unknown_or_of_another_profile_is_answered_with_one_that_fits(
    metadata: dict[str, str], promise: str, profile: str, named: str
) -> None:
    keywords, _ = opened(made_up_record())
    keywords.use_topology("linux-router", "forward")
    assert named in sentence_of(lambda: keywords.measure(promise, profile))


def test_packets_are_measured_judged_and_shown_and_a_miss_fails_with_that_word(metadata: dict[str, str]) -> None:
    floor, baseline = made_up_packet_floor(">= 100k", share=">= 60%"), Baseline(key=FORWARDING, rate=412_000.0)
    keywords, _ = opened(made_up_packet_record(floor=floor, baseline=baseline))
    keywords.use_topology("linux-router", "iptables-snat")
    keywords.measure("packet rate", "udp-64-10k")
    keywords.should_meet_sla()
    assert (metadata["Floor"], metadata["Measured"], metadata["Margin"]) == (
        "60.0 %",
        "64.2 % (264.4 k of 412.0 k pps)",
        "+7.0 %",
    )
    assert metadata["Relative"] == f"64.2 % of {FORWARDING}, at least 60 % promised"
    assert metadata["message"].startswith("Met: packets: 264.4 k pps")
    metadata.clear()
    keywords, _ = opened(made_up_packet_record(floor=made_up_packet_floor(">= 900k")))
    keywords.use_topology("linux-router", "iptables-snat")
    keywords.measure("packet rate", "udp-64-10k")
    assert sentence_of(keywords.should_meet_sla).startswith("Missed: packets: 264.4 k pps instead of")
    assert "Relative" not in metadata


def test_without_a_topology_or_a_measurement_of_its_own_a_test_says_nothing(metadata: dict[str, str]) -> None:
    keywords, _ = opened(made_up_record())
    said = sentence_of(keywords.should_meet_sla)
    assert said == "Nothing was measured in this test: use Measure first."
    assert sentence_of(lambda: keywords.measure("packet rate", "udp-64-10k")).startswith("No topology: ")
    keywords.use_topology("linux-router", "forward")
    keywords.measure("connection rate", "short-lived")
    keywords.start_test(*ended())
    assert sentence_of(keywords.should_meet_sla) == said
    assert sentence_of(lambda: keywords.measure("packet rate", "udp-64-10k")).startswith("No topology: ")


def test_a_mistake_in_a_file_fails_the_test_and_sets_the_status(metadata: dict[str, str], tmp_path: Path) -> None:
    keywords, _ = opened(ConfigError("mine.yaml: a floor is missing."))
    keywords.use_topology("linux-router", "forward")
    assert sentence_of(lambda: keywords.measure("packet rate", "udp-64-10k")) == "mine.yaml: a floor is missing."
    sentence_of(lambda: keywords.measure("packet rate", "udp-64-10q"))
    noted = (tmp_path / MISTAKES_FILE).read_text()
    assert noted.startswith("mine.yaml: a floor is missing.\nvariables/profiles/udp-64-10q.yaml: no such file.")


def test_what_the_testbed_lacks_skips_the_test(metadata: dict[str, str], tmp_path: Path) -> None:
    keywords, _ = opened(MissingResource("The kernel module bonding is missing."))
    keywords.use_topology("linux-bridge", "forward", ports="bond")
    with pytest.raises(SkipExecution, match="bonding"):
        keywords.measure("packet rate", "udp-64-10k")
    assert not (tmp_path / MISTAKES_FILE).exists()


def ended(*, test: str = "Test", status: str = "FAIL", message: str = "why") -> tuple[Any, Any]:
    """A test that has ended, as Robot Framework tells its listeners."""
    data = SimpleNamespace(name=test, parent=SimpleNamespace(full_name="Suite"), body=[])
    return data, SimpleNamespace(skipped=status == "SKIP", failed=status == "FAIL", message=message)


def test_tests_that_leave_no_record_are_noted_for_the_report(metadata: dict[str, str], tmp_path: Path) -> None:
    keywords, run = opened(made_up_record())
    run.records = [made_up_record(suite="Suite", test="Measured")]
    for test, status in (("Measured", "FAIL"), ("Passed", "PASS"), ("Skipped", "SKIP"), ("Broken", "FAIL")):
        keywords.end_test(*ended(test=test, status=status))
    noted, broken = store.read_without_record(tmp_path)
    assert [(test.test, test.outcome) for test in noted] == [("Skipped", "skipped"), ("Broken", "failed")]
    assert broken == []
    ConntrackSLA().end_test(*ended())
    assert [test.reason for test in store.read_without_record(tmp_path)[0]] == ["why"]


def test_a_test_left_out_although_nothing_is_missing_is_noted_as_such(metadata: dict[str, str], tmp_path: Path) -> None:
    nightly, new = NightlyOnly("Campaign quick leaves tests tagged nightly out."), NoFloorYet("No floor yet.")
    for error, expected in (
        (nightly, "nightly only"),
        (new, "no floor yet"),
        (MissingResource("No bonds."), "skipped"),
    ):
        keywords, _ = opened(error)
        keywords.use_topology("linux-router", "forward")
        with pytest.raises(SkipExecution):
            keywords.measure("packet rate", "udp-64-10k")
        keywords.end_test(*ended(test="One", status="SKIP", message=str(error)))
        keywords.end_test(*ended(test="Two", status="SKIP", message="Another reason."))
        assert [each.outcome for each in store.read_without_record(tmp_path)[0]] == [expected, "skipped"]


def test_a_suite_is_judged_by_what_was_opened_for_it_or_for_the_nearest_suite_above(
    metadata: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords, run = opened(made_up_record())
    judged: list[Any] = []
    monkeypatch.setattr(run, "judge_by", judged.append)
    keywords._opened = {"All": "a", "All.Inner": "b", "All.Inn": "c"}  # type: ignore[dict-item]
    for suite in ("All", "All.Inner", "All.Inner.Deep", "All.Other"):
        monkeypatch.setattr(library, "_suite_name", lambda suite=suite: suite)
        keywords.use_topology("linux-router", "forward")
    assert judged == ["a", "b", "b", "a"]
    monkeypatch.setattr(library, "_suite_name", lambda: "Others")
    assert sentence_of(lambda: keywords.use_topology("linux-router", "forward")).startswith("No testbed: use Open ")


def test_every_keyword_has_an_example_and_there_are_few() -> None:
    found = {name: getattr(ConntrackSLA, name) for name in dir(ConntrackSLA)}
    keywords = {name: each.__doc__ for name, each in found.items() if hasattr(each, "robot_name")}
    assert 0 < len(keywords) - len(KEYWORDS) < 10  # besides those that are made from the registry of promises
    assert [name for name, said in keywords.items() if "Example:\n" not in said] == []


#: Made-up records are of 2025-01-02.
LAST_DAY, BEFORE = "2025-01-02", "2025-01-01"
ACCEPTED = {"because": "slower locks, fixed in 3.3.1", "by": "R. Manager", "until": LAST_DAY}


def missed(until: str = LAST_DAY, verdict: str = "missed") -> Record:
    record = made_up_record(verdict=verdict)
    accepted = Accepted.model_validate(ACCEPTED | {"until": until})
    return record.model_copy(update={"floor": record.floor.model_copy(update={"accepted": accepted})})


@pytest.mark.parametrize(
    ("record", "counted", "status"),
    [
        (missed(), (1, 0, 0, 1), ExitStatus.MET),
        (missed(BEFORE), (1, 1, 0, 0), ExitStatus.MISSED),
        (missed(verdict="not measured"), (1, 0, 1, 0), ExitStatus.NOT_MEASURED),
        (missed(verdict="met"), (2, 0, 0, 0), ExitStatus.MET),
    ],
)
def test_it_counts_until_expired(record: Record, counted: tuple[int, ...], status: ExitStatus, tmp_path: Path) -> None:
    for each in (made_up_record(), record):
        write(each, tmp_path)
    found = read_verdicts(tmp_path)
    assert (found.met, found.missed, found.not_measured, found.accepted) == counted
    assert exit_status(0, found) is status
    strict = read_verdicts(tmp_path, accepting=False)  # of a bisect
    assert (strict.accepted, strict.missed) == (0, found.missed + found.accepted)
    again = from_json(record.to_json(), "a record")
    assert (again.verdict, again.floor.accepted) == (record.verdict, record.floor.accepted)


def test_the_first_screen_and_the_files_say_who_accepted_it_and_until_when(tmp_path: Path) -> None:
    for each in (made_up_record(), missed().model_copy(update={"test": "SNAT"})):
        write(each, tmp_path)
    write_reports([tmp_path], tmp_path)
    said = json.loads((tmp_path / "summary.json").read_text())
    assert (said["verdict"], said["counts"]["missed"], said["counts"]["accepted"]) == ("missed, accepted", 0, 1)
    for name in ("sla.html", "sla.md"):
        assert all(text in (tmp_path / name).read_text() for text in ACCEPTED.values())
    case = ET.parse(tmp_path / "junit.xml").find(".//testcase[@name='SNAT']")
    assert case is not None and [child.tag for child in case] == ["properties", "skipped"]
    assert "1 met, 1 missed, accepted" in summary([made_up_record(), missed()])


def test_who_accepted_a_miss_did_not_accept_another_failure_of_the_test(tmp_path: Path) -> None:
    record = missed().model_copy(update={"failed": "1 > 2 should be true."})
    write(record, tmp_path)
    assert read_verdicts(tmp_path).missed == 1
    assert record.message.startswith("Missed: another step of the test failed: 1 > 2 should be true; ")


def test_robot_skips_it_for_what_passes_is_met() -> None:
    keywords: Any = ConntrackSLA()
    keywords._run, keywords._record = SimpleNamespace(), missed()
    with pytest.raises(SkipExecution, match="accepted until 2025"):
        keywords.should_meet_sla()


def test_what_is_no_slower_than_the_generator_can_see_is_neither_met_nor_missed(tmp_path: Path) -> None:
    seen = made_up_record().model_copy(
        update={"verdict": "not measured", "verdict_code": Code.NO_SLOWER_SEEN, "test": "Bonds"}
    )
    keywords: Any = ConntrackSLA()
    keywords._run, keywords._record = SimpleNamespace(), seen
    with pytest.raises(SkipExecution):
        keywords.should_meet_sla()
    write(seen, tmp_path)
    assert exit_status(0, read_verdicts(tmp_path)) is ExitStatus.NOT_MEASURED  # nothing was met
    write(made_up_record(), tmp_path)
    assert exit_status(0, read_verdicts(tmp_path)) is ExitStatus.MET
    write_reports([tmp_path], tmp_path)
    said = json.loads((tmp_path / "summary.json").read_text())
    assert (said["verdict"], said["counts"]["no slower seen"], said["counts"]["not measured"]) == ("met", 1, 0)
    case = ET.parse(tmp_path / "junit.xml").find(".//testcase[@name='Bonds']")
    assert case is not None and [child.tag for child in case] == ["properties", "skipped"]


@pytest.mark.parametrize(
    "change", [{"until": "31.12.2026"}, {"until": 20261231}, {"because": " "}, {"by": ""}, {"who": "me"}, {"by": None}]
)
def test_a_mistake_in_the_file_is_a_sentence(change: dict[str, Any], tmp_path: Path) -> None:
    given = {key: value for key, value in (ACCEPTED | change).items() if value is not None}
    entry = {"short-lived": {"cps": ">= 1k", "accepted": given}, "long-lived": {"cps": ">= 1k", "accepted": ACCEPTED}}
    file = tmp_path / "mine.yaml"
    text = {"name": "mine", "description": "", "source": "", Topology().key: entry}
    file.write_text(json.dumps(text))
    with pytest.raises(ConfigError, match=r"short-lived\.accepted.*\n  Expected"):
        load("sla", str(file), Floors)
    del entry["short-lived"]
    file.write_text(json.dumps(text))
    floor = load("sla", str(file), Floors).find(Topology(), load_profile("long-lived-short"))
    assert floor.accepted and floor.derivation, "what a campaign offers in its place is accepted with it"

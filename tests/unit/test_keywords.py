"""The keywords have examples; a known miss that an SLA file accepts. What they say to wrong words: tests/acceptance."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from robot.api import SkipExecution

from ConntrackSLA import ConntrackSLA
from ConntrackSLA.promising import KEYWORDS
from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.yaml_files import load, make
from ctbench.dut.topology import Topology
from ctbench.report.write import write_reports
from ctbench.results.floor import Accepted, promise
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record, from_json
from ctbench.results.store import write
from ctbench.results.verdict import FAULTS, Code
from ctbench.run.exit_status import exit_status, read_verdicts
from ctbench.sla.floors import FloorEntry, Floors
from ctbench.traffic.profiles import load_profile

from .simulated import found, made_up_record


def test_every_keyword_has_an_example_and_there_are_few() -> None:
    own = {name: getattr(ConntrackSLA, name) for name in dir(ConntrackSLA)}
    keywords = {name: each.__doc__ for name, each in own.items() if hasattr(each, "robot_name")}
    assert 0 < len(keywords) - len(KEYWORDS) < 10  # besides those that are made from the registry of promises
    assert [name for name, said in keywords.items() if "Example:\n" not in said] == []


EMULATED = "emulated/forward/1cpu-1rxq"
#: Made-up records are of 2025-01-02.
LAST_DAY, BEFORE = "2025-01-02", "2025-01-01"
ACCEPTED = {"because": "slower locks, fixed in 3.3.1", "by": "R. Manager", "until": LAST_DAY, "ticket": "OVS-1234"}


def missed(until: str = LAST_DAY, verdict: str = "missed", metrics: Sequence[str] = (), **changes: Any) -> Record:
    """A record of 40 k CPS, 48.2 k of which were promised."""
    record = made_up_record(found(40_000.0), verdict=verdict, **changes)
    accepted = Accepted.model_validate(ACCEPTED | {"until": until, "metrics": metrics})
    return record.model_copy(update={"floor": record.floor.model_copy(update={"accepted": accepted})})


def broken(metric: str, measured: float = 0.5) -> dict[str, Any]:
    """That a promise of 1 is missed, and no other one."""
    return {"thresholds": [replace(promise(METRICS[metric], 1.0), measured=measured)]}


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
    counts = read_verdicts(tmp_path)
    assert tuple(counts[word] for word in ("met", "missed", "not measured", "missed, accepted")) == counted
    assert exit_status(0, counts) is status
    strict = read_verdicts(tmp_path, accepting=False)  # of a bisect
    assert (strict["missed, accepted"], strict["missed"]) == (0, counts["missed"] + counts["missed, accepted"])
    again = from_json(record.to_json(), "a record")
    assert (again.verdict, again.floor.accepted) == (record.verdict, record.floor.accepted)


@pytest.mark.parametrize(
    "record",
    [
        *(missed(verdict_code=code) for code in FAULTS),
        missed(**broken("cps", measured=0.0)),  # nothing came through
        missed(**broken("of_build")),
        missed(**broken("of_build"), metrics=["cps"]),
        missed(**broken("memory_kept", measured=32.0)),
        missed(metrics=["pps"]),  # new connections are missed too
        missed(thresholds=[]),
    ],
)
def test_who_accepted_a_rate_below_its_floor_accepted_no_other_miss(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path)
    assert read_verdicts(tmp_path)["missed"] == 1
    assert record.message.endswith(" Another miss is accepted until 2025-01-02 by R. Manager, OVS-1234.")


@pytest.mark.parametrize(
    "record",
    [
        missed(**broken("ratio")),
        missed(metrics=["cps", "pps"]),
        missed(**broken("of_build"), metrics=["of_build"]),
        missed(**broken("memory_kept", measured=32.0), metrics=["memory_kept"]),
    ],
)
def test_a_rate_or_what_the_entry_names_is_accepted(record: Record) -> None:
    assert record.outcome == "missed, accepted"


def test_who_accepted_a_miss_did_not_accept_another_failure_of_the_test(tmp_path: Path) -> None:
    record = missed().model_copy(update={"failed": "1 > 2 should be true."})
    write(record, tmp_path)
    assert read_verdicts(tmp_path)["missed"] == 1
    assert record.message.startswith("Missed: another step of the test failed: 1 > 2 should be true; ")
    assert "Another miss" not in record.message


def test_what_is_no_slower_than_the_generator_can_see_is_neither_met_nor_missed(tmp_path: Path) -> None:
    share = replace(promise(METRICS["of_build"], 0.97), measured=1.0, undecided=True)
    seen = made_up_record(thresholds=[share], verdict="not measured", verdict_code=Code.NO_SLOWER_SEEN, test="Bonds")
    keywords: Any = ConntrackSLA()
    keywords._run, keywords._record = SimpleNamespace(), seen
    with pytest.raises(SkipExecution):
        keywords.should_meet_sla()
    write(seen, tmp_path)
    assert exit_status(0, read_verdicts(tmp_path)) is ExitStatus.NOT_MEASURED  # nothing was met
    write(made_up_record(thresholds=[replace(share, met=True, undecided=False)]), tmp_path)
    assert exit_status(0, read_verdicts(tmp_path)) is ExitStatus.MET
    write_reports([tmp_path], tmp_path)
    said = json.loads((tmp_path / "summary.json").read_text())
    assert (said["verdict"], said["counts"]["no slower seen"], said["counts"]["not measured"]) == ("met", 1, 0)
    case = ET.parse(tmp_path / "junit.xml").find(".//testcase[@name='Bonds']")
    assert case is not None and [child.tag for child in case] == ["properties", "skipped"]


@pytest.mark.parametrize(
    "change",
    [
        {"until": "31.12.2026"},
        {"until": 20261231},
        {"because": " "},
        {"by": ""},
        {"who": "me"},
        {"by": None},
        {"ticket": None},
        {"ticket": " "},
        {"ticket": 1234},
        {"until": "9999-12-31"},
        {"metrics": ["speed"]},
        {"metrics": ["cps", "memory_kept"]},
    ],
)
def test_a_mistake_in_the_file_is_a_sentence(change: dict[str, Any], tmp_path: Path) -> None:
    given = {key: value for key, value in (ACCEPTED | change).items() if value is not None}
    entry = {"short-lived": {"cps": ">= 1k", "accepted": given}, "long-lived": {"cps": ">= 1k", "accepted": ACCEPTED}}
    file = tmp_path / "mine.yaml"
    text = {"name": "mine", "description": "", "source": "", Topology().key: entry}
    file.write_text(json.dumps(text))
    with pytest.raises(ConfigError, match=r"short-lived(\.|: )accepted.*\n  Expected"):
        load("sla", str(file), Floors)
    del entry["short-lived"]
    file.write_text(json.dumps(text))
    floor = load("sla", str(file), Floors).find(Topology(), load_profile("long-lived-short"))
    assert floor.accepted and floor.derivation, "what a campaign offers in its place is accepted with it"


@pytest.mark.parametrize(
    ("entry", "named", "said"),
    [
        (
            {"memory_kept": "<= 16"},
            [],
            "is missing, and no rate is promised here.\n  Expected what may be missed, some of: memory_kept, of_build.",
        ),
        ({"memory_kept": "<= 16"}, ["memory_kept"], ""),
        ({"cost": {"to": EMULATED, "instructions": "<= 200%"}}, ["relative_cost"], ""),
        ({"ratio": {"to": EMULATED, "rate": ">= 60%"}}, [], ""),
        ({"cps": ">= 1k", "memory_kept": "<= 16"}, [], ""),
        ({"cps": ">= 1k"}, ["memory_kept"], "memory_kept is not promised here"),
    ],
)
def test_what_is_accepted_is_promised_by_the_same_entry(entry: dict[str, Any], named: list[str], said: str) -> None:
    try:
        made = make(entry | {"accepted": ACCEPTED | {"metrics": named}}, "mine.yaml", FloorEntry)
    except ConfigError as error:
        assert said and said in str(error)
    else:
        assert made.accepted and not said

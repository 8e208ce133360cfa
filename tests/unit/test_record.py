"""The record: valid by its published schema when written and when read."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from ctbench.results.environment import DutFacts, GeneratorFacts, TestbedFacts
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS
from ctbench.results.promised import ThresholdRecord
from ctbench.results.record import SCHEMA_FILE, Record, RecordError, from_json, schema_text

from .odd_records import CONTENTS
from .records import changed, document, record

pytestmark = pytest.mark.unit


def test_the_published_schema_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run: PYTHONPATH=libraries python -m ctbench.results.record"


def test_the_schema_is_a_valid_schema_that_names_what_the_issue_asks_for() -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    asked = {
        "schema_version",
        "test",
        "tags",
        "procedure",
        "topology",
        "profile",
        "figures",
        "thresholds",
        "verdict",
        "verdict_reason",
        "margin_pct",
        "evidence",
        "environment",
    }
    assert asked <= set(schema["required"])
    assert set(schema["properties"]["figures"]["properties"]) == set(METRICS)


def test_a_record_is_read_back_the_same() -> None:
    whole = record()
    assert from_json(whole.to_json(), "x.json") == whole


def test_the_json_can_be_traced_to_its_trials() -> None:
    written = json.loads(record().to_json())
    assert next(iter(written)) == "schema_version"
    assert written["figures"]["cps"]["value"] == 381_000
    assert written["figures"]["cps"]["samples"] == [381_000, 385_000.5]
    assert [trial["state"] for trial in written["evidence"]["trials"]] == ["bad", "good"]
    assert written["evidence"]["trials"][1]["trial"]["load"] == 381_000
    assert written["environment"]["dut"]["pmd"] == {"1": {"busy": 0.9}}


def test_a_figure_knows_its_repetitions_and_their_spread() -> None:
    found = record().result
    assert found is not None and found.repetitions == (381_000, 385_000.5)
    assert found.spread == pytest.approx(4000.5 / 383_000.25)
    alone = Figure(value=5.0, unit="s")
    assert (alone.repetitions, alone.spread) == ((5.0,), None)


def test_a_test_without_any_measurement_has_a_record_too() -> None:
    evidence = {"trials": []}
    whole = record(figures={}, margin_pct=None, verdict="not measured", limited_by="fault", evidence=evidence)
    assert whole.result is None
    assert from_json(whole.to_json(), "x.json") == whole


def test_a_threshold_is_found_by_its_metric() -> None:
    found = record().threshold("cps")
    assert found is not None and (found.limit, found.operator) == (48_200, ">=")
    assert record().threshold("ratio") is None


def test_times_are_utc_and_a_time_without_a_zone_is_refused() -> None:
    fields = record().model_dump() | {"started": datetime(2025, 1, 2, 5, 0, tzinfo=timezone(timedelta(hours=2)))}
    there = Record(**fields)
    assert there.started == datetime(2025, 1, 2, 3, 0, tzinfo=UTC)
    assert '"started": "2025-01-02T03:00:00Z"' in there.to_json()
    with pytest.raises(ValidationError):
        Record(**fields | {"started": datetime(2025, 1, 2)})


def test_what_json_does_not_know_in_the_environment_never_costs_a_record() -> None:
    odd: dict[str, Any] = {"path": Path("/x"), "odd": object(), "deep": {"cpus": {1}}}
    environment = record().environment.model_copy(
        update={"testbed": TestbedFacts(**odd), "dut": DutFacts(**odd), "generator": GeneratorFacts(**odd)}
    )
    written = json.loads(record().model_copy(update={"environment": environment}).to_json())
    assert written["environment"]["testbed"]["path"] == "/x"
    assert from_json(json.dumps(written), "x.json").environment.dut.extra["path"] == "/x"


def test_facts_that_json_cannot_hold_do_not_cost_a_measurement() -> None:
    dut = DutFacts(
        **{
            "name": "\ud800x\udcff",
            "rate": float("inf"),
            "count": 10**5000,
            "where": Path("/x"),
            "deep": json.loads("[" * 100 + "]" * 100),
        }
    )
    environment = record().environment.model_copy(update={"dut": dut})
    text = record().model_copy(update={"environment": environment}).to_json()
    facts = from_json(text, "x.json").environment.dut.extra
    assert (facts["name"], facts["rate"], facts["where"]) == ("\\ud800x\\xff", None, "/x")
    assert facts["count"].startswith("0x")
    text.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_figure_that_json_does_not_know_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Figure(value=number, unit="s")


def test_what_a_ratio_compares_with_is_said_with_its_interval() -> None:
    promised = {"metric": "ratio", "operator": ">=", "limit": 0.6, "written": ">= 60%"}
    ratio = ThresholdRecord(**promised, to="ovs-dpdk/forward/1cpu-1rxq", measured=0.642, low=0.631, high=0.65)
    assert ratio.relation == "64.2 % ± 1.1 % of ovs-dpdk/forward/1cpu-1rxq, at least 60 % promised"
    assert ratio.kind == "ratio"  # of records that do not say it
    assert ThresholdRecord(**promised, to="x").relation == ""


def test_the_other_build_of_a_ratio_is_the_packaged_one_or_a_folder() -> None:
    promised = {"metric": "of_build", "operator": ">=", "limit": 0.97, "written": ">= 97%", "measured": 1.012}
    assert ThresholdRecord(**promised, to="distribution").relation == (
        "101 % of the packaged build, at least 97 % promised"
    )
    assert ThresholdRecord(**promised, to="/opt/ovs").other == "the build in /opt/ovs"


def _text(**changes: Any) -> str:
    return json.dumps(document(**changes))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.json: is not JSON"),
        ('{"schema_version": 2', "x.json: is not JSON"),
        ('{"schema_version": 1, ', "x.json: is not JSON"),
        ("[]", "x.json: the record: [] is not of type 'object'"),
        (_text(schema_version=3), "x.json: schema_version: 3 is not known.\n  Expected 1 or 2."),
        (_text(schema_version=True), "x.json: schema_version: true is not known.\n  Expected 1 or 2."),
        ("{}", "x.json: schema_version: missing is not known"),
        (_text(verdict="perhaps"), "x.json: verdict: 'perhaps' is not one of"),
        (_text(margin_pct="much"), "x.json: margin_pct: "),
        (_text(colour="red"), "'colour' was unexpected"),
        (_text(evidence={"trials": [{"state": "good"}]}), "x.json: evidence.trials.0: "),
        (_text(started="yesterday"), "x.json: started: "),
        (_text(metric="speed"), 'x.json: metric: "speed" is not a metric of this version'),
        (_text(figures={"speed": {"value": 1, "unit": "s"}}), 'x.json: figures.speed: "speed" is not a metric'),
        (_text(figures={"cps": {"value": 1, "unit": "s"}}), 'figures: the unit of cps is "s" and not "connections/s"'),
        (_text(figures={"cps": {"unit": "s"}}), "x.json: figures.cps: 'value' is missing"),
        (_text(figures={"cps": {"value": 1, "unit": "s", "mean": 1}}), "figures.cps: 'mean' was unexpected"),
        (
            _text(figures={"cps": {"value": 1, "unit": "connections/s", "low": 2, "high": 1}}),
            "x.json: figures.cps: low is 2, which is above high, 1.\n  Expected",
        ),
    ],
)
def test_what_is_no_record_is_refused_with_the_file_and_the_place(text: str, said: str) -> None:
    with pytest.raises(RecordError) as error:
        from_json(text, "x.json")
    assert said in str(error.value)


@pytest.mark.parametrize("name", CONTENTS)
def test_whatever_a_file_holds_it_is_one_sentence(name: str) -> None:
    content, said = CONTENTS[name]
    with pytest.raises(RecordError) as error:
        from_json(content, "x.json")
    first, expected = str(error.value).split("\n")
    assert first.startswith("x.json: ") and said in first and first.isprintable() and len(first) < 700
    assert expected.startswith("  Expected ")


def test_a_text_of_a_megabyte_is_refused_with_a_short_sentence() -> None:
    with pytest.raises(RecordError) as error:
        from_json(changed("verdict", "x" * 1_000_000), "x.json")
    assert len(str(error.value)) < 300


def test_numbers_at_the_ends_of_what_is_allowed_are_read() -> None:
    for value in (5e-324, 1e-30, 1e18):
        whole = document(margin_pct=-value)
        for figure in whole["figures"].values():
            figure |= {"value": value, "low": value, "high": value, "samples": [value, value]}
        assert from_json(json.dumps(whole), "x.json").figures["cps"].value == value

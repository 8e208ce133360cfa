"""The record: valid by its published schema when written and when read."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from ctbench.results.environment import DutFacts, GeneratorFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import SCHEMA_FILE, Record, RecordError, from_json, schema_text
from ctbench.results.record_model import Figure, ThresholdRecord

from .odd_records import CONTENTS
from .records import record


def test_the_published_schema_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run: PYTHONPATH=libraries python -m ctbench.results.record"


def test_the_schema_is_a_valid_schema_that_names_what_the_issue_asks_for() -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    asked = {
        "schema_version", "test", "tags", "procedure", "topology", "profile", "figures", "thresholds", "verdict",
        "verdict_reason", "margin_pct", "evidence", "environment",
    }  # fmt: skip
    assert asked <= set(schema["required"])
    assert set(schema["properties"]["figures"]["properties"]) == set(METRICS)


def test_a_record_is_read_back_the_same() -> None:
    whole = record()
    assert from_json(whole.to_json(), "x.json") == whole
    assert next(iter(json.loads(whole.to_json()))) == "schema_version"


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


def test_times_are_utc_and_a_time_without_a_zone_is_refused() -> None:
    fields = record().model_dump() | {"started": datetime(2025, 1, 2, 5, 0, tzinfo=timezone(timedelta(hours=2)))}
    there = Record(**fields)
    assert there.started == datetime(2025, 1, 2, 3, 0, tzinfo=UTC)
    assert '"started": "2025-01-02T03:00:00Z"' in there.to_json()
    with pytest.raises(ValidationError):
        Record(**fields | {"started": datetime(2025, 1, 2)})


def test_facts_that_json_cannot_hold_do_not_cost_a_measurement() -> None:
    odd: dict[str, Any] = {
        "name": "\ud800x\udcff", "rate": float("inf"), "where": Path("/x"), "odd": object(), "cpus": {1},
    }  # fmt: skip
    parts = {"testbed": TestbedFacts(**odd | {"name": "x"}), "dut": DutFacts(**odd), "generator": GeneratorFacts(**odd)}
    environment = record().environment.model_copy(update=parts)
    text = record().model_copy(update={"environment": environment}).to_json()
    text.encode()
    facts = from_json(text, "x.json").environment.dut.model_extra
    assert (facts["name"], facts["rate"], facts["where"]) == ("?x?", None, "/x")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_figure_that_json_does_not_know_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Figure(value=number, unit="s")


def test_what_a_ratio_compares_with_is_said_with_its_interval() -> None:
    promised: dict[str, Any] = {"metric": "ratio", "operator": ">=", "limit": 0.6, "written": ">= 60%"}
    ratio = ThresholdRecord(**promised, to="ovs-dpdk/forward/1cpu-1rxq", measured=0.642, low=0.631, high=0.65)
    assert ratio.relation == "64.2 % ± 1.1 % of ovs-dpdk/forward/1cpu-1rxq, at least 60 % promised"
    assert ratio.kind == "ratio"  # of records that do not say it
    assert ThresholdRecord(**promised, to="x").relation == ""
    promised |= {"metric": "of_build", "measured": 1.012}
    assert ThresholdRecord(**promised, to="distribution").other == "the packaged build"
    assert ThresholdRecord(**promised, to="/opt/ovs").other == "the build in /opt/ovs"


@pytest.mark.parametrize("name", CONTENTS)
def test_whatever_a_file_holds_it_is_one_sentence(name: str) -> None:
    content, said = CONTENTS[name]
    with pytest.raises(RecordError) as error:
        from_json(content, "x.json")
    first, expected = str(error.value).split("\n")
    assert first.startswith("x.json: ") and said in first and first.isprintable() and len(first) < 700
    assert expected.startswith("  Expected ")

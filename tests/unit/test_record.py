"""The record: valid by its published schema when written and when read."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from ctbench.dut.base import CpuUse
from ctbench.results.record import SCHEMA_FILE, Baseline, RecordError, from_json, schema_text

from .simulated import FORWARDING, found_packets, made_up_packet_floor, made_up_packet_record, made_up_record


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(made_up_record().to_json()) | changes)


def test_the_published_schema_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run: PYTHONPATH=libraries python -m ctbench.results.record"


def test_the_schema_is_a_valid_schema_that_names_what_the_issue_asks_for() -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    asked = {
        "test",
        "topology",
        "profile",
        "floors",
        "measured",
        "verdict",
        "margin_pct",
        "ceiling",
        "trials",
        "environment",
    }
    assert asked <= set(schema["required"])


def test_a_record_is_read_back_the_same() -> None:
    record = made_up_record(notes=["long-lived-short stood in for long-lived"])
    assert from_json(record.to_json(), "x.json") == record


def test_the_json_can_be_traced_to_its_trials() -> None:
    document = json.loads(made_up_record().to_json())
    assert document["measured"]["rate"] == 381_000
    assert document["verdict"] == "met"
    assert document["floors"]["cps"] == ">= 48.2k"
    assert document["profile"]["messages"] == 1
    assert [trial["state"] for trial in document["trials"]] == ["bad", "good"]
    assert document["trials"][1]["trial"]["load"] == 381_000


def test_a_test_without_any_measurement_has_a_record_too() -> None:
    record = made_up_record(measured=None, margin_pct=None, verdict="not measured", ceiling=None, trials=[])
    assert json.loads(record.to_json())["measured"] is None
    assert from_json(record.to_json(), "x.json") == record


def test_a_record_of_packets_has_latency_cpu_and_what_it_was_compared_with() -> None:
    cpu = CpuUse(0.98, 3_700.0, "link threads")
    baseline = Baseline(key=FORWARDING, rate=412_000.0)
    floor = made_up_packet_floor(">= 100k", share=">= 60%")
    record = made_up_packet_record(found_packets(264_400.0, cpu=cpu), floor, baseline=baseline)
    assert from_json(record.to_json(), "x.json") == record
    document = json.loads(record.to_json())
    assert document["profile"]["frame_bytes"] == 64
    assert document["measured"]["unit"] == "packets"
    assert document["measured"]["latency_us"] == {"p50": 40, "p99": 80, "max": 320, "jitter": 2}
    assert document["measured"]["cpu"] == {"busy_cpus": 0.98, "ns_per_packet": 3700, "source": "link threads"}
    assert document["trials"][1]["cpu"] == document["measured"]["cpu"]
    assert document["baseline"] == {"key": FORWARDING, "rate": 412_000, "doubt": ""}
    assert (document["floors"]["relative"], document["floors"]["relative_to"]) == (">= 60%", FORWARDING)
    assert [each["metric"] for each in document["thresholds"]] == ["pps", "relative", "loss_ratio"]


def test_times_are_utc_and_a_time_without_a_zone_is_refused() -> None:
    there = datetime(2025, 1, 2, 5, 0, tzinfo=timezone(timedelta(hours=2)))
    assert made_up_record(started=there).started == datetime(2025, 1, 2, 3, 0, tzinfo=UTC)
    assert '"started": "2025-01-02T03:00:00Z"' in made_up_record(started=there).to_json()
    with pytest.raises(ValidationError):
        made_up_record(started=datetime(2025, 1, 2))


def test_what_json_does_not_know_in_the_environment_never_costs_a_record() -> None:
    odd = {"testbed": {"path": Path("/x"), "odd": object()}, "dut": {}, "generator": {"cpus": {1}}, "machine": {}}
    document = json.loads(made_up_record(environment=odd).to_json())
    assert document["environment"]["testbed"]["path"] == "/x"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_figure_that_json_does_not_know_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        made_up_record(margin_pct=number)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.json: is not JSON"),
        ('{"schema_version": 1', "x.json: is not JSON"),
        ("[]", "x.json: the record: [] is not of type 'object'"),
        (changed(schema_version=2), "x.json: schema_version: 2 is not known.\n  Expected 1."),
        ("{}", "x.json: schema_version: missing is not known"),
        (changed(verdict="perhaps"), "x.json: verdict: 'perhaps' is not one of"),
        (changed(margin_pct="much"), "x.json: margin_pct: "),
        (changed(colour="red"), "'colour' was unexpected"),
        (changed(trials=[{"state": "good"}]), "x.json: trials.0: "),
        (changed(started="yesterday"), "x.json: started: "),
    ],
)
def test_what_is_no_record_is_refused_with_the_file_and_the_place(text: str, said: str) -> None:
    with pytest.raises(RecordError) as error:
        from_json(text, "x.json")
    assert said in str(error.value)

"""Records of version 1: what they say is read in the words of version 2, and an odd one is a sentence."""

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ctbench.dut.topology import Topology
from ctbench.results.record import RecordError, from_json
from ctbench.results.version_1 import begins_as_version_1, upgrade

from .records import GOLDEN_FILES
from .test_record_agreement import VALUES, changed, places

pytestmark = pytest.mark.unit

SNAT = "linux-router-nat.snat-with-iptables-10k-flows"
SHORT_LIVED = "ovs-dpdk-conntrack.1-cpu-1-queue-short-lived-connections"


@cache
def _golden() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_bytes()) for path in GOLDEN_FILES}


def golden(name: str) -> dict[str, Any]:
    return copy.deepcopy(_golden()[name])


def read(document: dict[str, Any]) -> Any:
    return from_json(json.dumps(document), "x.json")


@pytest.mark.parametrize("name", _golden())
def test_a_golden_record_says_the_same_as_before(name: str) -> None:
    old, new = golden(name), read(golden(name))
    for key in (
        "tool_version",
        "run_id",
        "suite",
        "test",
        "tags",
        "verdict",
        "verdict_reason",
        "margin_pct",
        "limited_by",
    ):
        assert getattr(new, key) == old[key]
    if old["measured"]:
        assert new.result.value == old["measured"]["rate"]
        assert new.figures["loss_ratio"].value == old["measured"]["loss_ratio"]
        assert (new.figures["bps"].value, new.figures["pps"].value) == (old["measured"]["bps"], old["measured"]["pps"])
    else:
        assert new.result is None and new.figures == {}
    assert [each.written for each in new.thresholds] == [each["threshold"] for each in old["thresholds"]] or not old[
        "thresholds"
    ]
    assert new.floor.key == old["floors"]["key"]
    assert [made.trial.load for made in new.evidence.trials] == [made["trial"]["load"] for made in old["trials"]]
    assert (new.evidence.ceiling, new.evidence.upper_bound) == (old["ceiling"], old["upper_bound"])
    assert from_json(new.to_json(), "x.json") == new


def test_figures_are_by_metric_in_its_unit() -> None:
    record = read(golden(SHORT_LIVED))
    rate = 148463.39049660382
    assert (record.metric, record.procedure) == ("cps", "highest-rate")
    found = {name: (figure.value, figure.unit) for name, figure in record.figures.items()}
    assert list(found) == [
        "cps", "pps", "bps", "loss_ratio", "connect_time_p99", "active_connections", "connect_time_p50",
        "connect_time_max", "busy_cpus", "cpu_time_per_packet",
    ]  # fmt: skip
    assert found["cps"] == (rate, "connections/s")
    assert found["connect_time_p99"] == (pytest.approx(7.1743e-3, rel=1e-4), "s")
    assert found["cpu_time_per_packet"] == (pytest.approx(957.8e-9, rel=1e-4), "s")
    assert (record.result.low, record.result.high, record.result.samples) == (rate, 164301.75, ())
    assert record.environment.dut.product == "Open vSwitch 3.1.0"
    assert record.environment.dut.product_details == "Open vSwitch 3.1.0, DPDK 22.11.11"
    assert record.floor.reference is not None and record.floor.reference.figures == {"cps": 48_200, "pps": 334_900}
    assert record.evidence.trials[0].trial.connect_time_us.p50 > 0


def test_what_is_relative_is_a_ratio() -> None:
    record = read(golden(SNAT))
    threshold = record.threshold("ratio")
    assert (threshold.written, threshold.limit, threshold.to) == (">= 45%", 0.45, "linux-router/forward/1cpu-1rxq")
    assert record.figures["ratio"].value == threshold.measured
    assert record.figures["latency_jitter"].unit == "s" and "active_connections" not in record.figures
    assert record.evidence.baseline.key == threshold.to


def test_repetitions_are_samples_between_their_least_and_most() -> None:
    document = golden(SHORT_LIVED) | {"capacities": [148463.0, 148000.0, 149000.0], "spread": 0.0067}
    found = read(document).result
    assert (found.samples, found.low, found.high) == ((148463, 148000, 149000), 148000, 149000)


def test_a_gate_is_a_measurement_at_the_floor() -> None:
    document = golden(SHORT_LIVED) | {"capacities": [], "upper_bound": None, "limited_by": "floor"}
    document["campaign"]["search"] = "gate"
    record = read(document)
    assert record.procedure == "at-floor"
    assert (record.result.low, record.result.high, record.result.samples) == (None, None, ())


def test_a_floor_that_nothing_was_compared_with_is_kept_as_thresholds() -> None:
    document = golden(SNAT) | {"thresholds": [], "measured": None}
    document["floors"] |= {"latency_p99": "<= 5ms", "bps": ">= 2G"}
    found = read(document).thresholds
    assert [(each.metric, each.operator, each.limit, each.written) for each in found] == [
        ("pps", ">=", 250_000, ">= 250k"),
        ("bps", ">=", 2e9, ">= 2G"),
        ("ratio", ">=", 0.45, ">= 45%"),
        ("loss_ratio", "<=", 0.0002, "<= 0.02%"),
        ("latency_p99", "<=", 0.005, "<= 5ms"),
    ]
    assert all(each.measured is None and not each.met for each in found)


@pytest.mark.parametrize(
    ("datapath", "ruleset", "topology"),
    [
        ("ovs-dpdk", "conntrack", Topology()),
        ("ovs-dpdk", "bond-vlan", Topology(ruleset="normal", ports="bond-vlan")),
        ("linux-router", "vlan", Topology(datapath="linux-router", ruleset="forward", ports="vlan")),
        ("linux-bridge", "bond", Topology(datapath="linux-bridge", ruleset="forward", ports="bond")),
        ("linux-router", "notrack", Topology(datapath="linux-router", ruleset="iptables-notrack")),
        ("ovs-dpdk", "conntrack-normal+bond", Topology(ruleset="conntrack-normal", ports="bond")),
    ],
)
def test_what_the_ports_are_was_a_part_of_the_ruleset(datapath: str, ruleset: str, topology: Topology) -> None:
    written = {"datapath": datapath, "ruleset": ruleset, "pmd_cpus": 1, "rx_queues": 1}
    assert read(golden(SHORT_LIVED) | {"topology": written}).topology == topology


def test_the_document_decides_alone_and_stays_as_it_is() -> None:
    for name in _golden():
        before, document = golden(name), golden(name)
        first = upgrade(document)
        assert document == before
        assert upgrade(document) == first


def test_a_document_is_known_by_its_first_key_and_wherever_the_version_is() -> None:
    document = golden(SNAT)
    text = json.dumps(document, indent=1)
    last = json.dumps(dict(sorted(document.items())))
    assert begins_as_version_1(text) and begins_as_version_1(text.encode()) and not begins_as_version_1(last)
    assert not begins_as_version_1('{"schema_version": 12}') and not begins_as_version_1(b'{"schema_version": 1.5}')
    assert from_json(last, "x.json") == from_json(text, "x.json")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("measured", "rate"), -1.0, "measured.rate: "),
        (("measured", "rate"), ..., "measured: 'rate' is missing"),
        (("measured", "colour"), 1, "measured: 'colour' was unexpected"),
        (("floors", "cps"), ">= many", 'floors.cps: "many" is not a number'),
        (("floors", "setup_time_p99"), "<= 5", "floors.setup_time_p99: "),
        (("thresholds", 0, "metric"), "ratio", "thresholds.0.metric: 'ratio' is not one of 'cps'"),
        (("trials", 0, "trial", "load"), "1", "trials.0.trial.load: "),
        (("trials", 0, "trial", "setup_time_us"), 1, "trials.0.trial.setup_time_us: "),
        (("trials", 0, "trial", "connect_time_us"), None, "connect_time_us is a key of another version"),
        (("topology", "pmd_cpus"), "1", "topology.pmd_cpus: "),
        (("topology", "ports"), "bond", "ports is a key of another version"),
        (("figures",), {}, "the record: 'figures' was unexpected"),
        (("evidence",), {}, "the record: 'evidence' was unexpected"),
        (("environment", "dut"), ..., "environment: 'dut' is missing"),
        (("environment", "dut", "kernel"), {"a": 1}, "environment.dut.kernel"),
        (("baseline",), 3, "baseline: 3 is not of type 'object'"),
        (("ceiling",), "fast", "ceiling: "),
    ],
)
def test_an_odd_one_is_refused_by_its_own_keys(place: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(RecordError) as error:
        read(changed(golden(SNAT), place, value))
    first, expected = str(error.value).split("\n")[:1] + str(error.value).split("\n")[-1:]
    assert first.startswith("x.json: ") and said in first
    assert expected == "  Expected the keys and values of version 1."


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.data())
def test_whatever_is_changed_it_is_a_record_or_a_sentence(data: st.DataObject) -> None:
    document = golden(data.draw(st.sampled_from(sorted(_golden()))))
    del document["trials"][1:]
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(places(document))))
        document = changed(document, place, data.draw(st.sampled_from([..., *VALUES])))
    try:
        record = read(document)
    except RecordError as error:
        assert str(error).startswith("x.json: ") and "\n  Expected " in str(error)
    else:
        assert from_json(record.to_json(), "x.json") == record


@given(st.dictionaries(st.text(), st.integers()))
@settings(derandomize=True, deadline=None)
def test_what_is_no_record_is_not_upgraded(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        upgrade(document | {"schema_version": 1})

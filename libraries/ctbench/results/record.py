"""The record: one test's measurement as a JSON document with a published schema.

`python -m ctbench.results.record` (with libraries/ on PYTHONPATH) writes record.schema.json from the models here.
All rates are per second, ratios are ratios (0.0002 is 0.02 %), times say their unit in their name.
"""

import json
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ctbench.dut.base import CpuUse, Problem, Topology
from ctbench.errors import CtbenchError
from ctbench.traffic.generator import Latency, LoadUnit, SetupTime, Trial
from ctbench.traffic.profiles import Profile
from ctbench.units import format_rate, format_share

SCHEMA_FILE = Path(__file__).with_name("record.schema.json")

Word = Literal["met", "missed", "not measured"]
LimitedBy = Literal["dut", "generator", "range", "floor", "fault"]
Utc = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class RecordError(CtbenchError):
    """A file is no record, or one of another version: names the file and what is wrong with it."""


class Part(BaseModel):
    """Base of the record's models: frozen, unknown keys forbidden, no infinities (JSON has none)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Measured(Part):
    """What the DUT did at its capacity (gate: at the floor)."""

    #: What `rate` counts: the profile's unit.
    unit: LoadUnit
    #: Capacity: the highest offered load whose loss stayed within the limit. Where nothing held: completed per second.
    rate: float
    #: Packets that came through, both directions; of a packet profile, that is the rate. Bits without FCS.
    pps: float
    bps: float
    #: Connections open at the same time, in the mean over the sustain phase.
    active_connections: float
    loss_ratio: float
    setup_time_us: SetupTime | None
    #: Of the direction where it is the worse one.
    latency_us: Latency | None = None
    cpu: CpuUse | None = None


class TrialRecord(Part):
    """One trial: its counts, and what was thought of it."""

    #: Why it was made: `search`, `recheck`, `final` or `gate`.
    phase: str
    state: Literal["good", "bad", "invalid"]
    #: One sentence; empty for a good trial.
    reason: str
    problems: list[Problem]
    #: Of the direction where it is the worse one.
    latency_us: Latency | None = None
    cpu: CpuUse | None = None
    trial: Trial


class ThresholdResult(Part):
    """A threshold of the floor beside what was measured."""

    #: `cps`, `pps`, `bps`, `relative`, `loss_ratio`, `setup_time_p99` or `latency_p99`.
    metric: str
    #: As the SLA file has it: `>= 48.2k`.
    threshold: str
    #: The number in it: per second, a ratio, or seconds.
    limit: float
    #: In the same unit; None where it was not measured.
    measured: float | None
    #: How much better than the limit, in percent of it; None without a measurement or with a limit of 0.
    margin_pct: float | None
    met: bool


class Reference(Part):
    """A figure published elsewhere, shown beside the floor. It is no promise."""

    cps: float | None = None
    pps: float | None = None
    source: str


class FloorRecord(Part):
    """The floor that the test was judged by, with thresholds as the SLA file has them."""

    #: For example `ovs-dpdk/conntrack/1cpu-1rxq`.
    key: str
    profile: str
    cps: str | None = None
    pps: str | None = None
    bps: str | None = None
    #: Share of another topology's rate, and that topology's key.
    relative: str | None = None
    relative_to: str | None = None
    loss_ratio: str | None = None
    setup_time_p99: str | None = None
    latency_p99: str | None = None
    #: Where the promise comes from: the SLA file's own words.
    source: str
    #: How the floor follows from another one; empty when the SLA file has it.
    derivation: str = ""
    reference: Reference | None = None


class Baseline(Part):
    """What a relative floor compares with: the capacity of another topology with the same profile."""

    #: For example `linux-router/forward/1cpu-1rxq`.
    key: str
    #: In the profile's unit per second; None where it could not be measured.
    rate: float | None
    #: Why it is not known, or only known to be at least this; empty when it is.
    doubt: str = ""

    def relation(self, rate: float, share: float) -> str:
        """How a rate compares: `64.2 % of linux-router/forward/1cpu-1rxq (412.0 k/s), at least 60 % promised`."""
        assert self.rate, "there is nothing to compare with"
        of = f"{format_share(rate / self.rate)} of {self.key} ({format_rate(self.rate)})"
        return f"{of}, at least {share * 100:g} % promised"


class Environment(Part):
    """Everything that the figures depend on and that is no setting of the test."""

    testbed: dict[str, Any]
    dut: dict[str, Any]
    generator: dict[str, Any]
    machine: dict[str, Any]


class PoolMember(Part):
    """Which testbed of a pool measured, where several measured side by side."""

    #: For example `local#2`.
    name: str
    #: CPUs of the machine that ran the pool that this testbed had for itself.
    cpus: list[int]
    #: Place of the test's suite among the suites of the run: which one is measured first is chance.
    suite: int


class Record(Part):
    """One test's measurement. A number in a report can be traced to its trials here."""

    schema_version: Literal[1] = 1
    tool_version: str
    run_id: str
    suite: str
    test: str
    tags: list[str]
    started: Utc
    ended: Utc
    #: Length of the test by the wall clock, and the sum of its trials' sustain phases, seconds.
    wall_s: float
    traffic_s: float
    topology: Topology
    #: The whole profile that was offered, and the whole campaign, as they were read.
    profile: Profile
    campaign: dict[str, Any]
    floors: FloorRecord
    thresholds: list[ThresholdResult]
    #: None when no trial says anything.
    measured: Measured | None
    limited_by: LimitedBy
    #: Capacity that each repetition of the search found.
    capacities: list[float]
    #: How far they are apart: (largest - smallest) / median; None where there is one, or the median is 0.
    spread: float | None = None
    #: The lowest load that did not hold, where one was found.
    upper_bound: float | None
    verdict: Word
    verdict_reason: str
    margin_pct: float | None
    #: The generator's capacity over the cable with the same profile; None when it is unknown.
    ceiling: float | None
    #: None where the floor compares with no other topology.
    baseline: Baseline | None = None
    trials: list[TrialRecord]
    environment: Environment
    #: None where one testbed measured everything.
    pool: PoolMember | None = None
    #: Doubts and deviations that a reader has to know, one sentence each.
    notes: list[str] = Field(default_factory=list)

    def to_json(self) -> str:
        """Write it as JSON that is valid by the schema; what JSON does not know in the environment becomes text."""
        document = self.model_dump(mode="json", fallback=str)
        _validator().validate(document)
        return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def from_json(text: str, source: str) -> Record:
    """Read a record and check it against the schema; `RecordError` names `source` and what is wrong."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{source}: is not JSON ({error}).\n  Expected a whole record; was the run killed?") from None
    if isinstance(document, dict) and document.get("schema_version") != 1:
        version = document.get("schema_version", "missing")
        raise RecordError(f"{source}: schema_version: {version} is not known.\n  Expected 1.")
    mismatch = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if mismatch is not None:
        where = ".".join(str(part) for part in mismatch.absolute_path) or "the record"
        raise RecordError(f"{source}: {where}: {mismatch.message[:200]}.\n  Expected what {SCHEMA_FILE.name} says.")
    try:
        return Record.model_validate(document)
    except ValidationError as errors:  # what a JSON Schema cannot say, for example overlapping addresses
        first = errors.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RecordError(f"{source}: {where}: {first['msg']}.\n  Expected a record of this version.") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of a record, made from the models."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctbench record, version 1"}
    made = Record.model_json_schema(mode="serialization")
    return head | {key: value for key, value in made.items() if key != "title"}


def schema_text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def _validator() -> jsonschema.Draft202012Validator:
    """The validator over the published file, which is what others validate with."""
    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"{SCHEMA_FILE} written")

"""The record: one test's measurement as a JSON document with a published schema.

`python -m ctbench.results.record` (with libraries/ on PYTHONPATH) writes record.schema.json from the models here.
All rates are per second, ratios are ratios (0.0002 is 0.02 %), times say their unit in their name.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from ctbench.base.bounds import Amount, Real
from ctbench.base.errors import CtbenchError
from ctbench.base.plain_text import printable
from ctbench.base.units import format_rate, format_share, parse_number, parse_ratio, parse_share
from ctbench.dut.base import CpuUse, Problem
from ctbench.results.topology_v1 import RecordedTopology
from ctbench.results.environment import CampaignFacts, DutFacts, GeneratorFacts, MachineFacts, Reading, TestbedFacts
from ctbench.results.json_text import UNKNOWN_VERSION, to_text, why_no_record
from ctbench.traffic.generator import Latency, LoadUnit, SetupTime, Trial
from ctbench.traffic.profiles import Profile

if TYPE_CHECKING:
    import jsonschema

SCHEMA_FILE = Path(__file__).with_name("record.schema.json")

Word = Literal["met", "missed", "not measured"]
LimitedBy = Literal["dut", "generator", "range", "floor", "fault"]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is beyond the years 1 to 9999 in UTC") from None


Utc = Annotated[AwareDatetime, AfterValidator(_in_utc)]


def _promise(parse: Callable[[str], float]) -> AfterValidator:
    """Of a threshold as the SLA file has it, what makes sure that it can be read again."""

    @lru_cache(maxsize=1000)  # runs have the same floors
    def read(text: str) -> str:
        parse(text.removeprefix(">=").removeprefix("<=").strip())
        return text

    def check(text: str, info: ValidationInfo) -> str:
        return read(text) if isinstance(info.context, Reading) else text

    return AfterValidator(check)


RatePromise = Annotated[str, _promise(parse_number)]
RatioPromise = Annotated[str, _promise(parse_ratio)]
SharePromise = Annotated[str, _promise(parse_share)]


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
    rate: Amount
    #: Packets that came through, both directions; of a packet profile, that is the rate. Bits without FCS.
    pps: Amount
    bps: Amount
    #: Connections open at the same time, in the mean over the sustain phase.
    active_connections: Real
    loss_ratio: Real
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
    measured: Real | None
    #: How much better than the limit, in percent of it; None without a measurement or with a limit of 0.
    margin_pct: Real | None
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
    cps: RatePromise | None = None
    pps: RatePromise | None = None
    bps: str | None = None
    #: Share of another topology's rate, and that topology's key.
    relative: SharePromise | None = None
    relative_to: str | None = None
    loss_ratio: RatioPromise | None = None
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
    rate: Amount | None
    #: Why it is not known, or only known to be at least this; empty when it is.
    doubt: str = ""

    def relation(self, rate: float, share: float) -> str:
        """How a rate compares: `64.2 % of linux-router/forward/1cpu-1rxq (412.0 k/s), at least 60 % promised`."""
        assert self.rate, "there is nothing to compare with"
        of = f"{format_share(rate / self.rate)} of {self.key} ({format_rate(self.rate)})"
        return f"{of}, at least {share * 100:g} % promised"


class Environment(Part):
    """Everything that the figures depend on and that is no setting of the test."""

    testbed: TestbedFacts
    dut: DutFacts
    generator: GeneratorFacts
    machine: MachineFacts


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
    wall_s: Amount
    traffic_s: Amount
    topology: RecordedTopology
    #: The whole profile that was offered, and the whole campaign, as they were read.
    profile: Profile
    campaign: CampaignFacts
    floors: FloorRecord
    thresholds: list[ThresholdResult]
    #: None when no trial says anything.
    measured: Measured | None
    limited_by: LimitedBy
    #: Capacity that each repetition of the search found.
    capacities: list[Amount]
    #: How far they are apart: (largest - smallest) / median; None where there is one, or the median is 0.
    spread: Amount | None = None
    #: The lowest load that did not hold, where one was found.
    upper_bound: Amount | None
    verdict: Word
    verdict_reason: str
    margin_pct: Real | None
    #: The generator's capacity over the cable with the same profile; None when it is unknown.
    ceiling: Amount | None
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
        text = to_text(self.model_dump(mode="json", fallback=str))
        _validator().validate(json.loads(text))
        return text


def from_json(text: str | bytes, source: str, reading: Reading | None = None) -> Record:
    """Read a record, as strictly as the schema; `RecordError` names `source` and what is wrong. With the same `reading`,
    records hold the facts that they have in common once.

    The models check it and not the schema, which takes ten times as long; the tests hold the two against each other.
    """
    try:
        record = Record.model_validate_json(text, strict=True, context=reading or Reading())
    except ValidationError as errors:
        reason = why_no_record(errors.errors(include_url=False))
    else:
        if "schema_version" in record.model_fields_set:
            return record
        reason = UNKNOWN_VERSION.format("missing")
    raise RecordError(f"{printable(source)}: {printable(reason)}")


def schema() -> dict[str, Any]:
    """The JSON Schema of a record, made from the models."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctbench record, version 1"}
    made = Record.model_json_schema()
    required = ["schema_version", *made["required"]]
    return head | {key: value for key, value in made.items() if key != "title"} | {"required": required}


def schema_text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def _validator() -> "jsonschema.Draft202012Validator":
    """The validator over the published file, which is what others validate with."""
    import jsonschema  # noqa: PLC0415  reading needs none of it, and it takes its time

    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"{SCHEMA_FILE} written")

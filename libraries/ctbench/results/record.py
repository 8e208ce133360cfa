"""The record: one test's measurement as a JSON document with a published schema.

`python -m ctbench.results.record` (with libraries/ on PYTHONPATH) writes record.schema.json from the models here.
Rates are per second, ratios are ratios (0.0002 is 0.02 %), times of figures are seconds; others say their unit in their
name.
"""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from ctbench.base.bounds import MOST, Amount, Count, Real
from ctbench.base.errors import CtbenchError
from ctbench.base.plain_text import printable
from ctbench.base.units import format_share
from ctbench.dut.base import CpuUse, Problem
from ctbench.dut.counting import Counted
from ctbench.dut.topology import Topology
from ctbench.results.environment import CampaignFacts, Environment, Reading
from ctbench.results.figure import Figure, Figures, MetricName, Values
from ctbench.results.json_text import UNKNOWN_VERSION, to_text, why_no_record
from ctbench.results.metrics import METRICS, Kind, Operator, kind_of
from ctbench.results.version_1 import begins_as_version_1, place_in_version_1, upgrade
from ctbench.traffic.generator import Latency, Trial
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


class RecordError(CtbenchError):
    """A file is no record, or one of another version: names the file and what is wrong with it."""


_MAPPING = TypeAdapter(dict[str, Any])


class Part(BaseModel):
    """Base of the record's models: frozen, unknown keys forbidden, no infinities (JSON has none)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TrialRecord(Part):
    """One trial: its counts, and what was thought of it."""

    #: Why it was made: `saturation`, `warm-up`, `search`, `recheck`, `final` or `gate`.
    phase: str
    state: Literal["good", "bad", "invalid"]
    #: One sentence; empty for a good trial.
    reason: str
    problems: list[Problem]
    #: Of the direction where it is the worse one.
    latency_us: Latency | None = None
    cpu: CpuUse | None = None
    trial: Trial

    @property
    def offers_a_load(self) -> bool:
        """Whether it held a load that was asked for: a closed loop offers what the DUT takes."""
        return not self.trial.under_way


class ThresholdRecord(Part):
    """A promise of the SLA, compared with what was measured."""

    metric: MetricName
    #: `ratio`: to another topology; `of_build`: to another build of the same one; `absolute`: a figure of its own.
    kind: Kind = Field(default_factory=lambda known: kind_of(known.get("metric", "")))
    operator: Operator
    #: In the metric's unit: per second, a ratio, or seconds.
    limit: Real
    #: As the SLA file has it: `>= 48.2k`.
    written: str
    #: Of a `ratio`: key of the topology that it is relative to; of an `of_build`: the other build.
    to: str | None = None
    #: The machine that it was made on, where that is the only one that it is a promise for; empty: it is one anywhere.
    bound_to: str = ""
    #: Whether the DUT's machine is another one than that.
    elsewhere: bool = False
    #: Whether it is so far from what is usual that a build 30 % slower would pass.
    smoke: bool = False
    #: In the same unit; None where it was not measured.
    measured: Real | None = None
    #: Of what is relative to something: the 99 % interval of `measured`.
    low: Real | None = None
    high: Real | None = None
    #: How much better than the limit, in percent of it; None without a measurement or with a limit of 0.
    margin_pct: Real | None = None
    met: bool = False
    #: Whether nothing decided it: it is neither met nor missed then.
    undecided: bool = False
    #: One sentence: what decided it besides its figure, or why nothing did; empty where the figure says it.
    reason: str = ""

    @property
    def is_promise(self) -> bool:
        """Whether it is a promise, and no condition of every trial."""
        return METRICS[self.metric].role == "promise"

    @property
    def other(self) -> str:
        """What a rate is compared with, in words."""
        if self.kind == "of_build":
            return "the packaged build" if self.to == "distribution" else f"the build in {self.to}"
        return self.to or "another topology"

    @property
    def relation(self) -> str:
        """How a rate compares: `64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised`; empty where
        nothing was compared."""
        if self.measured is None or self.kind == "absolute":
            return ""
        width = f" ± {format_share(self.half_width)}" if self.half_width is not None else ""
        bound = METRICS[self.metric].bound
        return f"{format_share(self.measured)}{width} of {self.other}, {bound} {self.limit * 100:g} % promised"

    @property
    def half_width(self) -> float | None:
        """How far the farther end of the interval is from what was measured, in the same unit."""
        if self.measured is None or self.low is None or self.high is None:
            return None
        return max(self.high - self.measured, self.measured - self.low)


class Reference(Part):
    """Figures published elsewhere, shown next to the floor. They are no promise."""

    #: By metric.
    figures: Values
    source: str


class FloorRecord(Part):
    """Where the thresholds of a test are from."""

    #: Of the floor in the SLA file: topology, for example `ovs-dpdk/conntrack/1cpu-1rxq`, and profile.
    key: str
    profile: str
    #: Where the promise comes from: the SLA file's own words.
    source: str
    #: How the floor follows from another one; empty when the SLA file has it.
    derivation: str = ""
    reference: Reference | None = None


class Baseline(Part):
    """What a relative floor compared with before there were pairs: the capacity of another topology with the same
    profile, found by a search of its own."""

    #: For example `linux-router/forward/1cpu-1rxq`.
    key: str
    #: In the profile's unit per second; None where it could not be measured.
    rate: Amount | None
    #: Why it is not known, or only known to be at least this; empty when it is.
    doubt: str = ""


class LookRecord(Part):
    """What a pair's interval was when it was looked at."""

    #: Rounds (a slice of each side), or blocks of searches, that it stands on.
    rounds: Count
    #: The ratio, and the 99 % interval that it lies in: 1.02 is 2 % better than the other side.
    value: Amount
    low: Amount
    high: Amount


class SideRecord(Part):
    """One side of a pair."""

    #: Key of its topology: `linux-router/forward/1cpu-1rxq`.
    key: str
    #: The installation it came from; empty for the testbed's own.
    build: str = ""
    #: What it was: `Open vSwitch 3.1.0`; empty where that is not known.
    product: str = ""
    #: Of its slices (searches), the median rate in the profile's unit per second; None where none counts.
    rate: Amount | None = None
    #: Share that was lost of what was begun in its slices.
    lost: Amount = 0.0


class PairRecord(Part):
    """Two set-ups that were measured in turn, and the ratio of the first to the second."""

    tested: SideRecord
    other: SideRecord
    #: Both stood there and had turns of `slice_s` seconds; or the DUT was set up again for each turn, a search.
    how: Literal["side by side", "reconfigured"]
    slice_s: Amount = 0.0
    #: Ratio of each round (block of four searches) that counts, and how many others were dropped: the
    #: generator stood still, or nothing came through.
    ratios: list[Amount]
    dropped: Count = 0
    looks: list[LookRecord]
    #: What was noticed of either DUT, one sentence each, and why they did not stand side by side where they did not.
    notes: list[str] = Field(default_factory=list)

    @property
    def result(self) -> LookRecord | None:
        """The last look; None where there were too few rounds for any."""
        return self.looks[-1] if self.looks else None


class Series(Part):
    """What a probe saw: a value each `every_s` from the beginning of a trial on; None where it could not tell."""

    #: What was sampled, for example `table_entries`, and its unit.
    name: str
    unit: str
    #: Number of the trial, from 1 on.
    trial: Annotated[int, Field(ge=1, le=MOST)]
    every_s: Annotated[float, Field(gt=0, le=MOST)]
    values: list[Real | None]


class GoalRecord(Part):
    """What a search with MLRsearch was to find, and what it reports: RFC 9971, sections 4.6 and 4.8."""

    #: The goal: the largest loss ratio of a low-loss trial; the length of a full-length trial, and of the full-length
    #: trials that classify a load, seconds; the share of those that may be high-loss; how near the bounds have to be.
    loss_ratio: Amount
    final_duration_s: Amount
    duration_sum_s: Amount
    exceed_ratio: Amount
    relative_width: Amount
    #: Over all trials of the search, in the profile's unit per second; None where there is no such load.
    relevant_lower_bound: Amount | None
    relevant_upper_bound: Amount | None
    #: What was forwarded of the relevant lower bound in full-length trials, in the same unit.
    conditional_throughput: Amount | None


class Evidence(Part):
    """What the figures stand on."""

    trials: list[TrialRecord]
    series: list[Series] = Field(default_factory=list)
    #: The lowest load that did not hold, where one was found.
    upper_bound: Amount | None = None
    #: The generator's capacity over the cable with the same profile; None when it is unknown.
    ceiling: Amount | None = None
    #: Of records from before there were `pairs`.
    baseline: Baseline | None = None
    #: What ratios stand on.
    pairs: list[PairRecord] = Field(default_factory=list)
    #: What boots of an emulated machine counted: of the topology, of the baseline that its figure is net of, and of
    #: what it is compared with.
    counts: list[Counted] = Field(default_factory=list)
    #: None where the search is not one of RFC 9971.
    goal: GoalRecord | None = None


class PoolMember(Part):
    """Which testbed of a pool measured, where several measured side by side."""

    #: For example `local#2`.
    name: str
    #: CPUs of the machine that ran the pool that this testbed had for itself.
    cpus: list[Count]
    #: Place of the test's suite among the suites of the run: which one is measured first is chance.
    suite: Count


class Record(Part):
    """One test's measurement. A number in a report can be traced to its trials here."""

    schema_version: Literal[2] = 2
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
    #: How it was measured, and the metric that the procedure looks for.
    procedure: str
    metric: MetricName
    topology: Topology
    #: The whole profile that was offered, and the whole campaign, as they were read.
    profile: Profile
    campaign: CampaignFacts
    #: By metric; empty where no trial says anything.
    figures: Figures
    #: What ended the measurement: the DUT; the generator; the campaign's range, in which every load held; the floor,
    #: which was all that was tried; or a fault.
    limited_by: LimitedBy
    thresholds: list[ThresholdRecord]
    floor: FloorRecord
    verdict: Word
    verdict_reason: str
    #: The least of the promises' margins, in percent.
    margin_pct: Real | None
    evidence: Evidence
    environment: Environment
    #: None where one testbed measured everything.
    pool: PoolMember | None = None
    #: Doubts and deviations that a reader has to know, one sentence each.
    notes: list[str] = Field(default_factory=list)

    @property
    def result(self) -> Figure | None:
        """The figure of the metric that the procedure looked for; None where no trial says anything."""
        return self.figures.get(self.metric)

    @property
    def message(self) -> str:
        """Verdict and reason, as a test says them when it ends."""
        return f"{self.verdict.capitalize()}: {self.verdict_reason}"

    @property
    def is_lower_bound(self) -> bool:
        """Whether the DUT may do better than the figure: the generator, or the campaign's range, ended first."""
        return self.limited_by in ("generator", "range")

    def threshold(self, metric: str) -> ThresholdRecord | None:
        """What was promised of a metric; None where nothing was."""
        return next((each for each in self.thresholds if each.metric == metric), None)

    def to_json(self) -> str:
        """Write it as JSON that is valid by the schema; what JSON does not know in the environment becomes text."""
        text = to_text(self.model_dump(mode="json", fallback=str))
        _validator().validate(json.loads(text))
        return text


def from_json(text: str | bytes, source: str, reading: Reading | None = None) -> Record:
    """Read a record of version 1 or 2, as strictly as the schema; `RecordError` names `source` and what is wrong. With
    the same `reading`, records hold the facts that they have in common once.

    The models check it and not the schema, which takes ten times as long; the tests compare what the two accept.
    """
    context = reading or Reading()
    try:
        record = None if begins_as_version_1(text) else _from_version_2(text, context)
    except ValidationError as errors:
        raise _refused(source, why_no_record(errors.errors(include_url=False))) from None
    try:
        record = record or _from_version_1(text, context)
    except ValidationError as errors:
        raise _refused(source, why_no_record(errors.errors(include_url=False), place_in_version_1)) from None
    if "schema_version" not in record.model_fields_set:
        raise _refused(source, UNKNOWN_VERSION.format("missing"))
    return record


def _refused(source: str, reason: str) -> RecordError:
    return RecordError(f"{printable(source)}: {printable(reason)}")


def _from_version_2(text: str | bytes, context: Reading) -> Record | None:
    """None where it is one of version 1, which has its version at another place when another program wrote it."""
    try:
        return Record.model_validate_json(text, strict=True, context=context)
    except ValidationError as errors:
        versions = (each["input"] for each in errors.errors(include_url=False) if each["loc"] == ("schema_version",))
        if repr(next(versions, None)) == "1":  # and not true, which is equal to it
            return None
        raise


def _from_version_1(text: str | bytes, context: Reading) -> Record:
    upgraded = upgrade(_MAPPING.validate_json(text, strict=True))
    return Record.model_validate_json(to_json(upgraded), strict=True, context=context)


def schema() -> dict[str, Any]:
    """The JSON Schema of a record, made from the models."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctbench record, version 2"}
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

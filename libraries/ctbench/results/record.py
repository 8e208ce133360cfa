"""The record: one test's measurement as a JSON document with a published schema.

`python -m ctbench.results.record` (with libraries/ on PYTHONPATH) writes record.schema.json from the models here. Rates
are per second, ratios are ratios (0.0002 is 0.02 %), times of figures are seconds; others have their unit in their
name.
"""

import json
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from ctbench.base.errors import CtbenchError
from ctbench.base.quantities import Amount, Count, Real
from ctbench.base.text import printable
from ctbench.base.units import quoted
from ctbench.dut.topology import Topology
from ctbench.results import record_model
from ctbench.results.environment import CampaignFacts, Environment
from ctbench.results.evidence import Evidence, held_for
from ctbench.results.floor import Accepted, FloorRecord, Threshold
from ctbench.results.metrics import LASTS_S, OFFERED
from ctbench.results.verdict import FAULTS, Code, Word, word_of
from ctbench.traffic.profiles import Profile

if TYPE_CHECKING:
    import jsonschema


def _why_no_record(errors: ValidationError) -> str:
    """Return why a document is not a record: no JSON, another version, else its first mistake."""
    found = errors.errors(include_url=False)
    version = next((each for each in found if each["loc"] == ("schema_version",)), None)
    if found[0]["type"] == "json_invalid":
        return f"is not JSON ({found[0]['ctx']['error']}).\n  Expected a whole record; was the run killed?"
    if version:
        number = "missing" if version["type"] == "missing" else quoted(version["input"])
        return f"schema_version: {number} is not known.\n  Expected 2."
    return f"{record_model.first_mistake(errors)}.\n  Expected what record.schema.json says."


SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
#: A search that ended with so much between what held and what did not found a lower bound.
FAR = 1.1

#: What a run counts: apart are a miss that is accepted, and has not expired, and a test that failed although it is met.
#: And a candidate that is no slower than its base as far as the traffic generator, the limit of both, can see.
Outcome = Literal["met", "missed", "not measured", "missed, accepted", "met, failed", "no slower seen"]
LimitedBy = Literal["dut", "generator", "range", "floor", "fault"]


class RecordError(CtbenchError):
    """A file that is not a record, or is one of another version. The text names the file and the mistake."""


class PoolMember(record_model.RecordModel):
    """The testbed of a pool that measured a test, where several measure side by side."""

    #: For example `local#2`.
    name: str
    #: CPUs of the machine that ran the pool that this testbed had for itself.
    cpus: list[Count]
    #: Place of the test's suite among the suites of the run: which one is measured first is chance.
    suite: Count


class Record(record_model.RecordModel):
    """One test's measurement. A number in a report can be traced to its trials here."""

    schema_version: Literal[2]
    tool_version: str
    run_id: str
    suite: str
    test: str
    tags: list[str]
    started: record_model.Utc
    ended: record_model.Utc
    #: Length of the test by the wall clock, and the sum of its trials' sustain phases, seconds.
    wall_s: Amount
    traffic_s: Amount
    #: How it was measured, and the metric that the procedure looks for.
    procedure: str
    metric: record_model.MetricName
    topology: Topology
    #: The whole profile that was offered, and the whole campaign, as they were read.
    profile: Profile
    campaign: CampaignFacts
    #: By metric; empty where no trial says anything.
    figures: record_model.Figures
    #: What ended the measurement: the DUT; the generator; the campaign's range, in which every load held; the floor,
    #: which was all that was tried; or a fault.
    limited_by: LimitedBy
    thresholds: list[Threshold]
    floor: FloorRecord
    verdict: Word
    verdict_reason: str
    #: What the verdict stands on, or why there is none, for programs: `interval`, `generator-limit`, `unknown-answer`.
    verdict_code: str = ""
    #: The least of the promises' margins, in percent.
    margin_pct: Real | None
    evidence: Evidence
    environment: Environment
    #: Folder of what the DUT said of its failure, relative to the run's; None where nothing failed.
    capture: str | None = Field(default=None, pattern=r"^captures/[a-z0-9][a-z0-9.-]*$")
    #: What another step of the test failed with, such as an assertion of its own, although the verdict did not fail it.
    failed: str | None = None
    #: None where one testbed measured everything.
    pool: PoolMember | None = None
    #: Doubts and deviations that a reader has to know, one sentence each.
    notes: list[str] = Field(default_factory=list)

    @property
    def result(self) -> record_model.Estimate | None:
        """The figure of the metric that the procedure looked for; None where no trial says anything."""
        return self.figures.get(self.metric)

    @property
    def values(self) -> dict[str, float]:
        """The measured values by metric."""
        return {name: figure.value for name, figure in self.figures.items()}

    @property
    def accepted(self) -> Accepted | None:
        """The acceptance that covers this miss. None where the verdict is not missed, where another step of the test
        failed, where the acceptance had expired when the test ended, or where a fault, or a metric that it does not
        cover, makes the miss."""
        known = self.floor.accepted if self.verdict == "missed" and not self.failed else None
        holds = known and self.ended.date() <= known.until and self._misses_only(known.covers)
        return known if holds else None

    def _misses_only(self, covered: frozenset[str]) -> bool:
        """Return True where only figures of the `covered` metrics are missed, and neither a fault nor a lack of any
        traffic is the cause."""
        missed = [each for each in self.thresholds if each.is_promise and word_of(each, self.verdict) == "missed"]
        # Of a floor that the generator cannot offer, no threshold has the figure that decided.
        figures = self.verdict_code == Code.SATURATED or all(each.measured for each in missed)
        known = bool(missed) and covered.issuperset(each.metric for each in missed)
        return known and figures and self.verdict_code not in FAULTS

    @property
    def outcome(self) -> Outcome:
        """The verdict as a run counts it."""
        if self.failed and self.verdict == "met":
            return "met, failed"
        if self.verdict_code == Code.NO_SLOWER_SEEN and not self.failed:
            return "no slower seen"
        return "missed, accepted" if self.accepted else self.verdict

    @property
    def reason(self) -> str:
        """The reason of the outcome. A failure of another step comes before the reason of the verdict."""
        before = f"another step of the test failed: {self.failed.rstrip('.')}; " if self.failed else ""
        return f"{before}{self.verdict_reason}"

    @property
    def message(self) -> str:
        """The verdict and its reason, as the test's message."""
        known = self.floor.accepted if self.verdict == "missed" else None
        until = f"accepted until {known.until} by {known.signed}" if known else ""
        accepted = f" ({until}: {known.because})" if known and self.accepted else ""
        past = known and self.ended.date() > known.until
        other = f" {'It was' if past else 'Another miss is'} {until}."
        expired = other if known and not accepted and (past or not self.failed) else ""
        word = "Met, but" if self.outcome == "met, failed" else f"{self.verdict.capitalize()}{accepted}:"
        return f"{word} {self.reason}{expired}"

    @property
    def is_lower_bound(self) -> bool:
        """True where the DUT may do better than the figure: the generator or the campaign's range ended first."""
        return self.limited_by in ("generator", "range")

    @cached_property
    def held_s(self) -> float:
        """Seconds of the longest trial in which the DUT held the rate that was found; 0 where no trial did."""
        found = self.result if self.metric in OFFERED else None
        return held_for(self.evidence.trials, found.value) if found else 0.0

    @property
    def says_at_least(self) -> bool:
        """True where the figure is a lower bound of what the DUT does: the generator or the range ended first, only the
        floor was tried, or the search stopped far below the next load that was ruled out. False for an offered rate
        that was held for less than `LASTS_S`: for longer, the DUT may hold less."""
        if self.metric not in OFFERED:
            return self.is_lower_bound
        if self.held_s < LASTS_S:
            return False
        found = self.result
        stopped = found and len(found.samples) < 2 and found.high is not None and found.high > FAR * found.value
        return self.is_lower_bound or self.limited_by == "floor" or (bool(stopped) and self.verdict != "missed")

    def threshold(self, metric: str) -> Threshold | None:
        """Return the threshold of a metric; None where nothing was promised of it."""
        return next((each for each in self.thresholds if each.metric == metric), None)

    def to_json(self) -> str:
        """Return the record as JSON that is valid by the schema. A value of the environment that JSON does not know
        becomes text, and half a surrogate pair becomes `?`: no measurement is lost for an odd fact."""
        text = json.dumps(self.model_dump(mode="json", fallback=str), indent=1, allow_nan=False, ensure_ascii=False)
        _validator().validate(json.loads(text))
        return text.encode(errors="replace").decode() + "\n"


def from_json(text: str | bytes, source: str) -> Record:
    """Read a record, as strictly as the schema. Raises `RecordError`, which names `source` and the mistake.

    The models check it, not the schema, which takes ten times as long; the tests compare what the two accept.
    """
    try:
        return Record.model_validate_json(text, strict=True)
    except ValidationError as errors:
        raise RecordError(printable(f"{source}: {_why_no_record(errors)}")) from None


def schema_text() -> str:
    """Return the JSON Schema of a record, made from the models, as its file has it."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | Record.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def _validator() -> "jsonschema.Draft202012Validator":
    """Return the validator of the published file, which others validate with."""
    import jsonschema  # noqa: PLC0415  reading needs none of it, and it takes its time

    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"{SCHEMA_FILE} written")

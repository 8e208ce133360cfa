"""The comparison of two sides, base and candidate, test by test: what compare.json holds and every page of it shows.

Values are in the unit of the test's metric, ratios are ratios (0.03 is 3 %), a `_pct` is percent.
"""

from typing import Literal

from pydantic import Field

from ctbench.results.metrics import METRICS
from ctbench.results.record_model import RecordModel, Utc

#: `runs`: finished runs, one after another; `counts`: instructions in an emulated machine, and nothing else.
Kind = Literal["runs", "counts"]
#: Of one test, and of the whole comparison.
Judgement = Literal["regressed", "no evidence", "improved", "not measurable"]
#: The worst news first.
JUDGEMENTS: tuple[Judgement, ...] = ("regressed", "not measurable", "improved", "no evidence")


class Samples(RecordModel):
    """What one side measured of one test."""

    #: The samples that are compared, oldest first: the median of each run, or the repetitions of the only run.
    values: list[float]
    median: float
    minimum: float
    maximum: float
    #: (maximum - minimum) / median; None with a median of 0.
    spread: float | None
    #: Whether a sample only bounds what there is: the campaign's range ended there, and the DUT may do better.
    censored: bool = False
    #: Runs and files of the records that the samples are from.
    run_ids: list[str]
    records: list[str]


class _Test(RecordModel):
    """One test: a metric of a topology with a profile, matched by the three."""

    #: As the base has them, or the candidate where the base has none.
    suite: str
    test: str
    #: For example `ovs-dpdk/conntrack/1cpu-1rxq`, and the name of the profile that was offered.
    topology: str
    profile: str
    #: What was looked for, and the unit of its values: `cps` and `connections/s`.
    metric: str
    unit: str
    #: What to think of it, and why in one sentence.
    judgement: Judgement
    reason: str


class ComparedTest(_Test):
    """A test whose rates scatter."""

    #: None where a side measured nothing of it.
    base: Samples | None = None
    candidate: Samples | None = None
    #: The candidate against the base by the medians, percent of the base's; None where there is none.
    difference_pct: float | None
    #: How wide the search is: a smaller difference cannot be told (ratio); 0 where no load was searched for.
    resolution: float = 0.0
    #: How often, with no difference between the sides, samples are as far apart as these or farther, with the
    #: candidate the worse (the better) side. None with nothing to compare.
    p_regressed: float | None = None
    p_improved: float | None = None
    #: The same after Holm's correction for the number of tests, `Comparison.family`.
    p_regressed_corrected: float | None = None
    p_improved_corrected: float | None = None

    @property
    def p(self) -> float | None:
        """The corrected p in the direction in which the medians differ; None where they cannot be compared."""
        if self.difference_pct is None:
            return None
        worse = self.difference_pct < 0 if METRICS[self.metric].better == "higher" else self.difference_pct > 0
        return self.p_regressed_corrected if worse else self.p_improved_corrected


class CountedTest(_Test):
    """What one test costs in instructions, on both sides: no samples of something that scatters, but a figure for each
    seed of the kernel's hash functions."""

    #: Of each seed; none where a side was not counted.
    base: list[float]
    candidate: list[float]
    #: Files of the records.
    base_record: str
    candidate_record: str
    #: The candidate against the base, percent of the base's: of the medians over the seeds, and the least and the most
    #: that any two seeds of both differ by. None where it cannot be said.
    difference_pct: float | None
    low_pct: float | None
    high_pct: float | None


class Grown(RecordModel):
    """A function of one test: instructions of one packet (connection) in it, wires and traffic included."""

    #: `nf_conntrack_in [nf_conntrack]`.
    function: str
    base: float
    candidate: float


class Functions(RecordModel):
    """Of one test, the functions that grew most."""

    test: str
    metric: str
    grown: list[Grown]
    #: Of all functions.
    base: float
    candidate: float


class Counts(RecordModel):
    """Instructions of both sides."""

    #: What was emulated, each once: `Linux 6.1.0-56-cloud-amd64 in QEMU 7.2.22`.
    machines: list[str]
    #: What costs more by no more than this is not a regression (ratio).
    least_difference: float
    tests: list[CountedTest]
    #: Of tests that differ, where it was asked for.
    functions: list[Functions] = Field(default_factory=list)
    #: One sentence: what came of it, or why nothing was counted.
    sentence: str
    #: What else a reader has to know, one sentence each.
    notes: list[str]


class ComparedSide(RecordModel):
    """What one side is made of."""

    #: As it was given: folders, or the name of an installation.
    name: str
    #: Folders of its runs.
    folders: list[str]
    records: int
    #: Versions of the DUTs, the testbed's name, the CPU's model, the kernel, the campaign: each value found, once.
    versions: list[str]
    testbeds: list[str]
    machines: list[str]
    kernels: list[str]
    campaigns: list[str]
    #: Files that are not records, with the reason; they are not counted.
    broken: list[str]


class Comparison(RecordModel):
    """Base and candidate, and what to think of each test."""

    schema_version: Literal[4] = 4
    kind: Kind
    tool_version: str
    made: Utc
    base: ComparedSide
    candidate: ComparedSide
    #: What got worse by no more than this is not a regression (ratio).
    least_difference: float
    #: The corrected p has to be below this.
    alpha: float
    #: Tests that p is corrected for: those with samples on both sides.
    family: int
    tests: list[ComparedTest]
    #: Instructions; None where they were not asked for.
    counts: Counts | None = None
    #: What differs between the sides that ought not to, one sentence each; empty where like is compared with like.
    differences: list[str]
    #: Doubts that a reader has to know, one sentence each.
    notes: list[str]
    judgement: Judgement
    #: The judgement in one sentence, with counts.
    sentence: str

    def count(self, judgement: Judgement) -> int:
        """How many tests were judged so; where nothing but instructions is compared, by these."""
        judged = self.counts.tests if self.kind == "counts" and self.counts else self.tests
        return sum(test.judgement == judgement for test in judged)

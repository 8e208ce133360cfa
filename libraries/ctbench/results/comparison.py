"""The comparison of two sides, base and candidate, by the instructions of each test: what compare.json holds and every
page of it shows.

Ratios are ratios (0.03 is 3 %), a `_pct` is percent.
"""

from typing import Literal

from ctbench.results.record_model import RecordModel, Utc

#: Of one test, and of the whole comparison.
Judgement = Literal["regressed", "no evidence", "improved", "not measurable"]
#: The worst news first.
JUDGEMENTS: tuple[Judgement, ...] = ("regressed", "not measurable", "improved", "no evidence")


class CountedTest(RecordModel):
    """What one test costs in instructions, on both sides: a metric of a topology with a profile, matched by the three.
    No samples of something that scatters, but a figure for each seed of the kernel's hash functions."""

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


class Counts(RecordModel):
    """Instructions of both sides."""

    #: What was emulated, each once: `Linux 6.1.0-56-cloud-amd64 in QEMU 7.2.22`.
    machines: list[str]
    tests: list[CountedTest]
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

    schema_version: Literal[6] = 6
    tool_version: str
    made: Utc
    base: ComparedSide
    candidate: ComparedSide
    #: What got worse by no more than this is not a regression (ratio).
    least_difference: float
    counts: Counts
    judgement: Judgement
    #: The judgement in one sentence, with counts.
    sentence: str

    def count(self, judgement: Judgement) -> int:
        """How many tests were judged so."""
        return sum(test.judgement == judgement for test in self.counts.tests)

"""The tables of where the time of a thread went: its first functions, beside those that were published of others."""

from collections.abc import Sequence
from itertools import zip_longest

from ctbench.base.errors import ConfigError
from ctbench.base.paths import REFERENCES
from ctbench.report import enough, labels
from ctbench.report.page import Row, TimeTable
from ctbench.report.reference import References
from ctbench.results.evidence import ProfileRecord
from ctbench.results.metrics import METRICS
from ctbench.results.published import Published, read_published
from ctbench.results.store import Stored

#: Functions that are shown.
SHOWN = 11
_METRIC = METRICS["mutex_share"]


def time_tables(newest: Sequence[Stored], rows: Sequence[Row], references: References) -> list[TimeTable]:
    """A table for each thread that was sampled, in the order of the tests."""
    found = [
        (profile, row) for each, row in zip(newest, rows, strict=True) for profile in each.record.evidence.profiles
    ]
    others = _published(references) if found else []
    return [_table(profile, row, others) for profile, row in found]


def _published(references: References) -> list[Published]:
    """Those of the references that have functions; where none have, those that come with this program."""
    known = [each for each in references.published if each.functions]
    if known:
        return known
    found: list[Published] = []
    for folder in sorted(REFERENCES.glob("*/")):
        try:
            found += read_published(folder)
        except ConfigError:  # somebody's own: what is shown there is for a reference that is asked for
            continue
    return [each for each in found if each.functions]


def _table(profile: ProfileRecord, row: Row, others: Sequence[Published]) -> TimeTable:
    ours = [
        _share(enough.name(each.name), each.samples / max(1, profile.samples)) for each in profile.functions[:SHOWN]
    ]
    theirs = [[_share(name, share) for name, share in list(each.functions.items())[:SHOWN]] for each in others]
    lines = zip_longest(ours, *theirs, fillvalue=labels.DASH)
    locks = [_METRIC.format(profile.locks / max(1, profile.samples))]
    locks += [_METRIC.format(each.figures[_METRIC.name]) if _METRIC.name in each.figures else labels.DASH
              for each in others]  # fmt: skip
    return TimeTable(
        row=row,
        intro=_intro(profile),
        columns=("this run", *(f"{each.source.dut}, {each.source.place.partition(',')[0]}" for each in others)),
        lines=(*lines, tuple(locks)),
    )


def _share(name: str, share: float) -> str:
    return f"{_METRIC.format(share)} {name}"


def _intro(profile: ProfileRecord) -> str:
    cost = ""
    if profile.rate_before:
        cost = (
            f" Meanwhile {profile.rate / profile.rate_before * 100:.0f} % of what the trial before, without samples, "
            "served was served."
        )
    return (
        f"CPU {profile.cpu}: {labels.thousands(profile.samples)} samples in {profile.seconds:.1f} s "
        f"({enough.name(profile.how)}, {profile.hz} per second).{cost}"
    )

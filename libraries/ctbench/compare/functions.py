"""The functions that grew most from one build to the other, to find out why a packet costs more."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ctbench.dut.counting import ByFunction
from ctbench.results.comparison import CountedTest, Functions, Grown

#: As many functions are shown, of so many tests at most.
SHOWN, TESTS = 10, 5
#: What a compiler adds to the name of a part or a copy of a function, not the same way in every build.
_COPY = re.compile(r"\.(constprop|isra|part|cold)(\.\d+)*(?=\s|$|\.)")


def that_differ(tests: Sequence[CountedTest]) -> list[CountedTest]:
    """The tests that are worth a look: those whose seeds are apart, the farthest first."""
    apart = [test for test in tests if test.low_pct is not None and test.high_pct is not None
             and not test.low_pct <= 0 <= test.high_pct]  # fmt: skip
    return sorted(apart, key=lambda test: -abs(test.difference_pct or 0))[:TESTS]


def grown(test: CountedTest, base: ByFunction, candidate: ByFunction) -> Functions:
    """What grew of a test, most first."""
    ours, theirs = _whole(base.functions), _whole(candidate.functions)
    every = [Grown(function=name, base=ours[name], candidate=theirs[name]) for name in {*ours, *theirs}]
    every.sort(key=lambda each: (each.base - each.candidate, each.function))
    return Functions(
        test=test.test, metric=test.metric, base=base.clock, candidate=candidate.clock,
        grown=[each for each in every if each.candidate > each.base][:SHOWN],
    )  # fmt: skip


def _whole(functions: Mapping[str, float]) -> Counter[str]:
    """By function, with its parts and copies."""
    found: Counter[str] = Counter()
    for name, instructions in functions.items():
        found[_COPY.sub("", name)] += instructions  # type: ignore[assignment]  # a Counter counts anything
    return found

"""What counts as a regression."""

#: A corrected p below this is not chance.
ALPHA = 0.01
#: What got worse by no more than this is not a regression, whatever its p. Of pairs, 2 %: the same source built twice,
#: or started with another layout of its memory, differs by one or two percent. Of runs, 3 %: drift adds to that.
LEAST_OF_PAIRS, LEAST_OF_RUNS = 0.02, 0.03
#: Of instructions, 0.5 %: new connections differ by as much from one seed of the hash functions to the next.
LEAST_OF_COUNTS = 0.005
#: Starts of both builds, where the tests do not need more; and of the base against itself.
STARTS, SAME_STARTS = 10, 5
LEAST_STARTS, MOST_STARTS = 5, 20
#: What a comparison of finished runs says of itself: simulated, docs/evidence/comparing.md.
WEAKER = (
    "These runs were made one after another, so what drifts falls on one side: where runs of a build scatter by 8 %, "
    "six of each find a regression of 5 % in 6 of 100 cases. ./run compare --installations finds it in all of them, "
    "where its ten starts scatter by 2 %."
)
#: What is said wherever instructions stand, of both ways to measure.
SEES = (
    "A rate is of the real machine: it shows what caches, locks and several CPUs cost, and nothing that is less than "
    "the machine's own noise. Instructions are counted in an emulated machine: one more is seen, on every host and "
    "whatever else it does; caches, locks and other CPUs are not. Where the two disagree, both are true."
)

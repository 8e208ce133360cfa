"""What counts as a regression."""

#: A corrected p below this is not chance.
ALPHA = 0.01
#: What got worse by no more than this is not a regression, whatever its p. The same source built twice, or started with
#: another layout of its memory, differs by one or two percent, and drift adds to that.
LEAST_OF_RUNS = 0.03
#: Of instructions, 0.5 %: new connections differ by as much from one seed of the hash functions to the next.
LEAST_OF_COUNTS = 0.005
#: What a comparison of finished runs says of itself, simulated.
WEAKER = (
    "These runs were made one after another, so what drifts falls on one side: where runs of a build scatter by 8 %, "
    "six of each find a regression of 5 % in 6 of 100 cases. ./run sla --candidate measures both side by side."
)
#: What is said wherever instructions stand, of both ways to measure.
SEES = (
    "A rate is of the real machine: it shows what caches, locks and several CPUs cost, and nothing that is less than "
    "the machine's own noise. Instructions are counted in an emulated machine: one more is seen, on every host and "
    "whatever else it does; caches, locks and other CPUs are not. Where the two disagree, both are true."
)

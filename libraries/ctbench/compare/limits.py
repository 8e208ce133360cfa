"""What counts as a regression."""

#: What costs more by no more than this is not a regression, 0.5 %: new connections differ by as much from one seed of
#: the hash functions to the next.
LEAST_OF_COUNTS = 0.005
#: What is said wherever instructions stand, of both ways to measure.
SEES = (
    "A rate is of the real machine: it shows what caches, locks and several CPUs cost, and nothing that is less than "
    "the machine's own noise. Instructions are counted in an emulated machine: one more is seen, on every host and "
    "whatever else it does; caches, locks and other CPUs are not. Where the two disagree, both are true."
)

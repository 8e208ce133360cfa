"""What counts as a regression."""

#: A corrected p below this is no chance.
ALPHA = 0.01
#: What got worse by no more than this is no regression, whatever its p. Of pairs, 2 %: the same source built twice, or
#: started with another layout of its memory, differs by one or two percent. Of runs, 3 %: drift adds to that.
LEAST_OF_PAIRS, LEAST_OF_RUNS = 0.02, 0.03
#: Starts of both builds, where the tests do not need more; and of the base against itself.
STARTS, SAME_STARTS = 10, 5
LEAST_STARTS, MOST_STARTS = 5, 20
#: What a comparison of finished runs says of itself: simulated, docs/evidence/comparing.md.
WEAKER = (
    "These runs were made one after another, so what drifts falls on one side: where runs of a build scatter by 8 %, "
    "six of each find a regression of 5 % in 6 of 100 cases. ./run compare --installations finds it in all of them, "
    "where its ten starts scatter by 2 %."
)

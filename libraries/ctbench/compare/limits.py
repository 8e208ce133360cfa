"""What counts as a regression."""

#: A corrected p below this is no chance.
ALPHA = 0.01
#: A median that got worse by no more than this is no regression, whatever its p.
LEAST_DIFFERENCE = 0.03

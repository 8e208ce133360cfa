"""What was promised and whether it is kept: thresholds, floors, verdicts."""

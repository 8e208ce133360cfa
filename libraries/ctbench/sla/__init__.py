"""What was promised and whether it is kept: SLA files, calibration, verdicts."""

"""Service level agreements: SLA files, their calibration, and the verdicts on rows."""

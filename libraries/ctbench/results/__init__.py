"""Measurement results: metrics, floors, the record of one test, the folder of a run's records, the rule of verdicts."""

"""What is kept of a measurement: the record of one test, and the folder of a run's records."""

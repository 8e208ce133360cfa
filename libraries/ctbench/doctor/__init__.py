"""`./run doctor`: are the hosts of a testbed set up to measure, and what fixes what is not; changes nothing."""

"""`./run doctor`: are the hosts of a testbed set up to measure, and what mends what is not; changes nothing."""

"""Connectors, which join a traffic generator to the ports of a DUT: a module for each kind of traffic source."""

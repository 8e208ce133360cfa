"""Measurements with a DUT and a traffic generator: trials, the search for the capacity, the gate at the floor."""

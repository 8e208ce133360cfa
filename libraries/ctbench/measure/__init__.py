"""What is done with a DUT and a generator: trials, the search for the capacity, the gate at the floor."""

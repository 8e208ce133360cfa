"""What the doctor reads on a host and says of it, where kinds of DUT and of traffic source can use it."""

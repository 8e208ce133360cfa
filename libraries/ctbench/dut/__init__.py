"""The device under test: what is set up to forward the traffic, and what it says of itself."""

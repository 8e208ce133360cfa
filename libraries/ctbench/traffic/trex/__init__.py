"""TRex as a traffic generator: ASTF for connections, STL for packets."""

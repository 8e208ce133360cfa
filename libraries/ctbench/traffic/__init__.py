"""Traffic for the DUT: profiles, the interface of traffic generators, and the generators."""

"""A DUT in an emulated machine whose clock is its own instruction count: what a packet costs is the same on every host.

`image` makes what it boots, `machine` boots it, saves it when it is ready, starts it from there and reads what it says.
What runs inside is in `guest`; what it is set up as, one file a topology, is in resources/rulesets/emulated.
"""

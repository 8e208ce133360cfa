"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

"""Open vSwitch with its userspace datapath (DPDK) as device under test: a private instance, nothing of the system's."""

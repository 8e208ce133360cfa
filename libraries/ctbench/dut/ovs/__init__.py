"""Open vSwitch with its userspace datapath (DPDK) as device under test: a private instance, apart from the system's."""

"""Open vSwitch with its userspace datapath (DPDK) as device under test: a private instance, nothing of the system's."""

from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.settings import OvsInstallation

__all__ = ["OvsDpdkDut", "OvsInstallation"]

"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

from ctbench.dut.linux.bridge import LinuxBridgeDut
from ctbench.dut.linux.netfilter import LinuxConntrackSettings
from ctbench.dut.linux.router import LinuxRouterDut

__all__ = ["LinuxBridgeDut", "LinuxConntrackSettings", "LinuxRouterDut"]

"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.linux.netfilter import LinuxConntrackSettings

__all__ = ["LinuxBridgeDut", "LinuxConntrackSettings", "LinuxRouterDut"]

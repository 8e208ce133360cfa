"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

from ctbench.dut.linux.bridge import LinuxBridgeDut
from ctbench.dut.linux.router import LinuxRouterDut
from ctbench.dut.linux.settings import LinuxConntrackSettings

__all__ = ["LinuxBridgeDut", "LinuxConntrackSettings", "LinuxRouterDut"]

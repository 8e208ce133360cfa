"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

from ctbench.dut.linux.bridge import LinuxBridgeDut
from ctbench.dut.linux.router import LinuxRouterDut
from ctbench.dut.linux.settings import ConntrackSettings

__all__ = ["ConntrackSettings", "LinuxBridgeDut", "LinuxRouterDut"]

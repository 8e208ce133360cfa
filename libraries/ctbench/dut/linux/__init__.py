"""The Linux kernel as device under test: a router with its rulesets, or a bridge."""

from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut

__all__ = ["LinuxBridgeDut", "LinuxRouterDut"]

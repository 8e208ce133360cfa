"""What an Open vSwitch that failed is asked: its log first, which is there when nothing else answers."""

from ctbench.dut.capture import KERNEL_LOG, Question
from ctbench.dut.ovs.control import OvsControl

#: Lines of the log's end.
LOG_LINES = 400
#: What ovs-appctl(8) is asked, by the name of the file that it is kept in.
_APPCTL = {
    "pmd-stats": ("dpif-netdev/pmd-stats-show",),
    "pmd-rxq": ("dpif-netdev/pmd-rxq-show",),
    "pmd-perf": ("dpif-netdev/pmd-perf-show",),
    "upcall": ("upcall/show",),
    "coverage": ("coverage/show",),
    "memory": ("memory/show",),
    "conntrack-count": ("dpctl/ct-get-nconns",),
    "conntrack-limit": ("dpctl/ct-get-maxconns",),
    "conntrack-states": ("dpctl/ct-stats-show",),
    "datapath": ("dpctl/show", "-s"),
    "datapath-flows": ("dpctl/dump-flows", "-m"),
}


def questions(control: OvsControl, log: str) -> list[Question]:
    """`log`: path of ovs-vswitchd's log on the host."""
    return [
        Question("log", ("tail", "-n", str(LOG_LINES), log)),
        *(_asked(control, name, "ovs-appctl", "-t", control.vswitchd, *command) for name, command in _APPCTL.items()),
        _asked(control, "ports", "ovs-ofctl", "-O", "OpenFlow14", "dump-ports", control.bridge),
        _asked(control, "flows", "ovs-ofctl", "dump-flows", control.bridge),
        Question(*KERNEL_LOG),
    ]


def _asked(control: OvsControl, name: str, tool: str, *arguments: str) -> Question:
    argv = (control.installation.tool(tool), *arguments)
    return Question(name, argv, control.environment, daemon="ovs-vswitchd")

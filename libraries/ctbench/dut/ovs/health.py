"""Problems of ovs-vswitchd since a trial began, by its process, its log, its ports and its threads."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ctbench.base.errors import TestbedError
from ctbench.dut.base import KERNEL_LOG, DutCounts, PortCounters, Problem, counts_since, drops_since
from ctbench.dut.ovs.answers import KEPT, PORTS
from ctbench.dut.ovs.control import LOG_LINE, OvsControl
from ctbench.dut.ovs.instance import OvsDaemons, ProcessIdentity
from ctbench.dut.ovs.ruleset import SIDES
from ctbench.dut.ovs.threads import ThreadTimes, read_thread_times, sharing_problems
from ctbench.hosts.machine import Placement

#: Warnings that tell of stalls: timeval's poll interval, and RCU waiting for a thread. Others are normal.
STALLS = ("Unreasonably long", "blocked")
#: Errors after which a port forwards nothing more, by the module that logs them: its device could not be set up again.
#: Each stands with the function that logs it in Open vSwitch 2.17.0 to 3.7.1. What is said before, of a queue or MTU,
#: is no error, or "configure error" follows.
#: What drivers of cards log as errors (module `dpdk`) is mostly none: statistics that a virtual function may not read,
#: iavf_dev_stats_get of DPDK 21.11.9 to 25.11.2 (drivers/net/iavf/iavf_ethdev.c, from 25.03 in drivers/net/intel/iavf).
#: There the counts decide.
FATAL_ERRORS = {
    # lib/netdev-dpdk.c
    "netdev_dpdk": re.compile(
        r"Failed to create memory pool for netdev "  # netdev_dpdk_mempool_configure
        r"|Interface \S+\(rxq:.*\) configure error: "  # dpdk_eth_dev_init
        r"|Interface \S+ start error: "  # dpdk_eth_dev_init
    ),
    # lib/dpif-netdev.c, port_reconfigure
    "dpif_netdev": re.compile(r"Failed to set interface \S+ new configuration"),
}
#: Different messages of a kind that are told apart in the list of problems.
MESSAGES_AT_MOST = 5


def log_problems(lines: Iterable[str], *, was_paused: bool = False) -> list[Problem]:
    """Return the problems in a log: fatal errors, other errors, and stalls (warnings: the trial counts what they cost).
    `was_paused`: leave out stalls, as ovs-vswitchd logs a pause as one."""
    parsed = [line for line in map(LOG_LINE.match, lines) if line]
    errors = [line for line in parsed if line["severity"] in ("EMER", "ERR")]
    stalls = [line for line in parsed if line["severity"] == "WARN" and any(text in line["message"] for text in STALLS)]
    stalls = [] if was_paused else stalls
    fatal = [line for line in errors if _is_fatal(line)]
    others = [line for line in errors if line not in fatal]
    return [
        *(Problem("fatal", f"ovs-vswitchd logged an error: {text}", code="logged-error") for text in _messages(fatal)),
        *(
            Problem("warning", f"ovs-vswitchd logged an error: {text}", code="logged-error")
            for text in _messages(others)
        ),
        *(Problem("warning", f"ovs-vswitchd stalled: {text}", code="logged-stall") for text in _messages(stalls)),
    ]


def _is_fatal(line: re.Match[str]) -> bool:
    """True for an error that ends all forwarding of a port. `EMER` comes before ovs-vswitchd ends itself. A module
    comes with its thread: `dpdk(pmd-c01/id:8)`."""
    known = FATAL_ERRORS.get(line["module"].partition("(")[0])
    return line["severity"] == "EMER" or bool(known and known.search(line["message"]))


def drop_problems(drops: Mapping[str, int], ports: str) -> list[Problem]:
    """Return problems of the packets that OVS lost, by `<side>.<counter>`, at ports of a kind. Over shared memory a
    frame that cannot be transmitted has met a full ring of the generator; a network card's own ring is full where its
    link is."""
    found = []
    for name, count in drops.items():
        if ports == "memif" and name.endswith(".ovs_tx_failure_drops"):
            text = f"the generator's receive rings were full: OVS lost {count} packets there ({name})."
            found.append(Problem("disturbed", text, frames=count, code="generator-rings-full"))
        else:
            found.append(Problem("warning", f"OVS lost {count} packets: {name}.", code="lost-packets"))
    return found


def _messages(lines: Iterable[re.Match[str]]) -> list[str]:
    texts = list(dict.fromkeys(f"{line['message']} ({line['module']})" for line in lines))
    more = len(texts) - MESSAGES_AT_MOST
    return [*texts[:MESSAGES_AT_MOST], *([f"and {more} more"] if more > 0 else [])]


#: OpenFlow port -> counters.
Counters = Mapping[int, PortCounters]


def counted(before: Counters, now: Counters, kind: str) -> DutCounts:
    """Return the counts since `before` at the ports, of this kind, that the load passes. Over veth no counter shows the
    frames that found the ring of an af_packet device full (DPDK 22.11). Frames that the cable has damaged were not
    dropped: cards count them in `rx_crc_errors`, and once more in `rx_errors`."""
    found, drops = counts_since(before, now, SIDES), drops_since(before, now, SIDES)
    damaged = sum(count for name, count in drops.items() if name.endswith("crc_errors"))
    received = found.received if kind != "veth" else {}
    return replace(found, received=received, dropped=max(0, found.dropped - 2 * damaged))


@dataclass(frozen=True)
class TrialStart:
    instance: OvsDaemons
    process: ProcessIdentity
    #: Bytes in the log.
    log_size: int
    #: The ports' counters.
    ports: Counters
    times: ThreadTimes
    #: When this was, in seconds of a clock that never steps back.
    at_s: float
    #: How long ovs-vswitchd had been paused for by then, by ourselves.
    paused_s: float

    @classmethod
    def now(cls, instance: OvsDaemons, process: ProcessIdentity, ports: Counters) -> "TrialStart":
        """Begin a trial, with the ports' counters as they are."""
        times = read_thread_times(instance.control.host, process.pid)
        return cls(instance, process, instance.log_size(), ports, times, time.monotonic(), instance.paused.seconds)

    def fatal(self, trouble: str) -> list[Problem]:
        """Return why nothing more can be measured, by `Dut.trouble`, and the errors that ovs-vswitchd logged since."""
        found = [Problem("fatal", trouble, code="unreachable")]
        with suppress(TestbedError):
            found += log_problems(self.instance.logged_since(self.log_size))
        return found

    def problems(self, placement: Placement | None, ports: Counters, kind: str) -> list[Problem]:
        """Return the other problems, of an ovs-vswitchd that runs. `placement`: of the topology that is set up;
        `ports`: their counters now, of this kind."""
        paused_s = self.instance.paused.seconds - self.paused_s
        found = log_problems(self.instance.logged_since(self.log_size), was_paused=paused_s > 0)
        if placement and not placement.oversubscribed:  # where it is, nothing is measured anyway
            # Before the times are read: a machine that stands still in between is not an Open vSwitch that does.
            ran_s = time.monotonic() - self.at_s - paused_s
            times = read_thread_times(self.instance.control.host, self.process.pid)
            found += sharing_problems(self.times, times, ran_s, placement)
        return found + drop_problems(drops_since(self.ports, ports, SIDES), kind)


def questions(control: OvsControl, log: str) -> Mapping[str, Sequence[str]]:
    """Return the commands that a failed Open vSwitch is asked, its log included."""
    appctl, ofctl = control.installation.tool("ovs-appctl"), control.installation.tool("ovs-ofctl")
    return {
        "log": ("tail", "-n", "400", log),
        **{name: (appctl, "-t", control.vswitchd, *words) for name, words in KEPT.items()},
        "ports": (ofctl, *PORTS.words, control.bridge),
        "flows": (ofctl, "dump-flows", control.bridge),
        **KERNEL_LOG,
    }

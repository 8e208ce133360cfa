"""What went wrong with ovs-vswitchd since a trial began, judged by its log and its ports' counters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ctbench.dut.base import Problem
from ctbench.dut.ovs.cpu_contention import ThreadTimes
from ctbench.dut.ovs.instance import ProcessIdentity
from ctbench.dut.ovs.parse import LogLine, PortCounters, parse_log_line

#: Severities after which nothing that OVS did can be trusted.
FATAL_SEVERITIES = ("EMER", "ERR")
#: Warnings that tell of stalls: timeval's poll interval, and RCU waiting for a thread. Others are normal.
STALLS = ("Unreasonably long", "blocked")
#: OVS' counter of packets that an interface did not take.
TX_FAILURES = "ovs_tx_failure_drops"
#: Different messages of a kind that are told apart in the list of problems.
MESSAGES_AT_MOST = 5


@dataclass(frozen=True)
class TrialStart:
    """What a trial's health is compared with."""

    process: ProcessIdentity
    #: Bytes in the log.
    log_size: int
    #: OpenFlow port -> counters.
    ports: Mapping[int, PortCounters]
    times: ThreadTimes
    #: When this was, in seconds of a clock that never steps back.
    at_s: float
    #: How long ovs-vswitchd had been paused for by then, by ourselves.
    paused_s: float = 0.0


def process_problem(before: ProcessIdentity, now: ProcessIdentity | None) -> Problem | None:
    """Whether ovs-vswitchd is another one, or none."""
    if now is None:
        return Problem("fatal", f"ovs-vswitchd (process {before.pid}) died.")
    if now != before:
        return Problem("fatal", f"ovs-vswitchd restarted: it was process {before.pid} and is {now.pid}.")
    return None


def log_problems(lines: Iterable[str], *, was_paused: bool = False) -> list[Problem]:
    """Errors (fatal) and stalls (a warning: they cost packets, which the trial counts by itself). One that was paused
    meanwhile takes that for a stall of its own."""
    parsed = [line for line in map(parse_log_line, lines) if line]
    errors = [line for line in parsed if line.severity in FATAL_SEVERITIES]
    stalls = [line for line in parsed if line.severity == "WARN" and any(text in line.message for text in STALLS)]
    stalls = [] if was_paused else stalls
    return [
        *(Problem("fatal", f"ovs-vswitchd logged an error: {text}") for text in _messages(errors)),
        *(Problem("warning", f"ovs-vswitchd stalled: {text}") for text in _messages(stalls)),
    ]


def drop_problems(drops: Mapping[str, int], ports: str) -> list[Problem]:
    """Packets that OVS lost, by `<side>.<counter>`, at ports of a kind. Over shared memory a frame that cannot be
    transmitted has met a full ring of the generator; a network card's own ring is full where its link is."""
    return [
        Problem("disturbed", f"the generator's receive rings were full: OVS lost {count} packets there ({name}).")
        if ports == "memif" and name.endswith(f".{TX_FAILURES}")
        else Problem("warning", f"OVS lost {count} packets: {name}.")
        for name, count in drops.items()
    ]


def _messages(lines: Iterable[LogLine]) -> list[str]:
    texts = list(dict.fromkeys(f"{line.message} ({line.module})" for line in lines))
    more = len(texts) - MESSAGES_AT_MOST
    return [*texts[:MESSAGES_AT_MOST], *([f"and {more} more"] if more > 0 else [])]

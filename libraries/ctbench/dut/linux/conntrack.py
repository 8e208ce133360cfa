"""The kernel's connection table: entries, flushing, and its statistics."""

import re
import time
from collections.abc import Mapping

from ctbench.base.errors import TestbedError
from ctbench.dut.control_plane import DUMP_TIMEOUT_S, Done
from ctbench.hosts.base import Host

#: Entries of this network namespace.
COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
#: Entries at most, of all network namespaces.
LIMIT = "/proc/sys/net/netfilter/nf_conntrack_max"
#: Seconds that the table gets to become empty, and between two looks.
FLUSH_TIMEOUT_S = 30.0
POLL_S = 0.02
#: Statistics that say that packets were lost or a connection was not remembered, and what they mean;
#: nf_conntrack_core.c.
FINDINGS = {
    "insert_failed": "connections were not remembered, because their translation clashed with another one's",
    "drop": "packets were dropped, because the connection table was full or another entry was in the way",
    "early_drop": "connections were forgotten early, because the connection table was full",
    "chaintoolong": "connections were not remembered, because their hash bucket was full",
}


class ConntrackTable:
    """The table of the host's network namespace, through conntrack(8)."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def count(self) -> int:
        """Entries now; 0 where the kernel has no table, because nothing ever asked for one."""
        return int(self._host.run(["cat", COUNT], check=False).stdout or 0)

    def dump(self) -> Done:
        """Print it; a line is an entry."""
        begun = time.monotonic()
        printed = self._host.run(["sh", "-c", "conntrack -L 2>/dev/null | wc -l"], DUMP_TIMEOUT_S).stdout
        seconds = time.monotonic() - begun
        if not (entries := int(printed)):  # of a pipe, nobody hears how its first command ended
            raise TestbedError("conntrack -L printed no connection.")
        return Done(seconds, entries)

    def flush(self) -> None:
        """Empty the table and wait until it is; `TestbedError` when it stays."""
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        while (left := self.count()) > 0:
            if time.monotonic() > deadline:
                raise TestbedError(f"{left} connections are left {FLUSH_TIMEOUT_S:g} s after conntrack was flushed.")
            self._host.run(["conntrack", "-F"], FLUSH_TIMEOUT_S)
            if self.count() > 0:
                time.sleep(POLL_S)

    def statistics(self) -> dict[str, int]:
        """What the table counted since the namespace was made, all CPUs added; empty where there is none."""
        return parse_statistics(self._host.run(["conntrack", "-S"], check=False).stdout)


def parse_statistics(text: str) -> dict[str, int]:
    """`conntrack -S`: a line of `name=value` per CPU."""
    totals: dict[str, int] = {}
    for line in text.splitlines():
        for name, value in re.findall(r"(\w+)=(\d+)", line):
            if name != "cpu":
                totals[name] = totals.get(name, 0) + int(value)
    return totals


def increase(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """What was counted since `before`; the kernel's counters are 32 bits wide."""
    return {name: (value - before.get(name, 0)) % (1 << 32) for name, value in now.items()}


def findings(counted: Mapping[str, int]) -> list[str]:
    """One sentence for each statistic of a trial that tells of lost packets or connections."""
    return [
        f"conntrack: {counted[name]} {meaning} ({name})." for name, meaning in FINDINGS.items() if counted.get(name)
    ]

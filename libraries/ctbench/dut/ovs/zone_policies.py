"""Timeout policies of connection tracking zones, set so that they take effect, and limits of their entries; both read
back from the datapath.

Since Open vSwitch 3.3 the first policy of a zone stays in the database: `ct_zones_reconfigure` (vswitchd/bridge.c)
makes a zone with its policy in it, finds it unchanged, and hands nothing to the datapath (docs/releases.md). Every
release hands a changed policy over.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import TableEntry
from ctbench.dut.base import differing
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.control import OvsControl

#: Where the probe comes in: the client's port.
_IN_PORT = 1
#: The probes, one of which a ruleset commits: a datagram of UDP, and a SYN, of each version of IP, from addresses that
#: every ruleset that ships takes packets of.
_IPV4, _IPV6 = "nw_src=16.0.0.1,nw_dst=48.0.0.1", "ipv6_src=2001:db8:16::1,ipv6_dst=2001:db8:48::1"
_PROBES = (
    f"udp,{_IPV4},udp_src=1234,udp_dst=1234",
    f"tcp,{_IPV4},tcp_src=1234,tcp_dst=1234,tcp_flags=syn",
    f"udp6,{_IPV6},udp_src=1234,udp_dst=1234",
    f"tcp6,{_IPV6},tcp_src=1234,tcp_dst=1234,tcp_flags=syn",
)
_ETHERNET = "eth_src=02:00:00:00:00:cc,eth_dst=02:00:00:00:00:ee"
#: Seconds that an entry's remaining time may be less than its timeout: it is told in whole seconds, rounded down, and a
#: command takes time.
_LATER_S = 3
#: The timeout of a connection that has sent one packet, by its protocol; ovs-vswitchd.conf.db(5), CT_Timeout_Policy.
_FIRST = {"udp": "udp_first", "tcp": "tcp_syn_sent"}


class ZonePolicies:
    """The policies and limits of one datapath's zones."""

    def __init__(self, control: OvsControl, datapath_type: str) -> None:
        self._control = control
        self._datapath = datapath_type
        #: Zone -> its policy, and whether it is the first that the zone was given.
        self._set: dict[int, tuple[Mapping[str, int], bool]] = {}
        #: Zone -> entries at most.
        self._limits: Mapping[int, int] = {}
        #: What `check` found, for the record.
        self.found: dict[str, Any] = {}

    def set(self, zones: Sequence[int], timeouts: Mapping[str, int], *, once: bool) -> None:
        """Give each of the zones this policy, and all other zones none. `once`: as the first policy of a zone, with one
        command; otherwise as a change of another policy."""
        self.found = {}
        wanted = dict.fromkeys(zones, (timeouts, once))
        if wanted == self._set:
            return
        gone = [zone for zone, (_, first) in self._set.items() if zone not in wanted or once or first]
        self._each([("--if-exists", "del-zone-tp", self._datapath, f"zone={zone}") for zone in gone])
        self._give([] if once else [zone for zone in zones if zone in gone or zone not in self._set], _other(timeouts))
        self._give(zones, timeouts)
        self._set = wanted

    def limit(self, limits: Mapping[int, int]) -> None:
        """Limit the entries of each of these zones. The other zones have the room of the whole table."""
        gone = [str(zone) for zone in self._limits if zone not in limits]
        if gone:
            self._control.ask(answers.FORGET_ZONE_LIMITS, f"zone={','.join(gone)}")
        if limits and limits != self._limits:
            self._control.ask(answers.SET_ZONE_LIMITS, *(f"zone={zone},limit={most}" for zone, most in limits.items()))
        self._limits = limits

    def limits(self) -> dict[int, dict[str, int]]:
        """Return, for each zone that has a limit, the limit and the entries now."""
        if not self._limits:
            return {}
        found = self._control.ask(answers.ZONE_LIMITS)
        return {zone: {"limit": most, "entries": entries} for zone, (most, entries) in found.items()}

    def differences(self) -> list[str]:
        """Return a clause for each policy or limit that is not as it was set."""
        has = self._control.ask(answers.ZONE_POLICIES, self._datapath)
        names = {zone: f"conntrack timeouts of zone {zone}" for zone in self._set}
        asked = {names[zone]: dict(timeouts) for zone, (timeouts, _) in self._set.items()}
        clauses = differing(asked, {name: has.get(zone, {}) for zone, name in names.items()})
        limit = "limit of conntrack zone {}".format
        found = {limit(zone): each["limit"] for zone, each in self.limits().items()}
        return clauses + differing({limit(zone): most for zone, most in self._limits.items()}, found)

    def check(self) -> None:
        """Ask the datapath for the policy in effect: a packet that the ruleset commits leaves an entry, which tells how
        long it stays. The table is empty before and afterwards. Raise `TestbedError` for another policy than was set. A
        policy that was set once may differ: that is what is measured."""
        self.found = {"set": "once" if any(first for _, first in self._set.values()) else "changed", "entries": []}
        for probe in _PROBES:
            dumped = self._control.ofctl("compose-packet", f"{_ETHERNET},{probe},nw_ttl=64", "")
            packet = "".join(re.findall(r"\b[0-9a-f]{2}\b", dumped))
            self._control.ofctl("packet-out", self._control.bridge, f"in_port={_IN_PORT},packet={packet},actions=table")
            entries = self._control.ask(answers.ENTRIES)
            expired = not entries and self._control.ask(answers.CONNECTIONS) > 0
            self._control.ask(answers.FLUSH)
            if entries or expired:
                break
        found = [f"{each.protocol} in zone {each.zone}: {each.timeout_s} s left" for each in entries]
        self.found["entries"] = found or [
            "gone before it was asked for" if expired else "the ruleset committed none of the packets sent to ask"
        ]
        wrong = [each for each in entries if not self._explains(each)]
        if wrong and self.found["set"] == "changed":
            entry, (asked, _) = wrong[0], self._set.get(wrong[0].zone, ({}, False))
            raise TestbedError(
                f"The timeout policy of conntrack zone {entry.zone} has no effect: asked "
                f"{asked.get(_FIRST.get(entry.protocol, ''), 'none')} s for the first packet of a connection, and the "
                f"entry of a {entry.protocol} packet has {entry.timeout_s} s left."
            )

    def _explains(self, entry: TableEntry) -> bool:
        if entry.zone not in self._set or entry.protocol not in _FIRST:
            return False
        asked = self._set[entry.zone][0][_FIRST[entry.protocol]]
        return asked - _LATER_S <= entry.timeout_s <= asked

    def _give(self, zones: Sequence[int], timeouts: Mapping[str, int]) -> None:
        policy = [f"{name}={seconds}" for name, seconds in timeouts.items()]
        self._each([("--may-exist", "add-zone-tp", self._datapath, f"zone={zone}", *policy) for zone in zones])

    def _each(self, commands: Sequence[tuple[str, ...]]) -> None:
        """Run commands in one transaction, which ovs-vswitchd takes over before this returns."""
        if commands:
            self._control.vsctl(*(word for command in commands for word in ("--", *command)))


def _other(timeouts: Mapping[str, int]) -> dict[str, int]:
    """Return a policy that differs from these timeouts in every one."""
    return {name: seconds + 1 for name, seconds in timeouts.items()}

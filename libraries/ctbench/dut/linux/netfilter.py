"""Rulesets of iptables and nftables: found by name, loaded from their files, read back."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctbench.base.errors import TestbedError
from ctbench.dut.rulesets import Ruleset
from ctbench.hosts.base import Host

#: The table of all files of nftables.
TABLE = "ctbench"
#: Families whose tool has a `-restore` and a `-save`.
_TABLES = ("iptables", "ip6tables")
#: Tables of iptables-legacy, which stay in the kernel when they are empty.
LEGACY_TABLES = "/proc/net/ip_tables_names"


@dataclass(frozen=True)
class Rules:
    #: `iptables`, `ip6tables` or `nftables`.
    family: str
    #: What the tool is given: the file with the interfaces' names for `client` and `server`.
    text: str


def read_rules(ruleset: Ruleset, interfaces: Sequence[str]) -> Rules | None:
    """The rules for a client's and a server's interface; None for a ruleset without rules."""
    if ruleset.file is None:
        return None
    names = dict(zip(("client", "server"), interfaces, strict=True))
    return Rules(ruleset.family, name_interfaces(ruleset.file.read_text(), names))


def name_interfaces(text: str, interfaces: Mapping[str, str]) -> str:
    """The ruleset with the interfaces' names for `client` and `server`."""
    return re.sub(r"\b(" + "|".join(interfaces) + r")\b", lambda match: interfaces[match[1]], text)


def plain_lines(text: str) -> list[str]:
    """Lines without comments, packet counts and indentation."""
    lines = (re.sub(r"^#.*| \[\d+:\d+\]$", "", line.strip()) for line in text.splitlines())
    return [line for line in lines if line]


class Netfilter:
    """The rules of the host's network namespace."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def require_none(self) -> None:
        """Raise `TestbedError` where there are rules that are not ours: they are not for us to remove."""
        tables = self._host.run(["nft", "list", "tables"]).stdout.splitlines()
        foreign = [table for table in tables if table not in (f"table ip {TABLE}", f"table inet {TABLE}")]
        if foreign:
            raise TestbedError(
                f"{self._host.name} has netfilter rules of its own ({', '.join(foreign)}), and a DUT must have none: "
                "remove them (nft flush ruleset)."
            )

    def clear(self) -> None:
        """Remove all rules, and with them every reason to track connections."""
        legacy = self._host.run(["cat", LEGACY_TABLES], check=False).stdout.split()
        if legacy:
            raise TestbedError(
                f"{self._host.name}: tables of iptables-legacy are in place ({', '.join(legacy)}), and packets pass"
                " them even when they are empty. Let iptables be iptables-nft (update-alternatives --config iptables)"
                " and unload iptable_* (modprobe -r)."
            )
        self._host.run(["nft", "flush", "ruleset"])

    def load(self, ruleset: Rules | None) -> None:
        """Load a ruleset into cleared tables, and read back that it is what is there now."""
        if ruleset and ruleset.family in _TABLES:
            self._host.run([f"{ruleset.family}-restore"], stdin=ruleset.text)
        elif ruleset:
            self._host.run(["nft", "-f", "-"], stdin=ruleset.text)
        found = self.differences(ruleset)
        if found:
            raise TestbedError(f"{self._host.name}: rules differ (`-` asked, `+` found): {'; '.join(found)}.")

    def differences(self, ruleset: Rules | None) -> list[str]:
        """Lines of the rules: `-` asked only, `+` found only; empty when the rules are what was asked."""
        asked, found = (Counter(plain_lines(text)) for text in (ruleset.text if ruleset else "", self.listing(ruleset)))
        return [f"-{line}" for line in (asked - found).elements()] + [f"+{line}" for line in (found - asked).elements()]

    def listing(self, ruleset: Rules | None) -> str:
        """The rules as the tool of their family prints them; nft(8) prints those of both."""
        tables = ruleset is not None and ruleset.family in _TABLES
        save = [f"{ruleset.family}-save"] if ruleset and tables else ["nft", "--stateless", "list", "ruleset"]
        return self._host.run(save).stdout

    def versions(self) -> dict[str, str]:
        """Versions of the tools; that of iptables names what it works through: nf_tables or legacy."""
        tools = {"iptables": ["iptables", "-V"], "nftables": ["nft", "-v"], "conntrack": ["conntrack", "-V"]}
        done = {name: self._host.run(argv, check=False).stdout for name, argv in tools.items()}
        return {name: text.strip().partition(" ")[2] for name, text in done.items()}

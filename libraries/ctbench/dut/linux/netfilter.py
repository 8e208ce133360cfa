"""The kernel's netfilter: rulesets of iptables and nftables, the connection table; and kernel settings of any kind."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from ipaddress import ip_address

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.text import one_line
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.base import CLOSED_S
from ctbench.dut.linux.found import Found
from ctbench.dut.rulesets import Ruleset
from ctbench.dut.table import FLUSH_TIMEOUT_S, TableSettings, empty
from ctbench.hosts.base import Host
from ctbench.hosts.machine import NF_CONNTRACK_MAX, read_files

#: The table of the files of nftables that ship.
TABLE = "ctbench"
#: Families whose tool has a `-restore` and a `-save`.
_TABLES = ("iptables", "ip6tables")
#: Tables of iptables-legacy and of ip6tables-legacy, which stay in the kernel when they are empty.
LEGACY_TABLES = ("/proc/net/ip_tables_names", "/proc/net/ip6_tables_names")
#: All rules of a network namespace; nft(8) prints those of both tools, but not every detail of what iptables made.
_LIST = ("nft", "--stateless", "list", "ruleset")
#: What to do about iptables-legacy.
_BE_NFT = "Let iptables and ip6tables be those of nf_tables (update-alternatives --config iptables, ip6tables)"
#: And the command that unloads its tables.
_UNLOAD = r"lsmod | grep -oE '^ip6?table_\w+' | xargs modprobe -r"
#: Differing lines that a message shows.
_SHOWN = 8
#: On a lab's host, all rules as a run has loaded them: the next one knows those of a run that was killed by it. It is
#: lost when the rules are, at a boot.
_LOADED = "/run/ctbench-rules"
#: How the interfaces are named in the files of rules.
_NAMED = re.compile(r"\b(client|server)\b")

#: A word of rules of nftables that not every kernel can do -> rules of nothing else, and what the kernel needs for it.
_NEEDS = {
    "flowtable": (
        "table ip apart { flowtable fast { hook ingress priority filter; devices = { lo }; }; "
        "chain forward { flow add @fast; }; }",
        "the flowtable of nftables (CONFIG_NF_FLOW_TABLE, CONFIG_NFT_FLOW_OFFLOAD)",
    ),
}


@dataclass(frozen=True)
class Rules:
    #: `iptables`, `ip6tables` or `nftables`.
    family: str
    #: What the tool is given: the file with the interfaces' names for `client` and `server`.
    text: str
    #: What the text is from, for messages.
    source: str = "the rules"

    @property
    def restore(self) -> list[str]:
        """The command that loads the text, from its standard input."""
        return [f"{self.family}-restore"] if self.family in _TABLES else ["nft", "-f", "-"]

    @property
    def add(self) -> list[str]:
        """The same command without a flush: of a table that the text has twice, `-restore` keeps the second alone."""
        return [*self.restore, "--noflush"] if self.family in _TABLES else self.restore

    @property
    def save(self) -> list[str]:
        """The command that prints the loaded rules in every detail."""
        return [f"{self.family}-save"] if self.family in _TABLES else list(_LIST)


def read_rules(ruleset: Ruleset, interfaces: Sequence[str]) -> Rules | None:
    """Return the rules with the names of the interfaces for `client` and `server`, one or several pairs. A line that
    names one comes once for each pair. None for a ruleset without rules."""
    if ruleset.rules is None:
        return None
    pairs = [{"client": client, "server": server} for client, server in zip(*[iter(interfaces)] * 2, strict=True)]
    lines = [
        _NAMED.sub(lambda match, names=names: names[match[1]], line)  # type: ignore[misc]
        for line in ruleset.text.splitlines(keepends=True)
        for names in (pairs if _NAMED.search(line) else pairs[:1])
    ]
    return Rules(ruleset.family, "".join(lines), str(ruleset.rules))


class Netfilter:
    """The rules of the host's network namespace.

    The file's layout does not matter. `differences` compares the kernel's rules with those of a network namespace into
    which only the same file was loaded, and which has ended again."""

    def __init__(self, host: Host) -> None:
        self._host = host
        #: The rules that were asked about last, and what the kernel made of them apart.
        self._apart: tuple[Rules, list[str]] | None = None

    def require_none(self) -> None:
        """Raise `TestbedError` where the host has rules of its own, which a run must not remove, or tables of
        iptables-legacy. Rules that a killed run left there are none."""
        tables = self._host.run(["nft", "list", "tables"]).stdout.splitlines()
        foreign = [table for table in tables if table not in (f"table ip {TABLE}", f"table inet {TABLE}")]
        if foreign and not self._are_of_a_run():
            # That of firewalld 2 has an owner, which alone can remove it: nft(8), flags of a table.
            first = "systemctl stop firewalld && " if any("firewalld" in table for table in foreign) else ""
            raise TestbedError(
                f"{self._host.name} has netfilter rules of its own ({', '.join(foreign)}), and a DUT must have none: "
                f"remove them with: {first}nft flush ruleset"
            )
        self._require_no_legacy()

    def _are_of_a_run(self) -> bool:
        known = self._host.run(["cat", _LOADED], check=False)
        return known.exit_status == 0 and plain_lines(known.stdout) == plain_lines(self._host.run(_LIST).stdout)

    def remember(self) -> None:
        """Write the rules that are loaded to a file of the host, until `forget`."""
        self._host.run(["sh", "-c", f"{shlex.join(_LIST)} >{_LOADED}"])

    def forget(self) -> None:
        """Remove the file that `remember` wrote."""
        self._host.run(["rm", "-f", _LOADED])

    def clear(self) -> None:
        """Remove all rules, after which nothing tracks connections. Raise `TestbedError` for iptables-legacy."""
        self._host.run(["nft", "flush", "ruleset"])
        self._require_no_legacy()

    def _require_no_legacy(self) -> None:
        files = read_files(self._host, *LEGACY_TABLES)
        legacy = [f"{name} in {path}" for path, names in files.items() for name in names.split()]
        if legacy:
            raise TestbedError(
                f"{self._host.name}: tables of iptables-legacy are in place ({', '.join(legacy)}), and packets pass"
                f" them even when they are empty. {_BE_NFT}, and unload the tables with: {_UNLOAD}"
            )

    def load(self, ruleset: Rules | None) -> None:
        """Load a ruleset into cleared tables, and read it back. Raise `MissingResource` where the kernel lacks what it
        needs, `TestbedError` where its tool does not take it, or nothing of it is in effect."""
        if ruleset:
            self._require(ruleset)
            if not self._load_apart(ruleset):
                raise TestbedError(
                    f"{self._host.name}: {ruleset.source}: {ruleset.restore[0]} takes it, and the kernel has no rule, "
                    "chain or table afterwards. A ruleset without rules is linux/forward."
                )
            self._host.run(ruleset.restore, stdin=ruleset.text)
        found = self.differences(ruleset)
        if found:
            raise TestbedError(f"{self._host.name}: rules differ (`-` asked, `+` found): {'; '.join(found)}.")

    def differences(self, ruleset: Rules | None) -> list[str]:
        """Return the differing lines of the rules as their tools print them, and in that order: `-` asked only, `+`
        found only. Empty when the rules are as asked."""
        asked = self._load_apart(ruleset) if ruleset else []
        found = plain_lines(self._host.run(["sh", "-c", _print_all(ruleset)]).stdout)
        lines = [line for line in unified_diff(asked, found, n=0, lineterm="") if line[0] in "+-"][2:]  # file names
        return [*lines[:_SHOWN], *([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])]

    def listing(self, ruleset: Rules | None) -> str:
        """Return the rules as the tool of their family prints them."""
        return self._host.run(ruleset.save if ruleset else _LIST).stdout

    def _require(self, ruleset: Rules) -> None:
        """Raise `MissingResource` where the kernel lacks something that a ruleset needs, or its tool is that of
        iptables-legacy: what it loads, nft(8) neither lists nor removes."""
        if ruleset.family in _TABLES:
            said = self._host.run([ruleset.restore[0], "-V"], check=False).stdout.strip()
            if "nf_tables" not in said:
                raise MissingResource(f"{self._host.name}: {ruleset.restore[0]} is `{said}`. {_BE_NFT}.")
        for word, (rules, need) in _NEEDS.items():
            if ruleset.family == "nftables" and re.search(rf"^\s*{word}\b", ruleset.text, re.MULTILINE):
                done = self._host.run(["unshare", "--net", "nft", rules], check=False)
                if done.exit_status != 0:
                    said = next((line for line in done.stderr.splitlines() if "rror" in line), "no reason given")
                    raise MissingResource(f"{self._host.name}: {need} is missing (nft: {one_line(said)}).")

    def _load_apart(self, ruleset: Rules) -> list[str]:
        """Return the kernel's rules after a ruleset alone was loaded, in a network namespace of its own; empty where
        there are none. Raise `TestbedError` where the tool does not take it."""
        if self._apart is None or self._apart[0] != ruleset:
            links = self._host.run(["ip", "-brief", "link", "show"]).stdout.splitlines()
            words = set(re.findall(r"[\w.-]+", ruleset.text))
            # nft(8) finds an interface by its name and remembers its index, so one of each name has to be there.
            named = sorted(({line.split()[0].partition("@")[0] for line in links} - {"lo"}) & words)
            made = [["ip", "link", "add", name, "type", "veth", "peer", f"apart{n}"] for n, name in enumerate(named)]
            commands = [*map(shlex.join, made), shlex.join(ruleset.add), _print_all(ruleset)]
            done = self._host.run(
                ["unshare", "--net", "sh", "-c", " && ".join(commands)], check=False, stdin=ruleset.text
            )
            if done.exit_status != 0:
                said = [line for line in done.stderr.splitlines() if line.strip()]
                errors = [line for line in said if "rror" in line] or said[-1:] or ["no reason given"]
                raise TestbedError(
                    f"{self._host.name}: {ruleset.source}: {ruleset.restore[0]} does not take it: "
                    f"{one_line('; '.join(errors[:_SHOWN]))}."
                )
            self._apart = ruleset, plain_lines(done.stdout)
        return self._apart[1]

    def versions(self) -> dict[str, str]:
        """Return the versions of the tools; that of iptables names its backend: nf_tables or legacy."""
        tools = {"iptables": ["iptables", "-V"], "nftables": ["nft", "-v"], "conntrack": ["conntrack", "-V"]}
        done = {name: self._host.run(argv, check=False).stdout for name, argv in tools.items()}
        return {name: text.strip().partition(" ")[2] for name, text in done.items()}


def _print_all(ruleset: Rules | None) -> str:
    """Return the shell commands that print all rules of a network namespace, those of the family in every detail
    first."""
    return " && ".join(map(shlex.join, dict.fromkeys((tuple(ruleset.save), _LIST)) if ruleset else [_LIST]))


#: What a set or a map of nftables has now, where packets add to it, or elements of it go by themselves; nft(8), SETS.
_COME_AND_GO = re.compile(r"(\n\s*flags [^\n]*\b(?:dynamic|timeout)\b[^{}]*?\n)\s*elements = \{[^{}]*\}")


def plain_lines(text: str) -> list[str]:
    """Return the lines that a tool printed, without its comments (they have the time), packet counts, the elements that
    packets added to sets, and indentation."""
    text = _COME_AND_GO.sub(r"\1", text)
    lines = (re.sub(r"^#.*| \[\d+:\d+\]$", "", line.strip()) for line in text.splitlines())
    return [line for line in lines if line]


#: Where the settings are; nf_conntrack-sysctl in the kernel's documentation.
NETFILTER = "net/netfilter"
#: The connection table. Entries at most: a network namespace has no limit of its own, the host's holds there, and the
#: snapshot says what was asked and what was found. Timeouts by name, `nf_conntrack_<name>`: closed connections go after
#: 1 s, as in the OVS measurements published in 2022; those of UDP are long, for a stream through a million flows comes
#: back to each only after seconds, and is not to find that it expired.
TABLE_SETTINGS = TableSettings(
    max_connections=1_048_576,
    timeouts={
        "udp_timeout": 30,
        "udp_timeout_stream": 30,
        "tcp_timeout_syn_sent": 1,
        "tcp_timeout_syn_recv": 1,
        "tcp_timeout_established": 30,
        "tcp_timeout_fin_wait": 1,
        "tcp_timeout_close_wait": 1,
        "tcp_timeout_last_ack": 1,
        "tcp_timeout_time_wait": CLOSED_S,
        "tcp_timeout_close": 1,
    },
    # Of a connection whose segments were lost; the kernel's defaults keep it for minutes.
    further=("tcp_timeout_max_retrans", "tcp_timeout_unacknowledged"),
)


class LinuxConntrackKeys(YamlModel):
    """Settings of the connection table in a testbed file. Every network namespace has its own."""

    #: Whether an entry may begin with another packet than a SYN (`nf_conntrack_tcp_loose`), the kernel's own default.
    #: Then what is left of an earlier trial's traffic opens some.
    tcp_loose: bool = False
    #: Whether segments outside of the window are valid (`nf_conntrack_tcp_be_liberal`).
    tcp_be_liberal: bool = False


def namespace_settings(table: TableSettings, keys: LinuxConntrackKeys, *, accounts: bool = False) -> dict[str, str]:
    """Return the settings that every network namespace has for itself: path below /proc/sys -> value. `accounts`: count
    packets and bytes of each connection."""
    switches = {"acct": accounts, **keys.model_dump()}
    values = table.timeouts | {name: int(value) for name, value in switches.items()}
    return {f"{NETFILTER}/nf_conntrack_{name}": str(value) for name, value in values.items()}


def flowtable_settings(table: TableSettings) -> dict[str, str]:
    """Return the settings of flowtables: path below /proc/sys -> value. A connection that was idle for that time is
    handed back. The kernel then takes the time off the timeout of its entry (flow_offload_fixup_ct of
    nf_flow_table_core.c), and its own 30 s would leave nothing of the timeouts that are set here."""
    idle_s = min(table.timeouts[name] for name in ("udp_timeout", "udp_timeout_stream", "tcp_timeout_established"))
    own_s = max(1, min(_MOST_IN_FLOWTABLE_S, idle_s // 2))
    return {f"{NETFILTER}/nf_flowtable_{protocol}_timeout": str(own_s) for protocol in ("tcp", "udp")}


#: Seconds that an idle connection stays in a flowtable, at most.
_MOST_IN_FLOWTABLE_S = 5


def host_settings(table: TableSettings) -> dict[str, str]:
    """Return the settings that are the host's: path below /proc/sys -> value."""
    values = {"max": table.max_connections, "buckets": max(_LEAST_BUCKETS, least_buckets(table.max_connections))}
    return {f"{NETFILTER}/nf_conntrack_{name}": str(value) for name, value in values.items()}


#: Hash buckets that a table has here, however small.
_LEAST_BUCKETS = 262_144
#: Entries for a bucket, at most: the kernel's own ratio until 5.14, and 1 since (max_factor of nf_conntrack_core.c).
#: Each entry stands in two, one for either direction.
_ENTRIES_A_BUCKET = 4


def least_buckets(entries: int) -> int:
    """Return the hash buckets below which a full table is slow. Raising the table's limit leaves them as they are."""
    return -(-entries // _ENTRIES_A_BUCKET)


def few_buckets(entries: int, buckets: int) -> str:
    """Return a warning about a table with too few buckets; empty where they are enough."""
    if entries <= _ENTRIES_A_BUCKET * buckets:
        return ""
    return (
        f"{buckets} hash buckets for {entries} entries: {round(2 * entries / buckets)} in each when the table is full. "
        "Raising its limit leaves the buckets as they are; they are the host's, and a sandbox cannot set them"
    )


#: Entries of this network namespace.
COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
#: Among so many, the host's own are looked for.
_FEW = 100
#: Statistics that say that packets were lost or a connection was not remembered, and what they mean;
#: nf_conntrack_core.c.
FINDINGS = {
    "insert_failed": "connections were not remembered, because their translation clashed with another one's",
    "drop": "packets were dropped, because the connection table was full or another entry was in the way",
    "early_drop": "connections were forgotten early, because the connection table was full",
    "chaintoolong": "connections were not remembered, because their hash bucket was full",
}

#: Statistics that the record of each trial has: besides them what clashed with another entry and was resolved, and
#: look-ups that began again because the table changed meanwhile.
KEPT = (*FINDINGS, "clash_resolve", "search_restart")


class ConntrackTable:
    """The table of the host's network namespace, through conntrack(8)."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def count(self) -> int:
        """Return the entries now; of a few, without the host's own. Return 0 where the kernel has no table, because no
        rule asked for one."""
        entries = int(self._host.run(["cat", COUNT], check=False).stdout or 0)
        return len(self.of_others()) if 0 < entries <= _FEW else entries

    def of_others(self) -> list[str]:
        """Return a line for each entry of a connection that does not end at the host itself, as that of a login to a
        lab's router does, and what it hears that is sent to all. The kernel counts expired entries until it removes
        them, and does not list them."""
        own = set(re.findall(r"(?:inet6?|brd) ([\da-f.:]+)", self._host.run(["ip", "-o", "address"]).stdout))
        listed = [self._host.run(["conntrack", "-L", "-f", family], check=False).stdout for family in ("ipv4", "ipv6")]
        ends = ((line, re.search(r"src=(\S+) dst=(\S+)", line)) for line in "\n".join(listed).splitlines())
        return [line for line, found in ends if found and own.isdisjoint(found.groups()) and not _is_to_all(found[2])]

    def limit(self) -> int | None:
        text = self._host.run(["cat", NF_CONNTRACK_MAX], check=False).stdout
        return int(text) if text else None

    def flush(self) -> None:
        """Empty the table and wait until it is empty. Raise `TestbedError` when entries stay. Do nothing without a
        table."""
        if self.count():
            empty(lambda: self._host.run(["conntrack", "-F"], FLUSH_TIMEOUT_S), self.count)

    def statistics(self) -> dict[str, int]:
        """Return the table's counters since the namespace was made, all CPUs added; empty where there is none."""
        return parse_statistics(self._host.run(["conntrack", "-S"], check=False).stdout)


def _is_to_all(address: str) -> bool:
    return address == "255.255.255.255" or ip_address(address).is_multicast


def parse_statistics(text: str) -> dict[str, int]:
    """Add up the lines of `conntrack -S`, one of `name=value` per CPU."""
    totals = Counter[str]()
    for name, value in re.findall(r"(\w+)=(\d+)", text):
        totals[name] += int(value)
    del totals["cpu"]
    return dict(totals)


def increase(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return the increase since `before`; the kernel's counters are 32 bits wide."""
    return {name: (value - before.get(name, 0)) % (1 << 32) for name, value in now.items()}


def findings(counted: Mapping[str, int]) -> list[str]:
    """Return one sentence for each statistic of a trial that tells of lost packets or connections."""
    return [
        f"conntrack: {counted[name]} {meaning} ({name})." for name, meaning in FINDINGS.items() if counted.get(name)
    ]


#: Where sysctl(8) finds them. Names are paths below it: those of interfaces may hold a dot.
ROOT = "/proc/sys"


class Sysctls:
    """Settings by their path below /proc/sys, for example `net/ipv4/ip_forward`."""

    def __init__(self, host: Host, found: Found) -> None:
        self._host = host
        self._found = found

    def set(self, values: Mapping[str, str]) -> dict[str, str]:
        """Set the values that the kernel has, read them back and return them. A kernel that refuses keeps its own."""
        before = self.read(values)
        for name, value in before.items():
            self._found.sysctls.setdefault(name, value)
        self._found.keep(self._host)
        self._write({name: values[name] for name in before})
        return self.read(values)

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values now; names that the kernel does not have are left out."""
        found = read_files(self._host, *(f"{ROOT}/{name}" for name in names))
        return {path.removeprefix(f"{ROOT}/"): value for path, value in found.items()}

    def restore(self) -> None:
        """Put back the values that were found; settings of interfaces that are gone went with them."""
        self._write({name: self._found.sysctls[name] for name in self.read(self._found.sysctls)})
        self._found.sysctls.clear()

    def _write(self, values: Mapping[str, str]) -> None:
        if values:  # its status does not tell a refusal: reading back does
            self._host.run(["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in values.items())], check=False)

"""The flows and the ports of an Open vSwitch bridge, from the files of a topology."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.network import MOST_PORT_PAIRS
from ctbench.base.paths import PORTS
from ctbench.dut.rulesets import Ruleset
from ctbench.dut.topology import PortSetup

#: Interfaces in pairs, client side first: the further pairs are there for bonds, or for further pairs of ports.
LINKS = tuple((f"port{2 * pair}", f"port{2 * pair + 1}") for pair in range(MOST_PORT_PAIRS))
#: OpenFlow numbers of the interfaces, in the order of the links.
NUMBERS = {name: number for number, name in enumerate(chain(*LINKS), 1)}
_LINK = re.compile(rf"\b({'|'.join(NUMBERS)})\b")
#: Where addresses of clients and servers begin whose second number is that of their pair of ports.
_OF_PAIR = re.compile(r"(?<![\d.])(16|48)\.0\.")
#: An action of connection tracking, with what is in its parentheses; ovs-actions(7).
_CT = re.compile(r"\bct\((?:[^()]|\([^()]*\))*\)")
#: Its zone, as a number or as a field that has it.
_ZONE = re.compile(r"\bzone=([^,()]+)")
#: The table that a flow is in, or that packets go on to.
_TABLE, _GOTO = re.compile(r"\btable=(\d+|\{\d+\.\.\d+\})"), re.compile(r"\bgoto_table:(\d+)")
#: What is between the match and the actions of a flow.
_ACTIONS = re.compile(r"\bactions?=")
#: A range within a flow, as a shell has it: `{0..255}`; with a name, `{n=0..63}`, one number wherever it is.
_RANGE = re.compile(r"\{(?:(\w+)=)?(\d+)\.\.(\d+)\}")
#: OpenFlow number -> side.
SIDES = {number: "client" if number % 2 else "server" for number in NUMBERS.values()}


@dataclass(frozen=True)
class BridgePort:
    """A port of the bridge: an interface, or a bond of several."""

    name: str
    #: One of the port's own name, or those of a bond.
    interfaces: tuple[str, ...]
    #: What its row in the Port table holds, by `column` or `column:key`; ovs-vswitchd.conf.db(5).
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_bond(self) -> bool:
        return len(self.interfaces) > 1


#: Ports that are links, and nothing more.
PLAIN_PORTS = (BridgePort("port0", ("port0",)), BridgePort("port1", ("port1",)))


@dataclass(frozen=True)
class BridgeRules:
    """The flows of a bridge, and its ports."""

    #: As `ovs-ofctl add-flows` takes them, with the names of interfaces.
    flows: str
    #: The port towards the clients, and the one towards the servers; of each pair.
    ports: tuple[BridgePort, ...] = PLAIN_PORTS
    #: What the flows are from, for messages.
    source: str = "the flows"
    #: Entries at most, by zone.
    zone_limits: Mapping[int, int] = field(default_factory=dict)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """All interfaces, in the order of their numbers: two of each link. Bonds have several links."""
        links = zip(*(port.interfaces for port in self.ports), strict=True)
        return tuple(interface for link in links for interface in link)

    @property
    def learns(self) -> bool:
        """True where some flow is left to `normal`, which learns where addresses are."""
        return bool(re.search(r"actions?=.*normal", without_comments(self.flows), re.IGNORECASE))

    @cached_property
    def tracking(self) -> tuple[str, ...]:
        """The actions of connection tracking, with their ranges expanded."""
        actions = _CT.findall(without_comments(self.flows))
        return tuple(each for action in dict.fromkeys(actions) for each in expand(action))

    @property
    def zones(self) -> tuple[int, ...]:
        """The zones of connection tracking that the flows name; zone 0 where they name none. Zones from fields, which
        only packets tell, are left out: `require_known` refuses them."""
        zones = [_zone(action) for action in self.tracking]
        return tuple(sorted({zone for zone in zones if isinstance(zone, int)})) or (0,)

    @property
    def commits(self) -> bool:
        """True where the flows commit connections."""
        return any("commit" in action for action in self.tracking)

    def require_known(self) -> None:
        """Raise `ConfigError` where the flows name something that does not exist, or that cannot be set for them."""
        if why := next(self._unknown(without_comments(self.flows)), ""):
            raise ConfigError(
                f"{self.source}: {why}.\n  Expected flows that name tables with flows, zones by their number "
                "(ct(commit,zone=10)), and the ports that there are."
            )

    def _unknown(self, flows: str) -> Iterator[str]:
        if not flows:
            yield "has no flows"
        for zone in filter(lambda zone: isinstance(zone, str), map(_zone, self.tracking)):
            yield f"tracks in zone={zone}: its number is known from packets alone, so it cannot be given its timeouts"
        for zone in sorted(set(self.zone_limits) - set(self.zones)):
            yield f"zone_limits names zone {zone}, and the flows track in {', '.join(map(str, self.zones))}"
        for link in sorted(set(_LINK.findall(flows)) - set(self.interfaces)):
            yield f"names {link}, and the bridge has {', '.join(self.interfaces)}"
        matches = [_ACTIONS.split(flow)[0] for flow in flows.splitlines()]
        tables = {table for match in matches for found in _TABLE.findall(match) or ["0"] for table in expand(found)}
        tables |= set(re.findall(r"\blearn\([^)]*\btable=(\d+)", flows))
        for table in (*_GOTO.findall(flows), *(table for action in self.tracking for table in _TABLE.findall(action))):
            if table not in tables:
                yield f"sends packets to table {table}, which has no flows"

    @property
    def bonds(self) -> tuple[str, ...]:
        return tuple(port.name for port in self.ports if port.is_bond)


def read_rules(ruleset: Ruleset, ports: PortSetup, folder: Path = PORTS, *, pairs: int = 1) -> BridgeRules:
    """Return the flows of a ruleset on `pairs` pairs of ports, set up as the file `<ports>.ports` of `folder` says.
    Raise `ConfigError` for a wrong file of ports, or for flows that name single links where the ports are bonds."""
    assert ruleset.rules is not None, "rulesets of OVS have files"
    flows, file = ruleset.text, folder / f"{ports}.ports"
    made_of = PLAIN_PORTS if ports == "plain" else _read_ports(file)
    made = BridgeRules(flows, made_of, str(ruleset.rules), ruleset.zone_limits)
    named = next((line for line in without_comments(flows).splitlines() if _LINK.search(line)), "")
    if made.bonds and named:
        raise ConfigError(
            f"{ruleset.rules}: names single links ({named.strip()}), and with ports {ports} each side has two of "
            "them.\n  Expected a ruleset whose flows leave the choice of the port to `normal`."
        )
    made.require_known()
    return on_pairs(made, pairs)


def on_pairs(rules: BridgeRules, pairs: int) -> BridgeRules:
    """Return the rules on so many pairs of ports: a flow that names ports comes once for each pair, with its ports and
    its addresses. Raise `MissingResource` where ports are bonds."""
    if pairs == 1:
        return rules
    if rules.bonds:
        raise MissingResource(f"Bonds need a testbed with one pair of ports; this one has {pairs} (ports).")
    lines = without_comments(rules.flows).splitlines()
    flows = [_of_pair(line, pair) for line in lines for pair in range(pairs if _LINK.search(line) else 1)]
    ports = [replace(port, name=link, interfaces=(link,))
             for links in LINKS[:pairs] for port, link in zip(rules.ports, links, strict=True)]  # fmt: skip
    return replace(rules, flows="\n".join(flows), ports=tuple(ports))


def _of_pair(flow: str, pair: int) -> str:
    """Return a flow of the first pair of ports as it is on another one."""
    of_links = _LINK.sub(lambda match: LINKS[pair][int(match[1].removeprefix("port"))], flow)
    return _OF_PAIR.sub(rf"\g<1>.{pair}.", of_links)


def _zone(action: str) -> int | str:
    """Return the zone of an action of connection tracking: its number, or the field that has it."""
    found = _ZONE.search(action)
    text = found[1].strip() if found else "0"
    try:
        return int(text, 0)
    except ValueError:
        return text


def without_comments(flows: str) -> str:
    """Return the flows alone, a line each: `#` begins a comment wherever it stands."""
    lines = (line.partition("#")[0].strip() for line in flows.splitlines())
    return "\n".join(line for line in lines if line)


def all_flows(flows: str) -> str:
    """Return the flows, each that has ranges (`nw_src=16.0.0.{0..255}`) once for every number of them."""
    numbered = _LINK.sub(lambda match: str(NUMBERS[match[1]]), flows)
    return "\n".join(flow for line in numbered.splitlines() for flow in expand(line)) + "\n"


def expand(text: str) -> Iterator[str]:
    """Yield a text once for every number of its ranges. Ranges of one name advance together."""
    texts = _RANGE.split(text)  # a text, and a name, first and last number and text for each range
    names = [name or str(place) for place, name in enumerate(texts[1::4])]
    ranges = {
        name: range(int(first), int(last) + 1)
        for name, first, last in zip(names, texts[2::4], texts[3::4], strict=True)
    }
    for numbers in product(*ranges.values()):
        at = dict(zip(ranges, numbers, strict=True))
        yield texts[0] + "".join(f"{at[name]}{rest}" for name, rest in zip(names, texts[4::4], strict=True))


def _read_ports(file: Path) -> tuple[BridgePort, BridgePort]:
    """Read lines that hold the words of `ovs-vsctl add-port br0` or `ovs-vsctl add-bond br0`."""
    lines = [line for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
    ports = []
    for line in lines:
        names = [word for word in line.split() if "=" not in word]
        columns = dict(word.split("=", 1) for word in line.split() if "=" in word)
        ports.append(BridgePort(names[0] if names else "", tuple(names[1:] or names), columns))
    sides = [port.interfaces for port in ports]
    if not any(sides == list(zip(*LINKS[:count], strict=True)) for count in range(1, len(LINKS) + 1)):
        raise ConfigError(
            f"{file} has the ports {'; '.join(lines) or 'none'}. Expected two lines, the clients' side first:"
            " port0 and port1, or a bond of port0 and port2 and one of port1 and port3, each with columns of the"
            " Port table, for example `port0 vlan_mode=trunk trunks=100`."
        )
    client, server = ports
    return client, server

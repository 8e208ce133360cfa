"""What the files of a topology say to a bridge of Open vSwitch: the flows of its ruleset, and its ports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.paths import PORTS
from ctbench.dut.rulesets import Ruleset
from ctbench.dut.topology import PortSetup

#: Interfaces in pairs, client side first: the second pair is there for bonds.
LINKS = (("port0", "port1"), ("port2", "port3"))
#: OpenFlow numbers of the interfaces, in the order of the links.
NUMBERS = {"port0": 1, "port1": 2, "port2": 3, "port3": 4}
_LINK = re.compile(rf"\b({'|'.join(NUMBERS)})\b")
#: An action of connection tracking, with what is in its parentheses; ovs-actions(7).
_CT = re.compile(r"\bct\((?:[^()]|\([^()]*\))*\)")
#: A range within a flow, as a shell has it: `{0..255}`.
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
#: OpenFlow number -> side.
SIDES = {1: "client", 2: "server", 3: "client", 4: "server"}


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
    """What the bridge does to a packet, and what its ports are."""

    #: As `ovs-ofctl add-flows` takes them, with the names of interfaces.
    flows: str
    #: The port towards the clients, and the one towards the servers.
    ports: tuple[BridgePort, BridgePort] = PLAIN_PORTS

    @property
    def interfaces(self) -> tuple[str, ...]:
        """All interfaces, in the order of their numbers: two of each link, of which bonds have several."""
        links = zip(*(port.interfaces for port in self.ports), strict=True)
        return tuple(interface for link in links for interface in link)

    @property
    def learns(self) -> bool:
        """Whether some of it is left to `normal`, which learns where addresses are."""
        return bool(re.search(r"^[^#\n]*actions=.*normal", self.flows, re.MULTILINE | re.IGNORECASE))

    @property
    def zones(self) -> tuple[int, ...]:
        """The zones of connection tracking that it names; zone 0 where it names none."""
        zones = [re.search(r"\bzone=(\d+)", action) for action in _CT.findall(self.flows)]
        return tuple(sorted({int(zone[1]) if zone else 0 for zone in zones})) or (0,)

    @property
    def commits(self) -> bool:
        """Whether it has connections tracked."""
        return any("commit" in action for action in _CT.findall(self.flows))

    @property
    def bonds(self) -> tuple[str, ...]:
        return tuple(port.name for port in self.ports if port.is_bond)


def read_rules(ruleset: Ruleset, ports: PortSetup, folder: Path = PORTS) -> BridgeRules:
    """The flows of a ruleset on ports that are set up as PORTS.ports of a folder says. `ConfigError` says what is wrong
    with the ports, or that the flows name single links where the ports are bonds."""
    assert ruleset.file is not None, "rulesets of OVS have files"
    flows, file = ruleset.text, folder / f"{ports}.ports"
    made = BridgeRules(flows, PLAIN_PORTS if ports == "plain" else _read_ports(file))
    named = next((line for line in flows.splitlines() if not line.startswith("#") and _LINK.search(line)), "")
    if made.bonds and named:
        raise ConfigError(
            f"{ruleset.file}: names single links ({named.strip()}), and with ports {ports} each side has two of them.\n"
            "  Expected a ruleset whose flows leave the choice of the port to `normal`."
        )
    return made


def number_ports(flows: str) -> str:
    """The flows with the interfaces' numbers for their names: `ovs-ofctl diff-flows` takes no names in a file."""
    return _LINK.sub(lambda match: str(NUMBERS[match[1]]), flows)


def all_flows(flows: str) -> str:
    """The flows, each that has ranges (`nw_src=16.0.0.{0..255}`) once for every number of them."""
    found = []
    for line in flows.splitlines():
        texts = _RANGE.sub("\0", line).split("\0")
        ranges = [range(int(first), int(last) + 1) for first, last in _RANGE.findall(line)]
        for numbers in product(*ranges):
            found.append(texts[0] + "".join(f"{number}{text}" for number, text in zip(numbers, texts[1:], strict=True)))
    return "\n".join(found) + "\n"


def _read_ports(file: Path) -> tuple[BridgePort, BridgePort]:
    """Lines that say what `ovs-vsctl add-port br0` or `ovs-vsctl add-bond br0` is to be told."""
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

"""Rulesets: what is in their files, the flows and, where a ruleset needs more than that, the bridge's ports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ctbench.errors import ConfigError

#: Interfaces in pairs, client side first: the second pair is there for bonds.
LINKS = (("port0", "port1"), ("port2", "port3"))
#: OpenFlow numbers of the interfaces, in the order of the links.
NUMBERS = {"port0": 1, "port1": 2, "port2": 3, "port3": 4}
#: OpenFlow number -> side, the keys of `DutCounters`.
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
        """Whether it joins several links."""
        return len(self.interfaces) > 1


#: The ports of a ruleset whose files do not speak of them.
PLAIN_PORTS = (BridgePort("port0", ("port0",)), BridgePort("port1", ("port1",)))


@dataclass(frozen=True)
class Ruleset:
    """What the bridge does to a packet."""

    #: As `ovs-ofctl add-flows` takes them, with the names of interfaces.
    flows: str
    #: The port towards the clients, and the one towards the servers.
    ports: tuple[BridgePort, BridgePort] = PLAIN_PORTS

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Interfaces in pairs, client side first: one pair, or several where the ports are bonds."""
        client, server = self.ports
        return tuple(zip(client.interfaces, server.interfaces, strict=True))

    @property
    def interfaces(self) -> tuple[str, ...]:
        """All interfaces, in the order of their numbers."""
        return tuple(interface for link in self.links for interface in link)

    @property
    def bonds(self) -> tuple[str, ...]:
        """Names of the ports that are bonds."""
        return tuple(port.name for port in self.ports if port.is_bond)


def read_ruleset(folder: Path, name: str) -> Ruleset:
    """The ruleset `name` of a folder: NAME.flows and, where there is one, NAME.ports. `ConfigError` names the rulesets
    that there are, or says what is wrong with the ports."""
    flows, ports = folder / f"{name}.flows", folder / f"{name}.ports"
    if not flows.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.flows")))
        raise ConfigError(f"{name} is not a ruleset of Open vSwitch. Expected one of: {known} (in {folder}).")
    return Ruleset(flows.read_text(), _read_ports(ports) if ports.is_file() else PLAIN_PORTS)


def number_ports(flows: str) -> str:
    """The flows with the interfaces' numbers for their names: `ovs-ofctl diff-flows` takes no names in a file."""
    return re.sub(r"\b(" + "|".join(NUMBERS) + r")\b", lambda match: str(NUMBERS[match[1]]), flows)


def _read_ports(file: Path) -> tuple[BridgePort, BridgePort]:
    """Lines that say what `ovs-vsctl add-port br0` or `ovs-vsctl add-bond br0` is to be told."""
    lines = [line for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
    ports = [_port(line) for line in lines]
    sides = [port.interfaces for port in ports]
    if not any(sides == list(zip(*LINKS[:count], strict=True)) for count in range(1, len(LINKS) + 1)):
        raise ConfigError(
            f"{file} has the ports {'; '.join(lines) or 'none'}. Expected two lines, the clients' side first:"
            " port0 and port1, or a bond of port0 and port2 and one of port1 and port3, each with columns of the"
            " Port table, for example `port0 vlan_mode=trunk trunks=100`."
        )
    client, server = ports
    return client, server


def _port(line: str) -> BridgePort:
    names = [word for word in line.split() if "=" not in word]
    columns = dict(word.split("=", 1) for word in line.split() if "=" in word)
    return BridgePort(names[0] if names else "", tuple(names[1:] or names), columns)

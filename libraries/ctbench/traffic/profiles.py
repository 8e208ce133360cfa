"""Traffic profiles: what one connection does, or what a stateless stream is. Read from variables/profiles/*.yaml."""

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ctbench.base.ethernet import FCS_BYTES, VLAN_TAG_BYTES
from ctbench.base.units import quoted
from ctbench.base.yaml_files import Name, load_one_of

#: Frame sizes of IMIX with their shares: 7 small, 4 middle, 1 large (RFC 6985 calls the mix of the early
#: Internet so; the middle size is that of TRex's imix profile). Bytes with FCS, as RFC 2544 counts.
IMIX = ((64, 7), (594, 4), (1518, 1))

#: Networks whose addresses no host forwards: this network, loopback, and all from multicast on (RFC 6890).
_NOT_FORWARDED = tuple(IPv4Network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"))
#: A trial waits for the lifetime of a connection before it counts.
_LONGEST_LIFETIME_S = 3600


@lru_cache(maxsize=1000)  # every record has its profile
def _as_number(address: str) -> int:
    """An IPv4 address as a number; `AddressValueError` where it is none."""
    return int(IPv4Address(address))


class Endpoints(BaseModel):
    """Who talks to whom: what both kinds of profile have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    #: Name used in tests, SLA files and records.
    name: Name
    #: One sentence for the report.
    description: str = ""
    #: Client addresses, first one and how many.
    client_ip: str = "16.0.0.1"
    client_ips: int = Field(254, ge=1, le=65536)
    #: Server addresses, first one and how many.
    server_ip: str = "48.0.0.1"
    server_ips: int = Field(254, ge=1, le=65536)
    #: Client ports: the range.
    client_port_min: int = Field(1024, ge=1, le=65535)
    client_port_max: int = Field(65535, ge=1, le=65535)
    #: Server port of UDP.
    udp_port: int = Field(5353, ge=1, le=65535)

    @property
    def client_endpoints(self) -> int:
        """Client addresses times ports: how many tell themselves apart."""
        return self.client_ips * (self.client_port_max - self.client_port_min + 1)

    @field_validator("client_ip", "server_ip")
    @classmethod
    def _is_ipv4(cls, text: str) -> str:
        try:
            _as_number(text)
        except AddressValueError:
            raise ValueError(f'{quoted(text)} is not an IPv4 address.\n  Expected one such as "16.0.0.1".') from None
        return text

    @model_validator(mode="after")
    def _addresses_fit_together(self) -> Self:
        if self.client_port_min > self.client_port_max:
            raise ValueError(
                f"client_port_min: {self.client_port_min} is above client_port_max {self.client_port_max}.\n"
                "  Expected a range such as 1024 to 65535."
            )
        client, clients = _as_number(self.client_ip), self.client_ips
        server, servers = _as_number(self.server_ip), self.server_ips
        for key, first, count in (("client_ips", client, clients), ("server_ips", server, servers)):
            if first + count > 1 << 32:
                raise ValueError(f"{key}: {count} addresses go beyond 255.255.255.255.\n  Expected fewer.")
            for net in _NOT_FORWARDED:
                if first <= int(net.broadcast_address) and int(net.network_address) < first + count:
                    raise ValueError(
                        f"{key}: {count} addresses from {IPv4Address(first)} reach into {net}, which nobody forwards.\n"
                        '  Expected addresses such as "16.0.0.1".'
                    )
        if client < server + servers and server < client + clients:
            raise ValueError(
                f"client_ip: {clients} clients from {self.client_ip} overlap with {servers} servers from "
                f"{self.server_ip}.\n  Expected ranges that have no address in common."
            )
        return self


class ConnectionProfile(Endpoints):
    """What one connection does. The client opens, asks and closes; the server answers. Loads are connections/s."""

    kind: Literal["connections"] = "connections"
    #: The profile that this one is a shortened form of: the same but for `messages`. Its floors follow from
    #: that one's by the packet rate (ctbench.sla.floors). Empty when it stands for itself.
    derived_from: str = ""
    #: Share of UDP exchanges among the connections, in percent.
    udp_percent: float = Field(0, ge=0, le=100)
    #: Requests per connection; the server answers each. 0: TCP opens and closes without data.
    messages: int = Field(1, ge=0, le=65535)
    #: Bytes of a request (payload of one segment).
    request_bytes: int = Field(20, ge=1, le=1448)
    #: Bytes of a reply (payload of one segment).
    reply_bytes: int = Field(20, ge=1, le=1448)
    #: How long the server waits before it answers, in ms.
    server_wait_ms: float = Field(0, ge=0, le=10000)
    #: The server acknowledges a request on its own before it waits, as a TCP with a delayed-ACK timer
    #: shorter than `server_wait_ms` does: three packets per message instead of two.
    ack_before_reply: bool = False
    #: Whether successive connections walk through the client ports or jump (RFC 4814 section 4).
    port_order: Literal["random", "sequential"] = "random"
    #: Server port of TCP.
    tcp_port: int = Field(8080, ge=1, le=65535)

    @property
    def lifetime_s(self) -> float:
        """Seconds that the server's waits give a connection at least."""
        return self.messages * self.server_wait_ms / 1000

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.lifetime_s > _LONGEST_LIFETIME_S:
            raise ValueError(
                f"server_wait_ms: {self.messages} messages with a wait of {self.server_wait_ms:g} ms each take "
                f"{self.lifetime_s:g} s.\n  Expected connections of at most {_LONGEST_LIFETIME_S} s: a trial waits as "
                "long before it counts."
            )
        return self

    @model_validator(mode="after")
    def _udp_has_data(self) -> Self:
        if self.messages == 0 and self.udp_percent > 0:
            raise ValueError(
                f"messages: 0 does not go with udp_percent: {self.udp_percent:g}, UDP has no connection without data.\n"
                "  Expected at least one message, or udp_percent: 0."
            )
        return self


class PacketProfile(Endpoints):
    """A stateless stream of UDP packets (RFC 2544, RFC 1242). Loads are packets/s, all directions added."""

    kind: Literal["packets"]
    #: Bytes of a frame with FCS, as RFC 2544 counts; `imix`: 64, 594 and 1518 bytes, 7 : 4 : 1.
    frame_bytes: Annotated[int, Field(ge=64, le=9018)] | Literal["imix"] = 64
    #: Flows: client address and port to server address. Each is sent before any comes again.
    flows: int = Field(1, ge=1, le=1_000_000)
    #: Whether packets walk through the flows or jump.
    flow_order: Literal["sequential", "random"] = "sequential"
    #: `one`: clients to servers; `both`: half of the load each way. Servers answer whom they have seen.
    directions: Literal["one", "both"] = "one"
    #: VLAN tag (IEEE 802.1Q) that the frames carry; 0: none.
    vlan: int = Field(0, ge=0, le=4094)

    @property
    def largest_frame_bytes(self) -> int:
        """Bytes of the largest frame, with FCS."""
        return max(size for size, _ in IMIX) if self.frame_bytes == "imix" else self.frame_bytes

    @model_validator(mode="after")
    def _has_enough_clients(self) -> Self:
        if self.flows > self.client_endpoints:
            raise ValueError(
                f"flows: {self.flows} are more than client_ips and client ports give ({self.client_endpoints}).\n"
                "  Expected fewer flows, or more client addresses."
            )
        return self


Profile = Annotated[ConnectionProfile | PacketProfile, Field(discriminator="kind")]

#: Bytes of the headers of a connection's frames, at most.
_HEADERS = 70


def largest_frame(profile: ConnectionProfile | PacketProfile) -> int:
    """Bytes of the largest frame that the profile sends, without FCS, its VLAN tag included."""
    if isinstance(profile, PacketProfile):
        return profile.largest_frame_bytes - FCS_BYTES + (VLAN_TAG_BYTES if profile.vlan else 0)
    return _HEADERS + max(profile.request_bytes, profile.reply_bytes)


#: What `kind` says in a profile's file.
KINDS: dict[str, type[ConnectionProfile] | type[PacketProfile]] = {
    "connections": ConnectionProfile,
    "packets": PacketProfile,
}


def load_profile(name_or_path: str | Path) -> ConnectionProfile | PacketProfile:
    """Read a profile by its name below variables/profiles/, or by path; `ConfigError` says what is wrong."""
    return load_one_of("profiles", name_or_path, KINDS, tag="kind")

"""Traffic profiles: the behaviour of one connection, or a stateless stream."""

import json
import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

IpVersion = Literal[4, 6]
Address = IPv4Address | IPv6Address
_TYPES: dict[IpVersion, type[IPv4Address] | type[IPv6Address]] = {4: IPv4Address, 6: IPv6Address}
#: One that a profile may begin with: of the networks of TRex's profiles, and of RFC 5180's for benchmarks.
_EXAMPLES: dict[IpVersion, str] = {4: "16.0.0.1", 6: "2001:2:0:16::1"}
#: Networks whose addresses no host forwards: this network, loopback, and all from multicast on (RFC 6890); of IPv6
#: unspecified and loopback, what stays on a link, and multicast (RFC 4291).
_NOT_FORWARDED: dict[IpVersion, tuple[IPv4Network | IPv6Network, ...]] = {
    4: tuple(IPv4Network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3")),
    6: tuple(IPv6Network(net) for net in ("::/127", "fe80::/10", "ff00::/8")),
}
#: What tells addresses of a side apart: an IPv4 address, or the last bits of an IPv6 one.
_WORD = 1 << 32
#: Bytes of Ethernet's frame check sequence, which frame sizes of profiles count, as RFC 2544 does.
FCS_BYTES = 4
_VLAN_TAG_BYTES = 4


def _shown(text: str) -> str:
    """Return the text in quotes and on one line, cut where it is long."""
    return json.dumps(text[:60])


@lru_cache(maxsize=1000)  # every record has its profile, and a generator asks for every flow
def as_address(text: str) -> Address:
    """Return an address of either version. Raise `ValueError` where the text is not an address."""
    return ip_address(text)


def last_word(text: str) -> int:
    """Return the last 32 bits of an address, which count the addresses of a side from this one on."""
    return int(as_address(text)) % _WORD


@lru_cache(maxsize=1000)
def require(key: str, version: IpVersion, text: str) -> None:
    """Raise `ValueError` where a profile's address is not one of this IP version. `key`: its key."""
    try:
        _TYPES[version](text)
    except AddressValueError:
        expected = f"Expected one such as {_shown(_EXAMPLES[version])}."
        raise ValueError(f"{key}: {_shown(text)} is not an IPv{version} address.\n  {expected}") from None


@lru_cache(maxsize=1000)
def require_range(key: str, version: IpVersion, first: str, count: int) -> None:
    """Raise `ValueError` where `count` addresses from `first` cannot be those of a side. `key`: the side's key."""
    begin = int(as_address(first))
    if begin % _WORD + count > _WORD:
        end = "255.255.255.255" if version == 4 else "the last 32 bits of an address"
        raise ValueError(f"{key}: {count} addresses go beyond {end}.\n  Expected fewer.")
    for net in _NOT_FORWARDED[version]:
        if begin <= int(net.broadcast_address) and int(net.network_address) < begin + count:
            raise ValueError(
                f"{key}: {count} addresses from {first} reach into {net}, which are not forwarded.\n"
                f"  Expected addresses such as {_shown(_EXAMPLES[version])}."
            )


#: Frame sizes of IMIX with their shares: 7 small, 4 middle, 1 large (RFC 6985 calls the mix of the early
#: Internet so; the middle size is that of TRex's imix profile). Bytes with FCS, as RFC 2544 counts.
IMIX = ((64, 7), (594, 4), (1518, 1))

#: A trial waits for the lifetime of a connection before it counts.
_LONGEST_LIFETIME_S = 3600
_LONGEST_WAIT_MS = 10_000


#: Payload that tells the packets of a stream apart: tag, sequence number, time.
PROBE_BYTES = 16
#: Ethernet, IP and UDP headers of a packet of a stream, bytes.
PROBE_HEADERS: dict[IpVersion, int] = {4: 42, 6: 62}


def _check_name(name: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,63}", name):
        raise ValueError(f"{_shown(name)} is not a name.\n  Expected small letters, digits and dashes, at most 64.")
    return name


class Endpoints(BaseModel):
    """The addresses and ports of clients and servers, in both kinds of profile. Values are not converted (`yes` is not
    1)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    #: Name used in tests, SLA files and records.
    name: Annotated[str, AfterValidator(_check_name)]
    #: One sentence for the report.
    description: str = ""
    #: 4 or 6: the version of IP, and so of the addresses.
    ip_version: IpVersion = 4
    #: Client addresses, first one and how many. Of IPv6 they differ in the last 32 bits.
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
        """The number of distinct clients: addresses times ports."""
        return self.client_ips * (self.client_port_max - self.client_port_min + 1)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: Any) -> Any:
        """Refuse unknown keys, as `extra` does, and name the known ones."""
        unknown = [key for key in data if key not in cls.model_fields] if isinstance(data, dict) else []
        if unknown:
            known = ", ".join(sorted(cls.model_fields))
            raise ValueError(f"{str(unknown[0])[:60]}: unknown key.\n  Expected one of: {known}.")
        return data

    @model_validator(mode="after")
    def _addresses_fit_together(self) -> Self:
        if self.client_port_min > self.client_port_max:
            raise ValueError(
                f"client_port_min: {self.client_port_min} is above client_port_max {self.client_port_max}.\n"
                "  Expected a range such as 1024 to 65535."
            )
        require("client_ip", self.ip_version, self.client_ip)
        require("server_ip", self.ip_version, self.server_ip)
        require_range("client_ips", self.ip_version, self.client_ip, self.client_ips)
        require_range("server_ips", self.ip_version, self.server_ip, self.server_ips)
        if self._reach_servers(self.client_ips):
            raise ValueError(
                f"client_ip: {self.client_ips} clients from {self.client_ip} overlap with {self.server_ips} servers "
                f"from {self.server_ip}.\n  Expected ranges that have no address in common."
            )
        return self

    def _reach_servers(self, clients: int) -> bool:
        """Return whether so many addresses from the first client's on include some of the servers'."""
        client, server = int(as_address(self.client_ip)), int(as_address(self.server_ip))
        return client < server + self.server_ips and server < client + clients


class ConnectionProfile(Endpoints):
    """One connection: the client opens, sends requests and closes; the server replies. Loads are connections/s."""

    kind: Literal["connections"] = "connections"
    #: The profile that this one is a shortened form of: the same but for `messages`. Its floors follow from
    #: that one's by the packet rate. Empty when it stands for itself.
    derived_from: str = ""
    #: Share of UDP exchanges among the connections, in percent.
    udp_percent: float = Field(0, ge=0, le=100)
    #: What is measured of a connection: that it is opened (and served), or that it is removed from the DUT's table, or
    #: read out of it (dump). The latter is an operator's, and possible only where instructions are counted.
    counts: Literal["opening", "removal", "dump"] = "opening"
    #: Requests per connection; the server answers each. 0: TCP opens and closes without data.
    messages: int = Field(1, ge=0, le=65535)
    #: Bytes of a request (payload of one segment).
    request_bytes: int = Field(20, ge=1, le=1448)
    #: Bytes of a reply (payload of one segment).
    reply_bytes: int = Field(20, ge=1, le=1448)
    #: How long the server waits before it answers, in ms.
    server_wait_ms: float = Field(0, ge=0, le=_LONGEST_WAIT_MS)
    #: The server acknowledges a request on its own before it waits, as a TCP with a delayed-ACK timer
    #: shorter than `server_wait_ms` does: three packets per message instead of two.
    ack_before_reply: bool = False
    #: Share of short connections, in percent, and their requests; the others have `messages`.
    short_percent: float = Field(0, ge=0, lt=100)
    short_messages: int = Field(1, ge=1, le=65535)
    #: Connections that are open at once, whatever the rate: servers wait longer where fewer begin. None: they wait for
    #: `server_wait_ms`.
    open_at_once: int | None = Field(None, ge=1, le=16_000_000)
    #: Connections per second that belong to the profile, for tests of the table: at which it settles. None: the
    #: campaign's.
    new_per_s: float | None = Field(None, gt=0, le=10_000_000)
    #: UDP flows that the DUT knows besides: each was seen both ways before a trial, or a turn of a pair, begins.
    known: int = Field(0, ge=0, le=1_000_000)
    #: Who ends a TCP connection, and how: the `client` closes first, or the `server`; `reset`: the client sends a RST.
    ended_by: Literal["client", "server", "reset"] = "client"
    #: SYNs per second next to the load, whatever its rate: connections that stay half open. They come from as many
    #: client addresses again, behind those of the load; the server answers them, and gets no answer.
    half_open_per_s: float = Field(0, ge=0, le=10_000_000)
    #: Whether successive connections walk through the client ports or jump (RFC 4814 section 4).
    port_order: Literal["random", "sequential"] = "random"
    #: Requests that a client over UDP sends before the first reply, as a resolver of DNS asks for both addresses (A and
    #: AAAA) from one port; it sends the others one by one.
    at_once: int = Field(1, ge=1, le=16)
    #: Server port of TCP.
    tcp_port: int = Field(8080, ge=1, le=65535)

    @property
    def flows_known(self) -> "PacketProfile":
        """The packet profile that makes the `known` flows known to the DUT, when each comes through it once, each
        way."""
        return PacketProfile(
            kind="packets", name=self.name, frame_bytes=128, flows=self.known, directions="both",
            udp_port=self.udp_port % 65535 + 1,
            **self.model_dump(include=set(Endpoints.model_fields) - {"name", "description", "udp_port"}),
        )  # fmt: skip

    @property
    def lifetime_s(self) -> float:
        """Seconds that a connection of `messages` lives at least: the sum of the server's waits."""
        return self.messages * self.server_wait_ms / 1000

    @property
    def mean_messages(self) -> float:
        short = self.short_percent / 100
        return short * self.short_messages + (1 - short) * self.messages

    @property
    def mean_lifetime_s(self) -> float:
        """Mean of `lifetime_s` over short and other connections."""
        return self.mean_messages * self.server_wait_ms / 1000

    @property
    def packets_each(self) -> float:
        """Packets of one connection in both directions, in the mean over TCP and UDP.

        TCP with n messages: 2n+5 (as TRex sends), one more without data where the server closes first, and 2n+3 where
        the client resets; 3n+5 where the server acknowledges each request on its own; UDP: 2n. The published 1.2k CPS
        and 1.8M pps of 500 messages are 1500 packets per connection, so that server acknowledged on its own. Packets
        that a DUT lost are not included.
        """
        n = self.mean_messages
        ends = {"client": 5, "server": 5 if n else 6, "reset": 3}[self.ended_by]
        tcp = (3 if self.ack_before_reply else 2) * n + ends
        udp_share = self.udp_percent / 100
        return (1 - udp_share) * tcp + udp_share * 2 * n

    def at_rate(self, per_s: float) -> Self:
        """Return the profile at `per_s` connections per second: with `open_at_once`, servers wait so long that as many
        connections are open; ten seconds at most."""
        if self.open_at_once is None:
            return self
        wait_ms = min(_LONGEST_WAIT_MS, 1000 * self.open_at_once / per_s / self.mean_messages)
        return self.model_copy(update={"server_wait_ms": wait_ms})

    @model_validator(mode="after")
    def _connections_are_possible(self) -> Self:
        if self.short_percent and self.short_messages >= self.messages:
            raise ValueError(
                f"short_messages: {self.short_messages} are not fewer than messages: {self.messages}.\n"
                "  Expected fewer, or short_percent: 0."
            )
        if self.lifetime_s > _LONGEST_LIFETIME_S:
            raise ValueError(
                f"server_wait_ms: {self.messages} messages with a wait of {self.server_wait_ms:g} ms each take "
                f"{self.lifetime_s:g} s.\n  Expected connections of at most {_LONGEST_LIFETIME_S} s: a trial waits as "
                "long before it counts."
            )
        if self.half_open_per_s:
            twice = 2 * self.client_ips
            require_range("half_open_per_s", self.ip_version, self.client_ip, twice)
            if self._reach_servers(twice):
                raise ValueError(
                    f"half_open_per_s: takes the {self.client_ips} addresses behind the clients', which reach into "
                    "those of the servers.\n  Expected ranges farther apart."
                )
        if self.ended_by != "client" and self.udp_percent == 100:
            raise ValueError(
                f"ended_by: {self.ended_by} is about TCP, and udp_percent is 100.\n  Expected connections over TCP."
            )
        if self.at_once > 1 and (self.udp_percent < 100 or self.server_wait_ms or self.at_once > self.messages):
            raise ValueError(
                f"at_once: {self.at_once} requests at once are of UDP, to servers that do not wait.\n"
                "  Expected udp_percent: 100, server_wait_ms: 0, and as many messages or more."
            )
        if self.known > self.client_endpoints:
            raise ValueError(
                f"known: {self.known} are more than client_ips and client ports give ({self.client_endpoints}).\n"
                "  Expected fewer, or more client addresses."
            )
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
    #: `one`: clients to servers; `both`: half of the load each way, and servers answer whom they have seen; `each`:
    #: half each way, and servers open as many flows of their own, to the clients' `udp_port`.
    directions: Literal["one", "both", "each"] = "one"
    #: Fragments of IPv4 that a packet of the load is sent in, each a frame of `frame_bytes`; 1: it is not fragmented.
    fragments: int = Field(1, ge=1, le=4)
    #: VLAN tag (IEEE 802.1Q) that the frames carry; 0: none.
    vlan: int = Field(0, ge=0, le=4094)

    @property
    def ways(self) -> int:
        return 1 if self.directions == "one" else 2

    @property
    def addresses_known(self) -> "PacketProfile":
        """The profile that shows a bridge both sides' Ethernet addresses; else it would flood one-way traffic."""
        return self.model_copy(update={"directions": "both", "flows": 1})

    @property
    def largest_frame_bytes(self) -> int:
        return max(size for size, _ in IMIX) if self.frame_bytes == "imix" else self.frame_bytes

    @property
    def _may_be_fragment(self) -> bool:
        """True where a multiple of 8 bytes follows the headers of Ethernet and IPv4 (RFC 791, fragment offset)."""
        return self.frame_bytes != "imix" and (self.frame_bytes - 34 - FCS_BYTES) % 8 == 0

    @model_validator(mode="after")
    def _frames_and_flows_are_possible(self) -> Self:
        least = PROBE_HEADERS[self.ip_version] + PROBE_BYTES + FCS_BYTES
        if self.frame_bytes == "imix" and min(size for size, _ in IMIX) < least:
            raise ValueError(
                f"frame_bytes: imix has frames that are too small for IPv6.\n  Expected {least} bytes or more: "
                "headers, and what tells packets apart."
            )
        if self.frame_bytes != "imix" and self.frame_bytes < least:
            raise ValueError(
                f"frame_bytes: {self.frame_bytes} bytes do not hold a packet of IPv{self.ip_version} that is counted.\n"
                f"  Expected {least} or more: headers, and what tells packets apart."
            )
        if self.fragments > 1 and (self.ip_version == 6 or self.vlan or not self._may_be_fragment):
            raise ValueError(
                f"fragments: {self.fragments} frames cannot be those of a datagram.\n  Expected IPv4 without a VLAN, "
                "and frame_bytes of 38 and a multiple of 8, such as 1518."
            )
        if self.flows > self.client_endpoints:
            raise ValueError(
                f"flows: {self.flows} are more than client_ips and client ports give ({self.client_endpoints}).\n"
                "  Expected fewer flows, or more client addresses."
            )
        return self


Profile = Annotated[ConnectionProfile | PacketProfile, Field(discriminator="kind")]

#: Bytes of the headers of a connection's frames, at most, by version of IP.
_HEADERS: dict[IpVersion, int] = {4: 70, 6: 90}


def largest_frame(profile: ConnectionProfile | PacketProfile) -> int:
    """Return the bytes of the largest frame that the profile sends, without FCS, its VLAN tag included."""
    if isinstance(profile, PacketProfile):
        return profile.largest_frame_bytes - FCS_BYTES + (_VLAN_TAG_BYTES if profile.vlan else 0)
    return _HEADERS[profile.ip_version] + max(profile.request_bytes, profile.reply_bytes)

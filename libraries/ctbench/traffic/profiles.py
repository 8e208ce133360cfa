"""Connection profiles: what one connection does. Read from variables/profiles/*.yaml."""

from ipaddress import AddressValueError, IPv4Address
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ctbench.config import Name


class ConnectionProfile(BaseModel):
    """What one connection does. The client opens, asks and closes; the server answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    #: Name used in tests, SLA files and records.
    name: Name
    #: One sentence for the report.
    description: str = ""
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
    #: Client addresses, first one and how many.
    client_ip: str = "16.0.0.1"
    client_ips: int = Field(254, ge=1, le=65536)
    #: Server addresses, first one and how many.
    server_ip: str = "48.0.0.1"
    server_ips: int = Field(254, ge=1, le=65536)
    #: Client ports: the range, and whether successive connections walk through it or jump (RFC 4814 section 4).
    client_port_min: int = Field(1024, ge=1, le=65535)
    client_port_max: int = Field(65535, ge=1, le=65535)
    port_order: Literal["random", "sequential"] = "random"
    #: Server ports.
    tcp_port: int = Field(8080, ge=1, le=65535)
    udp_port: int = Field(5353, ge=1, le=65535)

    @property
    def lifetime_s(self) -> float:
        """Seconds that the server's waits give a connection at least."""
        return self.messages * self.server_wait_ms / 1000

    @field_validator("client_ip", "server_ip")
    @classmethod
    def _is_ipv4(cls, text: str) -> str:
        try:
            IPv4Address(text)
        except AddressValueError:
            raise ValueError(f'"{text}" is not an IPv4 address.\n  Expected one such as "16.0.0.1".') from None
        return text

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.client_port_min > self.client_port_max:
            raise ValueError(
                f"client_port_min: {self.client_port_min} is above client_port_max {self.client_port_max}.\n"
                "  Expected a range such as 1024 to 65535."
            )
        if self.messages == 0 and self.udp_percent > 0:
            raise ValueError(
                f"messages: 0 does not go with udp_percent: {self.udp_percent:g}, UDP has no connection without data.\n"
                "  Expected at least one message, or udp_percent: 0."
            )
        client, clients = int(IPv4Address(self.client_ip)), self.client_ips
        server, servers = int(IPv4Address(self.server_ip)), self.server_ips
        for key, first, count in (("client_ips", client, clients), ("server_ips", server, servers)):
            if first + count > 1 << 32:
                raise ValueError(f"{key}: {count} addresses go beyond 255.255.255.255.\n  Expected fewer.")
        if client < server + servers and server < client + clients:
            raise ValueError(
                f"client_ip: {clients} clients from {self.client_ip} overlap with {servers} servers from "
                f"{self.server_ip}.\n  Expected ranges that have no address in common."
            )
        return self

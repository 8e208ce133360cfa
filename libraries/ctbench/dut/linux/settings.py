"""How the kernel's connection table is set up."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ctbench.dut.base import CLOSED_S
from ctbench.dut.topology import Topology

#: Where the settings are; nf_conntrack-sysctl in the kernel's documentation.
NETFILTER = "net/netfilter"
#: Timeouts of a connection whose segments were lost, which the kernel's defaults keep for minutes.
_OF_LOST_SEGMENTS = ("tcp_timeout_max_retrans", "tcp_timeout_unacknowledged")


class LinuxConntrackSettings(BaseModel):
    """The connection table. Closed connections go after 1 s, as in the OVS measurements published in 2022."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Entries at most, and hash buckets. A network namespace has no limit of its own: the host's holds there, and the
    #: snapshot says what was asked and what was found.
    max_connections: int = Field(1_048_576, ge=1)
    buckets: int = Field(262_144, ge=1)
    #: Timeouts in seconds by name, `nf_conntrack_<name>`. Those of UDP are long: a stream through a million flows
    #: comes back to each only after seconds, and is not to find that it expired.
    timeouts: dict[str, int] = {
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
    }
    #: Whether a TCP connection may be picked up in its middle. Off: an entry begins with a SYN, so that what is left
    #: of an earlier trial's traffic opens nothing.
    tcp_loose: bool = False
    #: Whether segments outside of the window pass. Off, as is the kernel's default: they are invalid.
    tcp_be_liberal: bool = False

    def of(self, topology: Topology) -> Self:
        """These, with what a topology asks of the table: all of its timeouts, those for lost segments among them."""
        own: dict[str, object] = {}
        if topology.timeout_s is not None:
            own["timeouts"] = dict.fromkeys((*self.timeouts, *_OF_LOST_SEGMENTS), topology.timeout_s)
        if topology.max_connections is not None:
            own["max_connections"] = topology.max_connections
        return self.model_copy(update=own)

    @property
    def writable(self) -> dict[str, str]:
        """Settings that every network namespace has for itself: path below /proc/sys -> value."""
        values = {**self.timeouts, "tcp_loose": int(self.tcp_loose), "tcp_be_liberal": int(self.tcp_be_liberal)}
        return {f"{NETFILTER}/nf_conntrack_{name}": str(value) for name, value in values.items()}

    @property
    def shared(self) -> dict[str, str]:
        """Settings that are the host's: path below /proc/sys -> value."""
        values = {"max": self.max_connections, "buckets": self.buckets}
        return {f"{NETFILTER}/nf_conntrack_{name}": str(value) for name, value in values.items()}

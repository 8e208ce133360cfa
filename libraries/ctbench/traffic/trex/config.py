"""The YAML model of TRex."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.identifiers import MOST_CPU, HostKey, Ipv4, Mac, PathText
from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.config import LOCAL, SANDBOX

#: Threads of TRex besides those of the data plane: the master's and the latency thread.
OTHER_THREADS = 2


class TrexPort(YamlModel):
    """One port of TRex, as trex_cfg.yaml describes it. Empty keys: found out, or not needed."""

    #: What TRex calls it: a PCI address, the name of a Linux interface, or a DPDK device such as `--vdev=…`.
    interface: Annotated[PathText, Field(max_length=256)] = ""
    #: MAC address that the port sends from; empty: the card's own.
    mac: Mac = ""
    #: Where its frames go: the MAC address of the DUT's port, or of the other TRex port where the DUT bridges.
    #: Empty: taken from the DUT, where this testbed sets it up.
    dest_mac: Mac = ""
    #: Instead of `dest_mac`: the port's own address, and the gateway that it resolves with ARP.
    ip: Ipv4 = ""
    gateway: Ipv4 = ""


class TrexGeneratorConfig(YamlModel):
    """TRex: ASTF for connections, STL for packets. Implements `ctbench.traffic.kind.SourceSettings`."""

    type: Literal["trex"]
    #: Where the TRex server runs: an entry of `hosts`, `local`, or `sandbox` (next to a DUT that is in one, over veth).
    host: HostKey
    #: `running`: one that somebody started; `start`: started here, over SSH where `host` is another machine, once for
    #: each mode; `daemon`: through trex_daemon_server, which has to run on `host`.
    server: Literal["running", "start", "daemon"]
    #: Folder of TRex on `host` (where t-rex-64 is), to start it there. The client is taken from here too. Empty: what
    #: the environment variable TREX_HOME says.
    trex_home: PathText = ""
    #: The two ports: towards the clients, towards the servers.
    client: TrexPort = TrexPort()
    server_port: TrexPort = TrexPort()
    #: TRex' numbers of these two ports, client side first.
    ports: list[Annotated[int, Field(ge=0, le=31)]] = Field(default_factory=lambda: [0, 1], min_length=2, max_length=2)
    #: TRex' `-c`: data plane threads per pair of ports.
    cores: int = Field(1, ge=1, le=64)
    #: CPUs of the TRex host: master thread, latency thread, then data plane threads. Empty: TRex chooses.
    cpus: list[Annotated[int, Field(ge=0, le=MOST_CPU)]] = Field(default_factory=list)
    #: NUMA node of the cards.
    socket: int = Field(0, ge=0, le=15)
    #: Descriptors of the cards' rings; None: TRex' default.
    rx_descriptors: int | None = Field(None, ge=64, le=16384)
    tx_descriptors: int | None = Field(None, ge=64, le=16384)
    #: TRex' pools of memory buffers and flows, `memory` of trex_cfg.yaml, besides what the profile needs.
    memory: dict[str, Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default_factory=dict)
    #: true: cards without hardware filters (`--software`): virtual ones, af_packet, AF_XDP.
    software: bool = False
    #: true: a machine with few CPUs (`low_end` of trex_cfg.yaml).
    low_end: bool = False
    #: Load that is never exceeded, connections and packets per second, where TRex is slower than the campaigns' ranges
    #: reach: a search does not waste trials there. None: no limit.
    max_cps: float | None = Field(None, ge=1, le=1e9)
    max_pps: float | None = Field(None, ge=1, le=1e9)
    #: Connections per second at which it opens those that it holds, at most: TRex does not wait for a slow DUT. None:
    #: the campaign's `table.opened_per_s`.
    max_held_cps: float | None = Field(None, ge=1, le=1e9)
    #: Connections that it holds, at most: it looks at each open one ten times a second. None: as many as memory has
    #: room for.
    max_held: int | None = Field(None, ge=1, le=10**9)
    #: Seconds that TRex gets to start.
    start_timeout_s: float = Field(60, ge=1, le=600)
    #: TCP ports of the server, and of its daemon.
    sync_port: int = Field(4501, ge=1, le=65535)
    async_port: int = Field(4500, ge=1, le=65535)
    daemon_port: int = Field(8090, ge=1, le=65535)

    @property
    def cpus_needed(self) -> int:
        """See `SourceSettings.cpus_needed`."""
        return 1 if self.low_end else len(self.cpus) or self.cores + OTHER_THREADS

    @property
    def carries(self) -> bool:
        """See `SourceSettings.carries`."""
        return False

    @property
    def most(self) -> dict[str, float]:
        """See `SourceSettings.most`."""
        found = {
            "connections": self.max_cps,
            "packets": self.max_pps,
            "opened": self.max_held_cps,
            "held": self.max_held,
        }
        return {kind: most for kind, most in found.items() if most is not None}

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        both = bool(self.client.interface) + bool(self.server_port.interface)
        if self.server != "running" and self.host != SANDBOX and both < 2:
            raise ValueError(
                "client.interface and server_port.interface are needed to start TRex.\n"
                "  Expected two PCI addresses, or two names of interfaces."
            )
        if self.ports[0] == self.ports[1]:
            raise ValueError(f"ports: {self.ports} are one port.\n  Expected two numbers, such as [0, 1].")
        if self.host == SANDBOX and self.server != "start":
            raise ValueError(f"server: {self.server} does not go with host: sandbox.\n  Expected start.")
        if self.host == LOCAL and self.server == "start" and self.client.interface == self.server_port.interface:
            raise ValueError("client.interface and server_port.interface are the same.\n  Expected two.")
        return self

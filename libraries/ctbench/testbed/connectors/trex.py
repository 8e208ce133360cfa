"""The connector of TRex: it completes TRex' configuration with the DUT's ports, and makes TRex' server and client."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.network import own_macs
from ctbench.dut.base import Dut, Ports
from ctbench.dut.cable import VethCable
from ctbench.dut.veth import within_generator
from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Placement
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.connector import Connector
from ctbench.traffic.generator import Side
from ctbench.traffic.trex.client import TrexWorker, check_python, find_client
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.server import DaemonServer, StartedServer, TrexServer
from ctbench.traffic.trex.source import TrexGeneratorConfig, TrexPair, TrexPort

LOOPBACK = "127.0.0.1"
#: Rings of TRex' packet sockets. By itself it makes them of 256 places of 9 kB, which are full when it pauses for a
#: few milliseconds: frames that came back are then its own loss. These take 8 MiB of locked memory for two ports, which
#: is what everybody may lock.
PLACE_BYTES, PLACES, PAGE_BYTES = 2048, 1024, 4096
#: Bytes of a place that are not the frame's: headers of packet(7) and their alignment.
PLACE_OVERHEAD = 128


class TrexConnector(Connector):
    """The connector of TRex. In a sandbox it starts TRex next to each DUT, on the veth ends that the DUT made. In a lab
    TRex has cards of its own, and keeps running."""

    offers = TrexTrafficGenerator.offers

    def __init__(
        self, testbed: TestbedConfig, hosts: HostPool, placement: Callable[[], Placement], log_folder: Path
    ) -> None:
        super().__init__(testbed, hosts, placement, log_folder)
        self._config = cast("TrexGeneratorConfig", testbed.generator)
        self._generator: TrexTrafficGenerator | None = None
        self._ports: list[tuple[TrexPort, TrexPort]] = []

    @property
    def generator(self) -> TrexTrafficGenerator:
        if self._generator is None:
            raise TestbedError("TRex is not connected to a DUT.")
        return self._generator

    def cable(self) -> tuple[Dut, Host]:
        """Return a veth pair in a sandbox. Raise `MissingResource` in a lab."""
        if self._config.host != SANDBOX:
            raise MissingResource(
                f"The ports of TRex on {self._config.host} are cabled to the DUT, and not to each other: what the "
                "generator does without a DUT cannot be measured there."
            )
        host = self._hosts.sandbox()
        return VethCable(host), host

    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int, side: Side = "tested") -> None:
        """Prepare TRex. The first trial starts the server, in the mode that its profile needs."""
        if self._config.host == SANDBOX:
            config = self._on_veth(ports, placement, frame_bytes)
            self._wire(config, host, LOOPBACK, within_generator())
            return
        pairs = []
        for number, (client, server) in enumerate(self._config.pairs):
            client_to, server_to = ports.macs[number] if ports.macs else (server.mac, client.mac)
            pairs.append((_complete(client, client_to), _complete(server, server_to)))
        if self._generator and self._ports == pairs:
            return
        self._ports = pairs
        config = _with_pairs(self._config, pairs)
        known = self._testbed.hosts
        address = known[config.host].address if config.host in known else LOOPBACK
        self._wire(config, self._hosts.host(config.host), address)

    def disconnect(self) -> None:
        """End TRex in a sandbox; keep it running in a lab."""
        if self._config.host == SANDBOX:
            self.close()

    def facts(self) -> dict[str, Any]:
        return super().facts() if self._generator else {"type": "trex", "wiring": "not connected"}

    def close(self) -> None:
        generator, self._generator = self._generator, None
        if generator:
            generator.close()

    def _on_veth(self, ports: Ports, placement: Placement, frame_bytes: int) -> TrexGeneratorConfig:
        if ports.kind != "interface":
            raise MissingResource(f"TRex in the sandbox reaches ports of kind veth; the DUT's are {ports.kind}.")
        pairs = []
        for pair, names in enumerate(ports.links):
            macs = own_macs(pair)
            to = ports.macs[pair] if ports.macs else macs[::-1]
            client, server = (
                TrexPort(interface=_packet_socket(2 * pair + side, name, frame_bytes), mac=mac, dest_mac=dest_mac)
                for side, (name, mac, dest_mac) in enumerate(zip(names, macs, to, strict=True))
            )
            pairs.append((client, server))
        cpus = self._config.cpus or list(placement.generator)
        return _with_pairs(self._config, pairs).model_copy(update={"cpus": cpus})

    def _wire(self, config: TrexGeneratorConfig, home: Host, address: str, prefix: Sequence[str] = ()) -> None:
        """Make server, client and generator. `home`: the host that has TRex; `address`: the server's, as its client
        reaches it. The client runs on this machine; with a `prefix`, it runs in the namespace of `home` that this
        command enters."""
        self.close()
        client = find_client(config.trex_home, home)
        check_python(client)
        log = self._log_folder / "trex-client.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        worker = TrexWorker(home if prefix else self._hosts.host(LOCAL), client, log, prefix)
        self._generator = TrexTrafficGenerator(self._server(config, home, address, prefix), worker, config.ports)

    def _server(self, config: TrexGeneratorConfig, home: Host, address: str, prefix: Sequence[str]) -> TrexServer:
        if config.server == "running":
            return TrexServer(home, config, address)
        if config.server == "daemon":
            return DaemonServer(home, config, address, self._log_folder)
        return StartedServer(home, config, address, self._log_folder, prefix)


def _with_pairs(config: TrexGeneratorConfig, pairs: Sequence[tuple[TrexPort, TrexPort]]) -> TrexGeneratorConfig:
    """Return the settings with these complete port pairs."""
    (client, server), *more = pairs
    further = [TrexPair(client=client, server_port=server) for client, server in more]
    numbers = config.ports if len(config.ports) == 2 * len(pairs) else list(range(2 * len(pairs)))
    return config.model_copy(update={"client": client, "server_port": server, "more_pairs": further, "ports": numbers})


def _packet_socket(number: int, interface: str, frame_bytes: int) -> str:
    """Return TRex' name of a veth end. Jumbo frames need the larger ring places that TRex makes by default."""
    if frame_bytes > PLACE_BYTES - PLACE_OVERHEAD:
        return interface
    ring = f"blocksz={PAGE_BYTES},framesz={PLACE_BYTES},framecnt={PLACES}"
    return f"--vdev=net_af_packet{number},iface={interface},{ring}"


def _complete(port: TrexPort, mac: str) -> TrexPort:
    """Return a port of the lab, with `mac` as its destination where the file gives neither a destination nor a
    gateway."""
    return port if port.dest_mac or port.gateway else port.model_copy(update={"dest_mac": mac})

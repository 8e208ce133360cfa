"""The generator's ends of a DUT's two links, worked by hand: through packet sockets, or memif."""

import time
from pathlib import Path

from packets import Endpoint, Packet, checksums_are_right, parse, udp
from wire import put, take

from ctbench.dut.base import Ports
from ctgen.memif import RingPlan, connect

ETH_P_ALL = 3
#: What a packet socket says of a frame that this machine sent itself; packet(7).
PACKET_OUTGOING = 4
IPV4 = b"\x08\0"
#: Seconds within which the DUT passes a packet on; it only matters when a test fails.
PATIENCE_S = 10.0


class MemifEnd:
    """One of the two ends."""

    def __init__(self, ports: Ports, socket: str) -> None:
        self._port = connect(Path(socket), RingPlan(ports.rx_queues, ports.tx_queues, ports.ring_size, ports.ring_size))

    def send(self, frame: bytes) -> None:
        put(self._port.tx[0], frame)

    def receive(self) -> list[bytes]:
        """Frames that have arrived."""
        return [frame for ring in self._port.rx for frame in take(ring)]

    def packets_until(self, payload: bytes) -> list[Packet]:
        """Packets that arrive, up to the one with this payload; their checksums are right."""
        arrived: list[Packet] = []
        deadline = time.monotonic() + PATIENCE_S
        while not any(packet.payload == payload for packet in arrived):
            assert time.monotonic() < deadline, f"{payload!r} has not arrived, only {arrived}"
            for frame in self.receive():
                assert checksums_are_right(frame)
                arrived.append(parse(frame))
        return arrived

    def close(self) -> None:
        self._port.close()


class End(MemifEnd):
    """One of the two ends of a veth pair. Frames get the addresses that a host on this link would use."""

    def __init__(self, ports: Ports, interface: str, own_mac: str, next_mac: str) -> None:
        self._socket = ports.open_socket("packet")
        self._socket.bind((interface, ETH_P_ALL))
        self._socket.settimeout(0.05)
        self._macs = bytes.fromhex((next_mac + own_mac).replace(":", "")) if next_mac else b""

    def send(self, frame: bytes) -> None:
        """Send a frame; to a router it goes under the addresses of the link."""
        self._socket.send(self._macs + frame[len(self._macs) :])

    def receive(self) -> list[bytes]:
        """IPv4 frames, tagged or not, that have arrived; waits a moment for the first."""
        frames: list[bytes] = []
        try:
            while True:
                frame, address = self._socket.recvfrom(65536)
                if address[2] != PACKET_OUTGOING and IPV4 in (frame[12:14], frame[16:18]):
                    frames.append(frame)
                if frames:
                    self._socket.settimeout(0.001)
        except TimeoutError:
            return frames
        finally:
            self._socket.settimeout(0.05)

    def close(self) -> None:
        self._socket.close()


class Wire:
    """Both ends, and a client and a server on them."""

    def __init__(self, ports: Ports, client: Endpoint, server: Endpoint) -> None:
        next_macs = ports.macs[0] if ports.macs else ("", "")
        self.client, self.server = (
            MemifEnd(ports, port) if ports.kind == "memif" else End(ports, port, own_mac, next_mac)
            for port, own_mac, next_mac in (
                (ports.links[0][0], "02:00:00:00:00:01", next_macs[0]),
                (ports.links[0][1], "02:00:00:00:00:02", next_macs[1]),
            )
        )
        self._client, self._server = client, server
        #: The two as the server's side sees them, once there is a connection.
        self.client_seen, self.server_seen = client, server

    def open_connection(self) -> None:
        """The client asks, the server is asked."""
        self.client.send(udp(self._client, self._server, b"question"))
        asked = self.server.packets_until(b"question")[-1]
        self.client_seen = (asked.source, asked.source_port)
        self.server_seen = (asked.destination, asked.destination_port)

    def let_server_send(self, *frames: bytes) -> list[Packet]:
        """What arrives at the client of frames that the server sends.

        Two answers of a known connection follow them. When the second is there, what came before it has arrived or
        never will: OVS takes a queue's packets in their order, though it may pass those of one batch on in another."""
        for frame in frames:
            self.server.send(frame)
        arrived = []
        for answer in (b"answer 1", b"answer 2"):
            self.server.send(udp(self.server_seen, self.client_seen, answer))
            arrived += self.client.packets_until(answer)
        return [packet for packet in arrived if not packet.payload.startswith(b"answer")]

    def question(self, client: Endpoint) -> Packet:
        """What arrives at the server of a question of a client's."""
        payload = f"question of {client}".encode()
        self.client.send(udp(client, self._server, payload))
        return self.server.packets_until(payload)[-1]

    def answer_to(self, asked: Packet) -> Packet:
        """What arrives at the client of the server's answer."""
        payload = f"answer to {asked.source}:{asked.source_port}".encode()
        source, target = (asked.destination, asked.destination_port), (asked.source, asked.source_port)
        self.server.send(udp(source, target, payload))
        return self.client.packets_until(payload)[-1]

    def close(self) -> None:
        self.client.close()
        self.server.close()

"""What joins the generator to a DUT: two ports, their Ethernet addresses, and link threads where the DUT needs them."""

import ipaddress
from dataclasses import dataclass

import numpy as np

from ctbench.base.network import CLIENT_MAC, SERVER_MAC
from ctbench.traffic.generator import LinkWork
from ctbench.traffic.loads import Load, Saturation
from ctbench.traffic.profiles import Profile
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.frames import HEADER_BYTES, header_of
from ctbench.traffic.software.packet_port import LinkThreads
from ctbench.traffic.software.ring import MASK, Counts, Port


@dataclass(frozen=True)
class Wiring:
    """Both ports, client end first."""

    client: Port
    server: Port
    #: Where each end's frames go; empty: to the other end.
    client_gateway_mac: str = ""
    server_gateway_mac: str = ""
    #: Addresses for which the ports answer ARP besides those of the profile.
    client_next_hop: str = ""
    server_next_hop: str = ""
    link: LinkThreads | None = None

    def bounded(self, load: Load) -> int:
        """What a closed loop may have under way, 0 for another load: as many as asked for, and never more than half of
        what a port's rings towards the DUT hold, so that none of them overflows."""
        if not isinstance(load, Saturation):
            return 0
        return max(1, min(load.under_way, self.ring_frames // 2))

    def join(self, p: Counts, profile: Profile) -> object:
        """Enter the wiring into a kernel function's parameters. Returns what they point to, for the caller to keep:
        Ethernet destination and source of the client's frames, and `HEADER_BYTES` on those of the server's; with a
        profile of IPv6 whole templates."""
        client = _mac(self.client_gateway_mac or SERVER_MAC) + _mac(CLIENT_MAC)
        server = _mac(self.server_gateway_mac or CLIENT_MAC) + _mac(SERVER_MAC)
        if profile.ip_version == 6:
            client = header_of(client, profile.client_ip, profile.server_ip, self.client_next_hop)
            server = header_of(server, profile.server_ip, profile.client_ip, self.server_next_hop)
        headers = np.frombuffer(client.ljust(HEADER_BYTES) + server.ljust(HEADER_BYTES), np.uint8)
        ends = ((self.client, self.client_next_hop), (self.server, self.server_next_hop))
        for place, (port, next_hop) in enumerate(ends):
            hop = ipaddress.ip_address(next_hop or "0.0.0.0")
            p[lay.TX + place], p[lay.RX + place] = port.tx.ctypes.data, port.rx.ctypes.data
            p[lay.RX_RINGS + place], p[lay.MACS + place] = len(port.rx), headers.ctypes.data + place * HEADER_BYTES
            p[lay.NEXT_HOP + place] = int(hop) if hop.version == 4 else 0
        p[lay.QUEUES] = len(self.client.tx)
        if self.link:
            p[lay.LINK], p[lay.LINK_THREADS] = self.link.counters.ctypes.data, len(self.link.counters)
        return headers

    @property
    def ring_frames(self) -> int:
        """Frames that the rings towards the DUT hold at one port."""
        return min(int((port.tx[:, MASK] + 1).sum()) for port in (self.client, self.server))

    def start(self) -> None:
        """Begin to carry frames; what was dropped before does not count."""
        self.client.dropped()
        self.server.dropped()
        if self.link:
            self.link.start()

    def stop(self) -> None:
        if self.link:
            self.link.stop()

    def check_ports(self) -> None:
        self.client.check_link()
        self.server.check_link()

    def check(self) -> None:
        """Raise `GeneratorError` when a link is gone, or the link threads carried nothing."""
        self.check_ports()
        if self.link:
            self.link.check()

    def work(self, busy_cycles: int, frames: int, refused: int, seconds: float, hertz: float) -> LinkWork | None:
        """What the link threads did in `seconds`; None without them."""
        if self.link is None:
            return None
        busy_s = busy_cycles / hertz
        return LinkWork(
            busy_cpus=busy_s / seconds,
            packets=frames,
            refused=refused,
            ns_per_packet=busy_s * 1e9 / frames if frames else 0.0,
            waiting=max(self.link.waiting),
        )

    def close(self) -> None:
        """Let go of both ports. May be called twice."""
        self.stop()
        self.client.close()
        self.server.close()


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))

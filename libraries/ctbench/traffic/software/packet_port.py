"""A port on a Linux interface: rings towards link threads, and the mapped rings of packet sockets to receive from.

packet(7) and Documentation/networking/packet_mmap.rst. Frames are received in place (PACKET_RX_RING, TPACKET_V2:
a frame is there the moment the kernel has written it, while blocks of TPACKET_V3 wait for a timer). They are sent
through AF_XDP, or with sendmmsg(2) where that cannot be: frames of more than a page, several queues on one transmit
queue, an old kernel. PACKET_TX_RING was measured and is slower than both on a veth pair (docs/evidence).
"""

import fcntl
import mmap
import os
import socket
import struct
from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.cable import cable
from ctbench.traffic.software.link import Sender
from ctbench.traffic.software.memif import RingPlan, Rings, check_processor
from ctbench.traffic.software.xdp import CHUNK_BYTES, XdpSender

# linux/if_packet.h and linux/if_ether.h: what Python's socket module has no names for.
_SOL_PACKET: Final = 263
_RX_RING, _STATISTICS, _VERSION, _FANOUT, _QDISC_BYPASS, _IGNORE_OUTGOING = 5, 6, 10, 18, 20, 23
_TPACKET_V2: Final = 1
_FANOUT_CPU: Final = 2
_ETH_P_ALL: Final = 3
#: Bytes of a block of the receive ring: the kernel wants whole pages, and frames that fill them.
_BLOCK_BYTES: Final = 1 << 20
#: Header, address and alignment before a frame in the receive ring.
_HEADROOM: Final = 96
_LEAST_PACKET_BYTES: Final = 256
_SIOCGIFINDEX: Final = 0x8933

Row = np.ndarray[tuple[int], np.dtype[np.int64]]

#: Opens a socket, not bound, in the network namespace of the interface: a raw packet socket without a protocol, or one
#: of AF_XDP. OSError or `TestbedError` where there is none.
OpenSocket = Callable[[Literal["packet", "xdp"]], socket.socket]


class PacketPort:
    """The generator's port on one interface: rings to put frames on (`tx`) and to take frames from (`rx`)."""

    def __init__(
        self, interface: str, open_socket: OpenSocket, plan: RingPlan, *, threads: int, fanout_group: int
    ) -> None:
        """`plan.c2s` rings towards the DUT, handed over by `threads` link threads with a socket each; `plan.s2c` rings
        from it, frames told apart by the CPU that delivers them. Raises `GeneratorError` when the interface cannot
        be used."""
        check_processor()
        self.interface = interface
        #: How frames are handed to the interface, and why not otherwise.
        self.sends_with = ""
        self._sockets: list[socket.socket] = []
        self._maps: list[mmap.mmap] = []
        self._near, self._far = cable(RingPlan(plan.c2s, 0, plan.c2s_size, plan.c2s_size, plan.buffer_bytes))
        self.tx: Rings = self._near.tx
        self.rx: Rings = r.new_rings(plan.s2c)
        self._receivers: list[socket.socket] = []
        try:
            self._senders = self._open_senders(open_socket, threads, plan.buffer_bytes)
            for row in self.rx:
                self._receivers.append(self._open_receiver(open_socket, plan, row))
                if plan.s2c > 1:
                    self._receivers[-1].setsockopt(_SOL_PACKET, _FANOUT, fanout_group | _FANOUT_CPU << 16)
        except OSError as error:
            self.close()
            raise GeneratorError(f"The generator cannot use the interface {interface}: {error}.") from error

    @property
    def link_rings(self) -> tuple[Rings, list[Sender]]:
        """What link threads take frames from, and the socket that the frames of each ring go to."""
        return self._far.rx, [self._senders[queue % len(self._senders)] for queue in range(len(self._far.rx))]

    def dropped(self) -> int:
        """Frames that found the receive rings full since the last call: the generator's fault, not the DUT's."""
        drops = 0
        for receiver in self._receivers:
            _, count = struct.unpack("II", receiver.getsockopt(_SOL_PACKET, _STATISTICS, 8))
            drops += count
        return drops

    def check_link(self) -> None:
        """Raise `GeneratorError` when the interface is gone or down."""
        for each in self._receivers:
            number = each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise GeneratorError(f"The link to the DUT, {self.interface}, broke: {os.strerror(number)}.")

    def close(self) -> None:
        """Let go of the interface. May be called twice."""
        self.rx = r.new_rings(0)
        self._receivers.clear()
        while self._maps:
            self._maps.pop().close()
        while self._sockets:
            self._sockets.pop().close()
        self._near.close()
        self._far.close()

    def _open_senders(self, open_socket: OpenSocket, threads: int, buffer_bytes: int) -> list[Sender]:
        if buffer_bytes > CHUNK_BYTES:
            self.sends_with = "packet sockets (frames too large for AF_XDP)"
            return [self._packet_sender(open_socket) for _ in range(threads)]
        try:
            senders: list[Sender] = [self._xdp_sender(open_socket, queue) for queue in range(threads)]
        except (OSError, TestbedError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.sends_with = f"packet sockets (AF_XDP: {reason})"
            return [self._packet_sender(open_socket) for _ in range(threads)]
        self.sends_with = "AF_XDP"
        return senders

    def _xdp_sender(self, open_socket: OpenSocket, queue: int) -> XdpSender:
        # An interface is known by its number in the namespace of the socket that asks.
        with open_socket("packet") as asking:
            request = struct.pack("16s16x", self.interface.encode())
            (index,) = struct.unpack("16xi12x", fcntl.ioctl(asking, _SIOCGIFINDEX, request))
        opened = open_socket("xdp")
        self._sockets.append(opened)
        return XdpSender(opened, index, queue)

    def _packet_sender(self, open_socket: OpenSocket) -> socket.socket:
        sender = open_socket("packet")
        self._sockets.append(sender)
        sender.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
        sender.bind((self.interface, 0))
        return sender

    def _open_receiver(self, open_socket: OpenSocket, plan: RingPlan, row: Row) -> socket.socket:
        packet_bytes = max(_LEAST_PACKET_BYTES, 1 << (plan.buffer_bytes + _HEADROOM - 1).bit_length())
        blocks = max(1, plan.s2c_size * packet_bytes // _BLOCK_BYTES)
        packets = blocks * _BLOCK_BYTES // packet_bytes
        receiver = open_socket("packet")
        self._sockets.append(receiver)
        receiver.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
        receiver.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        receiver.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("IIII", _BLOCK_BYTES, blocks, packet_bytes, packets))
        memory = mmap.mmap(receiver.fileno(), blocks * _BLOCK_BYTES)
        self._maps.append(memory)
        row[r.REGION] = np.frombuffer(memory, dtype=np.uint8).ctypes.data
        row[r.MASK], row[r.PACKET_BYTES] = packets - 1, packet_bytes
        receiver.bind((self.interface, _ETH_P_ALL))
        return receiver

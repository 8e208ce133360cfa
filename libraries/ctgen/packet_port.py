"""A port on a Linux interface: rings towards link threads, and the mapped rings of packet sockets to receive from.

packet(7) and Documentation/networking/packet_mmap.rst. Frames are received in place (PACKET_RX_RING, TPACKET_V2:
a frame is there the moment the kernel has written it, while blocks of TPACKET_V3 wait for a timer). They are sent
through AF_XDP, or with sendmmsg(2) where AF_XDP is not possible: frames of more than a page, several queues on one
transmit queue, an old kernel. PACKET_TX_RING was measured and is slower than both on a veth pair (docs/evidence).
"""

import ctypes
import fcntl
import itertools
import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np

from ctgen import ring as r
from ctgen.errors import GeneratorError
from ctgen.layout import LinkQueue, LinkThread, constants
from ctgen.library import KernelThread, kernel
from ctgen.memif import RingPlan, cable, zeroed_memory

# linux/if_xdp.h
AF_XDP: Final = 44
_SOL_XDP: Final = 283
_MMAP_OFFSETS, _TX_RING, _UMEM_REG, _UMEM_FILL_RING, _UMEM_COMPLETION_RING = 1, 3, 4, 5, 6
_PGOFF_TX_RING, _PGOFF_COMPLETION_RING = 0x80000000, 0x180000000
_FLAG_COPY: Final = 1 << 1
#: Bytes of a descriptor (struct xdp_desc: address, length, options), and of one in the completion ring.
DESCRIPTOR_BYTES, _COMPLETION_BYTES = 16, 8
#: Frames under way, and the bytes of each one's place in the shared memory.
ENTRIES, CHUNK_BYTES = constants()["XDP_ENTRIES"], constants()["XDP_CHUNK_BYTES"]

#: Where link threads hand the frames of a queue to: its fields of `LinkQueue` but for the ring.
Sender = dict[str, int]


def _xdp_sender(opened: socket.socket, interface_index: int, queue: int, kept: ExitStack) -> Sender:
    """Make a socket ready to send on one transmit queue of an interface; `kept` holds its memory. Raise OSError where
    the kernel, a limit (RLIMIT_MEMLOCK) or another socket on this queue forbids it."""
    memory, address = zeroed_memory(ENTRIES * CHUNK_BYTES)
    kept.enter_context(memory)
    # struct xdp_umem_reg; the kernel takes its size as the version of it.
    opened.setsockopt(_SOL_XDP, _UMEM_REG, struct.pack("QQIIII", address, ENTRIES * CHUNK_BYTES, CHUNK_BYTES, 0, 0, 0))
    for option in (_UMEM_FILL_RING, _UMEM_COMPLETION_RING, _TX_RING):
        opened.setsockopt(_SOL_XDP, option, ENTRIES)
    # struct xdp_mmap_offsets: producer, consumer, descriptors, flags of the rings rx, tx, fill, completion.
    offsets = struct.unpack("16Q", opened.getsockopt(_SOL_XDP, _MMAP_OFFSETS, 128))
    sender = {"socket": opened.fileno(), "frames": address}
    for names, ring, entry_bytes, page in (
        (("produced", "consumed", "descriptors"), offsets[4:8], DESCRIPTOR_BYTES, _PGOFF_TX_RING),
        (("completed", "reused", "completions"), offsets[12:16], _COMPLETION_BYTES, _PGOFF_COMPLETION_RING),
    ):
        mapped = kept.enter_context(mmap.mmap(opened.fileno(), ring[2] + ENTRIES * entry_bytes, offset=page))
        at = int(np.frombuffer(mapped, np.uint8).ctypes.data)
        sender |= {name: at + offset for name, offset in zip(names, ring[:3], strict=True)}
    _bind(opened, struct.pack("HHIII", AF_XDP, _FLAG_COPY, interface_index, queue, 0))
    return sender


def _bind(opened: socket.socket, address: bytes) -> None:
    """Call bind(2) with an address for which Python's socket module has no form."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.bind(opened.fileno(), address, len(address)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _waited_ns() -> int:
    """Return how long this thread was ready to run but did not run: the second field of schedstat (Linux,
    Documentation/scheduler/sched-stats.rst)."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1])


class LinkThreads:
    """The link threads, which carry frames while a trial runs, one for each CPU of the DUT. Queue q of either port is
    served by thread q modulo threads."""

    def __init__(self, ports: Sequence[tuple[r.Rings, Sequence[Sender]]], cpus: Sequence[int]) -> None:
        """`ports`: the rings towards the DUT (as the DUT sees them: rings to take frames from), and a sender for each.
        `cpus`: one thread each; empty: one thread, on any CPU."""
        self.cpus = tuple(cpus)
        count = max(1, len(cpus))
        #: What each is to do, and did.
        self.counters = r.on_lines(LinkThread, count)
        self._queues: list[ctypes.Array[ctypes.Structure]] = []
        for number, link in enumerate(self.counters):
            queues = [
                LinkQueue(ring=ctypes.addressof(rings[queue]), **sender)
                for rings, senders in ports
                for queue, sender in enumerate(senders)
                if queue % count == number
            ]
            self._queues.append((LinkQueue * len(queues))(*queues))
            link.queues, link.queue_count = ctypes.addressof(self._queues[-1]), len(queues)
        self._threads: list[KernelThread] = []
        #: Per thread, once it stopped: the share of its time in which it waited for its CPU.
        self.waiting = [0.0] * count

    def start(self) -> None:
        """Start to carry frames, with counters at zero."""
        for link in self.counters:
            link.busy = link.frames = link.refused = link.error = link.stop = 0
        cpus: Sequence[Collection[int]] = [{cpu} for cpu in self.cpus] or [()]
        self._threads = [
            KernelThread(f"link-{number}", partial(self._work, number), cpu) for number, cpu in enumerate(cpus)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads, and wait until none touches the rings any more. May be called twice."""
        for link in self.counters:
            link.stop = 1
        for thread in self._threads:
            if thread.ident is not None:
                thread.ended.wait()

    def check(self) -> None:
        """Raise `GeneratorError` where a thread failed, or where the interfaces refused every frame since `start`."""
        for thread in self._threads:
            thread.check("A link thread")
        frames, refused = (sum(getattr(link, name) for link in self.counters) for name in ("frames", "refused"))
        if frames and refused == frames:
            code = max(link.error for link in self.counters)
            reason = os.strerror(code) if code else "their rings stayed full"
            raise GeneratorError(f"The DUT's interfaces took none of {frames} frames: {reason}.")

    def _work(self, number: int) -> None:
        begun, waited = time.monotonic_ns(), _waited_ns()
        kernel().carry(self.counters[number])
        self.waiting[number] = (_waited_ns() - waited) / (time.monotonic_ns() - begun)


# linux/if_packet.h and linux/if_ether.h: what Python's socket module has no names for.
_SOL_PACKET: Final = 263
_RX_RING, _STATISTICS, _VERSION, _FANOUT, _QDISC_BYPASS, _IGNORE_OUTGOING = 5, 6, 10, 18, 20, 23
_TPACKET_V2: Final = 1
_FANOUT_BY_PROGRAM, _FANOUT_PROGRAM = 6, 22
_ETH_P_ALL: Final = 3
#: Bytes of a block of the receive ring: the kernel wants whole pages, and frames that fill them.
_BLOCK_BYTES: Final = 1 << 20
#: Header, address and alignment before a frame in the receive ring.
_HEADROOM: Final = 96
_LEAST_PACKET_BYTES: Final = 256
_SIOCGIFINDEX: Final = 0x8933

# linux/filter.h: BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K, BPF_RET | BPF_A; SKF_AD_OFF +
# SKF_AD_CPU.
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN, _RETURN_LOADED = 0x20, 0x15, 0x06, 0x16
_CPU_NUMBER: Final = 0xFFFFF000 + 36

#: Opens a socket, not bound, in the network namespace of the interface: a raw packet socket without a protocol, or one
#: of AF_XDP. Raises OSError where it cannot.
SocketKind = Literal["packet", "xdp"]
OpenSocket = Callable[[SocketKind], socket.socket]


#: As many as a process has at the same time, and more: a pair of DUTs with four pairs of ports each has sixteen.
_PORTS = itertools.cycle(range(32))


def _tell_apart_by_cpu(member: socket.socket, cpus: Sequence[int]) -> None:
    """Distribute the frames of a group of packet sockets by the CPU that delivers them: by its place in `cpus`, else by
    its number, of which the kernel takes the remainder. The program is classic BPF (linux/filter.h)."""
    program = [(_LOAD_WORD, 0, 0, _CPU_NUMBER)]
    for place, cpu in enumerate(cpus):
        program += [(_JUMP_IF_EQUAL, 0, 1, cpu), (_RETURN, 0, 0, place)]
    code = b"".join(struct.pack("HBBI", *each) for each in [*program, (_RETURN_LOADED, 0, 0, 0)])
    kept = ctypes.create_string_buffer(code)  # struct sock_fprog points there
    told = struct.pack("HP", len(code) // 8, ctypes.addressof(kept))
    member.setsockopt(_SOL_PACKET, _FANOUT_PROGRAM, told)


class PacketPort(r.Port):
    """The generator's port on one interface."""

    def __init__(self, interface: str, open_socket: OpenSocket, plan: RingPlan, cpus: Sequence[int]) -> None:
        """Open `plan.c2s` rings towards the DUT, which link threads on `cpus` (none: one thread, on any CPU) hand over
        with a socket each, and `plan.s2c` rings from it, whose frames are told apart by the CPU that delivers them.
        Raise `GeneratorError` where the interface cannot be used."""
        self.interface = interface
        #: How frames are handed to the interface, and why not otherwise.
        self.sends_with = ""
        self._opened = ExitStack()
        near, self._far = cable(RingPlan(plan.c2s, 0, plan.c2s_size, plan.c2s_size, plan.buffer_bytes))
        self._opened.callback(near.close)
        self._opened.callback(self._far.close)
        self.tx = near.tx
        self.rx = r.new_rings(plan.s2c)
        self._receivers: list[socket.socket] = []
        # Known by its number in a network namespace: one for each port of this process.
        fanout_group = (32 * os.getpid() + next(_PORTS)) & 0xFFFF
        try:
            self._senders = self._open_senders(open_socket, max(1, len(cpus)), plan.buffer_bytes)
            for ring in self.rx:
                self._receivers.append(self._open_receiver(open_socket, plan, ring))
                if plan.s2c > 1:
                    self._receivers[-1].setsockopt(_SOL_PACKET, _FANOUT, fanout_group | _FANOUT_BY_PROGRAM << 16)
            if plan.s2c > 1:
                _tell_apart_by_cpu(self._receivers[0], cpus)
        except OSError as error:
            self.close()
            raise GeneratorError(f"The generator cannot use the interface {interface}: {error}.") from error

    @property
    def link_rings(self) -> tuple[r.Rings, list[Sender]]:
        """The rings from which link threads take frames, and the sender of each ring."""
        return self._far.rx, [self._senders[queue % len(self._senders)] for queue in range(len(self._far.rx))]

    def dropped(self) -> int:
        statistics = (each.getsockopt(_SOL_PACKET, _STATISTICS, 8) for each in self._receivers)
        return sum(struct.unpack("II", told)[1] for told in statistics)

    def check_link(self) -> None:
        for each in self._receivers:
            number = each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise GeneratorError(f"The link to the DUT, {self.interface}, broke: {os.strerror(number)}.")

    def close(self) -> None:
        """Release the interface. May be called twice."""
        self.rx = r.new_rings(0)
        self._receivers.clear()
        self._opened.close()

    def _open_senders(self, open_socket: OpenSocket, threads: int, buffer_bytes: int) -> list[Sender]:
        reason = "frames too large for AF_XDP"
        if buffer_bytes <= CHUNK_BYTES:
            try:
                self.sends_with = "AF_XDP"
                return [self._xdp_sender(open_socket, queue) for queue in range(threads)]
            except OSError as error:
                reason = f"AF_XDP: {error.strerror or error}"
        self.sends_with = f"packet sockets ({reason})"
        return [self._packet_sender(open_socket) for _ in range(threads)]

    def _xdp_sender(self, open_socket: OpenSocket, queue: int) -> Sender:
        # An interface is known by its number in the namespace of the socket that asks.
        with open_socket("packet") as asking:
            request = struct.pack("16s16x", self.interface.encode())
            (index,) = struct.unpack("16xi12x", fcntl.ioctl(asking, _SIOCGIFINDEX, request))
        return _xdp_sender(self._opened.enter_context(open_socket("xdp")), index, queue, self._opened)

    def _packet_sender(self, open_socket: OpenSocket) -> Sender:
        sender = self._opened.enter_context(open_socket("packet"))
        sender.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
        sender.bind((self.interface, 0))
        return {"socket": sender.fileno()}

    def _open_receiver(self, open_socket: OpenSocket, plan: RingPlan, ring: ctypes.Structure) -> socket.socket:
        packet_bytes = max(_LEAST_PACKET_BYTES, 1 << (plan.buffer_bytes + _HEADROOM - 1).bit_length())
        blocks = max(1, plan.s2c_size * packet_bytes // _BLOCK_BYTES)
        packets = blocks * _BLOCK_BYTES // packet_bytes
        receiver = self._opened.enter_context(open_socket("packet"))
        receiver.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
        receiver.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        receiver.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("IIII", _BLOCK_BYTES, blocks, packet_bytes, packets))
        memory = self._opened.enter_context(mmap.mmap(receiver.fileno(), blocks * _BLOCK_BYTES))
        ring.first, ring.stride = np.frombuffer(memory, dtype=np.uint8).ctypes.data, packet_bytes
        ring.mask, ring.is_socket = packets - 1, 1
        receiver.bind((self.interface, _ETH_P_ALL))
        return receiver

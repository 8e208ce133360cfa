"""The server's role of memif: the other end of a cable, where Open vSwitch would be."""

import os
import socket
import struct

import numpy as np

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software.memif import (
    ACK,
    ADD_REGION,
    ADD_RING,
    CONNECT,
    CONNECTED,
    DISCONNECT,
    FLAG_C2S,
    HEAD_OFFSET,
    HELLO,
    INIT,
    MAX_LOG2_RING,
    MESSAGE_BYTES,
    NAME,
    NAMES,
    TAIL_OFFSET,
    VERSION,
    MemifPort,
    receive_message,
    ring_row,
    send_message,
)
from ctbench.traffic.software.shared_memory import Region


def serve(control: socket.socket, name: str) -> MemifPort:
    """Be the server at one end of a socket that is connected: take the rings of the client at the other end. Raises
    `GeneratorError` or `OSError`, and then the socket is closed."""
    try:
        return _handshake(control, name)
    except (OSError, GeneratorError):
        control.close()
        raise


def _handshake(control: socket.socket, name: str) -> MemifPort:
    send_message(control, HELLO, struct.pack("<32sHHHHHB", NAME, VERSION, VERSION, 0, 63, 63, MAX_LOG2_RING))
    body, _ = receive_message(control, INIT)
    (version,) = struct.unpack_from("<H", body)
    if version != VERSION:
        send_message(control, DISCONNECT, struct.pack("<I96s", 0, b"Incompatible memif version"))
        raise GeneratorError(f"memif: the client speaks version {version:#x}, this server {VERSION:#x}.")
    send_message(control, ACK)
    body, fd = receive_message(control, ADD_REGION)
    (_, size) = struct.unpack_from("<HQ", body)
    if fd is None:
        raise GeneratorError("memif: the client sent no file with its memory region.")
    region = Region(fd, size)
    send_message(control, ACK)
    tx, rx = [], []
    while True:
        message, ancillary, _, _ = control.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(4))
        for _, _, payload in ancillary:
            os.close(struct.unpack("i", payload[:4])[0])  # polled: its interrupt is never used
        (kind,) = struct.unpack_from("<H", message)
        if kind == CONNECT:
            break
        if kind != ADD_RING:
            raise GeneratorError(f"memif: message {NAMES.get(kind, kind)} came instead of add_ring or connect.")
        flags, _, _, offset, log2, _ = struct.unpack_from("<HHHIBH", message, 2)
        entries = 1 << log2
        region.write16(offset + HEAD_OFFSET, 0)
        region.write16(offset + TAIL_OFFSET, 0)
        if flags & FLAG_C2S:
            rx.append(ring_row(region, offset, entries, produced=HEAD_OFFSET, consumed=TAIL_OFFSET))
        else:
            tx.append(ring_row(region, offset, entries, produced=TAIL_OFFSET, consumed=HEAD_OFFSET))
        send_message(control, ACK)
    send_message(control, CONNECTED, NAME)
    return MemifPort(control, region, np.array(tx, np.int64), np.array(rx, np.int64), name)

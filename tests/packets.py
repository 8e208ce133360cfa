"""Read, mend and build packets in tests, independently of the generator's own code."""

import socket
import struct
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

#: Address and port.
Endpoint = tuple[str, int]


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass(frozen=True)
class Packet:
    """What stands in a frame."""

    source: str
    destination: str
    protocol: int
    source_port: int
    destination_port: int
    payload: bytes
    seq: int = 0
    ack: int = 0
    flags: int = 0


def segment_of(frame: bytes) -> tuple[bytes, bytes, int]:
    """Both addresses of an Ethernet frame with IPv4 or IPv6, what is behind their header, and its protocol."""
    if frame[12:14] == b"\x86\xdd":
        return frame[22:54], frame[54 : 54 + struct.unpack_from("!H", frame, 18)[0]], frame[20]
    return frame[26:34], frame[34 : 14 + struct.unpack_from("!H", frame, 16)[0]], frame[23]


def parse(frame: bytes) -> Packet:
    """Parse an Ethernet frame with IPv4 or IPv6, and TCP or UDP."""
    addresses, segment, protocol = segment_of(frame)
    bytes_each, family = len(addresses) // 2, socket.AF_INET if len(addresses) == 8 else socket.AF_INET6
    source, destination = (socket.inet_ntop(family, addresses[at:][:bytes_each]) for at in (0, bytes_each))
    ports = struct.unpack_from("!HH", segment)
    if protocol == 17:
        return Packet(source, destination, protocol, *ports, segment[8:])
    seq, ack, offset, flags = struct.unpack_from("!IIBB", segment, 4)
    header = (offset >> 4) * 4
    return Packet(source, destination, protocol, *ports, segment[header:], seq=seq, ack=ack, flags=flags)


def checksums_are_right(frame: bytes) -> bool:
    """Whether an IPv4 header and what is behind the header of either version add up (RFC 8200, section 8.1)."""
    addresses, segment, protocol = segment_of(frame)
    header = len(addresses) == 32 or internet_checksum(frame[14:34]) == 0
    return header and internet_checksum(addresses + struct.pack("!II", len(segment), protocol) + segment) == 0


def rewrite(frame: bytes, *, destination: str | None = None, flags: int | None = None) -> bytes:
    """The frame with another destination or other TCP flags, and checksums that are right again: what NAT does."""
    new = bytearray(frame)
    if destination:
        new[30:34] = socket.inet_aton(destination)
    if flags is not None:
        new[47] = flags
    new[24:26] = b"\0\0"
    struct.pack_into("!H", new, 24, internet_checksum(bytes(new[14:34])))
    total = struct.unpack_from("!H", new, 16)[0]
    at = 50 if new[23] == 6 else 40
    new[at : at + 2] = b"\0\0"
    pseudo = bytes(new[26:34]) + struct.pack("!BBH", 0, new[23], total - 20)
    struct.pack_into("!H", new, at, internet_checksum(pseudo + bytes(new[34 : 14 + total])) or 0xFFFF)
    return bytes(new)


def tcp(source: Endpoint, destination: Endpoint, flags: int, seq: int = 0, ack: int = 0, payload: bytes = b"") -> bytes:
    """A frame with a TCP segment; its checksums are right."""
    header = struct.pack("!HHIIBBHHH", source[1], destination[1], seq, ack, 0x50, flags, 65535, 0, 0)
    return _ipv4(source[0], destination[0], 6, header + payload)


def udp(source: Endpoint, destination: Endpoint, payload: bytes) -> bytes:
    """A frame with a UDP datagram; its checksums are right."""
    header = struct.pack("!HHHH", source[1], destination[1], 8 + len(payload), 0)
    return _ipv4(source[0], destination[0], 17, header + payload)


def _ipv4(source: str, destination: str, protocol: int, segment: bytes) -> bytes:
    """An Ethernet frame of at least 60 bytes. Each address has a MAC of its own, for bridges that learn."""
    addresses = socket.inet_aton(source), socket.inet_aton(destination)
    macs = b"\x02\0" + addresses[1] + b"\x02\0" + addresses[0]
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 1, 0, 64, protocol, 0, *addresses)
    return rewrite((macs + b"\x08\0" + header + segment).ljust(60, b"\0"))


def pcap(frames: list[tuple[float, bytes]]) -> bytes:
    """A capture file (libpcap format, Ethernet) of frames with their times in seconds."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for when, frame in frames:
        parts.append(struct.pack("<IIII", int(when), int(when % 1 * 1e6), len(frame), len(frame)) + frame)
    return b"".join(parts)


def arp_request(target: str, asker: str = "198.18.0.1") -> bytes:
    """Return the frame with which a host asks for the link-layer address of `target` (RFC 826)."""
    numbers = [bytes(int(part) for part in address.split(".")) for address in (asker, target)]
    mac = bytes.fromhex("020000000101")
    body = struct.pack("!HHBBH6s4s6s4s", 1, 0x800, 6, 4, 1, mac, numbers[0], bytes(6), numbers[1])
    return (b"\xff" * 6 + mac + b"\x08\x06" + body).ljust(60, b"\0")

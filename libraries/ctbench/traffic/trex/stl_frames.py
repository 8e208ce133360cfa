"""The frames of a packet profile as TRex needs them: a template, with the checksums of its first flow."""

import struct
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address

from ctbench.base.ethernet import FCS_BYTES, VLAN_TAG_BYTES
from ctbench.traffic.profiles import PacketProfile

#: Bytes of the headers before the UDP payload.
ETHERNET, IP, UDP = 14, 20, 8
_ETHERTYPE_IPV4, _ETHERTYPE_VLAN = 0x0800, 0x8100
_DONT_FRAGMENT, _TTL, _PROTOCOL_UDP = 0x4000, 64, 17
#: What the payload is filled with, as the software generator does.
_FILLER = b"\x7a"


@dataclass(frozen=True)
class Flow:
    """Addresses and ports of a packet, as numbers."""

    source: int
    destination: int
    source_port: int
    destination_port: int


@cache
def address(text: str) -> int:
    """An IPv4 address as a number; remembered, for it is asked for every flow."""
    return int(IPv4Address(text))


def flow_of(profile: PacketProfile, sender: str, number: int) -> Flow:
    """Flow `number` as `client` or `server` sends it: the addresses of the software generator."""
    client = address(profile.client_ip) + number % profile.client_ips
    server = address(profile.server_ip) + number % profile.server_ips
    port = profile.client_port_min + number // profile.client_ips
    if sender == "client":
        return Flow(client, server, port, profile.udp_port)
    return Flow(server, client, profile.udp_port, port)


def ip_offset(profile: PacketProfile) -> int:
    """Where the IPv4 header begins."""
    return ETHERNET + (VLAN_TAG_BYTES if profile.vlan else 0)


def frame(profile: PacketProfile, flow: Flow, size: int, balance: bytes = b"", checksum: bool = True) -> bytes:
    """A frame without FCS; `size`: its bytes with FCS, as the profile counts them, a VLAN tag apart.

    The MAC addresses are TRex' to fill in. `balance`: how the payload begins. Without `checksum` it says that it has
    none (RFC 768): TRex writes into the payload of its latency packets as it sends them.
    """
    payload = (balance + _FILLER * size)[: size - FCS_BYTES - ETHERNET - IP - UDP]
    length = UDP + len(payload)
    udp = struct.pack("!HHHH", flow.source_port, flow.destination_port, length, 0)
    if checksum:
        udp = udp[:6] + struct.pack("!H", udp_checksum(flow, udp_sum(length, payload)))
    header = struct.pack("!BBHHHBBH", 0x45, 0, IP + length, 0, _DONT_FRAGMENT, _TTL, _PROTOCOL_UDP, 0)
    addresses = struct.pack("!II", flow.source, flow.destination)
    header = header[:10] + struct.pack("!H", _inverted_sum(_words(header + addresses))) + addresses
    tag = struct.pack("!HH", _ETHERTYPE_VLAN, profile.vlan) if profile.vlan else b""
    return bytes(12) + tag + struct.pack("!H", _ETHERTYPE_IPV4) + header + udp + payload


def udp_sum(length: int, payload: bytes) -> int:
    """What all but the flow adds to the UDP checksum's sum; `length`: of header and payload."""
    return _PROTOCOL_UDP + 2 * length + _words(payload)


def udp_checksum(flow: Flow, rest: int) -> int:
    """The UDP checksum (RFC 768) of a flow's packet, with `udp_sum` of it."""
    return _inverted_sum(rest + flow.source + flow.destination + flow.source_port + flow.destination_port) or 0xFFFF


def _words(data: bytes) -> int:
    """Sum of the 16-bit words, a last odd byte padded with zero."""
    padded = data + b"\0" * (len(data) % 2)
    return sum(struct.unpack(f"!{len(padded) // 2}H", padded))


def _inverted_sum(total: int) -> int:
    """The one's complement of the one's complement sum (RFC 1071): 2 to the 16 counts as 1, so that a 32-bit number
    may stand for its two words."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

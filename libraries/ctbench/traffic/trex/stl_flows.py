"""Programs for TRex' field engine, which walk through the flows of a packet profile (TRex' stateless manual).

An instruction is a JSON object: `do` names a class of `trex.stl.api`, the rest are its arguments. There are two kinds
of program, as each can do what the other cannot. Neither needs a card that computes checksums:

- counters, for any number of flows: addresses and ports are groups of bits of a counter, so counts of addresses
  must be powers of two. Another counter, running backwards, is written into the payload in the same way: the sum
  of the 16-bit words, and with it the UDP checksum, never changes.
- lists, for any addresses and any order: as many values as there are flows, at most 65535.
"""

import math
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctbench.base.errors import ConfigError
from ctbench.base.network import FCS_BYTES, VLAN_TAG_BYTES
from ctbench.traffic.profiles import PacketProfile, last_word

#: Bytes of the headers before the UDP payload.
ETHERNET, IP, UDP = 14, 20, 8
_ETHERTYPE_IPV4, _ETHERTYPE_VLAN = 0x0800, 0x8100
_DONT_FRAGMENT, _TTL, _PROTOCOL_UDP = 0x4000, 64, 17
#: What the payload is filled with, as the software generator does.
_FILLER = b"\x7a"


class Flow(NamedTuple):
    """Addresses and ports of a packet, as numbers."""

    source: int
    destination: int
    source_port: int
    destination_port: int


def flow_of(profile: PacketProfile, sender: str, number: int) -> Flow:
    """Return flow `number` as `client` or `server` sends it, with the addresses of the software generator."""
    client = last_word(profile.client_ip) + number % profile.client_ips
    server = last_word(profile.server_ip) + number % profile.server_ips
    port = profile.client_port_min + number // profile.client_ips
    if sender == "client":
        return Flow(client, server, port, profile.udp_port)
    ports = (port, profile.udp_port) if profile.directions == "each" else (profile.udp_port, port)
    return Flow(server, client, *ports)


def frame(profile: PacketProfile, flow: Flow, size: int, balance: bytes = b"", checksum: bool = True) -> bytes:
    """Return a frame without FCS. `size`: its bytes with FCS, as the profile counts them, without a VLAN tag.

    TRex fills the MAC addresses in. `balance`: the beginning of the payload. Without `checksum` the UDP checksum is 0,
    which means none (RFC 768): TRex writes into the payload of its latency packets as it sends them.
    """
    payload = (balance + _FILLER * size)[: size - FCS_BYTES - ETHERNET - IP - UDP]
    length = UDP + len(payload)
    proof = udp_checksum(flow, payload_sum(payload)) if checksum else 0
    udp = struct.pack("!HHHH", flow.source_port, flow.destination_port, length, proof)
    header = struct.pack("!BBHHHBBH", 0x45, 0, IP + length, 0, _DONT_FRAGMENT, _TTL, _PROTOCOL_UDP, 0)
    addresses = struct.pack("!II", flow.source, flow.destination)
    header = header[:10] + struct.pack("!H", _inverted_sum(_words(header + addresses))) + addresses
    tag = struct.pack("!HH", _ETHERTYPE_VLAN, profile.vlan) if profile.vlan else b""
    return bytes(12) + tag + struct.pack("!H", _ETHERTYPE_IPV4) + header + udp + payload


def payload_sum(payload: bytes) -> int:
    """Return the part of the UDP checksum's sum that does not depend on the flow."""
    return _PROTOCOL_UDP + 2 * (UDP + len(payload)) + _words(payload)


def udp_checksum(flow: Flow, rest: int) -> int:
    """Return the UDP checksum (RFC 768) of a flow's packet. `rest`: its `payload_sum`."""
    return _inverted_sum(rest + sum(flow)) or 0xFFFF


def _words(data: bytes) -> int:
    """Return the sum of the 16-bit words; an odd last byte is padded with zero."""
    return (sum(data[::2]) << 8) + sum(data[1::2])


def _inverted_sum(total: int) -> int:
    """Return the one's complement of the one's complement sum (RFC 1071). 2 to the 16 counts as 1, so that a 32-bit
    number may stand for its two words."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


Instruction = dict[str, Any]

#: Entries of a value list of TRex' field engine at most.
LONGEST_LIST = 65535
#: Flows that successive packets of a random order are apart at most, by counters.
_LONGEST_STRIDE = 64
#: Offsets from the IPv4 header: source address (before the destination's), source port (before the destination's,
#: length and checksum), payload.
_ADDRESSES, _PORTS, _PAYLOAD = 12, 20, 28


@dataclass(frozen=True)
class Walk:
    """A template frame (without FCS), and the program that changes it for every packet; empty for a single flow."""

    frame: bytes
    program: list[Instruction]


def walk(profile: PacketProfile, sender: str, size: int, *, start: float = 0.0, checksum: bool = True) -> Walk:
    """Return the walk by which `sender` (`client` or `server`) sends frames of `size` bytes with FCS.

    `start`: where among the flows to begin, 0 to below 1. Raise `ConfigError` where TRex cannot walk so.
    """
    if profile.flows == 1:
        return Walk(frame(profile, flow_of(profile, sender, 0), size, checksum=checksum), [])
    stride = _stride(profile)
    if stride:
        return _counted(profile, sender, size, stride, start, checksum)
    if profile.flows <= LONGEST_LIST:
        return _listed(profile, sender, size, start, checksum)
    raise ConfigError(
        f"TRex cannot send {profile.flows} flows in {profile.flow_order} order from {profile.client_ips} addresses at "
        f"{profile.client_ip} to {profile.server_ips} at {profile.server_ip}.\n"
        f"  Expected at most {LONGEST_LIST} flows, or counts of addresses that are powers of two and begin at a "
        "multiple of themselves; for random order also an even number of flows."
    )


def order(profile: PacketProfile) -> list[int]:
    """Return the flows in the order in which a list sends them, each once."""
    flows = profile.flows
    if profile.flow_order == "sequential":
        return list(range(flows))
    jump = round(flows * 0.6180339887)  # the golden section: successive packets are far apart, and stay so
    while math.gcd(jump, flows) > 1:
        jump += 1
    return [place * jump % flows for place in range(flows)]


def _sides(profile: PacketProfile) -> tuple[tuple[str, int, int], ...]:
    """Return the addresses of each side: name, first one, count."""
    return (
        ("client", last_word(profile.client_ip), profile.client_ips),
        ("server", last_word(profile.server_ip), profile.server_ips),
    )


def _is_aligned(first: int, count: int) -> bool:
    """True where the addresses differ from the first one in its low bits only."""
    return count & (count - 1) == 0 and first % count == 0


def _stride(profile: PacketProfile) -> int:
    """Return how far apart the flows of successive packets are where counters walk; 0 where counters cannot."""
    sides = _sides(profile)
    if not all(_is_aligned(first, count) for _, first, count in sides):
        return 0
    if profile.flow_order == "sequential":
        return 1
    if profile.flows <= LONGEST_LIST:
        return 0
    power_of_two = profile.flows & -profile.flows
    stride = min(power_of_two, _LONGEST_STRIDE, *(count for _, _, count in sides if count > 1))
    return stride if stride > 1 else 0


@dataclass(frozen=True)
class _Field:
    """A field of the frame that depends on the flow's number: `(number >> drop) & mask`, plus `base`."""

    name: str
    bytes: int
    mask: int
    drop: int = 0
    base: int = 0


def _fields(profile: PacketProfile) -> list[_Field]:
    fields = [_Field(name, 4, count - 1) for name, _, count in _sides(profile) if count > 1]
    if profile.flows > profile.client_ips:
        fields.append(_Field("port", 2, 0xFFFF, profile.client_ips.bit_length() - 1, profile.client_port_min))
    return fields


def _counted(profile: PacketProfile, sender: str, size: int, stride: int, start: float, checksum: bool) -> Walk:
    """Return a walk by counters. The flow's number has two digits, of which the high one counts first."""
    fields, ip = _fields(profile), ETHERNET + VLAN_TAG_BYTES * bool(profile.vlan)
    source, destination = ip + _ADDRESSES, ip + _ADDRESSES + 4
    if sender == "client":
        places = {"client": source, "server": destination, "port": ip + _PORTS}
    else:
        places = {"client": destination, "server": source, "port": ip + _PORTS + 2 * (profile.directions != "each")}
    digits = (profile.flows // stride, stride)
    first = int(start * digits[0])
    low_bits = stride.bit_length() - 1
    program = _counter("flow", "inc", digits, first)
    for field in fields:
        program += _write("flow", field, places[field.name], low_bits, field.base)
    balance = b""
    if checksum:
        # All ones, so that the bits of what is left are those of the number inverted. TRex wants room below.
        tops = tuple((1 << (digit.bit_length() + 1)) - 1 for digit in digits)
        program += _counter("rest", "dec", digits, first, tops)
        balances, written = {"client": 0, "server": 4, "port": 8}, bytearray(10)
        rest = (tops[0] - first) << low_bits | (stride - 1)
        for field in fields:
            at = balances[field.name]
            program += _write("rest", field, ip + _PAYLOAD + at, low_bits, 0)
            written[at : at + field.bytes] = ((rest >> field.drop) & field.mask).to_bytes(field.bytes, "big")
        balance = bytes(written)
    template = frame(profile, flow_of(profile, sender, first * stride), size, balance, checksum)
    return Walk(template, [*program, {"do": "STLVmFixIpv4", "offset": ip}])


def _counter(
    name: str, op: str, digits: tuple[int, int], first: int, tops: tuple[int, ...] | None = None
) -> list[Instruction]:
    """Return the variable `name` and, where there is a low digit, `name_low`, which advances each time the high one
    begins again. `first`: where the high one begins; `tops`: values from which to count down."""
    program = []
    for place, (count, variable) in enumerate(zip(digits, (name, f"{name}_low"), strict=True)):
        if place and count == 1:
            continue
        top = tops[place] if tops else count - 1
        begin = 0 if place else first
        instruction: Instruction = {
            "do": "STLVmFlowVar", "name": variable, "op": op, "size": 4, "step": 1,
            "min_value": top - count + 1, "max_value": top, "init_value": top - begin if tops else begin,
        }  # fmt: skip
        if not place and digits[1] > 1:
            instruction["next_var"] = f"{name}_low"
        program.append(instruction)
    return program


def _write(variable: str, field: _Field, offset: int, low_bits: int, base: int) -> list[Instruction]:
    """Return the instructions that write a field of the flow's number, whose digits the variables hold; the low digit
    has `low_bits` bits."""
    shift = low_bits - field.drop
    low_mask = (1 << low_bits) - 1 if shift > 0 else 0
    add = base << max(0, -shift)
    add -= (1 << 32) * (add >> 31)  # TRex takes it as a signed number of 32 bits
    # It adds, shifts (left, or right when negative), and writes where the mask has ones.
    digits = [(variable, field.mask & ~low_mask, shift, add), (f"{variable}_low", field.mask & low_mask, 0, 0)]
    return [
        {
            "do": "STLVmWrMaskFlowVar", "fv_name": name, "pkt_offset": offset, "pkt_cast_size": field.bytes,
            "mask": mask, "shift": left, "add_value": added,
        }
        for name, mask, left, added in digits[: 1 + bool(low_mask)]
    ]  # fmt: skip


def _listed(profile: PacketProfile, sender: str, size: int, start: float, checksum: bool) -> Walk:
    """Return a walk by lists: a value of eight bytes has both addresses, another one ports, UDP length and checksum."""
    ip = ETHERNET + VLAN_TAG_BYTES * bool(profile.vlan)
    numbers = order(profile)
    begin = int(start * len(numbers))
    flows = [flow_of(profile, sender, number) for number in numbers[begin:] + numbers[:begin]]
    template = frame(profile, flows[0], size, checksum=checksum)
    payload = template[ip + _PAYLOAD :]
    length = UDP + len(payload)
    # All but the flow itself stays the same, so that only its part of the sum is computed again.
    rest = payload_sum(payload)
    addresses, ports = [], []
    for flow in flows:
        addresses.append(flow.source << 32 | flow.destination)
        proof = udp_checksum(flow, rest) if checksum else 0
        ports.append(flow.source_port << 48 | flow.destination_port << 32 | length << 16 | proof)
    program: list[Instruction] = []
    for name, values, at in (("addresses", addresses, _ADDRESSES), ("ports", ports, _PORTS)):
        program.append({"do": "STLVmFlowVar", "name": name, "op": "inc", "size": 8, "step": 1, "value_list": values})
        program.append({"do": "STLVmWrFlowVar", "fv_name": name, "pkt_offset": ip + at})
    return Walk(template, [*program, {"do": "STLVmFixIpv4", "offset": ip}])

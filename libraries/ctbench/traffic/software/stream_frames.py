"""The frames of a packet profile: UDP with a tag, a sequence number and the time of sending in the payload."""

from numba import njit

from ctbench.base.ethernet import VLAN_TAG_BYTES
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import ipv6_header
from ctbench.traffic.software.machine_code import load16, load32, store16, store32, store64, swap16

#: In the UDP payload: the tag (trial and flow), the sequence number with the bit that counts it, the cycle counter.
TAG, SEQUENCE, TIME, FILLER = 0, 4, 8, 16
#: What is left of the payload is this byte.
PATTERN = 0x7A7A7A7A7A7A7A7A

_ETHERTYPE_VLAN = 0x0081


@njit(nogil=True, forceinline=True)
def write(at, shift, macs, vlan, source, destination, ports, tag, sequence, now, payload, pattern_sum):  # type: ignore[no-untyped-def]
    """Write a frame; returns its length without FCS. Addresses, ports and words as they stand in the packet.

    `shift`, `macs`: as for `frames.write_tcp`; `payload`: bytes of UDP payload, at least 16; `pattern_sum`:
    `frames.words_sum` of what is left of it.
    """
    frame = at if vlan < 0 else at + VLAN_TAG_BYTES
    total = source + destination + (f.PROTOCOL_UDP << 8)
    if shift:
        total += ipv6_header.write_ip(frame, macs, source, destination, 8 + payload, f.PROTOCOL_UDP)
    else:
        f.write_ip(frame, macs, source, destination, 28 + payload, f.TTL_64_UDP)
    if vlan >= 0:
        store32(at, load32(macs))
        store32(at + 4, load32(macs + 4))
        store32(at + 8, load32(macs + 8))
        store16(at + 12, _ETHERTYPE_VLAN)
        store16(at + 14, swap16(vlan))
    frame += shift
    length = swap16(8 + payload)
    store32(frame + f.L4, ports)
    low, high = now & 0xFFFFFFFF, (now >> 32) & 0xFFFFFFFF
    total += length + ports + length + tag + sequence + low + high + pattern_sum
    checksum = ~f.fold(total) & 0xFFFF
    if checksum == 0:
        checksum = 0xFFFF  # 0 means "no checksum" (RFC 768)
    store32(frame + f.UDP_LENGTH, length | (checksum << 16))
    start = frame + f.UDP_PAYLOAD
    store32(start + TAG, tag)
    store32(start + SEQUENCE, sequence)
    store64(start + TIME, now)
    f.write_pattern(start + FILLER, payload - FILLER, PATTERN)
    return frame - at + f.UDP_PAYLOAD + payload


@njit(nogil=True, forceinline=True)
def is_probe(frame):  # type: ignore[no-untyped-def]
    """Whether a UDP frame is long enough to be one of these."""
    return swap16(load16(frame + f.UDP_LENGTH)) >= 8 + FILLER

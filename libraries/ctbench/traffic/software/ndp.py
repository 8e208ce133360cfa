"""Neighbour discovery (RFC 4861): either port answers for the addresses behind it, as with IPv4 by ARP."""

from numba import njit

from ctbench.traffic.software import arp
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import ipv6_header as ipv6
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import (
    load8,
    load16,
    load32,
    load64,
    store16,
    store32,
    store64,
    swap16,
    swap32,
)

#: A neighbour advertisement with the link-layer address as its option.
REPLY_BYTES = 86
_ICMP, _TARGET, _OPTION, _ICMP_BYTES = 54, 62, 78, 32
_SOLICITATION, _ADVERTISEMENT, _PROTOCOL_ICMPV6, _HOP_LIMIT = 135, 136, 58, 255
_SOLICITED_OVERRIDE = 0x60  # first byte of the flags
_TARGET_LINK_LAYER_ADDRESS = 0x0102  # option 2, of one unit of 8 bytes


@njit(nogil=True)
def answer(tx, frame, length, header, first, count):  # type: ignore[no-untyped-def]
    """Answer a solicitation of one of `count` addresses from `first` (last 32 bits, a number) with the prefix of the
    template at `header`, or of its next hop. Returns `arp.NOT_ARP` for any other frame, `arp.IGNORED` or
    `arp.ANSWERED`, which put a frame of `REPLY_BYTES`."""
    if (
        length < _OPTION
        or load16(frame + f.ETHERTYPE) != ipv6.ETHERTYPE_IPV6
        or load8(frame + ipv6.NEXT_HEADER) != _PROTOCOL_ICMPV6
        or load8(frame + _ICMP) != _SOLICITATION
    ):
        return arp.NOT_ARP
    ours = load64(frame + _TARGET) == load64(header + ipv6.SOURCE)
    ours = ours and load32(frame + _TARGET + 8) == load32(header + ipv6.SOURCE + 8)
    ours = ours and first <= swap32(load32(frame + _TARGET + ipv6.LAST_WORD)) < first + count
    hop = load64(frame + _TARGET) == load64(header + ipv6.NEXT_HOP)
    hop = hop and load64(frame + _TARGET + 8) == load64(header + ipv6.NEXT_HOP + 8)
    unspecified = load64(frame + ipv6.SOURCE) == 0 and load64(frame + ipv6.SOURCE + 8) == 0  # looks for duplicates
    if not (ours or hop) or unspecified or not r.room(tx):
        return arp.IGNORED
    out = r.next_buffer(tx)
    store32(out, load32(frame + 6))
    store16(out + 4, load16(frame + 10))
    store32(out + 6, load32(header + 6))
    store16(out + 10, load16(header + 10))
    store16(out + f.ETHERTYPE, ipv6.ETHERTYPE_IPV6)
    store32(out + f.IP, 0x60)
    store16(out + ipv6.LENGTH, swap16(_ICMP_BYTES))
    store16(out + ipv6.NEXT_HEADER, _PROTOCOL_ICMPV6 | (_HOP_LIMIT << 8))
    for at in range(0, 16, 8):
        store64(out + ipv6.SOURCE + at, load64(frame + _TARGET + at))
        store64(out + ipv6.DESTINATION + at, load64(frame + ipv6.SOURCE + at))
        store64(out + _TARGET + at, load64(frame + _TARGET + at))
    store32(out + _ICMP, _ADVERTISEMENT)
    store32(out + _ICMP + 4, _SOLICITED_OVERRIDE)
    store16(out + _OPTION, _TARGET_LINK_LAYER_ADDRESS)
    store32(out + _OPTION + 2, load32(header + 6))
    store16(out + _OPTION + 6, load16(header + 10))
    total = f.words_sum(out + ipv6.SOURCE, 32) + f.words_sum(out + _ICMP, _ICMP_BYTES)
    total += swap16(_ICMP_BYTES) + (_PROTOCOL_ICMPV6 << 8)
    store16(out + _ICMP + 2, ~f.fold(total) & 0xFFFF)
    r.put(tx, REPLY_BYTES)
    return arp.ANSWERED

"""Either port answers for the addresses that live behind it, so that a DUT finds them by itself: ARP (RFC 826), and
neighbour discovery with IPv6 (RFC 4861)."""

from numba import njit

from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
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

#: Offsets in the frame: operation, the sender's MAC and IP address, the target's.
_OPERATION, _SENDER_MAC, _SENDER_IP, _TARGET_MAC, _TARGET_IP = 20, 22, 28, 32, 38
_END = 42
#: Ethernet's least, without FCS.
_ARP_REPLY_BYTES = 60

_NOT_ARP, _IGNORED, _ANSWERED = 0, 1, 2

# As they stand in memory on a little-endian machine.
_ETHERTYPE_ARP = 0x0608
_ETHERNET_IPV4 = 0x0406_0008_0100  # hardware and protocol type and their lengths
_REQUEST, _REPLY = 0x0100, 0x0200


@njit(nogil=True, forceinline=True)
def _copy_mac(to, source):  # type: ignore[no-untyped-def]
    store32(to, load32(source))
    store16(to + 4, load16(source + 4))


@njit(nogil=True, forceinline=True)
def _answer_arp(tx, frame, length, macs, first, count, next_hop):  # type: ignore[no-untyped-def]
    """Answer an ARP request for one of `count` addresses from `first`, or for `next_hop` (numbers; 0: none).

    `macs`: address of the port's Ethernet addresses, its own at 6. Returns `_NOT_ARP`, `_IGNORED` or `_ANSWERED`, which
    put a frame of `_ARP_REPLY_BYTES`.
    """
    if length < _END or load16(frame + 12) != _ETHERTYPE_ARP:
        return _NOT_ARP
    target = swap32(load32(frame + _TARGET_IP))
    wanted = (first <= target < first + count) or (next_hop != 0 and target == next_hop)
    if load16(frame + _OPERATION) != _REQUEST or not wanted or not r.room(tx):
        return _IGNORED
    out = r.next_buffer(tx)
    _copy_mac(out, frame + _SENDER_MAC)
    _copy_mac(out + 6, macs + 6)
    store16(out + 12, _ETHERTYPE_ARP)
    store64(out + 14, _ETHERNET_IPV4)
    store16(out + _OPERATION, _REPLY)
    _copy_mac(out + _SENDER_MAC, macs + 6)
    store32(out + _SENDER_IP, load32(frame + _TARGET_IP))
    _copy_mac(out + _TARGET_MAC, frame + _SENDER_MAC)
    store32(out + _TARGET_IP, load32(frame + _SENDER_IP))
    for at in range(_END, _ARP_REPLY_BYTES, 2):
        store16(out + at, 0)
    r.put(tx, _ARP_REPLY_BYTES)
    return _ANSWERED


#: A neighbour advertisement with the link-layer address as its option.
_NDP_REPLY_BYTES = 86
_ICMP, _TARGET, _OPTION, _ICMP_BYTES = 54, 62, 78, 32
_SOLICITATION, _ADVERTISEMENT, _PROTOCOL_ICMPV6, _HOP_LIMIT = 135, 136, 58, 255
_SOLICITED_OVERRIDE = 0x60  # first byte of the flags
_TARGET_LINK_LAYER_ADDRESS = 0x0102  # option 2, of one unit of 8 bytes


@njit(nogil=True)
def _answer_ndp(tx, frame, length, header, first, count):  # type: ignore[no-untyped-def]
    """Answer a solicitation of one of `count` addresses from `first` (last 32 bits, a number) with the prefix of the
    template at `header`, or of its next hop. Returns `_NOT_ARP` for any other frame, `_IGNORED` or
    `_ANSWERED`, which put a frame of `_NDP_REPLY_BYTES`."""
    if (
        length < _OPTION
        or load16(frame + f.ETHERTYPE) != f.ETHERTYPE_IPV6
        or load8(frame + f.IPV6_NEXT_HEADER) != _PROTOCOL_ICMPV6
        or load8(frame + _ICMP) != _SOLICITATION
    ):
        return _NOT_ARP
    ours = load64(frame + _TARGET) == load64(header + f.IPV6_SOURCE)
    ours = ours and load32(frame + _TARGET + 8) == load32(header + f.IPV6_SOURCE + 8)
    ours = ours and first <= swap32(load32(frame + _TARGET + f.IPV6_LAST_WORD)) < first + count
    hop = load64(frame + _TARGET) == load64(header + f.NEXT_HOP)
    hop = hop and load64(frame + _TARGET + 8) == load64(header + f.NEXT_HOP + 8)
    unspecified = load64(frame + f.IPV6_SOURCE) == 0 and load64(frame + f.IPV6_SOURCE + 8) == 0  # looks for duplicates
    if not (ours or hop) or unspecified or not r.room(tx):
        return _IGNORED
    out = r.next_buffer(tx)
    _copy_mac(out, frame + 6)
    _copy_mac(out + 6, header + 6)
    store16(out + f.ETHERTYPE, f.ETHERTYPE_IPV6)
    store32(out + f.IP, 0x60)
    store16(out + f.IPV6_LENGTH, swap16(_ICMP_BYTES))
    store16(out + f.IPV6_NEXT_HEADER, _PROTOCOL_ICMPV6 | (_HOP_LIMIT << 8))
    for at in range(0, 16, 8):
        store64(out + f.IPV6_SOURCE + at, load64(frame + _TARGET + at))
        store64(out + f.IPV6_DESTINATION + at, load64(frame + f.IPV6_SOURCE + at))
        store64(out + _TARGET + at, load64(frame + _TARGET + at))
    store32(out + _ICMP, _ADVERTISEMENT)
    store32(out + _ICMP + 4, _SOLICITED_OVERRIDE)
    store16(out + _OPTION, _TARGET_LINK_LAYER_ADDRESS)
    _copy_mac(out + _OPTION + 2, header + 6)
    total = f.words_sum(out + f.IPV6_SOURCE, 32) + f.words_sum(out + _ICMP, _ICMP_BYTES)
    total += swap16(_ICMP_BYTES) + (_PROTOCOL_ICMPV6 << 8)
    store16(out + _ICMP + 2, ~f.fold(total) & 0xFFFF)
    r.put(tx, _NDP_REPLY_BYTES)
    return _ANSWERED


@njit(nogil=True, forceinline=True)
def answer(port, tx, frame, length, p, counts):  # type: ignore[no-untyped-def]
    """Answer on ring `tx` a frame that a port took and that is of no connection or stream, where it asks for an
    address behind that port; count the answer, or a frame that is not ours. Whether it was answered."""
    first, many = p[lay.CLIENT_IP], p[lay.CLIENT_IPS]
    if port == lay.SERVER:
        first, many = p[lay.SERVER_IP], p[lay.SERVER_IPS]
    if p[lay.SHIFT]:
        done = _answer_ndp(tx, frame, length, p[lay.MACS + port], first, many)
    else:
        done = _answer_arp(tx, frame, length, p[lay.MACS + port], first, many, p[lay.NEXT_HOP + port])
    if done == _ANSWERED:
        counts[lay.TX_PACKETS + port] += 1
        counts[lay.TX_BYTES + port] += _NDP_REPLY_BYTES if p[lay.SHIFT] else _ARP_REPLY_BYTES
    elif done == _NOT_ARP:
        counts[lay.FOREIGN] += 1
    return done == _ANSWERED

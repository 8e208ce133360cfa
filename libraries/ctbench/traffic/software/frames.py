"""Frames: Ethernet, IP, TCP and UDP headers written to and read from a buffer, with checksums that are right.

Addresses and ports are kept as the 32-bit words that stand in the packet, so that comparing and answering needs no
byte swap. Every TCP segment carries the time stamp option (RFC 7323): its value names the connection's record, and
because TCP echoes it, each side finds its record without a search. UDP carries the same word at the start of its
payload. The word is only a hint: addresses and ports are compared with the record before a frame counts.

With IPv6 the clients' addresses differ in their last 32 bits only, and so do the servers': those are what connections,
flows and frames are known by, as IPv4 addresses are. What is the same in all of them stands in a template per end
(`header_of`). An IPv6 header is `IPV6_SHIFT` bytes longer than one of IPv4, so everything behind it, and the last 32
bits of the destination, are where they are with IPv4 when one counts from `frame + IPV6_SHIFT`.

Either port answers for the addresses that live behind it, so that a DUT finds them by itself: ARP (RFC 826), and
neighbour discovery with IPv6 (RFC 4861).
"""

import struct
from ipaddress import IPv6Address

from numba import njit

from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import (
    load8,
    load16,
    load32,
    load64,
    store8,
    store16,
    store32,
    store64,
    swap16,
    swap32,
)

#: An IPv6 header's length less that of an IPv4 header.
IPV6_SHIFT = 20
#: Bytes of a template: Ethernet and IPv6 headers, the sum of both prefixes, the next hop.
HEADER_BYTES = 80
#: Offsets in a frame and in a template; addresses end with the 32 bits that tell clients (servers) apart.
IPV6_LENGTH, IPV6_NEXT_HEADER, IPV6_SOURCE, IPV6_DESTINATION, IPV6_END = 18, 20, 22, 38, 54
IPV6_LAST_WORD = 12
#: Offsets in a template: of both prefixes as `fold` adds them, and of the address that ND is answered for too.
PREFIX_SUM, NEXT_HOP = 56, 64

ETHERTYPE_IPV6 = 0xDD86  # as it stands in memory
_HOP_LIMIT = 64


def header_of(macs: bytes, source: str, destination: str, next_hop: str = "") -> bytes:
    """The template of an end. `macs`: destination and source; `source`, `destination`: an address of each side;
    `next_hop`: for which the end answers neighbour solicitations besides its own addresses, where it is of IPv6."""
    prefixes = [IPv6Address(address).packed[:IPV6_LAST_WORD] for address in (source, destination)]
    total = sum(struct.unpack("<12H", b"".join(prefixes)))
    ip = struct.pack(">IHBB", 6 << 28, 0, 0, _HOP_LIMIT) + b"".join(prefix + bytes(4) for prefix in prefixes)
    hop = IPv6Address(next_hop).packed if ":" in next_hop else bytes(16)
    return (macs + b"\x86\xdd" + ip).ljust(PREFIX_SUM, b"\0") + struct.pack("<Q", total) + hop


@njit(nogil=True)
def write_ipv6(frame, header, source, destination, length, protocol):  # type: ignore[no-untyped-def]
    """Ethernet and IPv6 headers; two bytes behind them are overwritten. `header`: address of the template; `source`,
    `destination`: last 32 bits as they stand; `length`: bytes behind the header. Returns the sum of both prefixes, for
    the checksum."""
    for at in range(0, 56, 8):
        store64(frame + at, load64(header + at))
    store16(frame + IPV6_LENGTH, swap16(length))
    store8(frame + IPV6_NEXT_HEADER, protocol)
    store32(frame + IPV6_SOURCE + IPV6_LAST_WORD, source)
    store32(frame + IPV6_DESTINATION + IPV6_LAST_WORD, destination)
    return load32(header + PREFIX_SUM)


#: Offsets in the frame.
ETHERTYPE, IP, L4 = 12, 14, 34
IP_LENGTH, IP_FRAGMENT, IP_PROTOCOL, IP_SOURCE, IP_DESTINATION = 16, 20, 23, 26, 30
TCP_SEQ, TCP_ACK, TCP_OFFSET, TCP_FLAGS, TCP_CHECKSUM = 38, 42, 46, 47, 50
UDP_LENGTH, UDP_CHECKSUM, UDP_PAYLOAD = 38, 40, 42
#: The time stamp option behind two NOPs (data segments), or behind the maximum segment size and two NOPs (SYN).
DATA_TSVAL, DATA_TSECR, TCP_PAYLOAD = 58, 62, 66
SYN_TSVAL, SYN_TSECR, SYN_END = 62, 66, 70

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
PROTOCOL_TCP, PROTOCOL_UDP = 6, 17

#: What `classify` says of a frame: broken or foreign frames are below 0.
IS_TCP, IS_UDP, IS_OTHER, IS_BAD_CHECKSUM = 1, 2, -1, -2

# Words as they stand in memory on a little-endian machine.
_ETHERTYPE_IPV4 = 0x0008
_NOP_NOP_TIMESTAMP = 0x0A080101
_MSS_1460 = 0xB4050402
_TTL_64 = 0x40
_DONT_FRAGMENT = 0x0040
_WINDOW_65535 = 0xFFFF


#: Payload of requests and of replies: 'x' and 'y', as in the published procedure.
REQUEST_PATTERN = 0x7878787878787878
REPLY_PATTERN = 0x7979797979797979


@njit(nogil=True, forceinline=True)
def fold(total):  # type: ignore[no-untyped-def]
    """The 16-bit one's complement sum of a sum of 32-bit words (RFC 1071)."""
    total = (total & 0xFFFFFFFF) + (total >> 32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)


@njit(nogil=True, forceinline=True)
def words_sum(address, length):  # type: ignore[no-untyped-def]
    """Sum of the 32-bit words of `length` bytes; a rest of one to three bytes counts as padded with zeros."""
    total = 0
    for at in range(0, length & ~7, 8):
        pair = load64(address + at)
        total += (pair & 0xFFFFFFFF) + ((pair >> 32) & 0xFFFFFFFF)
    if length & 4:
        total += load32(address + (length & ~7))
    rest = length & 3
    if rest:
        end = address + (length & ~3)
        word = load8(end)
        if rest > 1:
            word |= load8(end + 1) << 8
        if rest > 2:
            word |= load8(end + 2) << 16
        total += word
    return total


@njit(nogil=True, forceinline=True)
def swap_ports(ports):  # type: ignore[no-untyped-def]
    """Source and destination port exchanged, both as they stand in the packet."""
    return ((ports << 16) | (ports >> 16)) & 0xFFFFFFFF


@njit(nogil=True, forceinline=True)
def write_macs(frame, macs):  # type: ignore[no-untyped-def]
    """Destination and source address, 12 bytes."""
    for at in range(0, 12, 4):
        store32(frame + at, load32(macs + at))


@njit(nogil=True, forceinline=True)
def write_ip(frame, shift, macs, source, destination, length, protocol):  # type: ignore[no-untyped-def]
    """Ethernet and IP headers. `macs`: destination and source address, 12 bytes, or with a `shift` (`IPV6_SHIFT`) a
    whole template; `length`: bytes behind the headers. Returns the sum of the pseudo-header, for the checksum."""
    pseudo_header = source + destination + (protocol << 8) + swap16(length)
    if shift:
        return pseudo_header + write_ipv6(frame, macs, source, destination, length, protocol)
    write_macs(frame, macs)
    store16(frame + ETHERTYPE, _ETHERTYPE_IPV4)
    first = 0x45 | (swap16(20 + length) << 16)
    ttl_protocol = _TTL_64 | (protocol << 8)
    store32(frame + IP, first)
    store32(frame + IP + 4, _DONT_FRAGMENT << 16)
    total = first + (_DONT_FRAGMENT << 16) + ttl_protocol + source + destination
    store32(frame + IP + 8, ttl_protocol | ((~fold(total) & 0xFFFF) << 16))
    store32(frame + IP_SOURCE, source)
    store32(frame + IP_DESTINATION, destination)
    return pseudo_header


@njit(nogil=True, forceinline=True)
def write_pattern(address, length, pattern):  # type: ignore[no-untyped-def]
    """Fill `length` bytes, rounded up to eight, with the 64-bit `pattern`; the buffer is long enough."""
    for at in range(0, length, 8):
        store64(address + at, pattern)


@njit(nogil=True, forceinline=True)
def write_tcp(  # type: ignore[no-untyped-def]
    frame, shift, macs, source, destination, ports, seq, ack, flags, tsval, tsecr, payload, pattern, pattern_sum
):
    """One TCP segment; a SYN carries a maximum segment size too. Returns the frame's length.

    `shift`, `macs`: as for `write_ip`; `seq`, `ack`: numbers; `tsval`, `tsecr`: words as they stand; `pattern_sum`:
    `words_sum` of the payload.
    """
    syn = flags & SYN
    header = 36 if syn else 32
    total = write_ip(frame, shift, macs, source, destination, header + payload, PROTOCOL_TCP)
    frame += shift
    offset_flags = ((header << 2) | (flags << 8)) & 0xFFFF
    seq_word, ack_word = swap32(seq), swap32(ack)
    store32(frame + L4, ports)
    store32(frame + TCP_SEQ, seq_word)
    store32(frame + TCP_ACK, ack_word)
    store32(frame + TCP_OFFSET, offset_flags | (_WINDOW_65535 << 16))
    total += ports + seq_word + ack_word + offset_flags + (_WINDOW_65535 << 16)
    total += _NOP_NOP_TIMESTAMP + tsval + tsecr + pattern_sum
    options = frame + 54
    if syn:
        store32(options, _MSS_1460)
        total += _MSS_1460
        options += 4
    store32(options, _NOP_NOP_TIMESTAMP)
    store32(options + 4, tsval)
    store32(options + 8, tsecr)
    store32(frame + TCP_CHECKSUM, ~fold(total) & 0xFFFF)  # and an urgent pointer of 0
    write_pattern(options + 12, payload, pattern)
    return shift + L4 + header + payload


@njit(nogil=True, forceinline=True)
def write_udp(frame, shift, macs, source, destination, ports, payload, payload_sum):  # type: ignore[no-untyped-def]
    """Headers of a UDP datagram of `payload` bytes, whose `words_sum` is known. Returns the address of the payload.
    `shift`, `macs`: as for `write_ip`."""
    length = swap16(8 + payload)
    total = write_ip(frame, shift, macs, source, destination, 8 + payload, PROTOCOL_UDP) + length + ports + payload_sum
    frame += shift
    store32(frame + L4, ports)
    checksum = ~fold(total) & 0xFFFF
    if checksum == 0:
        checksum = 0xFFFF  # 0 means "no checksum" (RFC 768)
    store32(frame + UDP_LENGTH, length | (checksum << 16))
    return frame + UDP_PAYLOAD


@njit(nogil=True)
def _classify_ipv6(frame, length, header):  # type: ignore[no-untyped-def]
    """As `classify`, of a frame from the other end's prefix to that of the end whose template is at `header`. The
    length, the protocol and the last 32 bits of the source are written to where an IPv4 frame at `frame + IPV6_SHIFT`
    has them: the code that reads on from there does not have to know the version."""
    segment = swap16(load16(frame + IPV6_LENGTH))
    protocol = load8(frame + IPV6_NEXT_HEADER)
    if load16(frame + ETHERTYPE) != ETHERTYPE_IPV6 or load8(frame + IP) >> 4 != 6:
        return IS_OTHER
    if segment + IPV6_END > length or segment < 8:
        return IS_OTHER
    if protocol != PROTOCOL_TCP and protocol != PROTOCOL_UDP:
        return IS_OTHER
    if (
        load64(frame + IPV6_SOURCE) != load64(header + IPV6_DESTINATION)
        or load32(frame + IPV6_SOURCE + 8) != load32(header + IPV6_DESTINATION + 8)
        or load64(frame + IPV6_DESTINATION) != load64(header + IPV6_SOURCE)
        or load32(frame + IPV6_DESTINATION + 8) != load32(header + IPV6_SOURCE + 8)
    ):
        return IS_OTHER
    source = load32(frame + IPV6_SOURCE + IPV6_LAST_WORD)
    total = load32(header + PREFIX_SUM) + source + load32(frame + IPV6_DESTINATION + IPV6_LAST_WORD)
    right = fold(total + (protocol << 8) + swap16(segment) + words_sum(frame + IPV6_END, segment)) == 0xFFFF
    as_ipv4 = frame + IPV6_SHIFT
    store16(as_ipv4 + IP_LENGTH, swap16(segment + L4 - IP))
    store8(as_ipv4 + IP_PROTOCOL, protocol)
    store32(as_ipv4 + IP_SOURCE, source)
    if not right or (protocol == PROTOCOL_UDP and load16(as_ipv4 + UDP_CHECKSUM) == 0):
        return IS_BAD_CHECKSUM
    return IS_TCP if protocol == PROTOCOL_TCP else IS_UDP


@njit(nogil=True, forceinline=True)
def classify(frame, length, shift, header):  # type: ignore[no-untyped-def]
    """What a received frame is: IPv4 without options or fragments, TCP or UDP, with right checksums; or not. With a
    `shift` (`IPV6_SHIFT`) the same of IPv6 without extension headers, see `_classify_ipv6`."""
    if shift:
        return _classify_ipv6(frame, length, header)
    if load16(frame + ETHERTYPE) != _ETHERTYPE_IPV4 or load8(frame + IP) != 0x45:
        return IS_OTHER
    total = swap16(load16(frame + IP_LENGTH))
    if total + IP > length or total < 28 or load16(frame + IP_FRAGMENT) & 0xFF3F:
        return IS_OTHER
    protocol = load8(frame + IP_PROTOCOL)
    if protocol != PROTOCOL_TCP and protocol != PROTOCOL_UDP:
        return IS_OTHER
    addresses = load32(frame + IP_SOURCE) + load32(frame + IP_DESTINATION)
    if fold(addresses + load32(frame + IP) + load32(frame + IP + 4) + load32(frame + IP + 8)) != 0xFFFF:
        return IS_BAD_CHECKSUM
    segment = total - 20
    if protocol == PROTOCOL_UDP and load16(frame + UDP_CHECKSUM) == 0:
        return IS_BAD_CHECKSUM  # we always send one: it was taken away on the way
    if fold(addresses + (protocol << 8) + swap16(segment) + words_sum(frame + L4, segment)) != 0xFFFF:
        return IS_BAD_CHECKSUM
    return IS_TCP if protocol == PROTOCOL_TCP else IS_UDP


@njit(nogil=True, forceinline=True)
def tag_of(frame, protocol, echoed):  # type: ignore[no-untyped-def]
    """The word that names the connection, whatever else the frame holds. `echoed`: read the peer's echo (client side).

    Reads at most the first 70 bytes, which every buffer has.
    """
    if protocol == PROTOCOL_UDP:
        return load32(frame + UDP_PAYLOAD)
    at = SYN_TSVAL if load8(frame + TCP_FLAGS) & SYN else DATA_TSVAL
    return load32(frame + at + 4) if echoed else load32(frame + at)


@njit(nogil=True, forceinline=True)
def tcp_payload_bytes(frame):  # type: ignore[no-untyped-def]
    """Bytes of payload of a TCP segment."""
    return swap16(load16(frame + IP_LENGTH)) - 20 - ((load8(frame + TCP_OFFSET) >> 4) << 2)


#: Offsets in an ARP frame: operation, the sender's MAC and IP address, the target's.
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
_SOLICITATION, _ADVERTISEMENT, _PROTOCOL_ICMPV6, _NDP_HOP_LIMIT = 135, 136, 58, 255
_SOLICITED_OVERRIDE = 0x60  # first byte of the flags
_TARGET_LINK_LAYER_ADDRESS = 0x0102  # option 2, of one unit of 8 bytes


@njit(nogil=True)
def _answer_ndp(tx, frame, length, header, first, count):  # type: ignore[no-untyped-def]
    """Answer a solicitation of one of `count` addresses from `first` (last 32 bits, a number) with the prefix of the
    template at `header`, or of its next hop. Returns `_NOT_ARP` for any other frame, `_IGNORED` or
    `_ANSWERED`, which put a frame of `_NDP_REPLY_BYTES`."""
    if (
        length < _OPTION
        or load16(frame + ETHERTYPE) != ETHERTYPE_IPV6
        or load8(frame + IPV6_NEXT_HEADER) != _PROTOCOL_ICMPV6
        or load8(frame + _ICMP) != _SOLICITATION
    ):
        return _NOT_ARP
    ours = load64(frame + _TARGET) == load64(header + IPV6_SOURCE)
    ours = ours and load32(frame + _TARGET + 8) == load32(header + IPV6_SOURCE + 8)
    ours = ours and first <= swap32(load32(frame + _TARGET + IPV6_LAST_WORD)) < first + count
    hop = load64(frame + _TARGET) == load64(header + NEXT_HOP)
    hop = hop and load64(frame + _TARGET + 8) == load64(header + NEXT_HOP + 8)
    unspecified = load64(frame + IPV6_SOURCE) == 0 and load64(frame + IPV6_SOURCE + 8) == 0  # looks for duplicates
    if not (ours or hop) or unspecified or not r.room(tx):
        return _IGNORED
    out = r.next_buffer(tx)
    _copy_mac(out, frame + 6)
    _copy_mac(out + 6, header + 6)
    store16(out + ETHERTYPE, ETHERTYPE_IPV6)
    store32(out + IP, 0x60)
    store16(out + IPV6_LENGTH, swap16(_ICMP_BYTES))
    store16(out + IPV6_NEXT_HEADER, _PROTOCOL_ICMPV6 | (_NDP_HOP_LIMIT << 8))
    for at in range(0, 16, 8):
        store64(out + IPV6_SOURCE + at, load64(frame + _TARGET + at))
        store64(out + IPV6_DESTINATION + at, load64(frame + IPV6_SOURCE + at))
        store64(out + _TARGET + at, load64(frame + _TARGET + at))
    store32(out + _ICMP, _ADVERTISEMENT)
    store32(out + _ICMP + 4, _SOLICITED_OVERRIDE)
    store16(out + _OPTION, _TARGET_LINK_LAYER_ADDRESS)
    _copy_mac(out + _OPTION + 2, header + 6)
    total = words_sum(out + IPV6_SOURCE, 32) + words_sum(out + _ICMP, _ICMP_BYTES)
    total += swap16(_ICMP_BYTES) + (_PROTOCOL_ICMPV6 << 8)
    store16(out + _ICMP + 2, ~fold(total) & 0xFFFF)
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

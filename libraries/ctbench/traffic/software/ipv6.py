"""A received IPv6 frame, brought into the shape that all else reads: that of IPv4, `ipv6_header.SHIFT` bytes on."""

from numba import njit

from ctbench.traffic.software import frames as f
from ctbench.traffic.software.ipv6_header import (
    DESTINATION,
    END,
    ETHERTYPE_IPV6,
    LAST_WORD,
    LENGTH,
    NEXT_HEADER,
    PREFIX_SUM,
    SHIFT,
    SOURCE,
)
from ctbench.traffic.software.machine_code import load8, load16, load32, load64, store8, store16, store32, swap16


@njit(nogil=True)
def classify(frame, length, header, tagged=False):  # type: ignore[no-untyped-def]
    """As `frames.classify`, of an IPv6 frame without extension headers, from the other end's prefix to that of the end
    whose template is at `header`. The length, the protocol and the last 32 bits of the source are written to where an
    IPv4 frame at `frame + SHIFT` has them: the code that reads on from there does not have to know the version."""
    if length < (f.SMALLEST_FRAME - 4 if tagged else f.SMALLEST_FRAME) or load16(frame + f.ETHERTYPE) != ETHERTYPE_IPV6:
        return f.IS_OTHER
    segment = swap16(load16(frame + LENGTH))
    protocol = load8(frame + NEXT_HEADER)
    if load8(frame + f.IP) >> 4 != 6 or segment + END > length or segment < 8:
        return f.IS_OTHER
    if protocol != f.PROTOCOL_TCP and protocol != f.PROTOCOL_UDP:
        return f.IS_OTHER
    if (
        load64(frame + SOURCE) != load64(header + DESTINATION)
        or load32(frame + SOURCE + 8) != load32(header + DESTINATION + 8)
        or load64(frame + DESTINATION) != load64(header + SOURCE)
        or load32(frame + DESTINATION + 8) != load32(header + SOURCE + 8)
    ):
        return f.IS_OTHER
    source = load32(frame + SOURCE + LAST_WORD)
    total = load32(header + PREFIX_SUM) + source + load32(frame + DESTINATION + LAST_WORD)
    right = f.fold(total + (protocol << 8) + swap16(segment) + f.words_sum(frame + END, segment)) == 0xFFFF
    as_ipv4 = frame + SHIFT
    store16(as_ipv4 + f.IP_LENGTH, swap16(segment + f.L4 - f.IP))
    store8(as_ipv4 + f.IP_PROTOCOL, protocol)
    store32(as_ipv4 + f.IP_SOURCE, source)
    if not right or (protocol == f.PROTOCOL_UDP and load16(as_ipv4 + f.UDP_CHECKSUM) == 0):
        return f.IS_BAD_CHECKSUM
    return f.IS_TCP if protocol == f.PROTOCOL_TCP else f.IS_UDP

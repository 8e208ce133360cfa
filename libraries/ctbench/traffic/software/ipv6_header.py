"""IPv6 headers: written from a template that has all that is the same in an end's frames.

The clients' addresses differ in their last 32 bits only, and so do the servers': those are what connections, flows and
frames are known by, as IPv4 addresses are. What is the same in all of them stands in a template per end (`header_of`).
An IPv6 header is `SHIFT` bytes longer than one of IPv4, so everything behind it, and the last 32 bits of the
destination, are where they are with IPv4 when one counts from `frame + SHIFT`.
"""

import struct
from ipaddress import IPv6Address

from numba import njit

from ctbench.traffic.software.machine_code import load32, load64, store8, store16, store32, store64, swap16

#: An IPv6 header's length less that of an IPv4 header.
SHIFT = 20
#: Bytes of a template: Ethernet and IPv6 headers, the sum of both prefixes, the next hop.
HEADER_BYTES = 80
#: Offsets in a frame and in a template; addresses end with the 32 bits that tell clients (servers) apart.
LENGTH, NEXT_HEADER, SOURCE, DESTINATION, END = 18, 20, 22, 38, 54
LAST_WORD = 12
#: Offsets in a template: of both prefixes as `frames.fold` adds them, and of the address that ND is answered for too.
PREFIX_SUM, NEXT_HOP = 56, 64

ETHERTYPE_IPV6 = 0xDD86  # as it stands in memory
_HOP_LIMIT = 64


def header_of(macs: bytes, source: str, destination: str, next_hop: str = "") -> bytes:
    """The template of an end. `macs`: destination and source; `source`, `destination`: an address of each side;
    `next_hop`: for which the end answers neighbour solicitations besides its own addresses, where it is of IPv6."""
    prefixes = [IPv6Address(address).packed[:LAST_WORD] for address in (source, destination)]
    total = sum(struct.unpack("<12H", b"".join(prefixes)))
    ip = struct.pack(">IHBB", 6 << 28, 0, 0, _HOP_LIMIT) + b"".join(prefix + bytes(4) for prefix in prefixes)
    hop = IPv6Address(next_hop).packed if ":" in next_hop else bytes(16)
    return (macs + b"\x86\xdd" + ip).ljust(PREFIX_SUM, b"\0") + struct.pack("<Q", total) + hop


@njit(nogil=True)
def write_ip(frame, header, source, destination, length, protocol):  # type: ignore[no-untyped-def]
    """Ethernet and IPv6 headers; two bytes behind them are overwritten. `header`: address of the template; `source`,
    `destination`: last 32 bits as they stand; `length`: bytes behind the header. Returns the sum of both prefixes, for
    the checksum."""
    for at in range(0, 56, 8):
        store64(frame + at, load64(header + at))
    store16(frame + LENGTH, swap16(length))
    store8(frame + NEXT_HEADER, protocol)
    store32(frame + SOURCE + LAST_WORD, source)
    store32(frame + DESTINATION + LAST_WORD, destination)
    return load32(header + PREFIX_SUM)

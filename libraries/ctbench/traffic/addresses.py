"""Addresses of a profile: what it may name, and how a generator counts through them."""

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

from ctbench.base.units import quoted

IpVersion = Literal[4, 6]
Address = IPv4Address | IPv6Address
_TYPES: dict[IpVersion, type[IPv4Address] | type[IPv6Address]] = {4: IPv4Address, 6: IPv6Address}
#: One that a profile may begin with: of the networks of TRex's profiles, and of RFC 5180's for benchmarks.
_EXAMPLES: dict[IpVersion, str] = {4: "16.0.0.1", 6: "2001:2:0:16::1"}
#: Networks whose addresses no host forwards: this network, loopback, and all from multicast on (RFC 6890); of IPv6
#: unspecified and loopback, what stays on a link, and multicast (RFC 4291).
_NOT_FORWARDED: dict[IpVersion, tuple[IPv4Network | IPv6Network, ...]] = {
    4: tuple(IPv4Network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3")),
    6: tuple(IPv6Network(net) for net in ("::/127", "fe80::/10", "ff00::/8")),
}
#: What tells addresses of a side apart: an IPv4 address, or the last bits of an IPv6 one.
WORD_BITS = 32
_WORD = 1 << WORD_BITS


@lru_cache(maxsize=1000)  # every record has its profile, and a generator asks for every flow
def as_address(text: str) -> Address:
    """An address of either version; `ValueError` where the text is not an address."""
    return ip_address(text)


def last_word(text: str) -> int:
    """What counts the addresses of a side from this one on: the last 32 bits."""
    return int(as_address(text)) % _WORD


def require(version: IpVersion, text: str) -> None:
    """`ValueError` says what is wrong with an address of a profile."""
    try:
        _TYPES[version](text)
    except AddressValueError:
        raise ValueError(
            f"{quoted(text)} is not an IPv{version} address.\n  Expected one such as {quoted(_EXAMPLES[version])}."
        ) from None


def require_range(key: str, version: IpVersion, first: str, count: int) -> None:
    """`ValueError` says why `count` addresses from `first` cannot be those of a side, `key`."""
    begin = int(as_address(first))
    if begin % _WORD + count > _WORD:
        end = "255.255.255.255" if version == 4 else "the last 32 bits of an address"
        raise ValueError(f"{key}: {count} addresses go beyond {end}.\n  Expected fewer.")
    for net in _NOT_FORWARDED[version]:
        if begin <= int(net.broadcast_address) and int(net.network_address) < begin + count:
            raise ValueError(
                f"{key}: {count} addresses from {first} reach into {net}, which nobody forwards.\n"
                f"  Expected addresses such as {quoted(_EXAMPLES[version])}."
            )

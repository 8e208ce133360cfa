"""Validated types of settings (addresses, interfaces, hosts, users, paths), and constants of Ethernet."""

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel

Port = TypeVar("Port")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_ZONE = re.compile(r"[0-9A-Fa-f:.]+%[A-Za-z0-9_.-]{1,15}")
#: Linux has at most 8192 CPUs.
MOST_CPU = 8191


def valid(check: str | Callable[[str], object], what: str, expected: str, *, or_empty: bool = False) -> AfterValidator:
    """Return a validator of texts. `check`: a pattern for the whole text, or a function that returns a true value for a
    valid text, and a false one or `ValueError` for another. `what`: the name of a valid text in messages."""
    pattern = re.compile(check) if isinstance(check, str) else None

    def validate(text: str) -> str:
        if or_empty and not text:
            return text
        try:
            fits = pattern.fullmatch(text) if pattern else callable(check) and check(text)
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{quoted(text)} is not {what}.\n  Expected {expected}.")
        return text

    return AfterValidator(validate)


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        looks_like_ip = text.replace(".", "").isdigit()
        return not looks_like_ip and _HOST_NAME.fullmatch(text) is not None
    return "%" not in text or _ZONE.fullmatch(text) is not None


def _is_path(text: str) -> bool:
    return text.isprintable() and len(text) <= 1024


def _check_home(text: str) -> str:
    try:
        Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"{quoted(text)}: no such home directory.\n  Expected a path on this machine.") from None
    return text


#: Name or address of a host.
Address = Annotated[
    str,
    valid(
        _is_host,
        "a name or address of a host",
        'letters, digits, dashes and dots, such as "dut.lab.example", or "192.0.2.1"',
    ),
]
#: Name of an entry of `hosts`.
HostKey = Annotated[str, valid(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "a name for a host", 'one such as "dut"')]
User = Annotated[str, valid(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$+-]{0,127}", "a name of a user", 'one such as "root"')]
#: What the kernel takes: 15 bytes, no slash. None begins with a dash, which commands take for an option.
Interface = Annotated[
    str, valid(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}", "a name of a network interface", 'one such as "ens1f0"')
]
PciAddress = Annotated[
    str,
    valid(
        r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]",
        "a PCI address",
        'one in full and in small letters, such as "0000:18:00.2"',
    ),
]
#: Empty, or the MAC address of a port; those of groups have an odd first byte.
Mac = Annotated[
    str,
    valid(
        r"(?!00:00:00:00:00:00)[0-9a-f][02468ace](?::[0-9a-f]{2}){5}",
        "a MAC address of a port",
        'six pairs of small hexadecimal digits, of which the first is even, such as "04:3f:72:f2:8f:32"',
        or_empty=True,
    ),
]
#: Empty, or such an address.
Ipv4 = Annotated[str, valid(ipaddress.IPv4Address, "an IPv4 address", 'one such as "16.0.0.1"', or_empty=True)]
#: A path on another host, or one on this machine, which may begin with ~. Empty: no path.
PathText = Annotated[str, valid(_is_path, "a path", "at most 1024 characters that can be shown")]
#: A word of the command line of a program.
ProgramWord = Annotated[
    str,
    valid(r"[!-~]{1,256}", "a word of a command line", 'one word for each entry, such as "--mbuf-factor" and then "2"'),
]
PathHere = Annotated[PathText, AfterValidator(_check_home)]


class InterfacePair(YamlModel):
    """A pair of ports: the interface towards the clients, and towards the servers."""

    client: Interface
    server: Interface


#: Bytes of the frame check sequence: frame sizes of profiles count it, as RFC 2544 does; throughput does not.
FCS_BYTES = 4
#: Of the header before a packet of IP, without a VLAN tag.
HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
#: Ethernet's least frame, bytes with FCS.
LEAST_FRAME = 64
#: On the wire in addition to the frame: preamble, start delimiter and the least gap, bytes.
GAP_BYTES = 20

#: The VLAN of every topology and profile that has one.
VLAN_ID = 100
#: Pairs of ports at most, of a DUT and of a generator.
MOST_PORT_PAIRS = 4


def own_macs(pair: int) -> tuple[str, str]:
    """Return the MAC addresses of the traffic generator's client end and server end where it has no network cards. They
    are locally administered. `pair`: the pair of ports, from 0 on."""
    return f"02:00:00:00:{pair:02x}:01", f"02:00:00:00:{pair:02x}:02"


def named_ports(pairs: Iterable[tuple[Port, Port]]) -> list[tuple[str, Port]]:
    """Return the ports of all pairs, each with its name: `client`, `server`, then `client 2`, `server 2`, ..."""
    return [
        (f"{side} {number}" if number > 1 else side, port)
        for number, pair in enumerate(pairs, 1)
        for side, port in zip(("client", "server"), pair, strict=True)
    ]


def check_options(key: str, words: Sequence[str], ours: Collection[str]) -> None:
    """Raise `ValueError` where the further options of a program do not begin with one, or contain one that a run sets
    itself (`ours`)."""
    if words and not words[0].startswith("-"):
        raise ValueError(f"{key}: {quoted(words[0])} is not an option.\n  Expected one that begins with a dash.")
    # A value follows a long option behind "=", and a short one at once: `-m1024`.
    if taken := [word for word in words if word.partition("=")[0] in ours or (word[:2] in ours and word[1:2] != "-")]:
        raise ValueError(f"{key}: {quoted(taken[0])} is set by the run itself.\n  Expected other options.")

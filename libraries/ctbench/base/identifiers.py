"""Texts that name things of the network and of the file system: what can be such a name at all."""

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from ctbench.base.units import quoted

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_ZONE = re.compile(r"[0-9A-Fa-f:.]+%[A-Za-z0-9_.-]{1,15}")
#: Linux has at most 8192 CPUs.
MOST_CPU = 8191


def _matching(pattern: str, what: str, example: str) -> AfterValidator:
    """A validator of texts that match as a whole; `what`: what others are none of."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"{quoted(text)} is no {what}.\n  Expected {example}.")
        return text

    return AfterValidator(check)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text or _ZONE.fullmatch(text) is not None


def _check_address(text: str) -> str:
    looks_like_ip = text.replace(".", "").isdigit()
    if not _is_ip(text) and (looks_like_ip or not _HOST_NAME.fullmatch(text)):
        raise ValueError(
            f"{quoted(text)} is no name or address of a host.\n"
            '  Expected letters, digits, dashes and dots, such as "dut.lab.example", or "192.0.2.1".'
        )
    return text


def _check_ipv4(text: str) -> str:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        raise ValueError(f'{quoted(text)} is not an IPv4 address.\n  Expected one such as "16.0.0.1".') from None
    return text


def _check_mac(text: str) -> str:
    of_a_port = re.fullmatch(r"[0-9a-f][02468ace](?::[0-9a-f]{2}){5}", text)  # odd: of a group
    if not of_a_port or text == "00:00:00:00:00:00":
        raise ValueError(
            f"{quoted(text)} is no MAC address of a port.\n"
            '  Expected six pairs of small hexadecimal digits, of which the first is even, such as "04:3f:72:f2:8f:32".'
        )
    return text


def _check_path(text: str) -> str:
    if not text.isprintable() or len(text) > 1024:
        raise ValueError(f"{quoted(text)} is no path.\n  Expected at most 1024 characters that can be shown.")
    return text


def _check_path_here(text: str) -> str:
    try:
        Path(_check_path(text)).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{quoted(text)}: ~ stands for the home folder of nobody.\n  Expected a path on this machine."
        ) from None
    return text


def _or_empty(check: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda text: check(text) if text else "")


#: Name or address of a host.
Address = Annotated[str, AfterValidator(_check_address)]
#: Name of an entry of `hosts`.
HostKey = Annotated[str, _matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "name for a host", 'one such as "dut"')]
User = Annotated[str, _matching(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$+-]{0,127}", "name of a user", 'one such as "root"')]
#: What the kernel takes: 15 bytes, no slash. None begins with a dash, which commands take for an option.
Interface = Annotated[
    str, _matching(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}", "name of a network interface", 'one such as "ens1f0"')
]
PciAddress = Annotated[
    str,
    _matching(
        r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]",
        "PCI address",
        'one in full and in small letters, such as "0000:18:00.2"',
    ),
]
#: Empty, or such an address.
Mac = Annotated[str, _or_empty(_check_mac)]
Ipv4 = Annotated[str, _or_empty(_check_ipv4)]
#: A path on another host, or one on this machine, which may begin with ~. Empty: no path.
PathText = Annotated[str, AfterValidator(_check_path)]
PathHere = Annotated[str, AfterValidator(_check_path_here)]

"""Offloads of an interface of the kernel, which merge received frames and cut up sent ones."""

import re

#: Offload as `ethtool -k` shows it -> the word by which `ethtool -K` sets it.
OFFLOADS = {
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-gro-hw": "rx-gro-hw",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
}
#: Those that make one of several frames before a program receives them.
MERGING = ("gro", "lro", "rx-gro-hw")


def read_offloads(said: str) -> dict[str, bool]:
    """Return word -> whether the offload is on, from the output of `ethtool -k`; offloads that it does not show are
    left out."""
    found = re.findall(r"^([\w-]+): (on|off)\b", said, re.MULTILINE)
    return {OFFLOADS[shown]: state == "on" for shown, state in found if shown in OFFLOADS}


def merging(said: str) -> list[str]:
    return [word for word, is_on in read_offloads(said).items() if is_on and word in MERGING]


def switch_off(interface: str, words: list[str]) -> str:
    """Return the command that switches offloads off."""
    return f"ethtool -K {interface} {' '.join(f'{word} off' for word in words)}"

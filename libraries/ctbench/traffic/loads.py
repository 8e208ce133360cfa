"""The kinds of load that a traffic generator can offer, and their names in sentences."""

from collections.abc import Set

from ctgen import Hold, Load, Rate, Saturation, saturating

__all__ = ["Hold", "Load", "Rate", "Saturation", "in_words", "saturating"]

#: For sentences.
_WORDS: dict[type[Load], str] = {
    Rate: "a rate of connections or packets",
    Hold: "a number of connections that stay open",
    Saturation: "a closed loop",
}


def in_words(kinds: Set[type[Load]]) -> str:
    return " and ".join(words for kind, words in _WORDS.items() if kind in kinds) or "nothing"

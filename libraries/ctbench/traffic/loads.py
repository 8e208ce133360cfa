"""What a traffic generator can be asked to offer, and the sentence where one does not."""

from collections.abc import Set

from ctbench.base.errors import MissingResource
from ctgen import Hold, Load, Rate, Saturation, saturating

__all__ = ["Hold", "Load", "Rate", "Saturation", "in_words", "require", "saturating"]

#: For sentences.
_WORDS: dict[type[Load], str] = {
    Rate: "a rate of connections or packets",
    Hold: "a number of connections that stay open",
    Saturation: "a closed loop",
}


def in_words(kinds: Set[type[Load]]) -> str:
    return " and ".join(words for kind, words in _WORDS.items() if kind in kinds) or "nothing"


def require(offers: Set[type[Load]], load: Load, generator: str) -> None:
    """Raise `MissingResource` where a generator does not offer a load. `generator`: what to call it in a sentence."""
    if type(load) not in offers:
        raise MissingResource(
            f"{_WORDS[type(load)].capitalize()} is needed, and {generator} offers {in_words(offers)} only: use a "
            "testbed with another traffic generator."
        )

"""What a traffic generator can be asked to offer: a rate, a number of connections held open, or nothing."""

import math
from collections.abc import Set
from dataclasses import dataclass

from ctbench.base.errors import ConfigError, MissingResource


@dataclass(frozen=True)
class Rate:
    """So many connections, or packets, per second: whatever the profile counts."""

    per_s: float

    def __post_init__(self) -> None:
        if not 0 < self.per_s < math.inf:
            raise ConfigError(f"An offered load of {self.per_s:g} per second is not possible. Expected more than 0.")


@dataclass(frozen=True)
class Hold:
    """So many connections, opened at a rate and then kept open."""

    connections: int
    #: Connections opened per second until all are open.
    opened_per_s: float

    def __post_init__(self) -> None:
        if self.connections < 1 or not 0 < self.opened_per_s < math.inf:
            raise ConfigError(
                f"{self.connections} connections, {self.opened_per_s:g} opened per second, cannot be held open."
                " Expected more than 0 of both."
            )


@dataclass(frozen=True)
class Idle:
    """Nothing: the ports are open, and what still arrives is counted."""


Load = Rate | Hold | Idle

#: For sentences.
_WORDS: dict[type[Load], str] = {
    Rate: "a rate of connections or packets",
    Hold: "a number of connections that stay open",
    Idle: "an idle time",
}


def in_words(kinds: Set[type[Load]]) -> str:
    """Kinds of loads, for a sentence."""
    return " and ".join(words for kind, words in _WORDS.items() if kind in kinds) or "nothing"


def require(offers: Set[type[Load]], load: Load, generator: str) -> None:
    """Raise `MissingResource` where a generator does not offer a load. `generator`: what to call it in a sentence."""
    if type(load) not in offers:
        raise MissingResource(
            f"{_WORDS[type(load)].capitalize()} is needed, and {generator} offers {in_words(offers)} only: use a "
            "testbed with another traffic generator."
        )

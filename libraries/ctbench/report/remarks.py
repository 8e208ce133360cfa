"""What the page says of how its figures came about, besides the figures."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """What a standard asks for, and what this run did instead."""

    standard: str
    asks: str
    did: str


@dataclass(frozen=True)
class Note:
    """A sentence of the records, and how many tests it is said of."""

    text: str
    tests: str

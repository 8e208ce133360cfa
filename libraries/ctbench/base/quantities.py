"""Pydantic types of the numbers in settings and records, each with its range. They are not in `ctbench.base.units`,
which imports no package: `./run --help` needs it before anything is installed."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field

from ctbench.base.units import parse_duration, parse_number, parse_ratio, quoted


def within(
    parse: Callable[[object], float], least: str, most: str, what: str, why: str, *, below: bool = False
) -> BeforeValidator:
    """Return a validator that parses a text and refuses a value outside `least` to `most` (with `below`, `most` as
    well).

    `what`: the name of the value in messages, `load`; `why`: the reason for the range, a sentence without its full
    stop.
    """
    lowest, highest = parse(least), parse(most)

    def check(value: object) -> float:
        number = parse(value)
        if number < lowest or number > highest or (below and number == highest):
            end = f"less than {most}" if below else most
            raise ValueError(f"{quoted(value)} is not a valid {what}.\n  Expected from {least} to {end}: {why}.")
        return number

    return BeforeValidator(check)


#: Connections or packets per second that are offered.
Load = Annotated[
    float, within(parse_number, "1", "1G", "load", "connections or packets per second that a generator can offer")
]
#: Connections that are open at once.
Connections = Annotated[
    float, within(parse_number, "1", "16777216", "number of connections", "the software generator holds no more")
]
#: From 0 to 1.
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
LossRatio = Annotated[
    float, within(parse_ratio, "0%", "50%", "loss ratio", "a trial that lost more than half held nothing")
]
#: How near two loads are to each other, relative to the lower one.
Width = Annotated[
    float,
    within(parse_ratio, "0.001%", "100%", "width", "nearer to each other two loads cannot be told apart", below=True),
]
TrialDuration = Annotated[float, within(parse_duration, "10ms", "60min", "time for a trial", "RFC 9411 asks for 300s")]
Pause = Annotated[float, within(parse_duration, "0s", "10min", "pause", "it is made before each trial")]
Budget = Annotated[float, within(parse_duration, "0s", "1000min", "time", "trials of a whole run are made again in it")]


#: No count, rate or time of a measurement is larger: it would take a terabit link a year.
MOST = 10**18
#: Trials of many minutes on many CPUs make records of a megabyte.
MOST_RECORD_BYTES = 32_000_000

Count = Annotated[int, Field(ge=0, le=MOST)]
#: A rate, a time, a ratio.
Amount = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Real = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]

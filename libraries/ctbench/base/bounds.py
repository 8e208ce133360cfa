"""How much a record may hold: numbers are bounded, so that whatever is calculated from them stays a number."""

from typing import Annotated, Any

from pydantic import Field

#: No count, rate or time of a measurement is larger: it would take a terabit link a year.
MOST = 10**18
#: Trials of many minutes on many CPUs make records of a megabyte.
MOST_RECORD_BYTES = 32_000_000

Count = Annotated[int, Field(ge=0, le=MOST)]
#: A difference of counters, which two readings may make negative.
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
#: A rate, a time, a ratio.
Amount = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Real = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]


def require_bounded(value: Any) -> None:
    """Raise `ValueError` for facts from JSON with infinity, NaN or a number beyond `MOST` in them."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            if not isinstance(inner, str):
                require_bounded(inner)
    elif isinstance(value, int | float) and not abs(value) <= MOST:
        raise ValueError("has a number that is not finite, or too large")

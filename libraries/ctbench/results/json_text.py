"""JSON as records have it: written so that every program reads it, and read with a sentence for anything else."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ctbench.base.bounds import MOST
from ctbench.base.plain_text import printable
from ctbench.base.units import quoted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: Lists and mappings in each other, at most: programs that read JSON have limits.
MOST_LEVELS = 50
UNKNOWN_VERSION = "schema_version: {} is not known.\n  Expected 1 or 2."

_TYPES = {"model_type": "object", "dict_type": "object", "dataclass_type": "object", "list_type": "array"}


def to_text(document: Any) -> str:
    """JSON that every program reads. A fact that would not be (half a surrogate pair, infinity, a number of a thousand
    digits, fifty lists in each other) becomes text: a measurement is not thrown away for it."""
    return json.dumps(_plain(document, MOST_LEVELS), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return value if value.isascii() or _is_unicode(value) else printable(value)
    if isinstance(value, dict | list | tuple) and not levels:
        return "nested too deeply"
    if isinstance(value, dict):
        return {_plain(str(key), levels): _plain(inner, levels - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, levels - 1) for inner in value]
    if isinstance(value, int | float) and not abs(value) <= MOST:  # NaN is not
        return hex(value) if isinstance(value, int) else repr(value)
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Place = Sequence[str | int]


def why_no_record(errors: Sequence["ErrorDetails"], place_in_version_1: Callable[[Place], Place] | None = None) -> str:
    """Why a JSON document is no record: another version, else the first mistake that was found in it.
    `place_in_version_1`: of a document that was upgraded, where that mistake is in the one of version 1."""
    error = next((each for each in errors if each["loc"] == ("schema_version",)), errors[0])
    found = place_in_version_1(error["loc"]) if place_in_version_1 else error["loc"]
    kind, place, value = error["type"], [str(part) for part in found if part != "[key]"], error["input"]
    if kind == "json_invalid":
        why = error.get("ctx", {}).get("error", error["msg"])
        return f"is not JSON ({why}).\n  Expected a whole record; was the run killed?"
    if place == ["schema_version"]:
        return UNKNOWN_VERSION.format(quoted(value))
    if kind == "missing" and len(place) == 1 and "schema_version" not in value:
        return UNKNOWN_VERSION.format("missing")
    if kind in ("missing", "extra_forbidden", "unexpected_keyword_argument"):
        key = quoted(place.pop()).replace('"', "'")
        says = f"{key} was unexpected" if kind != "missing" else f"{key} is missing"
    elif kind == "literal_error":
        says = f"{_shown(value)} is not one of {error.get('ctx', {}).get('expected', 'the words for it')}"
    elif kind in _TYPES:
        says = f"{_shown(value)} is not of type '{_TYPES[kind]}'"
    else:
        says = error["msg"].removeprefix("Value error, ").rstrip(".")
    where = ".".join(place) or "the record"
    expected = "the keys and values of version 1" if place_in_version_1 else "what record.schema.json says"
    return f"{where[:200]}: {says}.\n  Expected {expected}."


def _shown(value: Any) -> str:
    """A value as JSON, shortened."""
    text = f"'{value}'" if isinstance(value, str) else str(value) if not isinstance(value, dict) else "{...}"
    return text if len(text) <= 60 else f"{text[:57]}..."

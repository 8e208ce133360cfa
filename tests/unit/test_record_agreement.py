"""Records are read by the models and published with a schema: what one takes, the other one takes."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.results.record import SCHEMA_FILE, RecordError, from_json

from .records import GOLDEN_FILES, document

VALUES: list[Any] = [None, True, 0, -1, 10**19, 1.5, -0.5, 1e300, "", "text", "5", [], ["text"], {}, {"name": "text"}]
#: What only the models know: a date, an address, what fits together.
BEYOND_THE_SCHEMA = ("started", "ended", "profile")


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


@cache
def documents() -> list[dict[str, Any]]:
    golden = [json.loads(from_json(path.read_bytes(), path.name).to_json()) for path in GOLDEN_FILES]
    return [_short(each) for each in [*golden, document()]]


def _short(whole: dict[str, Any]) -> dict[str, Any]:
    """With few trials and short timelines, so that each key comes up."""
    trials = whole["evidence"]["trials"]
    del trials[1:]
    for made in trials:
        for name, value in made["trial"].items():
            if name.startswith("timeline_") and isinstance(value, list):
                made["trial"][name] = value[:1]
    return whole


def places(part: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value in a document, and in each mapping to one more."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield (*before, key)
        yield from places(value, (*before, key))
    if isinstance(part, dict):
        yield (*before, "colour")


def accepts(whole: dict[str, Any]) -> bool:
    try:
        from_json(json.dumps(whole), "x.json")
    except RecordError:
        return False
    return True


def changed(original: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """With another value at a place, or without it (`...`)."""
    whole = copy.deepcopy(original)
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    if value is not ...:
        part[place[-1]] = value
    elif place[-1] != "colour":
        del part[place[-1]]
    return whole


def test_both_take_what_is_written() -> None:
    for each in documents():
        validator().validate(each)
        assert accepts(each)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.data())
def test_a_change_that_one_refuses_the_other_one_refuses_too(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(documents()))
    place = data.draw(st.sampled_from(list(places(original))))
    value = data.draw(st.sampled_from([..., *VALUES]))
    odd = changed(original, place, value)
    by_schema, by_models = validator().is_valid(odd), accepts(odd)
    if place[0] in BEYOND_THE_SCHEMA or _in_the_environment(place) or _a_bound(place):
        assert by_schema or not by_models, (place, value)
    else:
        assert by_schema == by_models, (place, value)


def _in_the_environment(place: tuple[Any, ...]) -> bool:
    """Facts without a name in the schema are of any kind there; the models bound their numbers."""
    return place[0] in ("environment", "campaign")


def _a_bound(place: tuple[Any, ...]) -> bool:
    """That `low` is not above `high`, the models know."""
    return place[0] == "figures" and place[-1] in ("low", "high")

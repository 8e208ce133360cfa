"""Records are read by the models and published with a schema: what one takes, the other one takes."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.results.record import SCHEMA_FILE, RecordError, from_json

from .simulated import found_packets, made_up_packet_record, made_up_record

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden-run" / "records"
VALUES: list[Any] = [None, True, 0, -1, 10**19, 1.5, -0.5, 1e300, "", "text", "5", [], ["text"], {}, {"name": "text"}]
#: What only the models know: a date, an address, a number with a unit, what fits together.
BEYOND_THE_SCHEMA = ("started", "ended", "floors", "profile")


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


@cache
def documents() -> list[dict[str, Any]]:
    golden = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json")) if path.stem != "broken"]
    made = [made_up_record(), made_up_packet_record(found_packets(1000.0))]
    return [_short(document) for document in [*golden, *(json.loads(each.to_json()) for each in made)]]


def _short(document: dict[str, Any]) -> dict[str, Any]:
    """With few trials and short timelines, so that each key comes up."""
    document["trials"] = document["trials"][:1]
    for made in document["trials"]:
        for name, value in made["trial"].items():
            if name.startswith("timeline_") and isinstance(value, list):
                made["trial"][name] = value[:1]
    return document


def places(part: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value in a document."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield (*before, key)
        yield from places(value, (*before, key))


def accepts(document: dict[str, Any]) -> bool:
    try:
        from_json(json.dumps(document), "x.json")
    except RecordError:
        return False
    return True


def changed(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """With another value at a place, or without it (`...`), or with a key more (`{}` as the place's last)."""
    whole = copy.deepcopy(document)
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    if value is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return whole


def test_both_take_what_is_written() -> None:
    for document in documents():
        validator().validate(document)
        assert accepts(document)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.data())
def test_a_change_that_one_refuses_the_other_one_refuses_too(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(documents()))
    place = data.draw(st.sampled_from(list(places(document))))
    value = data.draw(st.sampled_from([..., *VALUES]))
    odd = changed(document, place, value)
    by_schema, by_models = validator().is_valid(odd), accepts(odd)
    if place[0] in BEYOND_THE_SCHEMA or _in_the_environment(place):
        assert by_schema or not by_models, (place, value)
    else:
        assert by_schema == by_models, (place, value)


def _in_the_environment(place: tuple[Any, ...]) -> bool:
    """Facts without a name in the schema are of any kind there; the models bound their numbers."""
    return place[0] in ("environment", "campaign")

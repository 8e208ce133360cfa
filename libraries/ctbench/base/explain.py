"""What pydantic found wrong in a file, in words: file, key, value, what was expected."""

import re
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctbench.base.text import brief
from ctbench.base.units import did_you_mean, quoted

#: Of a file with many mistakes the first ones are said; more do not help.
MOST_PROBLEMS = 10
#: Characters of a line: some lists of what is known are long.
_MOST_WIDE = 500


def explain(shown: str, model: type[BaseModel], data: Any, errors: ValidationError) -> str:
    """A paragraph for each of the first mistakes, and how many more there are. `shown`: how messages name the file."""
    details = errors.errors(include_url=False)
    said = [_explain(shown, model, data, detail) for detail in details[:MOST_PROBLEMS]]
    if len(details) > MOST_PROBLEMS:
        said.append(f"{shown}: and {len(details) - MOST_PROBLEMS} more mistakes.")
    return "\n".join(narrow(paragraph) for paragraph in said)


def narrow(text: str) -> str:
    """The same lines, those that are too long cut, and nothing in them that no terminal shows."""
    return "\n".join(brief(line, _MOST_WIDE) for line in text.split("\n"))


def _explain(shown: str, model: type[BaseModel], data: Any, error: ErrorDetails) -> str:
    """Turn one error of pydantic into a paragraph: file, key, value, expectation."""
    parts = _display_path(error["loc"], data, keep_last=error["type"] == "missing")
    key = ".".join(parts).replace(".[", "[")
    head = f"{shown}: {key}" if key else shown
    kind = error["type"]
    context = error.get("ctx", {})
    # A password that stands in the place of its variable's name is not for the console.
    value = "what stands there" if "password" in key.rpartition(".")[2].lower() else quoted(error["input"])
    if kind == "value_error":
        return _own_words(head, value, str(context["error"]))
    if kind == "extra_forbidden":
        return f"{head}: unknown key.\n  {_instead(str(error['loc'][-1]), _models_at(model, error['loc'][:-1]))}"
    if kind == "missing":
        return f"{head}: is missing.\n  Expected a line with this key, see the comments in the files that ship."
    if kind in ("literal_error", "union_tag_invalid"):
        text = str(context.get("expected") or context.get("expected_tags"))
        choices = re.findall(r"'([^']*)'", text)
        tag = str(context.get("discriminator", "")).strip("'")
        if tag:
            head, value = f"{head}.{tag}", quoted(error["input"].get(tag))
        meant = did_you_mean(value.strip('"'), choices)
        return f"{head}: {value} is not known.\n  Expected {listed(choices or [text])}.{meant}"
    if kind == "union_tag_not_found":
        tag = str(context.get("discriminator", "")).strip("'")
        return f"{head}.{tag}: is missing.\n  Expected a line with this key: it says what the other keys are."
    return f"{head}: {value} does not fit.\n  Expected {_expected(kind, context, error['msg'])}."


def _instead(key: str, places: list[type[BaseModel]]) -> str:
    """What to write in the place of a key that there is not, or not any more."""
    if gone := next((text for place in places if (text := getattr(place, "gone", {}).get(key))), ""):
        return gone
    known = sorted({name for place in places for name in place.model_fields})
    return f"Expected {listed(known)}.{did_you_mean(key, known)}"


def _own_words(head: str, value: str, text: str) -> str:
    """Place a sentence of our own validators after the key; ones that name no value get none."""
    return f"{head}: {text}" if "\n  Expected" in text else f"{head}: {value}: {text}"


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    """Name what pydantic wanted, by the type of its error."""
    bounds = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    for name, words in bounds.items():
        if name in context:
            return f"a number of {words} {context[name]}"
    if kind == "string_pattern_mismatch":
        return f"a text that matches {context['pattern']}"
    kinds = {"int": "a whole number", "float": "a number", "finite_number": "a number", "string": "a text",
             "bool": "true or false", "dict": "keys and values", "mapping": "keys and values",
             "model": "keys and values", "list": "a list", "tuple": "a list", "too_short": "at least one entry",
             }  # fmt: skip
    for start, words in kinds.items():
        if kind.startswith(start):
            return words
    return message[:1].lower() + message[1:]


def _display_path(loc: tuple[int | str, ...], data: Any, *, keep_last: bool) -> Iterator[str]:
    """Yield the keys of the file that `loc` passes. Parts that are not keys (the tag of a union, a field
    that a validator made up) are left out, the last one too unless it is the very key that is missing."""
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(data, dict):
            found = next((key for key in data if key == part or str(key) == str(part)), None)
            if found is not None:
                data = data[found]
                yield brief(str(part), 60)
            elif last and keep_last:
                yield brief(str(part), 60)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
            yield f"[{part}]"


def _models_at(model: Any, loc: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """The models whose keys are known at `loc`, walking models, mappings, lists and unions."""
    places: list[Any] = list(_models(model))
    for part in loc:
        found: list[Any] = []
        for place in places:
            if isinstance(place, type) and issubclass(place, BaseModel):
                field = place.model_fields.get(str(part))
                # A part that is not a field is the tag of a union: stay where we are.
                found += list(_models(field.annotation)) if field else [place] if _has_tag(place, part) else []
            elif typing.get_args(place):
                found += list(_models(typing.get_args(place)[-1]))
        places = found
    return [place for place in places if isinstance(place, type) and issubclass(place, BaseModel)]


def _has_tag(model: type[BaseModel], tag: int | str) -> bool:
    """Whether a model is the one that a union's tag chose."""
    return any(tag in typing.get_args(field.annotation) for field in model.model_fields.values())


def _models(annotation: Any) -> Iterator[Any]:
    """Yield the models and the containers in a type annotation."""
    origin = typing.get_origin(annotation)
    if isinstance(annotation, type) and origin is None and issubclass(annotation, BaseModel):
        yield annotation
    elif origin in (typing.Union, types.UnionType):
        for argument in typing.get_args(annotation):
            yield from _models(argument)
    elif origin is Annotated:
        yield from _models(typing.get_args(annotation)[0])
    elif origin in (dict, list, tuple):
        yield annotation


def listed(choices: list[str]) -> str:
    """Write the choices as a list for a sentence."""
    if len(choices) == 1:
        return quoted(choices[0])
    return f"one of: {', '.join(choices)}"

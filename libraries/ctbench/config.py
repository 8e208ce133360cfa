"""YAML files read into frozen models; a mistake is a sentence that names file, key and expectation.

A file is named (`quick` is variables/campaigns/quick.yaml) or given as a path. Nothing is ever
assumed: unknown and duplicate keys, wrong types and wrong values are all a `ConfigError`.
"""

import difflib
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails

from ctbench.errors import ConfigError
from ctbench.units import parse_duration, parse_number, parse_ratio, quoted

#: The checkout: libraries/ctbench/config.py is three levels below it.
ROOT = Path(__file__).resolve().parents[2]

#: Numbers as people write them: `48.2k`, `0.02%` (becomes 0.0002), `1.5s` (becomes seconds).
Number = Annotated[float, BeforeValidator(parse_number)]
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
Seconds = Annotated[float, BeforeValidator(parse_duration)]


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{quoted(name)} is not a name.\n  Expected small letters, digits and dashes.")
    return name


#: The name of a profile, a campaign, a testbed: it becomes a part of file names, tags and keys.
Name = Annotated[str, AfterValidator(_check_name)]

Model = TypeVar("Model", bound=BaseModel)


class Settings(BaseModel):
    """Base of what is read from a file: frozen, unknown keys forbidden, no silent conversion (`yes` is not 1)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    _file: str = PrivateAttr("")

    @property
    def file(self) -> str:
        """The file it was read from, for messages; empty when it was made in code."""
        return self._file


def load(kind: str, name_or_path: str | Path, model: type[Model], *, root: Path = ROOT) -> Model:
    """Read one file of `variables/<kind>/` by its name, or any file by its path, into `model`.

    What contains a slash or ends in .yaml or .yml is a path, everything else a name. A named file has to
    carry its own name under the key `name`, so that a copied file cannot pass for the original.
    Raises `ConfigError`, one paragraph per mistake.
    """
    return _load(_resolve(kind, name_or_path, root), kind, lambda _data, _shown: model, root)


def load_one_of(
    kind: str, name_or_path: str | Path, models: Mapping[str, type[Model]], *, tag: str, root: Path = ROOT
) -> Model:
    """Like `load`, for files that say under the key `tag` which of the `models` they hold."""

    def choose(data: dict[Any, Any], shown: str) -> type[Model]:
        if tag not in data:
            raise ConfigError(f"{shown}: {tag}: is missing.\n  Expected {_listed(list(models))}.")
        if data[tag] not in models:
            meant = did_you_mean(str(data[tag]), list(models))
            raise ConfigError(
                f"{shown}: {tag}: {quoted(data[tag])} is not known.\n  Expected {_listed(list(models))}.{meant}"
            )
        return models[data[tag]]

    return _load(_resolve(kind, name_or_path, root), kind, choose, root)


def _load(path: Path, kind: str, choose: Callable[[dict[Any, Any], str], type[Model]], root: Path) -> Model:
    """Read the file at `path` into the model that `choose(data, shown)` names."""
    shown = _shown(path, root)
    data = _read_yaml(path, shown)
    if not isinstance(data, dict):
        what = "is empty" if data is None else f"holds {quoted(data)}, not keys and values"
        raise ConfigError(f"{shown}: {what}.\n  Expected keys and values, as in the files that ship.")
    model = choose(data, shown)
    try:
        loaded = model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConfigError("\n".join(_explain(shown, model, data, detail) for detail in details)) from None
    if path.parent == root / "variables" / kind and getattr(loaded, "name", path.stem) != path.stem:
        name = quoted(getattr(loaded, "name", ""))
        raise ConfigError(f"{shown}: name: {name} is not the name of the file.\n  Expected {quoted(path.stem)}.")
    if isinstance(loaded, Settings):
        loaded._file = shown
    return loaded


def names(kind: str, *, root: Path = ROOT) -> list[str]:
    """Names of the files in `variables/<kind>/`, sorted."""
    return sorted(path.stem for path in (root / "variables" / kind).glob("*.yaml"))


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """Name the choice that `word` was perhaps meant to be, as ` Did you mean "x"?`, else an empty text."""
    close = difflib.get_close_matches(word, choices, n=1)
    return f" Did you mean {quoted(close[0])}?" if close else ""


def _resolve(kind: str, name_or_path: str | Path, root: Path) -> Path:
    """Find the file; a name that does not exist is answered with those that do."""
    text = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or os.sep in text or text.endswith((".yaml", ".yml"))
    path = Path(text).expanduser().absolute() if is_path else root / "variables" / kind / f"{text}.yaml"
    if path.is_file():
        return path
    known = names(kind, root=root)
    fault = "is not a file" if path.exists() else "no such file"
    raise ConfigError(
        f"{_shown(path, root)}: {fault}.\n  Expected a path, or one of the names in variables/{kind}: "
        f"{', '.join(known) or '(there are none)'}.{did_you_mean(path.stem, known)}"
    )


def _shown(path: Path, root: Path) -> str:
    """Show a path relative to the checkout where it is in it."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


class _Loader(yaml.SafeLoader):
    """Reads YAML and refuses a key that stands twice, of which YAML itself keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: list[str] = []
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {quoted(key_node.value)} stands twice", key_node.start_mark
                    )
                seen.append(key_node.value)
        return super().construct_mapping(node, deep)


def _read_yaml(path: Path, shown: str) -> Any:
    """Read a YAML file; what is wrong with its syntax is said with the line."""
    try:
        loader = _Loader(path.read_bytes())
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = ", ".join(part for part in (error.context, error.problem) if part) or "not understood"
        if mark and "password" in _line(path, mark.line):
            what = "not understood"  # what YAML says of it quotes it
        raise ConfigError(f"{shown}: {where}{what}.\n  Expected YAML: {_yaml_hint(what)}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{shown}: {str(error).splitlines()[0]}.\n  Expected a text file in UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{shown}: is nested too deeply.\n  Expected a few levels of keys and values.") from None
    except (ValueError, OverflowError) as error:  # an impossible date or number: `2024-99-99`
        raise ConfigError(f"{shown}: {error}.\n  Expected texts that look like dates in quotes.") from None
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror}.\n  Expected a file that you may read.") from None


def _line(path: Path, number: int) -> str:
    """A line of a file, in small letters; empty where there is none."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[number].lower() if number < len(lines) else ""


def _yaml_hint(problem: str) -> str:
    """Say what to do about a syntax error."""
    if "twice" in problem:
        return "each key once."
    if r"\t" in problem:
        return "spaces, not tabs, at the start of a line."
    return "`key: value` lines, and texts that hold a colon or start with > in quotes."


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
        known = _fields_at(model, error["loc"][:-1])
        return f"{head}: unknown key.\n  Expected {_listed(known)}.{did_you_mean(str(error['loc'][-1]), known)}"
    if kind == "missing":
        return f"{head}: is missing.\n  Expected a line with this key, see the comments in the files that ship."
    if kind in ("literal_error", "union_tag_invalid"):
        text = str(context.get("expected") or context.get("expected_tags"))
        choices = re.findall(r"'([^']*)'", text)
        tag = str(context.get("discriminator", "")).strip("'")
        if tag:
            head, value = f"{head}.{tag}", quoted(context.get("tag"))
        meant = did_you_mean(value.strip('"'), choices)
        return f"{head}: {value} is not known.\n  Expected {_listed(choices or [text])}.{meant}"
    if kind == "union_tag_not_found":
        tag = str(context.get("discriminator", "")).strip("'")
        return f"{head}.{tag}: is missing.\n  Expected a line with this key: it says what the other keys are."
    return f"{head}: {value} does not fit.\n  Expected {_expected(kind, context, error['msg'])}."


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
    """Yield the keys of the file that `loc` passes. Parts that are no keys (the tag of a union, a field
    that a validator made up) are left out, the last one too unless it is the very key that is missing."""
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(data, dict):
            found = next((key for key in data if key == part or str(key) == str(part)), None)
            if found is not None:
                data = data[found]
                yield str(part)
            elif last and keep_last:
                yield str(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
            yield f"[{part}]"


def _fields_at(model: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Names of the keys that are known at `loc`, walking models, mappings, lists and unions."""
    places: list[Any] = list(_models(model))
    for part in loc:
        found: list[Any] = []
        for place in places:
            if isinstance(place, type) and issubclass(place, BaseModel):
                field = place.model_fields.get(str(part))
                # A part that is no field is the tag of a union: stay where we are.
                found += list(_models(field.annotation)) if field else [place] if _has_tag(place, part) else []
            elif typing.get_args(place):
                found += list(_models(typing.get_args(place)[-1]))
        places = found
    chosen = [place for place in places if isinstance(place, type) and issubclass(place, BaseModel)]
    return sorted({name for place in chosen for name in place.model_fields})


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


def _listed(choices: list[str]) -> str:
    """Write the choices as a list for a sentence."""
    if len(choices) == 1:
        return quoted(choices[0])
    return f"one of: {', '.join(choices)}"

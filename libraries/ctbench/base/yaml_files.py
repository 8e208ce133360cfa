"""YAML files read into frozen models; a mistake is a sentence that names file, key and expectation.

A file is named (`quick` is variables/campaigns/quick.yaml) or given as a path. Nothing is ever
assumed: unknown and duplicate keys, wrong types and wrong values are all a `ConfigError`.
"""

import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ctbench.base.errors import ConfigError
from ctbench.base.files import read_yaml
from ctbench.base.paths import ROOT
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
    kind, context = error["type"], error.get("ctx", {})
    tag = str(context.get("discriminator", "")).strip("'")
    parts = [*_display_path(error["loc"], data, keep_last=kind == "missing"), *([tag] if tag else [])]
    key = ".".join(parts).replace(".[", "[")
    head = f"{shown}: {key}" if key else shown
    # A password that stands in the place of its variable's name is not for the console.
    value = "what stands there" if "password" in key.rpartition(".")[2].lower() else quoted(error["input"])
    if kind == "value_error":
        text = str(context["error"])  # of our own validators; what names no value itself gets it
        return f"{head}: {text}" if "\n  Expected" in text else f"{head}: {value}: {text}"
    if kind == "extra_forbidden":
        known = sorted({name for place in _models_at(model, error["loc"][:-1]) for name in place.model_fields})
        meant = did_you_mean(str(error["loc"][-1]), known)
        return f"{head}: unknown key.\n  Expected {listed(known)}.{meant}"
    if kind == "missing":
        return f"{head}: is missing.\n  Expected a line with this key, see the comments in the files that ship."
    if kind in ("literal_error", "union_tag_invalid"):
        text = str(context.get("expected") or context.get("expected_tags"))
        choices = re.findall(r"'([^']*)'", text)
        value = quoted(error["input"].get(tag)) if tag else value
        meant = did_you_mean(value.strip('"'), choices)
        return f"{head}: {value} is not known.\n  Expected {listed(choices or [text])}.{meant}"
    if kind == "union_tag_not_found":
        fields = [place.model_fields[tag] for place in _models_at(model, error["loc"])]
        tags = [str(word) for field in fields for word in typing.get_args(field.annotation)]
        return f"{head}: is missing.\n  Expected {listed(tags)}."
    return f"{head}: {value} does not fit.\n  Expected {_expected(kind, context, error['msg'])}."


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
            # Of a value that may be of several kinds, pydantic names the kind after its key.
            kind_follows = not keep_last and not any(str(each) in data for each in loc[index + 1 :])
            if found is not None and (last or kind_follows or isinstance(data[found], dict | list)):
                data = data[found]
                yield brief(str(part), 60)
            elif last and keep_last:
                yield brief(str(part), 60)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
            yield f"[{part}]"


def _models_at(annotation: Any, loc: tuple[int | str, ...]) -> Iterator[type[BaseModel]]:
    """The models whose keys are known at `loc`, walking models, mappings, lists and unions."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _models_at(argument, loc)
    elif origin is Annotated:
        yield from _models_at(arguments[0], loc)
    elif origin in (dict, list, tuple) and loc:
        yield from _models_at(arguments[-1], loc[1:])
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not loc:
            yield annotation
        elif field := annotation.model_fields.get(str(loc[0])):
            yield from _models_at(field.annotation, loc[1:])
        elif any(loc[0] in typing.get_args(each.annotation) for each in annotation.model_fields.values()):
            yield from _models_at(annotation, loc[1:])  # the tag of a union, which chose this model


def listed(choices: list[str]) -> str:
    """Write the choices as a list for a sentence."""
    if len(choices) == 1:
        return quoted(choices[0])
    return f"one of: {', '.join(choices)}"


#: Names become parts of file names, of which a file system takes some 255 characters.
_LONGEST_NAME = 64


def _check_name(name: str) -> str:
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"{quoted(name)} is too long for a name.\n  Expected at most {_LONGEST_NAME} characters.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{quoted(name)} is not a name.\n  Expected small letters, digits and dashes.")
    return name


#: The name of a profile, a campaign, a testbed: it becomes a part of file names, tags and keys.
Name = Annotated[str, AfterValidator(_check_name)]

Model = TypeVar("Model", bound=BaseModel)


class YamlModel(BaseModel):
    """Base of what is read from a file: frozen, unknown keys forbidden, no silent conversion (`yes` is not 1)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    _file: str = PrivateAttr("")
    _path: Path | None = PrivateAttr(None)

    @property
    def file(self) -> str:
        """The file it was read from, for messages; empty when it was made in code."""
        return self._file

    @property
    def path(self) -> Path | None:
        """Where that file is; None when it was made in code."""
        return self._path


def load(kind: str, name_or_path: str | Path, model: type[Model], *, root: Path = ROOT) -> Model:
    """Read one file of `variables/<kind>/` by its name, or any file by its path, into `model`: a class, or a union of
    classes that a key tells apart.

    What contains a slash or ends in .yaml or .yml is a path, everything else a name. A named file has to
    carry its own name under the key `name`, so that a copied file cannot pass for the original.
    Raises `ConfigError`, one paragraph per mistake.
    """
    path = _resolve(kind, name_or_path, root)
    shown = _shown(path, root)
    loaded = make(contents(path, kind, model, root), shown, model)
    if path.parent == root / "variables" / kind and getattr(loaded, "name", path.stem) != path.stem:
        name = quoted(getattr(loaded, "name", ""))
        raise ConfigError(f"{shown}: name: {name} is not the name of the file.\n  Expected {quoted(path.stem)}.")
    if isinstance(loaded, YamlModel):
        loaded._file, loaded._path = shown, path
    return loaded


def make(data: Any, shown: str, model: type[Model]) -> Model:
    """Turn what a file holds into a model. `shown`: how messages name the file."""
    if not isinstance(data, dict):
        what = "is empty" if data is None else f"holds {quoted(data)}, not keys and values"
        raise ConfigError(f"{shown}: {what}.\n  Expected keys and values, as in the files that ship.")
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        raise ConfigError(explain(shown, model, data, error)) from None


def contents(path: Path, kind: str, model: type[Model], root: Path) -> Any:
    """What a file holds. Under `like` a profile names another one that has all keys which it leaves out, but for
    `name` and `description`; a mistake in that file is that file's. Under `extends` an SLA names another one, whose
    floors it has besides its own."""
    shown = _shown(path, root)
    data = read_yaml(path, shown)
    if kind == "sla" and isinstance(data, dict) and "extends" in data:
        return _extended(data, path, shown, root)
    if kind != "profiles" or not isinstance(data, dict) or "like" not in data:
        return data
    like, known = data["like"], [name for name in names(kind, root=root) if name != path.stem]
    if like not in known:
        hint = did_you_mean(str(like), known)
        raise ConfigError(
            f"{shown}: like: {quoted(like)} is not another file of variables/{kind}.\n  Expected a name.{hint}"
        )
    other = root / "variables" / kind / f"{like}.yaml"
    whole = read_yaml(other, _shown(other, root))
    if isinstance(whole, dict) and "like" in whole:
        raise ConfigError(
            f"{shown}: like: {quoted(like)} is like another one itself.\n  Expected a file with all keys."
        )
    make(whole, _shown(other, root), model)
    inherited = {key: value for key, value in whole.items() if key not in ("name", "description")}
    return inherited | {key: value for key, value in data.items() if key != "like"}


def _extended(data: dict[str, Any], path: Path, shown: str, root: Path) -> dict[str, Any]:
    """An SLA file with all that the one has which it extends, a name or a path below its own folder. Of what both have
    its own holds: a key, and of a topology a profile."""
    named = str(data["extends"])
    other = path.parent / named if os.sep in named or named.endswith((".yaml", ".yml")) else named
    found = _resolve("sla", other, root)
    if found == path:
        raise ConfigError(f"{shown}: extends: {quoted(named)} is this file.\n  Expected another SLA file.")
    whole = read_yaml(found, _shown(found, root))
    if not isinstance(whole, dict) or "extends" in whole:
        raise ConfigError(
            f"{shown}: extends: {quoted(named)} extends another file itself.\n  Expected one that extends none itself."
        )
    merged = dict(whole)
    for key, value in data.items():
        both = isinstance(value, dict) and isinstance(whole.get(key), dict) and "/" in key
        merged[key] = {**whole[key], **value} if both else value
    del merged["extends"]
    return merged


def names(kind: str, *, root: Path = ROOT) -> list[str]:
    """Names of the files in `variables/<kind>/`, sorted."""
    return sorted(path.stem for path in (root / "variables" / kind).glob("*.yaml"))


def _resolve(kind: str, name_or_path: str | Path, root: Path) -> Path:
    """Find the file; a name that does not exist is answered with those that do."""
    text = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or os.sep in text or text.endswith((".yaml", ".yml"))
    path = Path(text) if is_path else root / "variables" / kind / f"{text}.yaml"
    try:
        path = path.expanduser().absolute() if is_path else path
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        fault = "no such file"
    except RuntimeError:
        fault = "no such home directory"
    except (OSError, ValueError) as error:  # a name that is too long, a ring of links; NUL
        fault = getattr(error, "strerror", None) or "is not a path"
    else:
        return path
    known = names(kind, root=root)
    raise ConfigError(
        f"{_shown(path, root)}: {fault}.{did_you_mean(path.stem, known)}\n"
        + narrow(
            f"  Expected a path, or one of the names in variables/{kind}: {', '.join(known) or '(there are none)'}."
        )
    )


def _shown(path: Path, root: Path) -> str:
    """Show a path for messages, relative to the checkout where it is in it."""
    return brief(str(path.relative_to(root) if path.is_relative_to(root) else path), 300)


def settings_of(kinds: Mapping[str, Any]) -> Any:
    """The type of an entry of a testbed file that is the settings of one of these kinds, each with a model of its own
    (`settings`), which its key `type` tells."""
    models = tuple(dict.fromkeys(kind.settings for kind in kinds.values()))
    return Annotated[Union[models], Field(discriminator="type")]  # noqa: UP007  # a union of what is in a list

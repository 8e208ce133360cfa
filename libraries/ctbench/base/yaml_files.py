"""YAML files read into frozen models; a mistake is a sentence that names file, key and expectation.

A file is named (`quick` is variables/campaigns/quick.yaml) or given as a path. The reader assumes nothing: unknown and
duplicate keys, wrong types and wrong values are all a `ConfigError`.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from ctbench.base.errors import ConfigError
from ctbench.base.files import read_yaml
from ctbench.base.paths import ROOT
from ctbench.base.text import brief
from ctbench.base.units import did_you_mean, quoted

#: Of a file with many mistakes the first ones are said; more do not help.
MOST_PROBLEMS = 10
#: Type of the error of a key that no model has.
UNKNOWN_KEY = "unknown_key"
#: Characters of a line: some lists of what is known are long.
_MOST_WIDE = 500


def explain(shown: str, data: Any, errors: ValidationError) -> str:
    """Return a paragraph for each of the first mistakes, and the number of the others. `shown`: the file's name in
    messages."""
    details = errors.errors(include_url=False)
    said = [_explain(shown, data, detail) for detail in details[:MOST_PROBLEMS]]
    if len(details) > MOST_PROBLEMS:
        said.append(f"{shown}: and {len(details) - MOST_PROBLEMS} more mistakes.")
    return "\n".join(narrow(paragraph) for paragraph in said)


def narrow(text: str) -> str:
    """Return the text with long lines cut and unprintable characters escaped."""
    return "\n".join(brief(line, _MOST_WIDE) for line in text.split("\n"))


def _explain(shown: str, data: Any, error: ErrorDetails) -> str:
    """Describe one mistake: file, key and value, and what pydantic expected."""
    kind, context, message = error["type"], error.get("ctx", {}), error["msg"]
    key = _dotted(error["loc"], data, missing=kind == "missing")
    value = error["input"]
    if tag := str(context.get("discriminator", "")).strip("'"):
        key, value = f"{key}.{tag}".strip("."), value.get(tag)
    head = f"{shown}: {key}" if key else shown
    # A password that stands in the place of its variable's name is not for the console.
    found = "what stands there" if "password" in key.rpartition(".")[2].lower() else quoted(value)
    if kind == "value_error":
        text = str(context["error"])  # of our own validators; what names no value itself gets it
        return f"{head}: {text}" if "\n  Expected" in text else f"{head}: {found}: {text}"
    if kind == UNKNOWN_KEY:
        return f"{head}: unknown key.\n  Expected {message}"
    if kind in ("missing", "union_tag_not_found"):
        return f"{head}: is missing.\n  Expected a line with this key, see the comments in the files that ship."
    expected = context.get("expected_tags") or _INSTANCE.sub("", message.removeprefix("Input should be "))
    expected = re.sub("^(greater|less) than", r"a number \g<0>", expected)
    meant = did_you_mean(str(value), re.findall(r"'([^']*)'", expected))
    return f"{head}: {found} does not fit.\n  Expected {expected[:1].lower()}{expected[1:]}.{meant}"


#: What pydantic says of its classes, which the writer of a file does not know.
_INSTANCE = re.compile(r" or instance of \w+|an object to extract fields from, ")


def _dotted(loc: tuple[int | str, ...], data: Any, *, missing: bool) -> str:
    """Return the keys of the file along pydantic's `loc`, `wheels.front.spokes[1]`. Leave out parts of `loc` that are
    not keys of the file (the tag of a union), except a key that is missing."""
    key = ""
    for part in loc[: len(loc) - missing]:
        if isinstance(data, list) and isinstance(part, int):
            key, data = f"{key}[{part}]", data[part]
        elif isinstance(data, dict) and (same := [each for each in data if str(each) == str(part)]):
            key, data = f"{key}.{brief(str(part), 60)}", data[same[0]]
    return f"{key}.{loc[-1]}".strip(".") if missing else key.strip(".")


#: Names become parts of file names, of which a file system takes some 255 characters.
_LONGEST_NAME = 64


def check_name(name: str) -> str:
    """Return a valid name as it is. Raise `ValueError` with what is wrong with another."""
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"{quoted(name)} is too long for a name.\n  Expected at most {_LONGEST_NAME} characters.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{quoted(name)} is not a name.\n  Expected small letters, digits and dashes.")
    return name


#: The name of a profile, a campaign, a testbed: it becomes a part of file names, tags and keys.
Name = Annotated[str, AfterValidator(check_name)]

Model = TypeVar("Model", bound=BaseModel)


class YamlModel(BaseModel):
    """Base class of the models of YAML files: frozen, unknown keys forbidden, no silent conversion (`yes` is not 1). An
    instance knows the name of its file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    _file: str = PrivateAttr("")
    _path: Path | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: Any) -> Any:
        """Refuse unknown keys, as `extra` does, and list the known ones."""
        known = sorted(cls.model_fields)
        unknown = [key for key in data if key not in known] if isinstance(data, dict) else []
        expected = f"{'one of: ' * (len(known) > 1)}{', '.join(known)}"
        problems = [
            InitErrorDetails(
                type=PydanticCustomError(
                    UNKNOWN_KEY, "{text}", {"text": f"{expected}.{did_you_mean(str(key), known)}"}
                ),
                loc=(str(key),),
                input=data[key],
            )
            for key in unknown
        ]
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return data

    @property
    def file(self) -> str:
        """Name, in messages, of the file that the model was read from; empty for a model made in code."""
        return self._file

    @property
    def path(self) -> Path | None:
        """Path of the file; None for a model made in code."""
        return self._path


def load(kind: str, name_or_path: str | Path, model: type[Model], *, root: Path = ROOT) -> Model:
    """Read one file of `variables/<kind>/` by its name, or any file by its path, into `model`: a class, or a union of
    classes that a key tells apart.

    A text with a slash or with the ending .yaml or .yml is a path, any other a name. A named file has to carry its own
    name under the key `name`, so that a copied file cannot pass for the original. Raise `ConfigError`, one paragraph
    per mistake.
    """
    path = _resolve(kind, name_or_path, root)
    shown = shown_path(path, root)
    loaded = make(contents(path, kind, model, root), shown, model)
    if path.parent == root / "variables" / kind and getattr(loaded, "name", path.stem) != path.stem:
        name = quoted(getattr(loaded, "name", ""))
        raise ConfigError(f"{shown}: name: {name} is not the name of the file.\n  Expected {quoted(path.stem)}.")
    if isinstance(loaded, YamlModel):
        loaded._file, loaded._path = shown, path
    return loaded


def make(data: Any, shown: str, model: type[Model]) -> Model:
    """Validate the content of a file as a model; raise `ConfigError`. `shown`: the file's name in messages."""
    if not isinstance(data, dict):
        what = "is empty" if data is None else f"holds {quoted(data)}, not keys and values"
        raise ConfigError(f"{shown}: {what}.\n  Expected keys and values, as in the files that ship.")
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        raise ConfigError(explain(shown, data, error)) from None


#: The key under which a file names another one that it is based on, by kind of file.
_BASED_ON = {"profiles": "like", "sla": "extends"}


def contents(path: Path, kind: str, model: Any, root: Path, based_on_it: tuple[Path, ...] = ()) -> Any:
    """Return the content of a file. A profile (`like`) or an SLA (`extends`) may name a base file, by a name or by a
    path from its own folder. A profile inherits all keys but `name` and `description`, an SLA what the model's
    `extended` takes over. A mistake in the base file is reported as that file's. `based_on_it`: files that are based on
    this one."""
    shown, key = shown_path(path, root), _BASED_ON.get(kind)
    data = read_yaml(path, shown)
    if key is None or not isinstance(data, dict) or key not in data:
        return data
    named = str(data.pop(key))
    other = path.parent / named if os.sep in named or named.endswith((".yaml", ".yml")) else named
    try:
        found = _resolve(kind, other, root)
    except ConfigError as error:
        raise ConfigError(f"{shown}: {key}: {error}") from None
    if found.resolve() in {each.resolve() for each in (path, *based_on_it)}:
        raise ConfigError(f"{shown}: {key}: {quoted(named)} is this file, or based on it.\n  Expected another one.")
    whole = contents(found, kind, model, root, (path, *based_on_it))
    make(whole, shown_path(found, root), model)
    if kind == "sla":
        return model.extended(whole, data)
    return {name: value for name, value in whole.items() if name not in ("name", "description")} | data


def names(kind: str, *, root: Path = ROOT) -> list[str]:
    """Return the names of the files in `variables/<kind>/`, sorted."""
    return sorted(path.stem for path in (root / "variables" / kind).glob("*.yaml"))


def _resolve(kind: str, name_or_path: str | Path, root: Path) -> Path:
    """Return the path of a file. Raise `ConfigError` with the known names where there is no such file."""
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
        f"{shown_path(path, root)}: {fault}.{did_you_mean(path.stem, known)}\n"
        + narrow(
            f"  Expected a path, or one of the names in variables/{kind}: {', '.join(known) or '(there are none)'}."
        )
    )


def shown_path(path: Path, root: Path = ROOT) -> str:
    """Return a path for messages, relative to the checkout where it is inside it."""
    return brief(str(path.relative_to(root) if path.is_relative_to(root) else path), 300)


def settings_of(kinds: Mapping[str, Any]) -> Any:
    """Return the type of a testbed file's entry that configures one of these kinds: the union of their models
    (`settings`), told apart by the key `type`."""
    models = tuple(dict.fromkeys(kind.settings for kind in kinds.values()))
    return Annotated[Union[models], Field(discriminator="type")]  # noqa: UP007  # a union of what is in a list

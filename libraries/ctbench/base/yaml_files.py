"""YAML files read into frozen models; a mistake is a sentence that names file, key and expectation.

A file is named (`quick` is variables/campaigns/quick.yaml) or given as a path. Nothing is ever
assumed: unknown and duplicate keys, wrong types and wrong values are all a `ConfigError`.
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
    """A paragraph for each of the first mistakes, and how many more there are. `shown`: how messages name the file."""
    details = errors.errors(include_url=False)
    said = [_explain(shown, data, detail) for detail in details[:MOST_PROBLEMS]]
    if len(details) > MOST_PROBLEMS:
        said.append(f"{shown}: and {len(details) - MOST_PROBLEMS} more mistakes.")
    return "\n".join(narrow(paragraph) for paragraph in said)


def narrow(text: str) -> str:
    """The same lines, those that are too long cut, and nothing in them that no terminal shows."""
    return "\n".join(brief(line, _MOST_WIDE) for line in text.split("\n"))


def _explain(shown: str, data: Any, error: ErrorDetails) -> str:
    """One mistake: file, key and value, and what pydantic expected."""
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
    """The keys of the file that `loc` passes, `wheels.front.spokes[1]`. Parts that are not keys (the kind of a value
    that may be of several) are left out, but for a key that is missing."""
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
    """A name as it was given. `ValueError` says what is wrong with it."""
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"{quoted(name)} is too long for a name.\n  Expected at most {_LONGEST_NAME} characters.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{quoted(name)} is not a name.\n  Expected small letters, digits and dashes.")
    return name


#: The name of a profile, a campaign, a testbed: it becomes a part of file names, tags and keys.
Name = Annotated[str, AfterValidator(check_name)]

Model = TypeVar("Model", bound=BaseModel)


class YamlModel(BaseModel):
    """Base of what a file holds: frozen, unknown keys forbidden, no silent conversion (`yes` is not 1). It knows the
    name of its file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    _file: str = PrivateAttr("")
    _path: Path | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: Any) -> Any:
        """As `extra` has it, with the keys that there are."""
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
        raise ConfigError(explain(shown, data, error)) from None


#: The key under which a file names another one that it is based on, by kind of file.
_BASED_ON = {"profiles": "like", "sla": "extends"}


def contents(path: Path, kind: str, model: Any, root: Path, based_on_it: tuple[Path, ...] = ()) -> Any:
    """What a file holds. A profile or an SLA may name another one, a name or a path from its own folder: it has what
    the model takes of that one besides its own keys (`extended`), of a profile all but `name` and `description`. A
    mistake in that file is that file's. `based_on_it`: files that are based on this one."""
    shown, key = _shown(path, root), _BASED_ON.get(kind)
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
    make(whole, _shown(found, root), model)
    if kind == "sla":
        return model.extended(whole, data)
    return {name: value for name, value in whole.items() if name not in ("name", "description")} | data


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

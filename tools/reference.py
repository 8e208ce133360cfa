"""Writes docs/reference.md from the code: exit statuses, reasons of a verdict, metrics, and the keys of YAML files with
their comments; and what reports have of docs/numbers.md. .venv/bin/python -m tools.reference"""

import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ctbench.base.errors import MEANINGS
from ctbench.base.files import MOST_BYTES, MOST_VALUES
from ctbench.base.paths import ROOT
from ctbench.measure.campaign import Campaign
from ctbench.report.write import NUMBERS
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile

PAGE, EXPLAINED = ROOT / "docs" / "reference.md", ROOT / "docs" / "numbers.md"
HEAD = """# Reference

`.venv/bin/python -m tools.reference` writes this page from the code.

## Exit statuses

Of several the first of 1, 4, 5, 3 counts: 3 never hides another failure. `--bisect` makes 125 of 2 to 127.

"""
VERDICTS = """
## Reasons of a verdict

`verdict_code` of a record: what the verdict on a row stands on, or why there is none. All of them, and what finds a
promise missed: `libraries/ctbench/results/verdict.py`.

"""
YAML = f"""## YAML files

All files below `variables/` are YAML with plain values: texts, numbers, true or false, lists and keys; `&a`, `*a` and
`<<` work, `!tags` do not. Write a number as usual or with a unit: `48.2k`, `0.02%`, `250us`. `010`, `1_000`, `0x10`,
`1:30` and dates are texts. A file has at most {MOST_BYTES // 1024} KiB and {MOST_VALUES} keys and values; a name has
at most 64 characters. Of many mistakes the first ten are reported. Keys with a default may be left out.

"""
#: What is said above the metrics of each role.
ROLES = {
    "promise": "Promises, which an SLA file has as keys of a floor:",
    "condition": "Conditions, which every trial has to keep; keys of a floor too:",
    "detail": "Details, which are only shown:",
}
_BOUNDS = {"ge": "from", "gt": "more than", "le": "to", "lt": "less than"}
_BEGIN = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What the numbers mean</title>
<link rel="stylesheet" href="report.css">
</head>
<body>
<main class="text">
"""
FILES: Mapping[str, tuple[str, tuple[type[BaseModel], ...]]] = {
    "Testbed files": ("`variables/testbeds/`, `-v TESTBED:NAME`.", (TestbedConfig,)),
    "Campaigns": ("`variables/campaigns/`, `-v CAMPAIGN:NAME`.", (Campaign,)),
    "Profiles": (
        "`variables/profiles/`. `like: NAME` takes all keys but `name` and `description` from another profile.",
        (ConnectionProfile, PacketProfile),
    ),
    "SLA files": (
        "`variables/sla/`, `-v SLA:NAME`. `extends: NAME` takes what a file does not say from another one. TOPOLOGY is"
        " a key such as `ovs-dpdk/conntrack/1cpu-1rxq`; each promise and condition of [the metrics](#metrics) is a key"
        ' of a floor: `cps: ">= 48.2k"`.',
        (Floors,),
    ),
}


def statuses() -> str:
    """The table of exit statuses."""
    return table(("status", "meaning"), ((f"{status:d}", said) for status, said in MEANINGS.items()))


def codes() -> str:
    """The table of what a verdict stands on."""
    return table(("code", "verdict", "meaning"), ((f"`{each}`", each.can_be, each.means) for each in Code))


def metrics() -> str:
    """A table of metrics for each role."""
    parts = []
    for role, said in ROLES.items():
        own = [each for each in METRICS.values() if each.role == role]
        rows = ((f"`{each.name}`", each.title, each.unit.name, each.better) for each in own)
        parts.append(f"{said}\n\n{table(('metric', 'what it is', 'unit', 'better'), rows)}")
    return "\n".join(parts)


def keys(
    model: type[BaseModel], prefix: str = "", said: dict[type[BaseModel], str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Key, values and meaning of each field of a model, those of nested models too. A nested model that the file has in
    several places is said once: `said` has the key of each."""
    comments, said = comments_of(model), {} if said is None else said
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        nested = list(models_in(field.annotation))
        meaning = comments.get(name, "")
        if len(nested) == 1 and nested[0] in said:
            meaning = "; ".join(filter(None, (meaning, f"`{said[nested.pop()]}` has the keys")))
        if typing.get_args(field.annotation) == (prefix.rpartition("[")[2].removesuffix("]."),):
            continue  # its only value stands in the key
        if (meaning or not nested) and not (name == "floors" and model is Floors) and not (prefix and name in METRICS):
            yield f"`{key}`", ", ".join(filter(None, (values(field), default(field)))), meaning
        for each in nested:
            kind = next((str(typing.get_args(each.model_fields[tag].annotation)[0]) for tag in ("type", "kind")
                         if len(nested) > 1 and tag in each.model_fields), "")  # fmt: skip
            inner = f"{prefix}TOPOLOGY.PROFILE" if name == "floors" else f"{key}[{kind}]" if kind else key
            inner += ".NAME" if typing.get_origin(field.annotation) is dict and name != "floors" else ""
            if each in said:
                yield f"`{inner}`", "", f"`{said[each]}` has the keys"
            else:
                said[each] = inner
                yield from keys(each, f"{inner}.", said)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def comments_of(model: type[BaseModel]) -> dict[str, str]:
    """By field, the first sentence of the comment before it, of the model and of what it inherits from."""
    found: dict[str, str] = {}
    for place in reversed(model.__mro__):
        if not issubclass(place, BaseModel) or place.__module__.startswith("pydantic"):
            continue
        try:
            lines = inspect.getsource(place).splitlines()
        except (OSError, TypeError):  # made by create_model
            continue
        said: list[str] = []
        for line in map(str.strip, lines):
            if line.startswith("#:"):
                said.append(line.removeprefix("#:").strip())
            elif field := re.match(r"(\w+): ", line):
                found[field[1]] = " ".join(said).partition(". ")[0].rstrip(".").replace("|", "/")
                said = []
            else:
                said = []
    return found


def values(field: FieldInfo) -> str:
    """What a field may be."""
    found = _values(field.annotation, field.metadata)
    return found or ("" if list(models_in(field.annotation)) else "text" if field.annotation is str else "")


def _values(annotation: Any, metadata: list[Any]) -> str:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if said := _range(metadata):
        return said
    if origin is typing.Annotated:
        return _values(parts[0], list(parts[1:]))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(filter(None, (_values(part, []) for part in parts)))
    if origin is typing.Literal:
        return ", ".join(f"`{part}`" for part in parts if part != "")
    return "a list" if origin is list else "true or false" if annotation is bool else ""


def _range(metadata: list[Any]) -> str:
    for each in metadata:
        known = inspect.getclosurevars(each.func).nonlocals if isinstance(each, BeforeValidator) else {}
        if "least" in known:
            return f"{known['least']} to {'less than ' * known['below']}{known['most']}"
    bounds = {name: getattr(each, name) for each in metadata for name in _BOUNDS if hasattr(each, name)}
    said = [f"{_BOUNDS[name]} {value:,.15g}".replace(",", " ") for name, value in bounds.items()]
    return (" " if bounds.keys() == {"ge", "le"} else ", ").join(said)


def default(field: FieldInfo) -> str:
    """`[250]`: what holds without the key."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if field.is_required() or value is PydanticUndefined or isinstance(value, BaseModel) or value in (None, "", [], {}):
        return "" if field.is_required() else "optional"
    return f"[{', '.join(map(_written, value if isinstance(value, list) else [value]))}]"


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def page() -> str:
    """docs/reference.md."""
    parts = [HEAD, statuses(), VERDICTS, codes(), "\n## Metrics\n\n", metrics(), "\n", YAML]
    for title, (said, models) in FILES.items():
        rows = dict.fromkeys(row for model in models for row in keys(model))
        where = textwrap.fill(said, 120, break_on_hyphens=False)
        parts += [f"## {title}\n\n{where}\n\n", table(("key", "values [default]", "meaning"), iter(rows)), "\n"]
    return "".join(parts).rstrip() + "\n"


def explained() -> str:
    """docs/numbers.md as reports have it: with its picture, and without links to pages that are not next to it."""
    text = EXPLAINED.read_text(encoding="utf-8")
    text = re.sub(r"!\[.*?\]\((.*?)\)", lambda found: (PAGE.parent / found[1]).read_text(encoding="utf-8"), text)
    text = re.sub(r"\[([^\]]+\.md)\]\([^)]*\)", r"docs/\1", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    parser = MarkdownIt("commonmark").enable("table")
    tokens, column = parser.parse(text), 0
    names: list[str] = []
    for before, token in pairwise(tokens):
        if before.type == "thead_open":
            names = []
        elif before.type == "th_open":
            names.append(token.content)
        elif before.type == "tr_open":
            column = 0
        if token.type == "td_open":  # the style sheet makes cards of the rows on a phone
            token.attrSet("data-name", names[column])
            column += 1
    return f"{_BEGIN}{parser.renderer.render(tokens, parser.options, {})}</main>\n</body>\n</html>\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    NUMBERS.write_text(explained(), encoding="utf-8")


if __name__ == "__main__":
    main()

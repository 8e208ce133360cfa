"""YAML from a file that nobody vouches for: plain values, no more of them than a person writes, and each key once.

YAML lets a few lines stand for any number of values (aliases, merge keys) and any text for a number. So values are
counted while they are composed, an alias as often as it is used; and only what reads as a plain number is one: `010`,
`1_000`, `0x10`, `1:30` (which YAML 1.1 takes for 8, 1000, 16 and 90), dates and numbers of many digits stay texts.
"""

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError
from ctbench.base.plain_text import brief
from ctbench.base.regular_file import read_named

#: The largest files that ship have some 20 KiB, 1500 keys and values, and 6 levels. What is within these limits is read
#: within a second.
MOST_BYTES, MOST_VALUES, MOST_LEVELS, MOST_CHARACTERS = 512 * 1024, 10_000, 20, 4096

#: Characters of texts: no control characters but tabs and line ends, and no halves of a surrogate pair.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


def read_yaml(path: Path, shown: str) -> Any:
    """Read a YAML file; what is wrong with it is a `ConfigError` with the line. `shown`: how messages name the file."""
    loader = None
    content = b""
    try:
        content = read_named(path, shown, MOST_BYTES)
        loader = _Loader(content)
        return loader.get_single_data()
    except _Refused as error:
        raise ConfigError(f"{shown}: {_where(error)}{error.problem}.\n  Expected {error.expected}") from None
    except yaml.MarkedYAMLError as error:
        what = ", ".join(part for part in (error.context, error.problem) if part) or "not understood"
        if b"password" in _line(content, error):
            what = "not understood"  # what YAML says of it quotes it
        raise ConfigError(f"{shown}: {_where(error)}{brief(what, 200)}.\n  Expected YAML: {_hint(what)}") from None
    except yaml.YAMLError as error:
        what = brief(str(error).splitlines()[0], 200)
        raise ConfigError(f"{shown}: {what}.\n  Expected a text file in UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{shown}: is nested too deeply.\n  Expected a few levels of keys and values.") from None
    finally:
        if loader:
            loader.dispose()


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


def _line(content: bytes, error: yaml.MarkedYAMLError) -> bytes:
    """The line that an error is about, in small letters; empty where there is none."""
    mark, lines = error.problem_mark or error.context_mark, content.splitlines()
    return lines[mark.line].lower() if mark and mark.line < len(lines) else b""


def _hint(problem: str) -> str:
    """Say what to do about a syntax error."""
    if r"\t" in problem:
        return "spaces, not tabs, at the start of a line."
    return "`key: value` lines, and texts that hold a colon or start with > in quotes."


class _Refused(yaml.MarkedYAMLError):
    """YAML that is correct and nothing that these files have."""

    def __init__(self, problem: str, mark: yaml.Mark, expected: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.expected = expected


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with limits."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._values = self._level = 0
        #: Values and levels of what has an anchor.
        self._sizes: dict[str, tuple[int, int]] = {}
        #: The deepest level since the last anchor began.
        self._deepest = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Refuse `[[[[…` while it is scanned: the scanner looks far ahead, and takes ever longer."""
        self._check_level(self.flow_level, self.get_mark())
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one value, counted; an alias counts as what it stands for."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, mark = event.anchor, event.start_mark
        begun, above = self._values, self._deepest
        self._level += 1
        self._deepest = self._level
        if isinstance(event, yaml.AliasEvent):
            if anchor in self.anchors and anchor not in self._sizes:
                raise _Refused(f"*{brief(anchor, 60)} is a part of itself", mark, "values that end.")
            values, levels = self._sizes.get(anchor, (0, 0))
            self._values += values
            self._deepest += levels
        else:
            self._values += 1
            self._check_event(event)
        self._check_level(self._deepest, mark)
        if self._values > MOST_VALUES:
            raise _Refused(
                f"the file holds more than {MOST_VALUES} keys and values",
                mark,
                "a file like those that ship; what an alias (*) repeats counts each time.",
            )
        node: yaml.Node | None = super().compose_node(parent, index)
        if anchor and not isinstance(event, yaml.AliasEvent):
            self._sizes[anchor] = self._values - begun, self._deepest - self._level
        self._level -= 1
        self._deepest = max(above, self._deepest)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Refuse a duplicate key, of which YAML itself keeps the last."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f'duplicate key "{brief(key.value, 60)}"'
                    raise _Refused(problem, key.start_mark, "YAML: each key once.")
                seen.add(key.value)
        return node

    def _check_event(self, event: Any) -> None:
        """Refuse tags, and texts that are too long or no texts."""
        mark = event.start_mark
        if event.tag is not None:
            problem = "a tag"  # which one it is, is not said: it may be a password that begins with !
            raise _Refused(problem, mark, "plain values, without !tags.")
        if not isinstance(event, yaml.ScalarEvent):
            return
        if len(event.value) > MOST_CHARACTERS:
            raise _Refused(
                f"a text of {len(event.value)} characters", mark, f"texts of at most {MOST_CHARACTERS} characters."
            )
        if found := _NO_TEXT.search(event.value):
            raise _Refused(f"a text with the character {found[0]!a}", mark, "texts that can be shown.")

    def _check_level(self, level: int, mark: yaml.Mark) -> None:
        if level > MOST_LEVELS:
            raise _Refused("the file is nested too deeply", mark, "a few levels of keys and values.")


for _kind, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), list(_first))

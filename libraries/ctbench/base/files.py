"""Readers of foreign files within limits (ordinary files, YAML of plain values), and writes of whole files.

Aliases and merge keys of YAML let a few lines stand for any number of values. So the loader counts values while it
composes them, an alias each time it is used. Only plain decimal numbers are numbers: `010`, `1_000`, `0x10`, `1:30`
(which YAML 1.1 takes for 8, 1000, 16 and 90), dates and numbers of many digits stay texts.
"""

import copy
import os
import re
import stat
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from ctbench.base.errors import ConfigError
from ctbench.base.text import brief

#: The largest YAML files that ship have some 20 KiB, and 1500 keys and values.
MOST_BYTES, MOST_VALUES = 512 * 1024, 10_000

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: Bytes that a folder takes before a run begins: without them there is no record, and no message about it either.
_LEAST_SPACE = 64 * 1024
#: Characters of texts: no control characters but tabs and line ends, and no halves of a surrogate pair.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


class UnreadableFile(Exception):
    """A file that cannot be read; the text goes on after its name: `is a folder`."""


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of an ordinary file of at most `most_bytes`. Do not open any other kind of file: that could
    wait or act on a device. Raise `UnreadableFile`, or `FileNotFoundError` where there is no such file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile(f"is {_KINDS.get(stat.S_IFMT(status.st_mode), 'not an ordinary file')}")
        with path.open("rb") as file:
            content = file.read(min(status.st_size, most_bytes) + 1)
            if len(content) > status.st_size:  # files of the kernel say that they are empty, so what is read counts
                content += file.read(most_bytes)
        if len(content) > most_bytes:
            size = f"{most_bytes // 1024} KiB" if most_bytes < 1_000_000 else f"{most_bytes / 1_000_000:g} MB"
            raise UnreadableFile(f"is larger than {size}")
        return content
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        raise UnreadableFile(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None


def check_writable(folder: Path) -> None:
    """Raise OSError where a file of `_LEAST_SPACE` bytes cannot be written to `folder`."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"\0" * _LEAST_SPACE)
        probe.flush()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically and sync it to the disk: a browser may have it open, and a run may be killed. Raise
    OSError."""
    part = path.with_name(f".{path.name}-{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def named_folder(name: str | Path) -> Path:
    """Return the path of a folder that a user named; it need not exist. Raise `ConfigError` where it cannot be a
    path."""
    try:
        os.stat(name)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:  # too long, a ring of links; NUL
        reason = getattr(error, "strerror", None) or "is not a path"
        raise ConfigError(f"{brief(str(name), 100)}: {reason}.\n  Expected a folder.") from None
    return Path(name)


def read_yaml(path: Path, shown: str) -> Any:
    """Read a YAML file. Raise `ConfigError` with the line of a mistake. `shown`: the file's name in messages."""
    content = b""
    try:
        content = read_regular(path, MOST_BYTES)
        return copy.deepcopy(_parsed(content))
    except FileNotFoundError as error:
        raise ConfigError(f"{shown}: {error.strerror}.\n  Expected a file that you may read.") from None
    except UnreadableFile as error:
        raise ConfigError(f"{shown}: {error}.\n  Expected a regular file of a few KiB that you may read.") from None
    except _Refused as error:
        raise ConfigError(f"{shown}: {_where(error)}{error.problem}.\n  Expected {error.expected}") from None
    except yaml.MarkedYAMLError as error:
        what = ", ".join(part for part in (error.context, error.problem) if part) or "not understood"
        mark, lines = error.problem_mark or error.context_mark, content.splitlines()
        if mark and mark.line < len(lines) and b"password" in lines[mark.line].lower():
            what = "not understood"  # what YAML says of it quotes it
        hint = "spaces, not tabs, at the start of a line." if r"\t" in what else (
            "`key: value` lines, and texts that hold a colon or start with > in quotes.")  # fmt: skip
        raise ConfigError(f"{shown}: {_where(error)}{brief(what, 200)}.\n  Expected YAML: {hint}") from None
    except yaml.YAMLError as error:
        what = brief(str(error).splitlines()[0], 200)
        raise ConfigError(f"{shown}: {what}.\n  Expected a text file in UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{shown}: is nested too deeply.\n  Expected a few levels of keys and values.") from None


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> Any:
    """Return the parsed content of a file, cached: a run reads most files twice and more, and parsing takes longest."""
    return yaml.load(content, _Loader)


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


class _Refused(yaml.MarkedYAMLError):
    """Correct YAML of a form that the suite's files may not have."""

    def __init__(self, problem: str, mark: yaml.Mark, expected: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.expected = expected


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with limits."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._values = 0
        #: Values of what has an anchor.
        self._sizes: dict[str, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one value and count it; an alias counts as what it stands for."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, mark, begun = event.anchor, event.start_mark, self._values
        is_alias = isinstance(event, yaml.AliasEvent)
        if is_alias and anchor in self.anchors and anchor not in self._sizes:
            raise _Refused(f"*{brief(anchor, 60)} is a part of itself", mark, "values that end.")
        self._values += self._sizes.get(anchor, 0) if is_alias else 1
        if self._values > MOST_VALUES:
            raise _Refused(
                f"the file holds more than {MOST_VALUES} keys and values",
                mark,
                "a file like those that ship; what an alias (*) repeats counts each time.",
            )
        if not is_alias and event.tag is not None:  # not shown: it may be a password that begins with !
            raise _Refused("a tag", mark, "plain values, without !tags.")
        if isinstance(event, yaml.ScalarEvent) and (found := _NO_TEXT.search(event.value)):
            raise _Refused(f"a text with the character {found[0]!a}", mark, "texts that can be shown.")
        node: yaml.Node | None = super().compose_node(parent, index)
        if anchor and not is_alias:
            self._sizes[anchor] = self._values - begun
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Refuse a duplicate key, of which PyYAML would keep the last one."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _Refused(f'duplicate key "{brief(key.value, 60)}"', key.start_mark, "YAML: each key once.")
            seen.add(key.value)
        return node


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

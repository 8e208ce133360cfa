"""README.md and docs/ as their readers use them: every command that they give."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def _reading_order(document: Path) -> tuple[int, str]:
    """Where README leads to a document, so that it is read after what comes before it there."""
    name = document.relative_to(ROOT).as_posix()
    found = README.read_text(encoding="utf-8").find(f"]({name})")
    return (found if found >= 0 else sys.maxsize, name)


#: README and everything below docs/, in the order in which README leads to it.
DOCUMENTS = (README, *sorted((ROOT / "docs").rglob("*.md"), key=_reading_order))

#: Languages of blocks: scripts, without a prompt and output, and no commands at all. Others are sessions.
_SCRIPTS, _OTHERS = {"bash", "sh", "shell"}, {"yaml", "json", "robotframework"}
#: What begins a command in running text, after assignments to the environment. `./run sla` alone is a name.
_PROGRAM = re.compile(r"(?:\w+=\S+ )*(?:\./run|robot|pabot|sudo|git|pip|apt-get|cp) \S")
_NAME = re.compile(r"\./run [a-z]+")


@dataclass(frozen=True)
class Command:
    """A command that a document gives, without the comment behind it."""

    text: str
    #: `README.md:17`.
    place: str
    #: What the document shows below it.
    output: str = ""


def read(text: str, name: str) -> list[Command]:
    """The commands of a document in their order."""
    commands: list[Command] = []
    for token in MarkdownIt("commonmark").parse(text):
        place = f"{name}:{token.map[0] + 1}" if token.map else name
        if token.type in ("fence", "code_block", "html_block"):
            commands += _of_block(token, place)
        for child in token.children or ():
            if child.type == "code_inline" and _PROGRAM.match(child.content) and not _NAME.fullmatch(child.content):
                commands.append(Command(child.content, place))
    return commands


def _of_block(token: Token, place: str) -> Iterator[Command]:
    language = next(iter(token.info.split()), "")
    lines = re.sub(r"\\\n\s*", "", token.content).splitlines()
    if language in _SCRIPTS or (language not in _OTHERS and not any(map(_is_prompt, lines))):
        # Without a prompt: a script, or a command where it has no prompt.
        for line in lines:
            if line.strip() and (language in _SCRIPTS or _PROGRAM.match(line.strip())) and line.strip()[0] != "#":
                yield Command(_without_comment(line.strip()), place)
    elif language not in _OTHERS:
        for part in re.split(r"^(?=[$#] )", "\n".join(lines), flags=re.MULTILINE):
            if _is_prompt(part):
                command, _, output = part.partition("\n")
                yield Command(_without_comment(command[2:]), place, output=output)


def _is_prompt(line: str) -> bool:
    return line.startswith(("$ ", "# "))


def _without_comment(command: str) -> str:
    return re.split(r"\s+# ", command)[0].strip()


def everything() -> list[Command]:
    """The commands of README.md and docs/."""
    return [
        command
        for document in DOCUMENTS
        for command in read(document.read_text(encoding="utf-8"), str(document.relative_to(ROOT)))
    ]

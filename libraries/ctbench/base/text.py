"""Escaping of foreign text (names of tests, of files, of machines) where it is shown: nothing in it moves a cursor,
colours a terminal, changes the direction of reading, cannot be written as UTF-8, or acts as Markdown (of GitHub, GitLab
and Gerrit)."""

import re

#: Control characters but tab and newline, those that turn the direction of reading, separators of lines, halves of
#: surrogate pairs, and what is not a character at all.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
#: A byte of a file name that is not UTF-8, as Python keeps it (PEP 383).
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF


def printable(text: str) -> str:
    """Return the text with escapes for unprintable characters: `\\x1b[31m`. Tabs and newlines stay."""
    if text.isascii() and text.isprintable():  # nearly all texts, and much quicker
        return text
    return _UNPRINTABLE.sub(_escape, text)


def one_line(text: str) -> str:
    """Return the same text on one line, runs of white space as one space."""
    return printable(" ".join(text.split()))


def brief(text: str, most: int) -> str:
    """Show a text on one line of a terminal: at most `most` characters, unprintable ones escaped as `\\x1b`."""
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


#: What begins emphasis, code, links, images, HTML, entities, formulas or cells wherever it stands.
_ANYWHERE = re.compile(r"[\\`*_\[\]<>|~&$]")
#: What begins a heading, a list or a rule where a line does.
_AT_THE_START = re.compile(r"^([0-9]{1,9}(?=[.)](?: |$))|(?=[#+=-]))")
#: What becomes a link without any sign: addresses, and names of people, who would be told.
_ADDRESS = re.compile(r"(?<=[a-zA-Z])(?=://)|(?<=www)(?=\.)", re.IGNORECASE)
_NAME = re.compile(r"@(?=[a-zA-Z0-9])")


def escaped(text: str) -> str:
    """Return the text on one line as Markdown that shows it literally."""
    text = _ANYWHERE.sub(r"\\\g<0>", one_line(text))
    text = _AT_THE_START.sub(r"\1\\", text)
    return _NAME.sub("@<!-- -->", _ADDRESS.sub(r"\\", text))


def code(text: str) -> str:
    """Return the text as Markdown code, valid in a table too."""
    text = one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text or ' '}{space}{fence}"

"""Text of others (names of tests, of files, of machines) where it is shown: nothing in it moves a cursor, colours a
terminal, turns the direction of reading, or cannot be written as UTF-8."""

import re

#: Control characters but tab and newline, those that turn the direction of reading, separators of lines, halves of
#: surrogate pairs, and what is no character at all.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
#: A byte of a file name that is not UTF-8, as Python keeps it (PEP 383).
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF


def printable(text: str) -> str:
    """The text with escapes for what cannot be shown: `\\x1b[31m`. Tabs and newlines stay."""
    if text.isascii() and text.isprintable():  # nearly all texts, and much quicker
        return text
    return _UNPRINTABLE.sub(_escape, text)


def one_line(text: str) -> str:
    """The same on one line, runs of spaces as one."""
    return printable(" ".join(text.split()))


def brief(text: str, most: int) -> str:
    """Show a text on one line of a terminal: at most `most` characters, those that no terminal shows as `\\x1b`."""
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

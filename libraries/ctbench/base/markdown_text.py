"""Text of others within Markdown as GitHub, GitLab and Gerrit read it: it stays text."""

import re

from ctbench.base.plain_text import one_line

#: What begins emphasis, code, links, images, HTML, entities, formulas or cells wherever it stands.
_ANYWHERE = re.compile(r"[\\`*_\[\]<>|~&$]")
#: What begins a heading, a list or a rule where a line does.
_AT_THE_START = re.compile(r"^([0-9]{1,9}(?=[.)](?: |$))|(?=[#+=-]))")
#: What becomes a link without any sign: addresses, and names of people, who would be told.
_ADDRESS = re.compile(r"(?<=[a-zA-Z])(?=://)|(?<=www)(?=\.)", re.IGNORECASE)
_NAME = re.compile(r"@(?=[a-zA-Z0-9])")


def escaped(text: str) -> str:
    """The text on one line, each sign in it a sign."""
    text = _ANYWHERE.sub(r"\\\g<0>", one_line(text))
    text = _AT_THE_START.sub(r"\1\\", text)
    return _NAME.sub("@<!-- -->", _ADDRESS.sub(r"\\", text))


def code(text: str) -> str:
    """The text as code, also within a table."""
    text = one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text or ' '}{space}{fence}"

"""What a word that is not known was perhaps meant to be."""

import difflib
from collections.abc import Sequence

from ctbench.base.units import quoted


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """Name the choice that `word` was perhaps meant to be, as ` Did you mean "x"?`, else an empty text."""
    if len(word) > 100:  # nobody mistypes that much
        return ""
    close = difflib.get_close_matches(word, choices, n=1)
    return f" Did you mean {quoted(close[0])}?" if close else ""

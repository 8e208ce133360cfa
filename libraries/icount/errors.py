"""The errors of the counter: an exception whose text is one sentence, with the exit status of the command."""

from typing import ClassVar


class IcountError(Exception):
    """A failure of a machine, or of a part that it is made of."""

    exit_status: ClassVar[int] = 5


class Invalid(IcountError):
    """A kernel, an image or a topology that was named and is not valid."""

    exit_status = 4


class Missing(IcountError):
    """A part that is not installed, or too little memory."""

    exit_status = 6


def one_line(text: str) -> str:
    """Return a text of others for such a sentence: on one line, without characters that a terminal would act on."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())

"""What can go wrong: an exception whose text is one sentence, with the exit status of the command."""

from typing import ClassVar


class IcountError(Exception):
    """A machine, or what it is made of, did not do what it has to."""

    exit_status: ClassVar[int] = 5


class Invalid(IcountError):
    """What was named is not what it has to be: a kernel, an image, a topology."""

    exit_status = 4


class Missing(IcountError):
    """Something is not installed, or there is too little memory."""

    exit_status = 6


def one_line(text: str) -> str:
    """A text of others for such a sentence: on one line, without what a terminal would act on."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())

"""Text of others where it is shown."""


def one_line(text: str) -> str:
    """The text on one line, without what a terminal would act on."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())

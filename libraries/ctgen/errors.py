"""The errors of the generator; the text of each is one sentence for the user."""


class GeneratorError(Exception):
    """The generator or one of its links is broken (not: too slow, which is a property of a trial)."""


class Unavailable(Exception):
    """This machine or this generator cannot do what was asked. The text names what is needed."""

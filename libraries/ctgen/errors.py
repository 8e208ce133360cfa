"""What can go wrong, as exceptions whose text is one sentence for the user."""


class GeneratorError(Exception):
    """The generator or a link of it is broken (not: too slow, which is a property of a trial)."""


class Unavailable(Exception):
    """This machine or this generator cannot do what was asked. The text says what is needed."""

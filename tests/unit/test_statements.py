"""tools.statements: what counts as a statement."""

from tools.statements import Size, size_of

SOURCE = '''"""A docstring."""

a, b = 1, 2


class Thing:
    """One."""

    def method(self) -> int:
        """A docstring."""
        if a: return (
            b
        )
        return 0
'''


def test_docstrings_do_not_count_and_lines_do_not_matter() -> None:
    # The assignment, the class, the method, the if, and two returns.
    assert size_of(SOURCE) == Size(statements=6, functions=1, classes=1)
    assert size_of("x = 1; y = 2") == size_of("x = (\n1\n)\ny = 2\n") == Size(statements=2)

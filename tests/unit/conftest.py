"""Fixtures of the unit tests."""

import pytest


@pytest.fixture(scope="session")
def compiled_generator() -> None:
    """The generator's kernel functions, compiled before a wire in Python competes with the compiler for the
    interpreter: half a minute instead of two."""
    from ctbench.traffic.software.generator import warm_up

    warm_up()

"""What unit tests share: their mark, and the compiled traffic generator."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is a unit test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("unit")


@pytest.fixture(scope="session")
def compiled_generator() -> None:
    """The generator's kernel functions, compiled before a wire in Python competes with the compiler for the
    interpreter: half a minute instead of two."""
    from ctbench.traffic.software.generator import warm_up

    warm_up()

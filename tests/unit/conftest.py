"""What unit tests share: their mark, and the compiled traffic generator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.fixture
def run_compare(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """`./run compare` with these arguments, into `tmp_path / "out"`: its exit status, and what it said on either
    stream."""
    from ctbench.cli import compare

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["compare.py", *arguments, "--outputdir", str(tmp_path / "out")])
        status = compare.main()
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Puts a stand-in in the place of ./run sla, where `./run compare` starts it."""
    from ctbench.cli import child_runs

    def by(sla: Any) -> Any:
        monkeypatch.setattr(child_runs, "run_child", sla)
        return sla

    return by

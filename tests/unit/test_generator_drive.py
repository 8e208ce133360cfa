"""The thread that runs the generator's kernel: memory is never taken from under it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ctbench.traffic.software.kernel_thread import run_kernel


class Kernel:
    """In the place of a function of numba's: says when it was compiled and when it ended."""

    def __init__(self, said: list[str]) -> None:
        self._said, self.running, self.may_end = said, threading.Event(), threading.Event()

    def compile(self, _types: tuple[Any, ...]) -> None:
        self._said.append("compiled")

    def __call__(self) -> None:
        self.running.set()
        self.may_end.wait()
        self._said.append("kernel ended")


class NoWiring:
    """In the place of the two ports."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def start(self) -> None:
        self._said.append("wiring started")

    def stop(self) -> None:
        self._said.append("wiring stopped")


def test_ctrl_c_waits_for_the_kernel_before_it_lets_go_of_the_ports() -> None:
    said: list[str] = []
    kernel = Kernel(said)

    def stop() -> None:
        said.append("stop asked")
        threading.Timer(0.2, kernel.may_end.set).start()

    def watch(_elapsed: float) -> None:
        kernel.running.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_kernel(kernel, (), NoWiring(said), (), stop, 1.0, watch)  # type: ignore[arg-type]
    assert said == ["compiled", "wiring started", "stop asked", "kernel ended", "wiring stopped"]

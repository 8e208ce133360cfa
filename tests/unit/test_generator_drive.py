"""The thread that runs the generator's kernel: memory is never taken from under it."""

import os
import signal
import time
from contextlib import closing

import pytest

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import kernel
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.generator import SoftwareTrafficGenerator
from ctbench.traffic.software.wiring import Wiring


def test_ctrl_c_waits_for_the_kernel_before_it_lets_go_of_the_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def slow_to_end(_parameters: object, _intervals: object, state: dict[int, int], *_: object) -> None:
        time.sleep(0.2)  # the main thread waits by now
        os.kill(os.getpid(), signal.SIGINT)
        while not state[lay.STOP]:
            time.sleep(0.01)
        said.append("stop asked")
        time.sleep(0.3)
        said.append("kernel ended")

    slow_to_end.compile = lambda _types: said.append("compiled")  # type: ignore[attr-defined]
    monkeypatch.setattr(kernel, "run", slow_to_end)
    monkeypatch.setattr(Wiring, "start", lambda _self: said.append("wiring started"))
    monkeypatch.setattr(Wiring, "stop", lambda _self: said.append("wiring stopped"))
    with closing(SoftwareTrafficGenerator()) as generator:
        generator.connect_cable()
        with pytest.raises(KeyboardInterrupt):
            generator.run_trial(ConnectionProfile(name="any"), Rate(1000), 1)
        assert said == ["compiled", "wiring started", "stop asked", "kernel ended", "wiring stopped"]

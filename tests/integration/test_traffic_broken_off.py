"""A trial that is broken off ends before anybody takes its memory away."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from ctbench.base.errors import MissingResource
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import kernel
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.generator import SoftwareTrafficGenerator


@pytest.fixture
def generator() -> Iterator[SoftwareTrafficGenerator]:
    instance = SoftwareTrafficGenerator()
    try:
        instance.connect_cable()
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.close()


def test_ctrl_c_waits_for_the_generators_thread(
    generator: SoftwareTrafficGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def slow_to_end(_parameters: object, _intervals: object, state: dict[int, int], *_: object) -> None:
        time.sleep(0.2)  # the main thread waits by now
        os.kill(os.getpid(), signal.SIGINT)
        while not state[lay.STOP]:
            time.sleep(0.01)
        time.sleep(0.3)
        ended.append(True)

    slow_to_end.compile = lambda _types: None  # type: ignore[attr-defined]
    monkeypatch.setattr(kernel, "run", slow_to_end)
    with pytest.raises(KeyboardInterrupt):
        generator.run_trial(ConnectionProfile(name="any"), Rate(1000), 1)

    assert ended

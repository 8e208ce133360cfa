"""From a profile and a load to the kernel function's parameters: the records, the thread that runs
it, whose memory is never taken from under it, and memif links that cannot be made at once."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_parts import kernel_parts
from wire import over_a_cable

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctgen import Cable, Generator, clock, library, plan
from ctgen import layout as lay
from ctgen.errors import GeneratorError
from ctgen.memif import RingPlan, connect
from ctgen.wiring import Wiring

LONG = ConnectionProfile(name="long", messages=40, server_wait_ms=50.0)


def test_there_are_records_enough_and_a_ramp_of_a_lifetime() -> None:
    assert plan.records_needed(ConnectionProfile(name="short"), Rate(100_000)) >= 100_000 * 3 * plan.REPLY_TIMEOUT_S
    assert plan.records_needed(LONG, Rate(10_000)) >= 10_000 * LONG.lifetime_s
    assert plan.records_needed(LONG, Rate(10_000_000)) == lay.MOST_RECORDS
    for_a_while = LONG.model_copy(update={"messages": 20})
    assert plan.timing_of(for_a_while, Rate(1000), 1.0).ramp_up_s >= for_a_while.lifetime_s
    assert plan.timing_of(for_a_while, Rate(1000), 1.0).linger_s >= for_a_while.lifetime_s


def test_short_datagrams_are_padded_to_ethernets_least() -> None:
    profile = ConnectionProfile(name="tiny", udp_percent=100, request_bytes=1, reply_bytes=1)
    p = plan.parameters(profile, Rate(1000), plan.timing_of(profile, Rate(1000), 1), 1e9, salt=1)
    assert 42 + p.udp_request_bytes >= 60


def test_a_generator_without_records_is_limited_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "records_needed", lambda *_: 4)
    trial = over_a_cable(LONG.model_copy(update={"messages": 2}), Rate(1000), 0.2)
    assert "no free record" in trial.generator_limited
    assert trial.attempted < trial.intended
    assert trial.completed < trial.intended


@given(st.integers(0, (1 << 32) - 1))
def test_a_bin_is_at_most_three_percent_above_the_times_in_it(units: int) -> None:
    times = np.zeros(lay.constants()["BINS"], np.int64)
    times[kernel_parts().bin_of(units)] = 1
    assert units < clock.percentile(times, 1.0, 1 << 33, 64e6) <= units * 1.032 + 1


@pytest.mark.parametrize(
    ("frame_bytes", "rings", "frames"),
    [(64, 1, 16384), (64, 9, 16384), (1514, 8, 16384), (1514, 9, 8192), (9018, 2, 8192)],
)
def test_the_rings_that_it_receives_on_hold_its_own_pauses(frame_bytes: int, rings: int, frames: int) -> None:
    assert RingPlan.towards(1, rings, 2048, frame_bytes).s2c_size == frames


def test_ctrl_c_waits_for_the_kernel_before_it_lets_go_of_the_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def slow_to_end(of: ctypes.Structure) -> None:
        time.sleep(0.2)  # the main thread waits by now
        os.kill(os.getpid(), signal.SIGINT)
        while not of.state.stop:
            time.sleep(0.01)
        said.append("stop asked")
        time.sleep(0.3)
        said.append("kernel ended")

    monkeypatch.setattr(library.kernel(), "run_connections", slow_to_end)
    monkeypatch.setattr(Wiring, "start", lambda _self: said.append("wiring started"))
    monkeypatch.setattr(Wiring, "stop", lambda _self: said.append("wiring stopped"))
    with closing(Generator()) as generator:
        generator.connect(Cable())
        with pytest.raises(KeyboardInterrupt):
            generator.run_trial(ConnectionProfile(name="any"), Rate(1000), 1)
        assert said == ["wiring started", "stop asked", "kernel ended", "wiring stopped"]


PLAN = RingPlan(c2s=1, s2c=1, c2s_size=16, s2c_size=16)
HELLO, MESSAGE_BYTES = 2, 128


def listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(str(path))
    server.listen(1)
    return server


def test_a_port_without_a_listener_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="does not answer"):
        connect(tmp_path / "port.sock", PLAN, timeout=0.2)


def test_a_link_that_is_reset_is_tried_again(tmp_path: Path) -> None:
    """The second server is told from the first by its version, which this generator does not speak."""
    path = tmp_path / "port.sock"
    first, second = listen(path), listen(tmp_path / "next.sock")

    def reset_then_greet() -> None:
        select.select([first], [], [])  # the client is in the queue: closing the server now resets it
        (tmp_path / "next.sock").rename(path)
        first.close()
        link, _ = second.accept()
        hello = struct.pack("<H32sHH", HELLO, b"server", 0x0900, 0x0900)
        link.send(hello.ljust(MESSAGE_BYTES, b"\0"))
        link.close()

    server = threading.Thread(target=reset_then_greet, daemon=True)
    server.start()
    with second, pytest.raises(GeneratorError, match="0x900-0x900"):
        connect(path, PLAN, timeout=5)
    server.join()

"""What a memif client does when the link cannot be made at once: one more try, or one sentence."""

from __future__ import annotations

import select
import socket
import struct
import threading
from pathlib import Path

import pytest

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software.memif import RingPlan, connect

PLAN = RingPlan(c2s=1, s2c=1, c2s_size=16, s2c_size=16)
HELLO, MESSAGE_BYTES = 2, 128


def listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(str(path))
    server.listen(1)
    return server


def test_nobody_listens(tmp_path: Path) -> None:
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


def test_a_server_that_only_resets_is_named_when_the_time_is_up(tmp_path: Path) -> None:
    path = tmp_path / "port.sock"
    over = threading.Event()

    def reset_for_ever(server: socket.socket) -> None:
        while not over.is_set():
            if select.select([server], [], [], 0.01)[0]:
                new = listen(tmp_path / "next.sock")
                (tmp_path / "next.sock").rename(path)
                server.close()
                server = new
        server.close()

    server = threading.Thread(target=reset_for_ever, args=(listen(path),), daemon=True)
    server.start()
    with pytest.raises(GeneratorError, match=r"port\.sock resets the link"):
        connect(path, PLAN, timeout=0.3)
    over.set()
    server.join()

"""The monitor of QEMU: what is asked, what is answered, and what is not there."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.emulated.monitor import Monitor

pytestmark = pytest.mark.unit

GREETING = {"QMP": {"version": {}}}
ANSWERS = {
    "qmp_capabilities": [{"return": {}}],
    "query-status": [{"event": "STOP"}, {"return": {"status": "guest-panicked"}}],
    "migrate": [{"error": {"class": "GenericError", "desc": "There is no such command"}}],
}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A monitor that answers, in pieces, until it is asked for what it does not know."""
    listens = socket.socket(socket.AF_UNIX)
    listens.bind(str(tmp_path / "monitor"))
    listens.listen()

    def serve() -> None:
        talks, _ = listens.accept()
        with talks, talks.makefile("r") as asked:
            talks.sendall(json.dumps(GREETING).encode() + b"\n")
            for line in asked:
                for said in ANSWERS.get(json.loads(line)["execute"], [None]):
                    if said is None:
                        return
                    whole = json.dumps(said).encode() + b"\r\n"
                    talks.sendall(whole[:5])
                    talks.sendall(whole[5:])

    server = threading.Thread(target=serve)
    server.start()
    yield tmp_path / "monitor"
    server.join()
    listens.close()


def test_answers_are_found_between_events_and_refusals_are_said(path: Path) -> None:
    monitor = Monitor(path)
    assert monitor.ask("query-status") == {"status": "guest-panicked"}
    with pytest.raises(TestbedError, match="QEMU refuses `migrate`: There is no such command"):
        monitor.ask("migrate", uri="nowhere")
    assert monitor.ask("query-status") == {"status": "guest-panicked"}
    monitor.close()


def test_one_that_goes_away_does_not_answer(path: Path) -> None:
    monitor = Monitor(path)
    assert monitor.ask("quit") is None


def test_one_that_is_not_there_yet_does_not_answer(tmp_path: Path) -> None:
    assert Monitor(tmp_path / "nothing").ask("query-status") is None

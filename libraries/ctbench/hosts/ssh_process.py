"""A command in the background on another host."""

import time
from collections.abc import Callable
from pathlib import Path

from ctbench.hosts.ssh_remote import LONGEST_OUTPUT, Conversation, call

#: Seconds between two looks at a command that was asked to end.
POLL_S = 0.05

#: Holds a conversation about a call.
Converse = Callable[[str], Conversation]


class SshProcess:
    """A job of ssh_remote.sh. Its log on this machine is brought up to date whenever one asks whether it runs."""

    def __init__(self, converse: Converse, pid: int, job: str, log: Path | None) -> None:
        self._converse = converse
        self._pid = pid
        self._job = job
        self._log = log
        self._fetched = 0
        self._status: int | None = None
        self._dropped = False

    @property
    def pid(self) -> int:
        """Process ID as the host's own commands see it."""
        return self._pid

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        if self._status is None:
            while self._look() == LONGEST_OUTPUT:
                pass
        return self._status is None

    def stop(self, timeout: float = 5.0) -> int:
        """SIGTERM to the command; after `timeout` seconds SIGKILL to its whole group. Returns its exit status,
        negative for the signal that ended it."""
        if self.is_running():
            self._tell("ask_job")
            deadline = time.monotonic() + timeout
            while self.is_running() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if self._status is None:
                self._tell("kill_job")
                self.is_running()
        if not self._dropped:
            self._tell("drop_job")
            self._dropped = True
        return -9 if self._status is None else self._status

    def _look(self) -> int:
        """Ask how it is, and fetch what it printed meanwhile: how many bytes that was."""
        with self._converse(call("look", self._job, self._fetched, LONGEST_OUTPUT)) as said:
            state, *words = said.reply()
            printed = said.output(int(words[-1]))
        assert isinstance(printed, bytes)
        if self._log is not None and printed:
            with self._log.open("ab") as log:
                log.write(printed)
        self._fetched += len(printed)
        if state == "ended":
            self._status = exit_status(int(words[0]))
        return len(printed)

    def _tell(self, function: str) -> None:
        with self._converse(call(function, self._job)) as said:
            said.reply()


def exit_status(status: int) -> int:
    """What a shell calls 128 + N was ended by signal N, which we call -N."""
    return 128 - status if 128 < status <= 128 + 64 else status

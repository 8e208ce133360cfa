"""The hosts of a testbed by their names, each connected to once, and what their machines are."""

from contextlib import ExitStack

from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Machine, read_machine
from ctbench.hosts.sandbox import Sandbox


class HostPool:
    """Makes hosts when they are first asked for; `close` lets go of all."""

    def __init__(self, configs: dict[str, SshConfig]) -> None:
        """`configs`: hosts over SSH by name."""
        self._configs = configs
        self._shared: dict[str, Host] = {}
        self._sandboxes: list[Sandbox] = []
        self._machines: dict[str, Machine] = {}

    def sandbox(self) -> Sandbox:
        """A sandbox of its own for each caller: what one DUT leaves in a network namespace would slow down another."""
        self._sandboxes.append(Sandbox())
        return self._sandboxes[-1]

    def host(self, name: str) -> Host:
        """The host that the testbed file calls `name`; a new sandbox each time."""
        if name == SANDBOX:
            return self.sandbox()
        if name not in self._shared:
            self._shared[name] = LocalHost() if name == LOCAL else self._connect(name)
        return self._shared[name]

    def machine(self, name: str) -> Machine:
        """What the machine of a host is, read once."""
        place = machine_of(name)
        if place not in self._machines:
            self._machines[place] = read_machine(self.host(place))
        return self._machines[place]

    def discard(self, sandbox: Sandbox) -> None:
        """End a sandbox, and all that runs in it."""
        if sandbox in self._sandboxes:
            self._sandboxes.remove(sandbox)
        sandbox.close()

    def close(self) -> None:
        """Let go of all hosts, also where one cannot be: then that is raised. May be called twice."""
        with ExitStack() as stack:
            while self._sandboxes:
                stack.callback(self._sandboxes.pop().close)
            while self._shared:
                stack.callback(self._shared.popitem()[1].close)

    def _connect(self, name: str) -> Host:
        # It brings paramiko, half a second that few testbeds need.
        from ctbench.hosts.ssh import SshHost  # noqa: PLC0415

        return SshHost(name, self._configs[name])


def machine_of(name: str) -> str:
    """The name of the machine that a host is on: a sandbox is on this one."""
    return LOCAL if name == SANDBOX else name

"""The hosts of a testbed by name, each connected once, and the facts of their machines."""

from contextlib import ExitStack

from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Machine, read_machine
from ctbench.hosts.sandbox import Sandbox


class HostPool:
    """A pool that makes each host at its first use; `close` closes all of them."""

    def __init__(self, configs: dict[str, SshConfig]) -> None:
        """`configs`: hosts over SSH by name."""
        self._configs = configs
        self._shared: dict[str, Host] = {}
        self._sandboxes: list[Sandbox] = []
        self._machines: dict[str, Machine] = {}

    def sandbox(self) -> Sandbox:
        """Return a new sandbox for each caller: the remains of one DUT in a network namespace would slow down
        another."""
        self._sandboxes.append(Sandbox())
        return self._sandboxes[-1]

    def host(self, name: str) -> Host:
        """Return the host that the testbed file calls `name`; for `sandbox` a new one each time."""
        if name == SANDBOX:
            return self.sandbox()
        if name not in self._shared:
            self._shared[name] = LocalHost() if name == LOCAL else self._connect(name)
        return self._shared[name]

    def machine(self, name: str) -> Machine:
        """Return the facts of a host's machine, which are read once."""
        place = machine_of(name)
        if place not in self._machines:
            self._machines[place] = read_machine(self.host(place))
        return self._machines[place]

    def discard(self, sandbox: Sandbox) -> None:
        """End a sandbox and every process in it."""
        if sandbox in self._sandboxes:
            self._sandboxes.remove(sandbox)
        sandbox.close()

    def close(self) -> None:
        """Close all hosts, even where closing one fails; raise that error at the end. May be called twice."""
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
    """Return the name of the machine that a host is on: a sandbox is on this machine."""
    return LOCAL if name == SANDBOX else name

"""iproute2: commands in batches, answers as JSON."""

import json
from collections.abc import Iterable
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Host

#: What ip(8) says of a device type that the kernel does not have.
UNKNOWN_TYPE = ("Unknown device type", "not supported")


class IpRoute:
    """Runs ip(8) and bridge(8) on a host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def batch(self, lines: Iterable[str], namespace: str = "") -> None:
        """Run commands of `ip` in their order, in one of the host's named network namespaces where one is given."""
        self.host.run(["ip", *_within(namespace), "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))

    def show(self, *arguments: str, namespace: str = "", where_known: bool = False) -> Any:
        """What a `show` command says; `where_known`: nothing, where there is no such namespace."""
        text = self.host.run(["ip", *_within(namespace), "-json", *arguments], check=not where_known).stdout
        return json.loads(text) if text.strip() else []

    def has(self, interface: str) -> bool:
        """Whether the host has this interface."""
        return self.host.run(["ip", "link", "show", interface], check=False).exit_status == 0

    def add(self, name: str, kind: str, module: str, *options: str, link: str = "") -> None:
        """Add a virtual device of type `kind`. `MissingResource` names the kernel `module` that does not do it."""
        on = ["link", link] if link else []
        self.require(["ip", "link", "add", *on, "name", name, "type", kind, *options], f"the kernel module {module}")

    def require(self, argv: list[str], need: str) -> None:
        """Run a command for which the kernel must have `need`: `MissingResource` where it has not."""
        done = self.host.run(argv, check=False)
        if done.exit_status == 0:
            return
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("Error: ").rstrip(".")
        if any(text in said for text in UNKNOWN_TYPE):
            raise MissingResource(f"{self.host.name}: {need} is missing (`{' '.join(argv)}`: {said}).")
        raise TestbedError(f"{self.host.name}: `{' '.join(argv)}` failed: {said}.")


def _within(namespace: str) -> list[str]:
    return ["-n", namespace] if namespace else []

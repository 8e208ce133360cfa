"""Kernel settings of the DUT's network namespace: set, read back, and put back as they were found."""

from collections.abc import Iterable, Mapping

from ctbench.hosts.base import Host

#: Where sysctl(8) finds them. Names are paths below it: those of interfaces may hold a dot.
ROOT = "/proc/sys"


class Sysctls:
    """Settings by their path below /proc/sys, for example `net/ipv4/ip_forward`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._found: dict[str, str] = {}

    def set(self, values: Mapping[str, str]) -> dict[str, str]:
        """Set what the kernel has and read it back: what it is now. A kernel that refuses keeps what it had."""
        before = self.read(values)
        for name, value in before.items():
            self._found.setdefault(name, value)
        self._write({name: values[name] for name in before})
        return self.read(values)

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """The values now; names that the kernel does not have are left out."""
        paths = [f"{ROOT}/{name}" for name in names]
        done = self._host.run(["grep", "-H", "-s", "", *paths, "/dev/null"], check=False)
        lines = (line.partition(":") for line in done.stdout.splitlines())
        return {path.removeprefix(f"{ROOT}/"): value for path, _, value in lines}

    def restore(self) -> None:
        """Put back what was found; settings of interfaces that are gone went with them."""
        self._write({name: self._found[name] for name in self.read(self._found)})
        self._found.clear()

    def _write(self, values: Mapping[str, str]) -> None:
        if values:  # its status does not tell a refusal: reading back does
            self._host.run(["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in values.items())], check=False)

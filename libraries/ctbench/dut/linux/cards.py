"""A lab's two network cards as links: queues, and the CPUs that their interrupts go to.

Not tried out on any card yet, only with veth pairs in their place: it was written where there is none.
"""

import re
from collections.abc import Callable, Sequence
from socket import socket
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.iproute import IpRoute
from ctbench.hosts.base import SocketKind

#: Clock ticks per second of /proc/stat on every architecture that Linux has today; time(7), USER_HZ.
TICKS_PER_S = 100
#: Columns of /proc/stat's `cpu` line in which a CPU works: user, nice, system, irq, softirq; proc(5).
BUSY = (0, 1, 2, 5, 6)


class CardLinks:
    """Two interfaces that are there already. Needs root on the host; what could not be set is said in the record."""

    def __init__(self, ip: IpRoute, interfaces: tuple[str, str]) -> None:
        self._ip = ip
        self._interfaces = interfaces
        #: Interface -> its MTU and whether it was up.
        self._found: dict[str, tuple[int, bool]] = {}
        self._channels: dict[str, str] = {}
        self._affinities: dict[str, str] = {}
        self._not_set: list[str] = []
        self._cpus: tuple[int, ...] = ()

    @property
    def interfaces(self) -> tuple[str, str]:
        """See `Links.interfaces`."""
        return self._interfaces

    @property
    def peers(self) -> tuple[str, str]:
        """See `Links.peers`: the generator is another machine."""
        return "", ""

    @property
    def open_socket(self) -> Callable[[SocketKind], socket] | None:
        """See `Links.open_socket`."""
        return None

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """See `Links.make`; ethtool(8) `combined` channels, one interrupt each."""
        self._cpus, self._not_set = cpus, []
        missing = [name for name in self._interfaces if not self._ip.has(name)]
        if missing:
            raise MissingResource(f"{self._ip.host.name}: there is no interface {' and no '.join(missing)}.")
        for name in self._interfaces:
            link = self._ip.show("link", "show", "dev", name)[0]
            self._found.setdefault(name, (link["mtu"], "UP" in link["flags"]))
            self._channels.setdefault(name, self._read_channels(name))
            self._ip.batch([f"link set {name} down", f"link set {name} mtu {mtu}"])
            self._set_channels(name, str(rx_queues))
            self._pin(name)

    def up(self) -> None:
        """See `Links.up`."""
        self._ip.batch(f"link set {name} up" for name in self._interfaces)

    def remove(self) -> None:
        """See `Links.remove`: MTU, channels and interrupts as they were found. Routes and neighbours go with `down`."""
        for name, (mtu, _) in self._found.items():
            self._ip.batch([f"link set {name} down", f"link set {name} mtu {mtu}"])
        for name, combined in self._channels.items():
            self._set_channels(name, combined)
        self._ip.batch(f"link set {name} up" for name, (_, was_up) in self._found.items() if was_up)
        for path, cpus in self._affinities.items():
            self._write(path, cpus)
        self._found.clear()
        self._channels.clear()
        self._affinities.clear()

    def facts(self) -> dict[str, Any]:
        """See `Links.facts`."""
        return {
            "kind": "interfaces",
            "cpus": list(self._cpus),
            "binding": f"interrupts of the receive queues on CPUs {list(self._cpus)}",
            "not_set": list(self._not_set),
        }

    def _read_channels(self, name: str) -> str:
        said = self._ip.host.run(["ethtool", "-l", name], check=False).stdout
        current = re.search(r"Current.*?Combined:\s+(\d+)", said, re.DOTALL)
        return current[1] if current else ""

    def _set_channels(self, name: str, combined: str) -> None:
        if not self._channels[name]:
            self._not_set.append(f"receive queues of {name}: ethtool knows no combined channels")
        elif self._read_channels(name) != combined:
            self._ip.host.run(["ethtool", "-L", name, "combined", combined], check=False)
            if self._read_channels(name) != combined:
                raise MissingResource(f"{self._ip.host.name}: {name} cannot have {combined} receive queues.")

    def _pin(self, name: str) -> None:
        """Share the card's interrupts among the DUT's CPUs, in turn."""
        interrupts = self._ip.host.run(["ls", f"/sys/class/net/{name}/device/msi_irqs"], check=False).stdout.split()
        if not interrupts:
            self._not_set.append(f"interrupts of {name}: none found in sysfs")
        for index, interrupt in enumerate(sorted(interrupts, key=int)):
            path = f"/proc/irq/{interrupt}/smp_affinity_list"
            self._affinities.setdefault(path, self._ip.host.read(path).strip())
            if not self._write(path, str(self._cpus[index % len(self._cpus)])):
                self._not_set.append(f"interrupt {interrupt} of {name}: the kernel keeps it where it is")

    def _write(self, path: str, text: str) -> bool:
        try:
            self._ip.host.run(["tee", path], stdin=text)
        except TestbedError:
            return False
        return True


def busy_cpus(before: Sequence[int], now: Sequence[int], seconds: float) -> float:
    """CPUs' worth of work between two readings of /proc/stat's `cpu` line."""
    ticks = sum(now[column] - before[column] for column in BUSY)
    return ticks / TICKS_PER_S / seconds if seconds > 0 else 0.0

"""Veth pairs as a DUT's links, one end the DUT's, the other the traffic generator's; and iproute2, which makes them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from socket import socket
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import Ports, queue_size
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host, SocketKind


class IpRoute:
    """A runner of ip(8) on a host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def batch(self, lines: Iterable[str], namespace: str = "") -> None:
        """Run commands of `ip` in order, in a named network namespace of the host where one is given."""
        self.host.run(["ip", *_within(namespace), "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))

    def show(self, *arguments: str, namespace: str = "", where_known: bool = False) -> Any:
        """Return the answer of a `show` command; with `where_known`, an empty list where the namespace does not
        exist."""
        text = self.host.run(["ip", *_within(namespace), "-json", *arguments], check=not where_known).stdout
        return json.loads(text) if text.strip() else []

    def has(self, interface: str) -> bool:
        return self.host.run(["ip", "link", "show", interface], check=False).exit_status == 0

    def add(self, name: str, kind: str, module: str, *options: str, link: str = "") -> None:
        """Add a virtual device of type `kind`. Raise `MissingResource`, with the name of the kernel `module`, where the
        kernel lacks it."""
        on = ["link", link] if link else []
        self.require(["ip", "link", "add", *on, "name", name, "type", kind, *options], f"the kernel module {module}")

    def require(self, argv: list[str], need: str) -> None:
        """Run a command for which the kernel must have `need`. Raise `MissingResource` where it has not."""
        done = self.host.run(argv, check=False)
        if done.exit_status == 0:
            return
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("Error: ").rstrip(".")
        if any(text in said for text in ("Unknown device type", "not supported")):
            raise MissingResource(f"{self.host.name}: {need} is missing (`{' '.join(argv)}`: {said}).")
        raise TestbedError(f"{self.host.name}: `{' '.join(argv)}` failed: {said}.")


def _within(namespace: str) -> list[str]:
    return ["-n", namespace] if namespace else []


#: Network namespace of the generator's ends, named by ip-netns(8).
GENERATOR = "generator"
#: No offloads: a frame passes as it was written, and none is held back to be merged with the next.
OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


class Links(ABC):
    """A DUT's interfaces, two of each pair of ports, client side first, and their other ends."""

    #: Names of the DUT's interfaces.
    interfaces: tuple[str, ...]
    #: Names of the generator's ends in its namespace; empty where they are another machine's.
    peers: tuple[str, ...]

    @property
    def open_socket(self) -> Callable[[SocketKind], socket] | None:
        """Function that opens a socket in the namespace of the generator's ends; None where they are another
        machine's."""
        return None

    def ports(self, topology: Topology, cpus: tuple[int, ...], tx_queues: int, frames: int) -> Ports:
        """Return the ports for the generator, which hands frames over on these `cpus`. A link holds `frames` towards
        the DUT."""
        links = tuple(zip(self.peers[::2], self.peers[1::2], strict=True))
        ring = queue_size(frames, topology.rx_queues)
        queues = topology.rx_queues, tx_queues
        return Ports("interface", links, *queues, ring, len(links), cpus=cpus, open_socket=self.open_socket)

    @abstractmethod
    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """Create the links again, or bring the cards to `rx_queues` queues served by `cpus`. Leave them down."""

    @abstractmethod
    def up(self) -> None:
        """Bring the DUT's interfaces up, and the generator's ends where they are on this machine."""

    @abstractmethod
    def remove(self) -> None:
        """Remove what `make` made; give cards back what they had. May be called twice."""

    def differences(self) -> list[str]:
        """Return what was set and is not so any more, one clause each: `what: asked …, found …`."""
        return []

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return for the record the kind of the links, and how the DUT's work is bound to CPUs."""


class VethLinks(Links):
    """Veth pairs, two for a pair of ports, created again each time.

    They have no NAPI: the kernel receives, forwards and delivers a frame on the CPU, and in the time, of the thread
    that sends it. The software generator has a thread for that on each CPU of a Linux DUT. TRex has none: there the
    kernel hands the frames over to the DUT's CPUs (`steer`).
    """

    def __init__(self, ip: IpRoute, *, pairs: int = 1, steer: bool = False) -> None:
        """`pairs`: pairs of ports. `steer`: receive packet steering to the DUT's CPUs, for a generator whose threads
        run on other ones."""
        self._ip = ip
        self.interfaces = tuple(f"r{number}" for number in range(2 * pairs))
        self.peers = tuple(f"g{number}" for number in range(2 * pairs))
        self._steer = steer
        self._cpus: tuple[int, ...] = ()

    @property
    def open_socket(self) -> Callable[[SocketKind], socket]:
        return lambda kind: self._ip.host.open_socket(kind, GENERATOR)

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """Create the pairs again, and leave them down.

        A receive queue is a ring of the software generator's. A pair has one queue for each sending thread of the
        generator (one on each of `cpus`), as AF_XDP gives a transmit queue to one socket only. With `steer` the
        interface has `rx_queues` of its own, and the frames of queue q go to CPU q modulo the number of CPUs. Raise
        `MissingResource` where that is not allowed."""
        self._cpus = cpus
        self.remove()
        make_generator_namespace(self._ip.host)
        count = rx_queues if self._steer else len(cpus)
        queues = f"mtu {mtu} numrxqueues {count} numtxqueues {count}"
        self._ip.batch(
            f"link add {name} {queues} type veth peer name {peer} {queues} netns {GENERATOR}"
            for name, peer in zip(self.interfaces, self.peers, strict=True)
        )
        # The kernel sends nothing of its own from the DUT's ends either.
        quiet = [f"net.ipv6.conf.{name}.disable_ipv6=1" for name in self.interfaces]
        self._ip.host.run(["sysctl", "-q", "-e", "-w", *quiet])
        for name, peer in zip(self.interfaces, self.peers, strict=True):
            self._ip.host.run(["ethtool", "-K", name, *OFFLOADS])
            self._ip.host.run(within_generator("ethtool", "-K", peer, *OFFLOADS))
            for queue in range(count if self._steer else 0):
                steer(self._ip.host, name, queue, cpus[queue % len(cpus)])

    def up(self) -> None:
        self._ip.batch(f"link set {name} up" for name in self.interfaces)
        self._ip.batch((f"link set {peer} arp off up" for peer in self.peers), GENERATOR)

    def remove(self) -> None:
        self._ip.batch(f"link del {name}" for name in self.interfaces if self._ip.has(name))
        remove_generator_namespace(self._ip)

    def facts(self) -> dict[str, Any]:
        how = "receive packet steering to" if self._steer else "link threads pinned to"
        return {"kind": "veth", "cpus": list(self._cpus), "binding": f"{how} CPUs {list(self._cpus)}"}


def within_generator(*argv: str) -> list[str]:
    return ["ip", "netns", "exec", GENERATOR, *argv]


def make_generator_namespace(host: Host) -> None:
    """Make the namespace of the generator's ends. The kernel is to send nothing of its own from them, and to receive
    nothing: their addresses are not those that frames go to. TRex' client reaches its server over `lo`."""
    host.run(["ip", "netns", "add", GENERATOR])
    host.run(within_generator("sysctl", "-q", "-e", "-w", "net.ipv6.conf.default.disable_ipv6=1"))
    host.run(within_generator("ip", "link", "set", "lo", "up"))


def remove_generator_namespace(ip: IpRoute) -> None:
    """Remove the namespace where it exists; its interfaces go with it."""
    if any(namespace["name"] == GENERATOR for namespace in ip.show("netns")):
        ip.host.run(["ip", "netns", "del", GENERATOR])


def steer(host: Host, interface: str, queue: int, cpu: int) -> None:
    """Let a CPU receive the frames of a queue; Documentation/networking/scaling.rst, RPS.

    Root of a sandbox may not set it: the kernel asks for CAP_NET_ADMIN of the machine itself (net-sysfs.c,
    store_rps_map). Root of this machine reaches the sandbox's sysfs from outside."""
    mask = host.local_path(f"/sys/class/net/{interface}/queues/rx-{queue}/rps_cpus")
    assert mask, "veth pairs are in a sandbox of this machine"
    try:
        mask.write_text(_mask(cpu))
    except OSError as error:
        raise MissingResource(
            f"Receive packet steering cannot be set ({interface}: {error.strerror}): run as root. Without it a"
            " Linux DUT works on the CPU of the TRex thread that sends; the software traffic generator needs none."
        ) from None


def _mask(cpu: int) -> str:
    """Return a CPU as a mask of sysfs: hexadecimal, in groups of 32 bits."""
    digits = f"{1 << cpu:x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))

"""Veth pairs as a DUT's links: one end is the DUT's, the other the traffic generator's, in a namespace of its own."""

from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Any

from ctbench.base.errors import MissingResource
from ctbench.dut.iproute import IpRoute
from ctbench.hosts.base import Host, SocketKind

#: Network namespace of the generator's ends, named by ip-netns(8).
GENERATOR = "generator"
#: Side -> the DUT's interface and the generator's end of a veth pair.
VETH = {"client": ("r0", "g0"), "server": ("r1", "g1")}
#: No offloads: a frame passes as it was written, and none is held back to be merged with the next.
OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


class VethLinks:
    """Two veth pairs, created again each time.

    No NAPI on them: the kernel then receives, forwards and delivers a frame on the CPU, and in the time, of the thread
    that sends it. The software generator has a thread for that on each CPU of a Linux DUT. TRex has none: there the
    kernel is told to hand the frames over to the DUT's CPUs (`steer`).
    """

    def __init__(self, ip: IpRoute, *, steer: bool = False) -> None:
        """`steer`: receive packet steering to the DUT's CPUs, for a generator whose threads run on other ones."""
        self._ip = ip
        self._steer = steer
        self._cpus: tuple[int, ...] = ()

    @property
    def interfaces(self) -> tuple[str, str]:
        """The DUT's ends."""
        return VETH["client"][0], VETH["server"][0]

    @property
    def peers(self) -> tuple[str, str]:
        """The generator's ends."""
        return VETH["client"][1], VETH["server"][1]

    @property
    def open_socket(self) -> Callable[[SocketKind], socket]:
        """Opens a socket where the generator's ends are."""
        return lambda kind: self._ip.host.open_socket(kind, GENERATOR)

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """Create the pairs again; they are down.

        A receive queue is a ring of the software generator's; a pair has one queue for each of its threads that send,
        as AF_XDP gives a transmit queue to one socket only. With `steer` the interface has `rx_queues` of its own, and
        the frames of queue q go to CPU q modulo the number of CPUs. `MissingResource` where that is not allowed."""
        self._cpus = cpus
        self.remove()
        make_generator_namespace(self._ip.host)
        count = rx_queues if self._steer else len(cpus)
        queues = f"mtu {mtu} numrxqueues {count} numtxqueues {count}"
        self._ip.batch(
            f"link add {name} {queues} type veth peer name {peer} {queues} netns {GENERATOR}"
            for name, peer in VETH.values()
        )
        # The kernel sends nothing of its own from the DUT's ends either.
        quiet = [f"net.ipv6.conf.{name}.disable_ipv6=1" for name in self.interfaces]
        self._ip.host.run(["sysctl", "-q", "-e", "-w", *quiet])
        for name, peer in VETH.values():
            self._ip.host.run(["ethtool", "-K", name, *OFFLOADS])
            self._ip.host.run(within_generator("ethtool", "-K", peer, *OFFLOADS))
            for queue in range(count if self._steer else 0):
                steer(self._ip.host, name, queue, cpus[queue % len(cpus)])

    def up(self) -> None:
        """Bring both ends up; the generator has taken the DUT's interfaces by now."""
        self._ip.batch(f"link set {name} up" for name in self.interfaces)
        self._ip.batch((f"link set {peer} arp off up" for peer in self.peers), GENERATOR)

    def remove(self) -> None:
        """Remove what `make` made. May be called twice."""
        self._ip.batch(f"link del {name}" for name in self.interfaces if self._ip.has(name))
        remove_generator_namespace(self._ip)

    def facts(self) -> dict[str, Any]:
        """For the record: kind of the links, and how the DUT's work is bound to CPUs."""
        how = "receive packet steering to" if self._steer else "link threads pinned to"
        return {"kind": "veth", "cpus": list(self._cpus), "binding": f"{how} CPUs {list(self._cpus)}"}


def within_generator(*argv: str) -> list[str]:
    """A command that runs where the generator's ends are."""
    return ["ip", "netns", "exec", GENERATOR, *argv]


def make_generator_namespace(host: Host) -> None:
    """Make the namespace of the generator's ends. The kernel is to send nothing of its own from them, and to take
    nothing: their addresses are others than those that frames go to. Over `lo` TRex' client reaches its server."""
    host.run(["ip", "netns", "add", GENERATOR])
    host.run(within_generator("sysctl", "-q", "-e", "-w", "net.ipv6.conf.default.disable_ipv6=1"))
    host.run(within_generator("ip", "link", "set", "lo", "up"))


def remove_generator_namespace(ip: IpRoute) -> None:
    """Remove it where it is there; its interfaces go with it."""
    if any(namespace["name"] == GENERATOR for namespace in ip.show("netns")):
        ip.host.run(["ip", "netns", "del", GENERATOR])


def steer(host: Host, interface: str, queue: int, cpu: int) -> None:
    """Let a CPU receive what comes in on a queue; Documentation/networking/scaling.rst, RPS.

    A root of a sandbox may not: the kernel asks for CAP_NET_ADMIN of the machine itself (net-sysfs.c, store_rps_map).
    Root of this machine reaches the sandbox's sysfs from outside."""
    mask = Path(f"/sys/class/net/{interface}/queues/rx-{queue}/rps_cpus")
    reached = host.local_path(str(mask))
    try:
        if reached is not None:
            reached.write_text(_mask(cpu))
        elif (done := host.run(["tee", str(mask)], check=False, stdin=_mask(cpu))).exit_status != 0:
            raise OSError(done.stderr.strip().rpartition(": ")[2])
    except OSError as error:
        raise MissingResource(
            f"Receive packet steering cannot be set ({interface}: {error.strerror or error}): run as root. Without it a"
            " Linux DUT works on the CPU of the TRex thread that sends; the software traffic generator needs none."
        ) from None


def _mask(cpu: int) -> str:
    """A CPU as sysfs takes masks: hexadecimal, in groups of 32 bits."""
    digits = f"{1 << cpu:x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))

"""The model of TRex in a testbed file, and the doctor's rows of TRex: the program, the client on this machine, the
server's port, known faults of the release, and the destinations of frames."""

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.errors import CtbenchError, MissingResource
from ctbench.base.network import (
    MOST_CPU,
    MOST_PORT_PAIRS,
    HostKey,
    Ipv4,
    Mac,
    PathText,
    ProgramWord,
    check_options,
    named_ports,
)
from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import GENERATOR, PCI, Card, Examined, Finding, bad, ok, read_files, unknown
from ctbench.traffic.source import TrafficSource
from ctbench.traffic.trex.client import CLIENT, MARK, check_python, find_client, tree_version
from ctbench.traffic.trex.probe import ask
from ctbench.traffic.trex.releases import judge

#: What t-rex-64 reserves for cards where no other program has, MiB (2048 pages of 2 MiB, dpdk_setup_ports.py).
_HUGEPAGES_MB = 4096
BUILD = "cd ~/trex/linux_dpdk && ./b configure && ./b build, and set generator.trex_home to ~/trex/scripts"
#: Seconds for each step of asking a server.
PROBE_TIMEOUT_S = 3.0


#: TRex' default ports; two TRex on one host need others, and a name of their own (DPDK's --file-prefix).
DEFAULT_SYNC_PORT, DEFAULT_ASYNC_PORT = 4501, 4500
#: Threads of TRex besides those of the data plane: the master's and the latency thread.
OTHER_THREADS = 2


#: Options of t-rex-64 that follow from other keys, or that a run needs.
OPTIONS = ("--cfg", "-i", "--astf", "-c", "--software", "--no-scapy-server", "--no-key", "--iom")


class TrexPort(YamlModel):
    """One port of TRex, as trex_cfg.yaml describes it. Empty keys are found out, or not needed."""

    #: What TRex calls it: a PCI address, the name of a Linux interface, or a DPDK device such as `--vdev=…`.
    interface: Annotated[PathText, Field(max_length=256)] = ""
    #: MAC address that the port sends from; empty: the card's own.
    mac: Mac = ""
    #: Where its frames go: the MAC address of the DUT's port, or of the other TRex port where the DUT bridges.
    #: Empty: taken from the DUT where that routes, else from the other port's `mac`.
    dest_mac: Mac = ""
    #: Instead of `dest_mac`: the port's own address, and the gateway that it resolves with ARP.
    ip: Ipv4 = ""
    gateway: Ipv4 = ""


class TrexPair(YamlModel):
    """A pair of ports: towards the clients, towards the servers."""

    client: TrexPort = TrexPort()
    server_port: TrexPort = TrexPort()


class TrexGeneratorConfig(TrafficSource):
    """TRex: ASTF for connections, STL for packets. Its host is checked when TRex is started."""

    title = "TRex"
    is_alone = True
    #: ASTF times no handshake (astf.py) and no reply, knows no closed loop, and counts at its ports what is not of its
    #: connections too.
    unmeasured = frozenset({
        "connect_time_p99", "saturation_cps", "saturation_pps", "connect_time_p99_at_half", "first_byte_p99_at_half",
        "last_byte_p99_at_half", "uncounted",
    })  # fmt: skip

    type: Literal["trex"]
    #: Where the TRex server runs: an entry of `hosts`, `local`, or `sandbox` (next to a DUT that is in one, over veth).
    host: HostKey
    #: `running`: one that runs already; `start`: started here, over SSH where `host` is another machine, once for
    #: each mode; `daemon`: through trex_daemon_server, which has to run on `host`.
    server: Literal["running", "start", "daemon"]
    #: Folder of TRex on `host` (where t-rex-64 is), to start it there. The client is taken from here too. Empty: what
    #: the environment variable TREX_HOME says.
    trex_home: PathText = ""
    #: The two ports: towards the clients, towards the servers.
    client: TrexPort = TrexPort()
    server_port: TrexPort = TrexPort()
    #: Further pairs of ports.
    more_pairs: list[TrexPair] = Field(default_factory=list, max_length=MOST_PORT_PAIRS - 1)
    #: TRex' numbers of these ports, client side first, pair by pair.
    ports: list[Annotated[int, Field(ge=0, le=31)]] = Field(
        default_factory=lambda known: list(range(2 + 2 * len(known.get("more_pairs", []))))
    )
    #: TRex' `-c`: data plane threads per pair of ports.
    cores: int = Field(1, ge=1, le=64)
    #: CPUs of the TRex host: master thread, latency thread, then data plane threads. Empty: TRex chooses.
    cpus: list[Annotated[int, Field(ge=0, le=MOST_CPU)]] = Field(default_factory=list)
    #: NUMA node of the cards.
    socket: int = Field(0, ge=0, le=15)
    #: Descriptors of the cards' rings; None: TRex' default.
    rx_descriptors: int | None = Field(None, ge=64, le=16384)
    tx_descriptors: int | None = Field(None, ge=64, le=16384)
    #: TRex' pools of memory buffers and flows, `memory` of trex_cfg.yaml, besides what the profile needs.
    memory: dict[str, Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default_factory=dict)
    #: true: cards without hardware filters (`--software`): virtual ones, af_packet, AF_XDP.
    software: bool = False
    #: true: a machine with few CPUs (`low_end` of trex_cfg.yaml).
    low_end: bool = False
    #: Further options of t-rex-64, a word each: [--no-ofed-check], or [--mbuf-factor, "2"].
    options: list[ProgramWord] = Field(default_factory=list, max_length=64)
    #: Load that is never exceeded, connections and packets per second. Where TRex is slower than the campaigns' ranges
    #: reach, a search then does not waste trials there. None: no limit.
    max_cps: float | None = Field(None, ge=1, le=1e9)
    max_pps: float | None = Field(None, ge=1, le=1e9)
    #: Connections per second at which it opens those that it holds, at most. TRex does not wait for a slow DUT. None:
    #: the campaign's `table.opened_per_s`.
    max_held_cps: float | None = Field(None, ge=1, le=1e9)
    #: Connections that it holds, at most. It looks at each open one ten times a second. None: as many as memory has
    #: room for.
    max_held: int | None = Field(None, ge=1, le=10**9)
    #: Seconds that TRex gets to start.
    start_timeout_s: float = Field(60, ge=1, le=600)
    #: TCP ports of the server, and of its daemon.
    sync_port: int = Field(DEFAULT_SYNC_PORT, ge=1, le=65535)
    async_port: int = Field(DEFAULT_ASYNC_PORT, ge=1, le=65535)
    daemon_port: int = Field(8090, ge=1, le=65535)

    @property
    def cpus_needed(self) -> int:
        return 1 if self.low_end else len(self.cpus) or self.cores * len(self.pairs) + OTHER_THREADS

    @property
    def pairs(self) -> list[tuple[TrexPort, TrexPort]]:
        return [(self.client, self.server_port), *((each.client, each.server_port) for each in self.more_pairs)]

    @property
    def named_ports(self) -> list[tuple[str, TrexPort]]:
        """The ports with their keys in the testbed file."""
        keys = ("", *(f"more_pairs[{number}]." for number in range(len(self.more_pairs))))
        return [
            (f"{key}{side}", port)
            for key, pair in zip(keys, self.pairs, strict=True)
            for side, port in zip(("client", "server_port"), pair, strict=True)
        ]

    @property
    def most(self) -> dict[str, float]:
        known = (self.max_cps, self.max_pps, self.max_held_cps, self.max_held)
        kinds = ("connections", "packets", "opened", "held")
        return {kind: most for kind, most in zip(kinds, known, strict=True) if most is not None}

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        interfaces = [port.interface for _, port in self.named_ports]
        if self.server != "running" and self.host != SANDBOX and not all(interfaces):
            raise ValueError(
                f"{next(key for key, port in self.named_ports if not port.interface)}.interface is needed to start "
                "TRex.\n"
                "  Expected the PCI address, or the name of the interface, of each port."
            )
        check_options("options", self.options, OPTIONS)
        if self.options and self.server == "running":
            raise ValueError(
                "options do not go with server: running.\n  Expected server: start, or one that was started with them."
            )
        if len(set(self.ports)) != 2 * len(self.pairs) or len(self.ports) != 2 * len(self.pairs):
            expected = list(range(2 * len(self.pairs)))
            raise ValueError(f"ports: {self.ports} are not {len(expected)} ports.\n  Expected such as {expected}.")
        if self.host == SANDBOX and self.server != "start":
            raise ValueError(f"server: {self.server} does not go with host: sandbox.\n  Expected start.")
        if self.host == LOCAL and self.server == "start" and len(set(interfaces)) < len(interfaces):
            raise ValueError(f"interfaces of ports are the same: {interfaces}.\n  Expected each once.")
        return self

    def out_of_reach(self, host: str, ports: str) -> str:
        if (host == SANDBOX) == (self.host == SANDBOX) and ports != "memif":
            return ""
        return (
            f"ports of kind {ports} on host {host} are out of reach of TRex on host {self.host}.\n"
            "  Expected both in the sandbox with veth, or neither."
        )

    @property
    def has_cards(self) -> bool:
        return self.host != SANDBOX

    @property
    def own_cpus(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """CPUs of the data plane threads; of master thread and latency thread."""
        return tuple(self.cpus[OTHER_THREADS:]), tuple(self.cpus[:OTHER_THREADS])

    @property
    def port_pairs(self) -> int | None:
        return None if self.host == SANDBOX else len(self.pairs)

    @property
    def port_macs(self) -> list[tuple[str, str]]:
        return [(client.mac, server.mac) for client, server in self.pairs]

    @property
    def cards(self) -> list[Card]:
        found = []
        for side, port in named_ports(self.pairs):
            name = port.interface
            if name and "--vdev" not in name and self.host != SANDBOX:
                # TRex takes `18:00.2` as well as a PCI address in full.
                found.append(Card(GENERATOR, side, f"0000:{name}" if name.count(":") == 1 else name))
        return found

    @property
    def numa_node(self) -> int | None:
        return self.socket

    @property
    def hugepages_mb(self) -> int:
        """MiB of hugepages for cards; 0 on virtual ports."""
        return _HUGEPAGES_MB if any(card.is_pci for card in self.cards) else 0

    def examine(self, on: Examined) -> Iterator[Finding]:
        home = self.trex_home or (os.environ.get("TREX_HOME", "") if on.ssh is None else "")
        version = ""
        if self.server == "start" or home:
            found, version = _program(on, home)
            yield found
        found, of_client = _client(on, home, version)
        yield found
        listens = _listens(on, self)
        # Asked from this machine, where its client will run.
        address = on.ssh.address if on.ssh else "127.0.0.1"
        said = ask(address, self.sync_port, PROBE_TIMEOUT_S) if listens and self.server == "running" else {}
        yield _server(self, home, address, listens, said)
        yield judge(said.get("version") or version or of_client, self._pci_numbers(on), _is_software(self, on))

    def _pci_numbers(self, on: Examined) -> frozenset[str] | None:
        """Return vendor and device of the cards that TRex drives itself; None where the testbed file or the kernel does
        not show them."""
        if self.host != SANDBOX and not all(port.interface for _, port in self.named_ports):
            return None
        folders = [f"{PCI}/{card.address}" for card in self.cards if card.is_pci]
        paths = [(f"{folder}/vendor", f"{folder}/device") for folder in folders]
        read = read_files(on.host, *(path for pair in paths for path in pair)) if paths else {}
        if not all(path in read for pair in paths for path in pair):
            return None
        return frozenset(":".join(read[path].strip().removeprefix("0x") for path in pair) for pair in paths)

    def examine_wiring(self, macs: Mapping[Card, str], *, bridges: bool) -> Iterator[Finding]:
        """Yield whether TRex' frames go to addresses that the DUT, or TRex' other port where the DUT bridges, takes.
        Yield nothing for a server that runs already, whose destinations the file does not show."""
        if self.server == "running":
            return
        known = {(card.owner, card.side): mac for card, mac in macs.items()}
        ours, keys = dict(named_ports(self.pairs)), [key for key, _ in self.named_ports]
        others = {side: other for pair in zip(*[iter(ours)] * 2, strict=True) for side, other in (pair, pair[::-1])}
        sent = {side: port.mac or known.get((GENERATOR, side), "") for side, port in ours.items()}
        duts = [mac for (owner, _), mac in known.items() if owner != GENERATOR]
        for key, (side, port) in zip(keys, ours.items(), strict=True):
            what, other = f"dest_mac, {side}", others[side]
            here = [mac for (owner, at), mac in known.items() if owner != GENERATOR and at == side]
            right = dict.fromkeys(here, f"the DUT's {side} port")
            if bridges:
                right[sent[other]] = "TRex' other port"
            right.pop("", None)
            if port.gateway:
                yield unknown(what, f"resolved by TRex from its gateway {port.gateway}")
            elif not port.dest_mac and bridges and not ours[other].mac:
                said = "not in the file, and neither is the address of TRex' other port, which a DUT that bridges needs"
                yield bad(what, said, f"set generator.{keys[list(ours).index(other)]}.mac in the testbed file")
            elif not port.dest_mac:
                yield unknown(what, "not in the file: taken from the DUT" + " or TRex' other port" * bridges)
            elif port.dest_mac in right:
                yield ok(what, f"{port.dest_mac}, {right[port.dest_mac]}")
            elif port.dest_mac in {*duts, sent[side]} or (duts and all(duts) and all(sent.values())):
                expected = " or ".join(f"{mac} ({name})" for mac, name in right.items())
                yield bad(
                    what,
                    f"{port.dest_mac} is not where the frames have to go: {expected}",
                    f"set generator.{key}.dest_mac in the testbed file, or leave it out",
                )
            else:
                yield unknown(what, f"{port.dest_mac}: the kernels do not show whose that is")


def _program(site: Examined, home: str) -> tuple[Finding, str]:
    what = "TRex"
    if not home:
        return bad(what, "the testbed file does not say where it is", "set generator.trex_home, or TREX_HOME"), ""
    there = site.host.run(["ls", "-d", f"{home}/t-rex-64", f"{home}/_t-rex-64"], check=False).stdout.split()
    if not there:
        return bad(what, f"no t-rex-64 in {home}", BUILD), ""
    if len(there) < 2:
        return bad(what, f"the program _t-rex-64 is not in {home}: not built yet", BUILD), ""
    version = tree_version(site.host, home)
    return ok(what, f"{version or 'of an unknown version'} in {home}"), version


def _is_software(config: TrexGeneratorConfig, on: Examined) -> bool | None:
    """Return whether TRex runs with `--software`; None where another user starts it and the host does not show how."""
    if config.server != "running":
        return config.software
    commands = on.host.run(["pgrep", "-a", "_t-rex-64"], check=False).stdout
    return "--software" in commands.split() if commands else None


def _client(site: Examined, home: str, version: str) -> tuple[Finding, str]:
    """Return the doctor's row of the client that a run would find, and the client's release. A client that would be
    copied from the host is only looked for."""
    what = "TRex client"
    try:
        client = find_client(home if site.ssh is None else "", LocalHost())
    except MissingResource as error:
        if home and site.host.run(["test", "-f", f"{home}/{CLIENT}/{MARK}"], check=False).exit_status == 0:
            return ok(what, f"{version or 'of an unknown version'}, to be copied from {home} when a run begins"), ""
        return bad(what, str(error), "set generator.trex_home, or export TREX_HOME=/path/to/trex/scripts"), ""
    except (CtbenchError, OSError) as error:  # a folder that is not one of TRex, or not ours to read
        return bad(what, str(error), "export TREX_HOME=/path/to/trex/scripts, or unset it"), ""
    try:
        check_python(client)
    except MissingResource as error:
        return bad(what, str(error), "pip install legacy-cgi, or a Python of 3.12 or older"), client.version
    # The server itself refuses a client whose API it does not speak; v2.99 to v3.08 speak the same.
    if version and client.version not in ("", version):
        difference = f"The TRex client is {client.version} ({client.origin}) and the server {version}."
        remedy = "unset TREX_HOME: then the client is taken from where the server is"
        return bad(what, difference, remedy), client.version
    said = f"{client.version or 'of an unknown version'} ({client.origin}: {client.folder})"
    return ok(what, said), client.version


def _port(config: TrexGeneratorConfig) -> int:
    return config.daemon_port if config.server == "daemon" else config.sync_port


def _listens(site: Examined, config: TrexGeneratorConfig) -> bool:
    """Return whether a program listens on the port of the server, or of its daemon."""
    # ss(8) shows the local address in the fourth column.
    rows = (line.split() for line in site.host.run(["ss", "-Htln"], check=False).stdout.splitlines())
    return any(row[3].endswith(f":{_port(config)}") for row in rows if len(row) > 3)


def _server(config: TrexGeneratorConfig, home: str, address: str, listens: bool, said: Mapping[str, str]) -> Finding:
    """Return the doctor's row of the server's port: free where a run starts its own server, in use elsewhere. `said`: a
    running server's answer."""
    what, port = "TRex server", _port(config)
    start = f"cd {home or 'trex/scripts'} && "
    if config.server == "start":
        if listens and config.host != SANDBOX:
            return bad(what, f"a program listens on port {port}", "end it, or set generator.server: running")
        return ok(what, "a run can start its own")
    if not listens:
        command = "./trex_daemon_server start" if config.server == "daemon" else "./t-rex-64 -i --astf"
        return bad(what, f"no program listens on port {port}", f"{start}{command}")
    if config.server == "daemon":
        return ok(what, f"its daemon listens on port {port}")
    if said["found"] == "trex":
        return ok(what, f"{said['version']} in mode {said['mode']} answers on {address}:{port}")
    return bad(what, f"{address}:{port}: {said['text']}", f"let ports {port} and {config.async_port} through firewalls")

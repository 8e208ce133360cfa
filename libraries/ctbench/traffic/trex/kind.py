"""TRex as a kind of traffic source, and the doctor's rows of it: the program, the client on this machine, who listens
already, what is known against the release, where frames go."""

import contextlib
import os
from collections.abc import Iterator, Mapping

from ctbench.base.errors import CtbenchError, MissingResource
from ctbench.base.network import named_ports
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import GENERATOR, PCI, Card, Examined, Finding, bad, ok, read_files, unknown
from ctbench.traffic.kind import OwnCpus, TrafficSourceKind
from ctbench.traffic.trex.client import CLIENT, MARK, check_python, find_client, tree_version
from ctbench.traffic.trex.config import TrexGeneratorConfig
from ctbench.traffic.trex.probe import ask
from ctbench.traffic.trex.releases import judge

#: What t-rex-64 reserves for cards where no other program has, MiB (2048 pages of 2 MiB, dpdk_setup_ports.py).
_HUGEPAGES_MB = 4096
BUILD = "cd ~/trex/linux_dpdk && ./b configure && ./b build, and set generator.trex_home to ~/trex/scripts"
#: Seconds for each step of asking a server.
PROBE_TIMEOUT_S = 3.0


class TrexKind(TrafficSourceKind):
    """What its host lacks, is said when it is started."""

    name = "trex"
    title = "TRex"
    settings = TrexGeneratorConfig
    #: ASTF times no handshake (astf.py) and no reply, and knows no closed loop.
    unmeasured = frozenset({
        "connect_time_p99", "saturation_cps", "saturation_pps", "connect_time_p99_at_half", "first_byte_p99_at_half",
        "last_byte_p99_at_half",
    })  # fmt: skip

    def out_of_reach(self, config: TrexGeneratorConfig, host: str, ports: str) -> str:
        if (host == SANDBOX) == (config.host == SANDBOX) and ports != "memif":
            return ""
        return (
            f"ports of kind {ports} on host {host} are out of reach of TRex on host {config.host}.\n"
            "  Expected both in the sandbox with veth, or neither."
        )

    def hosts_for_itself(self, config: TrexGeneratorConfig) -> tuple[str, ...]:
        return (config.host,)

    def has_cards(self, config: TrexGeneratorConfig) -> bool:
        return config.host != SANDBOX

    def own_cpus(self, config: TrexGeneratorConfig) -> OwnCpus:
        """Master thread, latency thread, data plane threads."""
        return OwnCpus(generating=tuple(config.cpus[2:]), others=tuple(config.cpus[:2]))

    def pairs(self, config: TrexGeneratorConfig) -> int | None:
        return None if config.host == SANDBOX else len(config.pairs)

    def port_macs(self, config: TrexGeneratorConfig) -> list[tuple[str, str]]:
        return [(client.mac, server.mac) for client, server in config.pairs]

    def cards(self, config: TrexGeneratorConfig) -> list[Card]:
        found = []
        for side, port in named_ports(config.pairs):
            name = port.interface
            if name and "--vdev" not in name and config.host != SANDBOX:
                # TRex takes `18:00.2` as well as a PCI address in full.
                found.append(Card(GENERATOR, side, f"0000:{name}" if name.count(":") == 1 else name))
        return found

    def numa_node(self, config: TrexGeneratorConfig) -> int | None:
        return config.socket

    def hugepages_mb(self, config: TrexGeneratorConfig) -> int:
        """On virtual ports it needs none."""
        return _HUGEPAGES_MB if any(card.is_pci for card in self.cards(config)) else 0

    def examine(self, config: TrexGeneratorConfig, on: Examined) -> Iterator[Finding]:
        home = config.trex_home or (os.environ.get("TREX_HOME", "") if on.ssh is None else "")
        version = ""
        if config.server == "start" or home:
            found, version = _program(on, home)
            yield found
        yield _client(on, home, version)
        listens = _listens(on, config)
        said = _answer(on, config) if listens and config.server == "running" else {}
        yield _server(on, config, home, listens, said)
        release = said.get("version") or version or _release_of_client(on, home)
        yield judge(release, self._pci_numbers(config, on), _is_software(config, on))

    def _pci_numbers(self, config: TrexGeneratorConfig, on: Examined) -> frozenset[str] | None:
        """Vendor and device of the cards that TRex drives itself; None where the testbed file or the kernel does not
        say."""
        if config.host != SANDBOX and not all(port.interface for _, port in config.named_ports):
            return None
        folders = [f"{PCI}/{card.address}" for card in self.cards(config) if card.is_pci]
        paths = [(f"{folder}/vendor", f"{folder}/device") for folder in folders]
        read = read_files(on.host, *(path for pair in paths for path in pair)) if paths else {}
        if not all(path in read for pair in paths for path in pair):
            return None
        return frozenset(":".join(read[path].strip().removeprefix("0x") for path in pair) for pair in paths)

    def examine_wiring(
        self, config: TrexGeneratorConfig, macs: Mapping[Card, str], *, bridges: bool
    ) -> Iterator[Finding]:
        """Whether TRex' frames go where the DUT, or where it bridges TRex' other port, takes them. Of one that runs
        already, the file does not say."""
        if config.server == "running":
            return
        known = {(card.owner, card.side): mac for card, mac in macs.items()}
        ours, keys = dict(named_ports(config.pairs)), [key for key, _ in config.named_ports]
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
    """Whether TRex is run with `--software`; None where somebody else starts it, and the host does not show how."""
    if config.server != "running":
        return config.software
    commands = on.host.run(["pgrep", "-a", "_t-rex-64"], check=False).stdout
    return "--software" in commands.split() if commands else None


def _client(site: Examined, home: str, version: str) -> Finding:
    """The client as a run would find it; one that would be copied from the host is only looked for."""
    what = "TRex client"
    try:
        client = find_client(home if site.ssh is None else "", LocalHost())
    except MissingResource as error:
        if home and site.host.run(["test", "-f", f"{home}/{CLIENT}/{MARK}"], check=False).exit_status == 0:
            return ok(what, f"{version or 'of an unknown version'}, to be copied from {home} when a run begins")
        return bad(what, str(error), "set generator.trex_home, or export TREX_HOME=/path/to/trex/scripts")
    except (CtbenchError, OSError) as error:  # a folder that is not one of TRex, or not ours to read
        return bad(what, str(error), "export TREX_HOME=/path/to/trex/scripts, or unset it")
    try:
        check_python(client)
    except MissingResource as error:
        return bad(what, str(error), "pip install legacy-cgi, or a Python of 3.12 or older")
    # The server itself refuses a client whose API it does not speak; v2.99 to v3.08 speak the same.
    if version and client.version not in ("", version):
        difference = f"The TRex client is {client.version} ({client.origin}) and the server {version}."
        return bad(what, difference, "unset TREX_HOME: then the client is taken from where the server is")
    return ok(what, f"{client.version or 'of an unknown version'} ({client.origin}: {client.folder})")


def _release_of_client(site: Examined, home: str) -> str:
    """That of the server too, where they match; empty where there is no client, or it is not known."""
    with contextlib.suppress(CtbenchError, OSError):
        return find_client(home if site.ssh is None else "", LocalHost()).version
    return ""


def _port(config: TrexGeneratorConfig) -> int:
    return config.daemon_port if config.server == "daemon" else config.sync_port


def _listens(site: Examined, config: TrexGeneratorConfig) -> bool:
    """Whether a program listens on the port of the server, or of its daemon."""
    # ss(8) shows the local address in the fourth column.
    rows = (line.split() for line in site.host.run(["ss", "-Htln"], check=False).stdout.splitlines())
    return any(row[3].endswith(f":{_port(config)}") for row in rows if len(row) > 3)


def _answer(site: Examined, config: TrexGeneratorConfig) -> dict[str, str]:
    """What a running server answers to this machine, where its client will be; empty where that is not tried."""
    if site.ssh is not None and site.ssh.jump:
        return {}
    return ask(site.ssh.address if site.ssh else "127.0.0.1", config.sync_port, PROBE_TIMEOUT_S)


def _server(site: Examined, config: TrexGeneratorConfig, home: str, listens: bool, said: Mapping[str, str]) -> Finding:
    """Whether a program listens: none may where a run starts its own server, one has to elsewhere. `said`: what a
    running one answers."""
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
    return _running(site, config, said)


def _running(site: Examined, config: TrexGeneratorConfig, said: Mapping[str, str]) -> Finding:
    what, port = "TRex server", config.sync_port
    if not said:
        return unknown(what, f"listens on port {port}; whether it can be reached from here was not tried")
    where = f"{site.ssh.address if site.ssh else '127.0.0.1'}:{port}"
    if said["found"] == "trex":
        return ok(what, f"{said['version']} in mode {said['mode']} answers on {where}")
    return bad(what, f"{where}: {said['text']}", f"let ports {port} and {config.async_port} through firewalls")

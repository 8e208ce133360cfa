"""Records what a real TRex server counts, when held.py or what is made of a trial changes, or with a new TRex.

`TREX_HOME=… PYTHONPATH=libraries:tests .venv/bin/python -m tools.trex_record` writes tests/data/trex/hold-full.json
again: thirty connections fill the table of a real Open vSwitch, ten more are refused, the thirty are asked, there is
room for ten, ten open, and all are asked; the trials of TRIALS through a Linux router, and of DELAYS through a relay,
astf-*.json; and packets over two pairs of ports, stl-pairs.json. With names of trials behind it, it records these
alone."""

import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket
from typing import Any

from integration.trex_server import DATA, trex_config
from veth import ETH_P_ALL, PACKET_OUTGOING

from ctbench.base.network import own_macs
from ctbench.base.yaml_files import load
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.topology import Topology
from ctbench.dut.veth import IpRoute, VethLinks, within_generator
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile
from ctbench.traffic.trex import held
from ctbench.traffic.trex.client import TrexWorker, find_client
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.server import StartedServer
from ctbench.traffic.trex.source import TrexPort

#: Trials through a Linux router by name: what happens, the profile, the ruleset, and whether one of a thousand packets
#: is dropped.
TRIALS: dict[str, tuple[str, str, str, bool]] = {
    "again": ("One packet in a thousand is dropped at random.", "short-lived", "forward", True),
    "client-resets": ("Clients reset.", "short-lived-reset", "iptables-stateful", False),
    "client-resets-loss": ("Clients reset; one in a thousand is dropped.", "short-lived-reset", "forward", True),
    "server-closes": ("Servers close first.", "short-lived-server-closes", "iptables-stateful", False),
    "dns": ("Two requests at once over UDP.", "dns", "iptables-stateful", False),
    "ipv6": ("Over IPv6.", "short-lived-ipv6", "ip6tables-stateful", False),
}
#: Trials of short-lived connections through a relay by name: seconds by which it delays each packet.
DELAYS = {"undelayed": 0.0, "delayed": 0.001}
#: What drops them, of iptables(8).
DROPS = ("-A", "FORWARD", "-m", "statistic", "--mode", "random", "--probability", "0.001", "-j", "DROP")
#: Connections per second of a trial, and seconds.
LOAD, SECONDS = 2000.0, 3.0
#: What is held; connections that fill the table, and more. Of all counters, those that are looked at.
HELD, LIMIT, BEYOND = Hold(50, 100, asks=2, asked_after_s=8), 30, 10
OF_PORTS = ("opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors")
OF_TREX = ("queue_full", "total_alloc_error")
OF_TIMED = ("udps_sndpkt", "udps_rcvpkt", "min_time", "max_time", "measure_cnt", "total_time", "total_pkts")
OF_FLOWS = ("origin", "state", "rtt", "snd_rexmitpack")


def main() -> None:
    """Record everything."""
    with tempfile.TemporaryDirectory() as logs:
        record_held(Path(logs))
    record_trials([*TRIALS, *DELAYS])
    record_pairs()


def _testbed(folder: Path, pairs: int = 1) -> Testbed:
    config = load("testbeds", "local-trex", TestbedConfig)
    duts = [
        dut.model_copy(update={"ports": dut.ports and dut.ports.model_copy(update={"pairs": pairs})})
        for dut in config.duts
    ]
    return Testbed(config.model_copy(update={"duts": duts}), folder)


class CounterRecorder:
    """Passes calls on and keeps the counters that come back."""

    def __init__(self, worker: TrexWorker) -> None:
        self._worker = worker
        self.kept: list[dict[str, Any]] = []
        #: What was told of single connections.
        self.flows: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        """See `TrexWorker.call`."""
        answer = self._worker.call(do, timeout, **arguments)
        if do == "astf_flows" and "after" in arguments:
            self.flows = [{name: flow[name] for name in OF_FLOWS} for flow in answer["flows"]]
        if do == "stats":
            stats = answer["stats"]
            traffic = {
                side: {name: count for name, count in counters.items() if isinstance(count, int)}
                for side, counters in stats["traffic"].items()
            }
            few = {port: {name: stats[port][name] for name in OF_PORTS} for port in ("0", "1")}
            overall = {name: stats["global"].get(name, 0) for name in OF_TREX}
            timed = {
                side: {name: told.get(name, 0) for name in OF_TIMED} for side, told in stats.get("timed", {}).items()
            }
            known = {"global": overall, "traffic": traffic, "latency": stats["latency"], "timed": timed}
            self.kept.append({**answer, "stats": {**few, **known}})
        return answer


def record_held(folder: Path) -> None:
    """Record what is counted while connections are held and OVS refuses some."""
    held.LOOK_S = 0.4  # seconds of nothing need no more
    profile = load_profile("held")
    assert isinstance(profile, ConnectionProfile)
    with closing(_testbed(folder)) as testbed:
        testbed.apply(Topology(timeout_s=120, max_connections=LIMIT), profile)
        dut, generator = testbed.dut, testbed.generator
        assert isinstance(generator, TrexTrafficGenerator)
        with generator.hold(profile, HELD) as holding:
            holding._worker = recorder = CounterRecorder(holding._worker)  # type: ignore[assignment,arg-type]
            print(holding.open(LIMIT), holding.open(BEYOND), holding.ask())
            dut.limit_table(LIMIT + BEYOND)
            print(holding.open(BEYOND), holding.ask())
    lines = ",\n".join(json.dumps(each) for each in recorder.kept)
    (DATA / "hold-full.json").write_text(f'{{"stats": [\n{lines}\n]}}\n')


def record_trials(names: list[str]) -> None:
    """Record the counters of trials, and what was told of single connections."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if name in DELAYS:
                _record_relayed(name, Path(folder))
            else:
                _record_routed(name, Path(folder))


def _record_relayed(name: str, folder: Path) -> None:
    profile = load_profile("short-lived")
    assert isinstance(profile, ConnectionProfile)
    with _through_relay(DELAYS[name], folder) as generator:
        _record_trial(name, f"A relay delays each packet by {DELAYS[name] * 1e3:g} ms.", profile, generator)


def _record_routed(name: str, folder: Path) -> None:
    what, profile_name, ruleset, drops = TRIALS[name]
    profile = load_profile(profile_name)
    assert isinstance(profile, ConnectionProfile)
    with closing(_testbed(folder)) as testbed:
        testbed.apply(Topology(datapath="linux-router", ruleset=ruleset), profile)
        dut, generator = testbed.dut, testbed.generator
        assert isinstance(dut, LinuxDut) and isinstance(generator, TrexTrafficGenerator)
        if drops:
            dut._host.run(["iptables", *DROPS])
        _record_trial(name, what, profile, generator)


def _record_trial(name: str, what: str, profile: ConnectionProfile, generator: TrexTrafficGenerator) -> None:
    generator._worker = recorder = CounterRecorder(generator._worker)  # type: ignore[assignment,arg-type]
    trial = generator.run_trial(profile, Rate(LOAD), SECONDS)
    print(name, trial)
    version = str(generator.snapshot()["version"]).split(",")[0]
    for reading in reversed(recorder.kept):
        reading["at_s"] -= recorder.kept[0]["at_s"]
    zero, *rest, drained, _ = recorder.kept
    samples = rest[: len(trial.timeline_completed) + 1]
    content = {
        "what": what, "trex": version, "profile": profile.model_dump(exclude_defaults=True),
        "load": LOAD, "duration_s": SECONDS, "ports": generator._ports, "zero": zero, "begin": samples[0],
        "samples": samples[1:-1], "end": samples[-1], "drained": drained, "flows": recorder.flows,
    }  # fmt: skip
    lines = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in content.items())
    (DATA / f"astf-{name}.json").write_text(f"{{\n{lines}\n}}\n")


@contextmanager
def _through_relay(delay_s: float, logs: Path) -> Iterator[TrexTrafficGenerator]:
    """TRex in a sandbox; in the place of a DUT, what hands its packets on: not every kernel has sch_netem."""
    with Sandbox() as host:
        links = VethLinks(IpRoute(host))
        links.make(1500, 1, (0,))
        links.up()
        macs, (client, server) = own_macs(0), links.peers
        config = trex_config(
            client=TrexPort(interface=client, mac=macs[0], dest_mac=macs[1]),
            server_port=TrexPort(interface=server, mac=macs[1], dest_mac=macs[0]),
        )
        ends = []
        for interface in links.interfaces:
            ends.append(host.open_socket("packet"))
            ends[-1].bind((interface, ETH_P_ALL))
            ends[-1].setblocking(False)
        over = threading.Event()
        others = os.sched_getaffinity(0) - set(config.cpus)
        relay = threading.Thread(target=_hand_on, args=(ends, delay_s, others, over))
        relay.start()
        worker = TrexWorker(host, find_client(), logs / "client.log", within_generator())
        started = StartedServer(host, config, "127.0.0.1", logs, within_generator())
        try:
            with closing(TrexTrafficGenerator(started, worker)) as generator:
                yield generator
        finally:
            over.set()
            relay.join()
            for end in ends:
                end.close()


def _hand_on(ends: list[socket], delay_s: float, cpus: set[int], over: threading.Event) -> None:
    """Send out at one end what came in at the other, so much later, until it is `over`. It never sleeps, on one of
    these CPUs: what is due goes out at once."""
    os.sched_setaffinity(0, cpus)
    waiting = deque[tuple[float, socket, bytes]]()
    while not over.is_set():
        for end, other in (ends, ends[::-1]):
            try:
                frame, (_, _, kind, *_) = end.recvfrom(1 << 16)
            except BlockingIOError:
                continue
            if kind != PACKET_OUTGOING:
                waiting.append((time.monotonic() + delay_s, other, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, other, frame = waiting.popleft()
            other.send(frame)


def record_pairs() -> None:
    """Record the counters of packets over two pairs of ports, of which the second one loses one of a hundred towards
    the servers."""
    profile = load_profile("udp-64-10k-both")
    assert isinstance(profile, PacketProfile)
    with tempfile.TemporaryDirectory() as folder, closing(_testbed(Path(folder), 2)) as testbed:
        testbed.apply(Topology(datapath="linux-router", ruleset="forward"), profile)
        dut, generator = testbed.dut, testbed.generator
        assert isinstance(dut, LinuxDut) and isinstance(generator, TrexTrafficGenerator)
        every = [word if word != "0.001" else "0.01" for word in DROPS]
        dut._host.run(["iptables", *every[:2], "-d", "48.1.0.0/16", *every[2:]])
        kept: list[dict[str, Any]] = []
        worker = generator._worker
        call = worker.call

        def noted(do: str, timeout: float, **arguments: Any) -> Any:
            answer = call(do, timeout, **arguments)
            if do == "stl_stats":
                kept.append(answer)
            return answer

        worker.call = noted  # type: ignore[method-assign]
        trial = generator.run_trial(profile, Rate(LOAD), SECONDS)
        print("pairs", trial)
    begun_s = kept[0]["to_s"]
    for reading in kept:
        reading["from_s"], reading["to_s"] = (round(reading[name] - begun_s, 6) for name in ("from_s", "to_s"))
    samples = len(trial.timeline_completed) - 1
    content = {
        "about": "TRex v3.08 through a Linux router over two pairs of veths; the second drops 1 % towards the servers.",
        "profile": profile.model_dump(exclude_defaults=True), "load": LOAD, "duration_s": SECONDS, "pairs": 2,
        "zero": kept[0], "begin": kept[1], "samples": kept[2 : 2 + samples], "end": kept[-1],
    }  # fmt: skip
    lines = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in content.items())
    (DATA / "stl-pairs.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["pairs"]:
        record_pairs()
    elif sys.argv[1:]:
        record_trials(sys.argv[1:])
    else:
        main()

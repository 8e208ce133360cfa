"""Records what a real TRex server answers, when the client's calls or held.py change, or with a new TRex.

`TREX_HOME=… PYTHONPATH=libraries:tests .venv/bin/python -m tools.trex_record` writes tests/data/trex/rpc-*.json again,
hold-full.json: thirty connections fill the table of a real Open vSwitch, ten more are refused, the thirty are asked,
there is room for ten, ten open, and all are asked; and the trials of TRIALS through a Linux router, astf-*.json. With
names of trials behind it, it records these alone."""

import json
import os
import socket
import sys
import tempfile
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import zmq
from integration.trex_replay_server import OWN_SESSION, is_poll, key, unpack
from integration.trex_server import DATA, WITHIN, astf_session, client, connect, make_cable, new_server

from ctbench.base.yaml_files import load
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.trex import held
from ctbench.traffic.trex.client import TrexRefused, TrexWorker
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.server import Mode

#: The real server's ports; how far above the recorder listens.
PORTS, ABOVE = (4501, 4500), 1000
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
#: What drops them, of iptables(8).
DROPS = ("-A", "FORWARD", "-m", "statistic", "--mode", "random", "--probability", "0.001", "-j", "DROP")
#: Connections per second of a trial, and seconds.
LOAD, SECONDS = 2000.0, 3.0
#: What is held; connections that fill the table, and more. Of all counters, those that are looked at.
HELD, LIMIT, BEYOND = Hold(50, 100, asks=2, asked_after_s=8), 30, 10
OF_PORTS = ("opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors")
OF_TREX = ("queue_full", "total_alloc_error")
OF_FLOWS = ("origin", "state", "rtt", "snd_rexmitpack")


class TrexRecorder:
    """Passes calls and events on between a client and a real server, and keeps what was said."""

    def __init__(self, sync_port: int, async_port: int) -> None:
        self._context = zmq.Context()
        self._front, self._back = self._context.socket(zmq.REP), self._context.socket(zmq.REQ)
        self._front.bind(f"tcp://127.0.0.1:{sync_port + ABOVE}")
        self._back.connect(f"tcp://127.0.0.1:{sync_port}")
        self._events, self._publisher = self._context.socket(zmq.SUB), self._context.socket(zmq.PUB)
        self._events.connect(f"tcp://127.0.0.1:{async_port}")
        self._events.subscribe(b"")
        self._publisher.bind(f"tcp://127.0.0.1:{async_port + ABOVE}")
        self._exchanges: list[dict[str, Any]] = []
        self._end, self._ended = socket.socketpair()
        self._thread = threading.Thread(target=self._pass_on)
        self._thread.start()

    def close(self) -> list[dict[str, Any]]:
        """End, and return what was said."""
        self._end.close()
        self._thread.join()
        self._ended.close()
        self._context.destroy(linger=0)
        return self._exchanges

    def _pass_on(self) -> None:
        poller = zmq.Poller()
        for source in (self._front, self._events, self._ended):
            poller.register(source, zmq.POLLIN)
        while self._ended.fileno() not in (ready := dict(poller.poll())):
            if self._front in ready:
                request = self._front.recv()
                self._back.send(request)
                reply = self._back.recv()
                self._keep(unpack(request)[0], unpack(reply)[0])
                self._front.send(reply)
            if self._events in ready:
                self._publisher.send(self._events.recv())

    def _keep(self, requests: Any, replies: Any) -> None:
        pairs = zip(requests, replies, strict=True) if isinstance(requests, list) else [(requests, replies)]
        for request, reply in pairs:
            answer = {name: reply[name] for name in ("result", "error") if name in reply}
            exchange = {"call": key(request["method"], request.get("params", {})), **answer}
            if exchange["call"] == "get_system_info":  # nothing of this machine
                exchange["result"] |= {"hostname": "trex", "core_type": "a CPU"}
            if exchange["call"] == "get_async_events":
                _mark_own(request["params"]["session_id"], exchange["result"]["data"])
            silent = exchange["call"] == "publish_now" or answer.get("result") == {"data": []}
            if not silent and not self._said_before(exchange):
                self._exchanges.append(exchange)

    def _said_before(self, exchange: dict[str, Any]) -> bool:
        """Whether the same poll had the same answer since the last change."""
        for earlier in reversed(self._exchanges):
            if earlier["call"] == exchange["call"]:
                return is_poll(exchange["call"]) and bool(earlier == exchange)
            if not is_poll(earlier["call"]):
                return False
        return False


def _mark_own(session: int, events: list[dict[str, Any]]) -> None:
    for event in events:
        if event["data"].get("session_id") == session:
            event["data"]["session_id"] = OWN_SESSION


def record(name: str, mode: str, target: str) -> None:
    """Record one session; runs where the server can be reached, and hands the recording over as the file `target`."""
    recorder = TrexRecorder(*PORTS)
    try:
        with tempfile.TemporaryDirectory() as folder, client(Path(folder, "other")) as other:
            if name == "busy":
                connect(other, mode, *PORTS, user="somebody")
            with client(Path(folder, "log")) as worker, suppress(*[TrexRefused] * (name == "busy")):
                connect(worker, mode, *(port + ABOVE for port in PORTS))
                if name == "astf":
                    astf_session(worker, pause_s=0.5)
                worker.call("disconnect", 20)
    finally:
        exchanges = recorder.close()
    lines = ",\n".join(json.dumps(exchange) for exchange in exchanges)
    Path(target).write_text(f'{{"exchanges": [\n{lines}\n]}}\n')


def main() -> None:
    """Start a server in each mode, and record in its network namespace."""
    sessions: list[tuple[str, Mode]] = [("astf", "astf"), ("busy", "astf"), ("stl", "stl")]
    with tempfile.TemporaryDirectory() as logs, Sandbox() as host:
        make_cable(host)
        server = new_server(host, Path(logs))
        for name, mode in sessions:
            server.start(mode)
            again = [sys.executable, str(Path(__file__).resolve()), name, mode, "/run/recording"]
            paths = {"PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)}
            print(host.run([*WITHIN, *again], timeout=120, env=paths).stdout, end="")
            host.get("/run/recording", DATA / f"rpc-{name}.json")
        server.stop()
        record_held(Path(logs))
    record_trials(list(TRIALS))


def _testbed(folder: Path) -> Testbed:
    return Testbed(load("testbeds", "local-trex", TestbedConfig), folder)


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
            known = {"global": overall, "traffic": traffic, "latency": stats["latency"]}
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
        what, profile_name, ruleset, drops = TRIALS[name]
        profile = load_profile(profile_name)
        assert isinstance(profile, ConnectionProfile)
        topology = Topology(datapath="linux-router", ruleset=ruleset)
        with tempfile.TemporaryDirectory() as folder, closing(_testbed(Path(folder))) as testbed:
            testbed.apply(topology, profile)
            dut, generator = testbed.dut, testbed.generator
            assert isinstance(dut, LinuxDut) and isinstance(generator, TrexTrafficGenerator)
            if drops:
                dut._host.run(["iptables", *DROPS])
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


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in TRIALS:
        record_trials(sys.argv[1:])
    elif len(sys.argv) > 1:
        record(*sys.argv[1:])
    else:
        main()

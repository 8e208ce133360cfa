"""Records what a real TRex server counts, when held.py or what is made of a trial changes, or with a new TRex.

`TREX_HOME=… PYTHONPATH=libraries:tests .venv/bin/python -m tools.trex_record` writes tests/data/trex/hold-full.json
again: thirty connections fill the table of a real Open vSwitch, ten more are refused, the thirty are asked, there is
room for ten, ten open, and all are asked; the trials of TRIALS through a Linux router, astf-*.json; and packets over
two pairs of ports, stl-pairs.json. With names of trials behind it, it records these alone."""

import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from integration.trex_server import DATA

from ctbench.base.yaml_files import load
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile
from ctbench.traffic.trex import held
from ctbench.traffic.trex.client import TrexWorker
from ctbench.traffic.trex.generator import TrexTrafficGenerator

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


def main() -> None:
    """Record everything."""
    with tempfile.TemporaryDirectory() as logs:
        record_held(Path(logs))
    record_trials(list(TRIALS))
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

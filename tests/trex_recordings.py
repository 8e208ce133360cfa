"""What the real TRex (v3.08) answered in trials over veth, read from tests/data/trex, as a worker that replays it."""

import json
from pathlib import Path
from typing import Any

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex.astf import trial_of
from ctbench.traffic.trex.counters import Reading

DATA = Path(__file__).parent / "data" / "trex"


class Recording:
    """One trial: what was asked for, and the counters as they were read."""

    def __init__(self, name: str) -> None:
        content = json.loads((DATA / f"astf-{name}.json").read_text())
        self.load = float(content["load"])
        self.duration_s = float(content["duration_s"])
        self.ports = tuple(content["ports"])
        self.profile = ConnectionProfile(**content["profile"])
        #: As the worker answers them: before the first connection, around the sustain phase and in it, after the drain.
        self.zero, self.begin, self.end, self.drained = (content[key] for key in ("zero", "begin", "end", "drained"))
        self.samples: list[dict[str, Any]] = content["samples"]
        #: What was told of single connections at the end.
        self.flows: list[dict[str, Any]] = content.get("flows", [])

    def trial(self, stopped: dict[str, Any] | None = None) -> Trial:
        """What is made of it. `stopped`: the last reading, where that is another one than after the drain."""
        samples = [Reading(**each) for each in (self.begin, *self.samples, self.end)]
        zero, drained = Reading(**self.zero), Reading(**self.drained)
        last = Reading(**stopped) if stopped else None
        return trial_of(
            zero, samples, drained, self.ports, self.load, self.duration_s, 1.0, self.duration_s + 2, last, self.flows
        )

    @property
    def lost_packets(self) -> int:
        """Packets that one port sent and the other did not receive, from the first to the last."""
        first, last = self.zero["stats"], self.drained["stats"]
        return sum(
            (last[p]["opackets"] - first[p]["opackets"]) - (last[p]["ipackets"] - first[p]["ipackets"]) for p in "01"
        )


class ReplayedWorker:
    """Stands in for TrexWorker: answers with the readings of a recording, one after the other, the last for ever."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._left: list[dict[str, Any]] = []
        #: What it was asked, with the arguments.
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        """The answer of the real one."""
        assert timeout > 0
        self.asked.append((do, arguments))
        recorded = self._recording
        if do == "astf_start":
            self._left = [recorded.zero, recorded.begin, *recorded.samples, recorded.end]
        if do == "stats":
            return self._left.pop(0) if self._left else recorded.drained
        if do == "astf_flows":
            return {"next": 7, "flows": recorded.flows}
        return None

"""Records what a real TRex counts while it holds connections and OVS refuses some: tests/data/trex/hold-full.json.

`TREX_HOME=… PYTHONPATH=libraries:tests python tests/integration/trex_record_hold.py`, when held.py asks otherwise, or
with a new TRex. Thirty connections fill the table of a real Open vSwitch, ten more are refused, the thirty are asked,
there is room for ten, ten open, and all are asked.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from ctbench.base.yaml_files import load
from ctbench.dut.abilities import TableDut
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.trex import held
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.worker import TrexWorker

TARGET = Path(__file__).parents[1] / "data/trex/hold-full.json"
LOAD = Hold(50, 100, asks=2, asked_after_s=8)
LIMIT, BEYOND = 30, 10
#: Of all counters, those that are looked at.
OF_PORTS = ("opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors")
OF_TREX = ("queue_full", "total_alloc_error")


class Recorder:
    """Passes calls on and keeps the counters that come back."""

    def __init__(self, worker: TrexWorker) -> None:
        self._worker = worker
        self.kept: list[dict[str, Any]] = []

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        """See `TrexWorker.call`."""
        answer = self._worker.call(do, timeout, **arguments)
        if do == "stats":
            stats = answer["stats"]
            traffic = {
                side: {name: count for name, count in counters.items() if isinstance(count, int)}
                for side, counters in stats["traffic"].items()
            }
            few = {port: {name: stats[port][name] for name in OF_PORTS} for port in ("0", "1")}
            overall = {name: stats["global"].get(name, 0) for name in OF_TREX}
            self.kept.append({**answer, "stats": {**few, "global": overall, "traffic": traffic}})
        return answer


def main() -> None:
    """Record."""
    held.LOOK_S = 0.4  # seconds of nothing need no more
    profile = load_profile("held")
    assert isinstance(profile, ConnectionProfile)
    with tempfile.TemporaryDirectory() as folder:
        testbed = Testbed(load("testbeds", "local-trex", TestbedConfig), Path(folder))
        try:
            testbed.apply(Topology(timeout_s=120, max_connections=LIMIT), profile)
            dut, generator = testbed.dut, testbed.generator
            assert isinstance(dut, TableDut) and isinstance(generator, TrexTrafficGenerator)
            with generator.hold(profile, LOAD) as holding:
                holding._worker = recorder = Recorder(holding._worker)  # type: ignore[assignment,arg-type]
                opened = [holding.open(LIMIT), holding.open(BEYOND)]
                asked = [holding.ask()]
                dut.limit_table(LIMIT + BEYOND)
                opened.append(holding.open(BEYOND))
                asked.append(holding.ask())
        finally:
            testbed.close()
    print(*opened, *asked, sep="\n")
    lines = ",\n".join(json.dumps(each) for each in recorder.kept)
    TARGET.write_text(f'{{"stats": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()

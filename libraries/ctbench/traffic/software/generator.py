"""The software traffic generator behind the TrafficGenerator interface."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ctbench.errors import GeneratorError
from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import engine
from ctbench.traffic.software.cable import cable
from ctbench.traffic.software.engine import Counts
from ctbench.traffic.software.memif import MemifPort, RingPlan, connect

#: The rings that the generator receives on hold this many frames: its own pauses of a few milliseconds cost nothing.
RECEIVE_RING = 8192
#: Bytes per buffer: the smallest that hold a profile's frames keep the rings in the processor's caches.
_BUFFER_SIZES = (128, 256, 512, 2048)
_HEADERS = 70

Watcher = Callable[[float, Counts, Counts], None]


class SoftwareTrafficGenerator:
    """Drives two memif ports from one thread. Wire it with `connect`, offer with `run_trial`, end with `close`."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its thread may run; empty: anywhere."""
        self._cpus = tuple(cpus)
        self._ports: tuple[MemifPort, MemifPort] | None = None
        self._wiring = "not connected"
        self._tables = engine.Tables()
        self._trials = 0
        #: Called about ten times a second during a trial, for progress.
        self.watcher: Watcher | None = None

    def connect(
        self,
        client: Path,
        server: Path,
        *,
        rx_queues: int,
        tx_queues: int,
        ring_size: int = 2048,
        frame_bytes: int = 1514,
    ) -> None:
        """Connect to the DUT's two memif sockets.

        `rx_queues`: rings towards the DUT per port, its receive queues; `tx_queues`: rings that it transmits on, all
        of which are polled; `ring_size`: entries of the rings towards the DUT; `frame_bytes`: the largest frame.
        """
        self.disconnect()
        plan = RingPlan(rx_queues, tx_queues, ring_size, max(RECEIVE_RING, ring_size), _buffer_bytes(frame_bytes))
        first = connect(client, plan)
        try:
            self._ports = (first, connect(server, plan))
        except GeneratorError:
            first.close()
            raise
        self._wiring = f"memif, {rx_queues} rings of {ring_size} towards the DUT, {tx_queues} of {plan.s2c_size} back"

    def connect_cable(self, queues: int = 1, ring_size: int = 2048, frame_bytes: int = 1514) -> None:
        """Join the two ports directly, with no DUT between them: for the generator's ceiling."""
        self.disconnect()
        self._ports = cable(queues, ring_size, _buffer_bytes(frame_bytes))
        self._wiring = f"cable, {queues} rings of {ring_size} per direction"

    def run_trial(self, profile: ConnectionProfile, load_cps: float, duration_s: float) -> Trial:
        """See `TrafficGenerator.run_trial`. A wire that broke is a `GeneratorError`."""
        if self._ports is None:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self._trials += 1
        return engine.run_trial(
            *self._ports,
            self._tables,
            profile,
            load_cps,
            duration_s,
            cpus=self._cpus,
            salt=1 + self._trials % 1000,
            while_running=self.watcher,
        )

    def snapshot(self) -> dict[str, object]:
        """Kind, thread, CPUs and wiring."""
        return {"type": "software", "cpus": list(self._cpus), "wiring": self._wiring}

    def disconnect(self) -> None:
        """Let go of the ports."""
        for port in self._ports or ():
            port.close()
        self._ports = None
        self._wiring = "not connected"

    def close(self) -> None:
        """Let go of the ports. May be called twice."""
        self.disconnect()


def largest_frame(profile: ConnectionProfile) -> int:
    """Bytes of the largest frame that the profile sends (without FCS)."""
    return _HEADERS + max(profile.request_bytes, profile.reply_bytes)


def _buffer_bytes(frame_bytes: int) -> int:
    """The smallest buffer that holds the frame, the two bytes before it, and a payload rounded up to eight."""
    for size in _BUFFER_SIZES:
        if frame_bytes + 16 <= size:
            return size
    raise GeneratorError(f"Frames of {frame_bytes} bytes do not fit a buffer of {_BUFFER_SIZES[-1]} bytes.")


def warm_up() -> None:
    """Compile the kernel function, so that no trial waits for it. About 15 s the first time, nothing after it."""
    generator = SoftwareTrafficGenerator()
    generator.connect_cable()
    try:
        generator.run_trial(ConnectionProfile(name="warm-up"), 1000, 0.05)
    finally:
        generator.close()

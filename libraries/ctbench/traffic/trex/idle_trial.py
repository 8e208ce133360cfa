"""A trial in which TRex offers nothing: its ports are open, and what arrives at them is counted."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import PacketProfile, Profile
from ctbench.traffic.trex.astf_trial import ANSWER_S, Worker

_SIDES = ("client", "server")
#: A port's counters as ASTF and as DPDK call them: packets and bytes that were sent, and that arrived.
_ASTF = ("opackets", "ipackets", "obytes", "ibytes")
_DPDK = ("tx_good_packets", "rx_good_packets", "tx_good_bytes", "rx_good_bytes")


def run_trial(
    worker: Worker,
    ports: Sequence[int],
    profile: Profile,
    duration_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Offer nothing for `duration_s` seconds and count. `ports`: TRex' numbers, client side first. The profile says in
    which mode TRex is. `GeneratorError` when TRex or its client breaks."""
    packets = isinstance(profile, PacketProfile)
    started = time.perf_counter()

    def read() -> Sequence[Mapping[str, int]]:
        if packets:
            answer: list[dict[str, int]] = worker.call("stl_ports", ANSWER_S)
            return answer
        stats: Mapping[str, Any] = worker.call("stats", ANSWER_S)["stats"]
        return [stats[str(port)] for port in ports]

    before = read()
    sleep(duration_s)
    after = read()

    def grown(name: str) -> dict[str, int]:
        return {side: int(after[n].get(name, 0) - before[n].get(name, 0)) for n, side in enumerate(_SIDES)}

    tx_packets, rx_packets, tx_bytes, rx_bytes = (grown(name) for name in (_DPDK if packets else _ASTF))
    return Trial(
        unit=profile.kind,
        load=0,
        duration_s=duration_s,
        ramp_up_s=0,
        wall_s=time.perf_counter() - started,
        intended=0,
        attempted=0,
        completed=0,
        tx_packets=tx_packets,
        rx_packets=rx_packets,
        tx_bytes=tx_bytes,
        rx_bytes=rx_bytes,
        total_tx_packets=tx_packets,
        total_rx_packets=rx_packets,
    )

"""What a generator can be asked to offer, and what it says when it cannot."""

from typing import Any

import pytest
from wire import Wire

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.traffic.loads import Hold, Idle, Rate, Saturation, require
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctbench.traffic.trex.generator import TrexTrafficGenerator, run_idle

CONNECTIONS = ConnectionProfile(name="short")
PACKETS = PacketProfile(name="stream", kind="packets")
#: Packets sent, packets and bytes arrived, of the client's and the server's port; before and after.
COUNTS = [((7, 3, 200), (9, 4, 300)), ((7, 8, 520), (9, 4, 300))]


@pytest.mark.parametrize("per_s", [0, -1, float("inf"), float("nan")])
def test_a_load_that_cannot_be_offered_is_refused(per_s: float) -> None:
    with pytest.raises(ConfigError, match="Expected more than 0"):
        Rate(per_s)


def test_what_is_not_offered_is_a_missing_resource_as_a_closed_loop_of_trex() -> None:
    require({Rate, Idle}, Idle(), "TRex")
    with pytest.raises(MissingResource) as refused:
        require({Rate, Idle}, Hold(5, 1), "TRex")
    assert str(refused.value) == (
        "A number of connections that stay open is needed, and TRex offers a rate of connections or packets and an idle"
        " time only: use a testbed with another traffic generator."
    )
    generator = TrexTrafficGenerator(None, None)  # type: ignore[arg-type]  # neither is asked
    with pytest.raises(MissingResource, match="TRex offers"):
        generator.run_trial(CONNECTIONS, Saturation(10), 1)
    with pytest.raises(MissingResource, match="without TCP to be held"):
        generator.run_trial(CONNECTIONS.model_copy(update={"udp_percent": 1.0}), Hold(10, 10), 1)
    with pytest.raises(MissingResource, match="of packets, and connections are held"):
        generator.run_trial(PACKETS, Hold(10, 10), 1)


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_the_software_generator_can_idle_and_counts_what_arrives(profile: Profile) -> None:
    with Wire() as wire:
        assert wire.inject("client", bytes(60))
        trial = wire.generator.run_trial(profile, Idle(), 0.2)
    assert (trial.unit, trial.load, trial.duration_s, trial.ramp_up_s) == (profile.kind, 0, 0.2, 0)
    assert (trial.intended, trial.attempted, trial.completed) == (0, 0, 0)
    assert (trial.connect_time_us, trial.generator_limited) == (None, "")
    assert trial.total_tx_packets == {"client": 0, "server": 0}
    assert trial.total_rx_packets == {"client": 1, "server": 0}
    assert trial.unexpected == {"foreign": 1}


class CountingWorker:
    """Stands in for TRex' client, which counts packets and bytes of two ports."""

    def __init__(self) -> None:
        self._left = list(COUNTS)

    def call(self, do: str, timeout: float) -> Any:
        assert do == "stats" and timeout > 0
        counts = [{"opackets": tx, "ipackets": rx, "ibytes": size} for tx, rx, size in self._left.pop(0)]
        return {"at_s": 0.0, "within_s": 0.0, "stats": dict(zip(("4", "5"), counts, strict=True))}


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_trex_counts_what_arrives_while_it_offers_nothing(profile: Profile) -> None:
    slept: list[float] = []
    trial = run_idle(CountingWorker(), (4, 5), profile, 30, slept.append)
    assert slept == [30]
    assert (trial.unit, trial.load, trial.intended, trial.completed) == (profile.kind, 0, 0, 0)
    assert trial.tx_packets == {"client": 0, "server": 0}
    assert trial.rx_packets == trial.total_rx_packets == {"client": 5, "server": 0}
    assert trial.rx_bytes == {"client": 320, "server": 0}

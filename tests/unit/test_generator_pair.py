"""Two DUTs served in turn: who has its turn, what waits meanwhile, and what of it is forgotten."""

import time
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from wire import software_connector

from ctbench.base.errors import ConfigError, GeneratorError, MissingResource
from ctbench.dut.base import Ports
from ctbench.hosts.machine import Placement
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import generator as software
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import plan
from ctbench.traffic.software.clock import cycles_per_second
from ctbench.traffic.software.generator import SoftwareTrafficGenerator

pytestmark = pytest.mark.usefixtures("compiled_generator")

SHORT = ConnectionProfile(name="short", client_ips=100, server_ips=10)
LONG = SHORT.model_copy(update={"name": "long", "messages": 500, "server_wait_ms": 50.0})
PACKETS = PacketProfile(name="packets", kind="packets", client_ips=10, directions="both")
ABBA: tuple[Side, ...] = ("tested", "other", "other", "tested")
SLICE_S = 0.03
PORTS = Ports("cable", "", "", 1, 1)
HERE = Placement((0,), (0,), (0,))


@pytest.fixture
def generator() -> Iterator[SoftwareTrafficGenerator]:
    """Wired to two cables."""
    connector = software_connector()
    connector.connect_pair(PORTS, PORTS, HERE, 1514)
    # On a busy machine a slice may take long by the wall clock.
    with (
        patch.multiple(plan, LOOP_TIMEOUT_S=10.0, LOOP_SETTLE_S=0.05),
        patch.multiple(plan, SILENCE_S=10.0, LOST_AFTER_S=5.0, STREAM_LOOP_SETTLE_S=0.05),
        patch.object(software, "WARM_UP_S", 0.05),
    ):
        yield connector.generator
    connector.close()


@pytest.mark.parametrize("profile", [SHORT, LONG, PACKETS], ids=lambda profile: profile.name)
def test_each_side_is_served_when_it_has_its_turn(
    generator: SoftwareTrafficGenerator, profile: ConnectionProfile | PacketProfile
) -> None:
    turns: list[Side] = []
    slices = generator.run_slices((profile, profile), ABBA, SLICE_S, turns.append)
    assert [each.side for each in slices] == list(ABBA)
    assert turns == ["tested", "other", *ABBA]
    assert all(each.completed > 0 and each.lost == 0 for each in slices)
    assert all(each.rate == each.completed / each.seconds for each in slices)


def test_a_side_goes_on_with_what_was_under_way_however_long_the_other_had_its_turn(
    generator: SoftwareTrafficGenerator,
) -> None:
    generator.run_slices((LONG, LONG), ABBA, SLICE_S, lambda _side: None)
    run = generator._loops["tested"]
    open_then, begun_then, away_then = (int(run.s[place]) for place in (lay.ACTIVE, lay.BEGUN, lay.AWAY))
    under_way = int(run.p[lay.UNDER_WAY])
    assert under_way / 2 < open_then <= under_way

    turns: list[Side] = []

    def turn(side: Side) -> None:
        turns.append(side)
        time.sleep(0.1)

    slices = generator.run_slices((LONG, LONG), ABBA, SLICE_S, turn)
    assert turns == list(ABBA)  # no warm-up any more
    assert generator._loops["tested"] is run
    assert not any(each.lost for each in slices)
    assert under_way / 2 < run.s[lay.ACTIVE] <= under_way
    assert run.s[lay.BEGUN] >= begun_then
    assert run.s[lay.AWAY] - away_then > 0.3 * cycles_per_second()


def test_no_timer_sees_the_time_in_which_the_other_side_was_served(generator: SoftwareTrafficGenerator) -> None:
    generator.run_slices((PACKETS, PACKETS), ABBA, SLICE_S, lambda _side: time.sleep(0.2))
    run = generator._loops["other"]
    wall = int(run.s[lay.LEFT_AT]) - int(run.s[lay.COUNTED_UNTIL])
    assert wall >= run.s[lay.AWAY] > 0.5 * cycles_per_second()


def test_another_profile_a_trial_and_a_flush_begin_anew(generator: SoftwareTrafficGenerator) -> None:
    turns: list[Side] = []
    generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, turns.append)
    generator.run_slices((PACKETS, PACKETS), ABBA, SLICE_S, turns.append)
    generator.forget()
    generator.run_slices((PACKETS, PACKETS), ABBA, SLICE_S, turns.append)
    generator.run_trial(SHORT, Rate(100), 0.05)
    generator.run_slices((PACKETS, PACKETS), ABBA, SLICE_S, turns.append)
    assert turns == 4 * ["tested", "other", *ABBA]


def test_a_trial_of_a_pair_is_the_tested_sides(generator: SoftwareTrafficGenerator) -> None:
    other = generator._wirings["other"]
    before = other.client.tx.copy()
    trial = generator.run_trial(SHORT, Rate(500), 0.1)
    assert trial.total_tx_packets["client"] > 0
    assert (other.client.tx == before).all()
    assert generator.snapshot()["other_wiring"] == generator.snapshot()["wiring"]


def test_a_turn_that_fails_leaves_the_generator_usable(generator: SoftwareTrafficGenerator) -> None:
    def refuse(side: Side) -> None:
        raise GeneratorError(f"the {side} DUT does not wake up")

    with pytest.raises(GeneratorError, match="the tested DUT does not wake up"):
        generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, refuse)
    assert len(generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, lambda _side: None)) == len(ABBA)


def test_a_slice_in_which_nothing_would_be_left_to_count_is_refused(generator: SoftwareTrafficGenerator) -> None:
    with pytest.raises(ConfigError, match="25 ms"):
        generator.run_slices((SHORT, SHORT), ABBA, 0.02, lambda _side: None)


def test_slices_need_two_sides_and_the_tested_one_is_connected_first() -> None:
    generator = SoftwareTrafficGenerator()
    with pytest.raises(GeneratorError, match="after the tested one"):
        generator.connect_cable(side="other")
    generator.connect_cable()
    with pytest.raises(GeneratorError, match="not connected to a pair"):
        generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, lambda _side: None)
    generator.connect_cable(side="other")
    generator.disconnect()
    with pytest.raises(GeneratorError, match="not connected to a DUT"):
        generator.run_trial(SHORT, Rate(1), 0.1)


def test_a_pair_of_which_one_cannot_be_reached_is_let_go_of() -> None:
    connector = software_connector()
    with pytest.raises(MissingResource, match="network cards"):
        connector.connect_pair(PORTS, Ports("pci", "0000:18:00.2", "0000:18:00.3", 1, 2), HERE, 1514)
    assert connector.facts()["wiring"] == "not connected"

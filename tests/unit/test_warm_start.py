"""The population of a warm start: as many as the steady state has, and nobody asks in step with the others."""

import math

import pytest

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.software import kernel, plan
from ctbench.traffic.software import layout as lay

#: Connections of mobile traffic: 75 % of 3 messages, the others of 19, seven in the mean; one begins each cycle.
SHORT, LONG, SHORT_PER_MILLION, WAIT = 3, 19, 750_000, 1000
POPULATION = 7 * WAIT
PARAMETERS = {
    lay.POPULATION: POPULATION, lay.SERVER_WAIT: WAIT,
    lay.SHORT_MESSAGES: SHORT, lay.SHORT_PER_MILLION: SHORT_PER_MILLION,
}  # fmt: skip


def lives(waits: int) -> list[tuple[int, int]]:
    """When each connection is opened, and how many messages it has: the population, and those of the load."""
    found: list[tuple[int, int]] = []
    for at in range(waits * WAIT + 1):
        for number in range(len(found), int(POPULATION * kernel.opened_share.py_func(at, WAIT, waits))):
            found.append((at, min(LONG, kernel.messages_left.py_func(number, at, 1, PARAMETERS))))
    return found + [(at, LONG if at % 4 == 3 else SHORT) for at in range((waits + 4) * WAIT)]


@pytest.mark.parametrize("waits", [1, 3, 4])
def test_from_the_opening_on_as_many_are_open_as_the_steady_state_has_and_ask_evenly(waits: int) -> None:
    found = lives(waits)
    over = waits * WAIT
    for at in range(over, over + 3 * WAIT, WAIT // 8):
        is_open = sum(opened <= at < opened + messages * WAIT for opened, messages in found)
        assert is_open == pytest.approx(POPULATION, rel=0.01), at
        asked = sum(
            max(0, min(messages, math.ceil((at + WAIT // 8 - opened) / WAIT)) - max(0, math.ceil((at - opened) / WAIT)))
            for opened, messages in found
        )
        assert asked == pytest.approx(POPULATION / 8, rel=0.05), at


def test_an_opening_takes_whole_waits_and_no_more_of_them_than_a_connection_has() -> None:
    mobile, steady = load_profile("mobile"), load_profile("steady-50k")
    assert isinstance(mobile, ConnectionProfile) and isinstance(steady, ConnectionProfile)
    at_rate = mobile.model_copy(update={"open_at_once": 100_000}).at_rate(28_000.0)
    assert plan.opening_waits(at_rate, 100_000) == plan.OPENING_WAITS == 3
    wait_s = at_rate.server_wait_ms / 1000
    assert plan.timing_of(at_rate, Rate(28_000.0), 1.0).ramp_up_s == pytest.approx(3 * wait_s + plan.WARM_SETTLE_S)
    whole = mobile.at_rate(200_000.0)
    assert plan.opening_waits(whole, 1_000_000) == 14
    assert plan.opening_waits(steady, 250_000) == steady.messages == 2
    assert plan.opening_waits(at_rate, 0) == 0

"""Whose loss it is where frames are taken away between Open vSwitch and the generator's rings of shared memory."""

import re
from collections import Counter
from dataclasses import dataclass

import pytest
from wire import Wire

from ctbench.dut.base import DutCounts
from ctbench.dut.ovs.answers import PortCounters
from ctbench.dut.ovs.health import counted
from ctbench.measure.observation import Observation
from ctbench.measure.trial import TrialRunner
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctgen import plan

from .simulated import LIMITS, HealthyDut

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

SHORT = ConnectionProfile(name="short", client_ips=10, server_ips=5)
CLIENT, SERVER = 1, 2


@dataclass
class Switch(HealthyDut):
    """Open vSwitch as far as its counters go: what it received and sent, by port."""

    received: Counter[int]
    sent: Counter[int]

    def counts(self) -> DutCounts:
        now = {port: PortCounters(self.received[port], self.sent[port]) for port in (CLIENT, SERVER)}
        return counted(dict.fromkeys(now, PortCounters()), now, "memif")


def trial(*, sent_before: bool) -> Observation:
    """One frame of sixteen to the client is taken away: after the DUT has sent it, or by itself."""
    received, sent = Counter[int](), Counter[int]()

    def passes(frame: bytes, side: str) -> list[bytes]:
        here, there = (CLIENT, SERVER) if side == "client" else (SERVER, CLIENT)
        received[here] += 1
        away = there == CLIENT and received[here] % 16 == 0
        sent[there] += sent_before or not away
        return [] if away else [frame]

    with Wire(passes) as wire:
        runner = TrialRunner(Switch(received, sent), wire.generator, SHORT, LIMITS, sleep=lambda _seconds: None)
        return runner.offer(Rate(200), 0.3)


def test_frames_taken_away_between_dut_and_generator_void_a_trial_and_those_that_it_lost_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "REPLY_TIMEOUT_S", 0.3)  # some never come
    away = trial(sent_before=True)
    assert away.state == "invalid"
    said = re.match(r"the DUT sent (\d+) frames to the generator's client port, it took (\d+)", away.reason)
    assert said, away.reason
    assert int(said[1]) > int(said[2])
    own = trial(sent_before=False)
    assert own.state != "good" and own.lost_elsewhere == ""

"""Connections that TRex holds: what is made of what a real one (v3.08) counted (trex_record.py), and what it is
told. Thirty filled the table of Open vSwitch, ten more were refused, then there was room for ten."""

import copy
import json
from typing import Any

import pytest
from trex_recordings import DATA

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex import held
from ctbench.traffic.trex.held import HeldByTrex

PROFILE = ConnectionProfile(name="held", udp_percent=0, messages=1, request_bytes=20, reply_bytes=20)
#: As it was recorded.
LOAD = Hold(50, 100, asks=2, asked_after_s=8)


class ReplayedHold:
    """Answers with the counters that were recorded, and tells the time at which they were."""

    def __init__(self) -> None:
        self.left: list[dict[str, Any]] = json.loads((DATA / "hold-full.json").read_text())["stats"]
        self.now = self.left[0]["at_s"]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.broken = False

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        assert timeout > 0
        self.asked.append((do, arguments))
        if self.broken:
            raise GeneratorError("TRex' client ended.")
        if do == "astf_start":  # it came back when TRex had begun
            self.now = self.left[0]["at_s"] - 0.4
        if do != "stats":
            return None
        answer = self.left.pop(0)
        self.now = answer["at_s"]
        return answer

    def of(self, do: str) -> list[dict[str, Any]]:
        """What it was told to do by this name."""
        return [arguments for name, arguments in self.asked if name == do]


@pytest.fixture
def trex(monkeypatch: pytest.MonkeyPatch) -> ReplayedHold:
    replayed = ReplayedHold()
    monkeypatch.setattr(held.time, "monotonic", lambda: replayed.now)
    return replayed


def holding(trex: ReplayedHold, *opened: int, told: list[BaseException] | None = None) -> HeldByTrex:
    """So many connections were opened, one opening after the other."""
    let_go = [] if told is None else told
    connections = HeldByTrex(trex, (0, 1), PROFILE, LOAD, let_go.append, sleep=lambda _: None)
    for count in opened:
        connections.open(count)
    return connections


def test_the_recorded_table_fills_refuses_and_opens_again_and_all_is_forgotten_in_the_end(trex: ReplayedHold) -> None:
    told: list[BaseException] = []
    with holding(trex, told=told) as connections:
        first, refused = connections.open(30), connections.open(10)
        while_full = connections.ask()
        again = connections.open(10)
        in_the_end = connections.ask()
        trial = connections.trial()

        assert (first.begun, first.established, first.refused) == (30, 30, 0)
        assert first.waited_s > 0, "TRex needs a while to begin"
        assert first.first_s is not None and first.last_s is not None and 0 <= first.first_s <= first.last_s
        assert (refused.begun, refused.established, refused.first_s) == (10, 0, None)
        assert (while_full.asked, while_full.answered) == (30, 30)
        assert (again.established, again.refused) == (10, 0)
        assert (in_the_end.asked, in_the_end.answered, connections.held()) == (40, 40, 40)
        assert (trial.intended, trial.attempted, trial.established, trial.completed) == (50, 50, 40, 40)
        assert trial.failed == {"no_syn_ack": 10}
        assert trial.generator_limited == ""
        assert trial.rx_packets["client"] == 40 + 30 + 40, "SYN-ACKs, replies of both askings"
        assert trial.tx_packets["client"] == 30 + 3 * 10 + 10 + 40 + 2 * (30 + 40), "SYNs, ACKs, requests with ACKs"
    assert not trex.left, "every answer that was recorded was asked for"
    assert [each["profile"] for each in trex.of("astf_remove")] == ["held-0", "held-1", "held-2"]
    assert told == []


@pytest.mark.parametrize("broken", [False, True])
def test_a_trial_or_a_client_that_breaks_lets_go_of_trex(trex: ReplayedHold, broken: bool) -> None:
    told: list[BaseException] = []
    with pytest.raises((RuntimeError, GeneratorError)) as trouble, holding(trex, told=told) as connections:
        connections.open(30)
        trex.broken = broken
        if not broken:
            raise RuntimeError("the DUT broke")

    assert told == [trouble.value]
    assert bool(trex.of("astf_remove")) is broken


def test_one_that_is_asked_before_somebody_says_so_says_nothing(trex: ReplayedHold) -> None:
    connections = holding(trex, 30, 10)
    trex.left = [each | {"at_s": each["at_s"] + 60} for each in trex.left]

    with pytest.raises(GeneratorError, match=r"asked the connections \d+\.\d s too soon: .* longer than 8 s\.$"):
        connections.ask()


@pytest.mark.parametrize("asked", [True, False])
def test_replies_that_do_not_come_are_lost_unless_trex_did_not_ask(trex: ReplayedHold, asked: bool) -> None:
    connections = holding(trex, 30, 10)
    del trex.left[14:]  # the last before they are asked
    requests = copy.deepcopy(trex.left[-1]) | {"at_s": trex.now + 60}
    if asked:
        requests["stats"]["traffic"]["client"]["tcps_sndbyte"] = 600
    trex.left.append(requests)

    assert connections.ask().lost == 30
    trial = connections.trial()
    assert trial.failed == {"no_syn_ack": 10, "no_reply": 30}
    assert trial.completed == 0
    said = "" if asked else "TRex did not ask 30 of the connections that it holds in time"
    assert trial.generator_limited == said


def test_packets_that_are_sent_again_are_losses(trex: ReplayedHold) -> None:
    for reading in trex.left:
        reading["stats"]["traffic"]["client"]["tcps_sndrexmitpack"] = 2
    trex.left[0]["stats"]["traffic"]["client"].pop("tcps_sndrexmitpack")

    trial = holding(trex, 30).trial()

    assert trial.failed == {"retransmitted": 2}
    assert trial.completed == 28


def test_connections_that_trex_does_not_begin_are_its_own_fault(trex: ReplayedHold) -> None:
    for reading in trex.left:
        reading["stats"]["traffic"]["client"]["tcps_connattempt"] = 7
        reading["at_s"] += len(trex.left)
    trex.left[0]["stats"]["traffic"]["client"] = {}
    trex.left[5]["at_s"] += 1000

    assert holding(trex, 40).trial().generator_limited.startswith("TRex began only 7 of 40 connections")


def test_no_more_are_opened_than_was_said(trex: ReplayedHold) -> None:
    connections = holding(trex, 30)

    with pytest.raises(GeneratorError, match="No more than 50 connections"):
        connections.open(21)


def test_trex_is_told_how_many_how_fast_and_when_to_ask(trex: ReplayedHold) -> None:
    holding(trex, 30, 10)

    first, second = (load["spec"] for load in trex.of("astf_load"))
    template = first["templates"][0]
    assert (template["limit"], template["cps"]) == (30, 100)
    assert template["client"][0] == ["connect"]
    assert ["set_var", "left", 2] in template["client"]
    assert ["delay", 8_300_000] in template["client"], "8 s after the last of 30 at 100/s"
    assert template["client"][-1][0] == "delay", "no connection ends by itself"
    assert first["tcp"]["keepidle"] > 3600, "TRex sends nothing of its own accord"
    assert second["templates"][0]["port"] == template["port"] + 1, "no two openings share addresses and ports"
    assert [start["duration_s"] for start in trex.of("astf_start")] == [-1, -1]


@pytest.mark.parametrize(
    ("profile", "load", "sentence"),
    [
        (PROFILE.model_copy(update={"udp_percent": 25.0}), LOAD, "without TCP"),
        (PROFILE, Hold(10, 100, asks=None), "asked at any time"),
    ],
)
def test_what_trex_cannot_hold_is_said(profile: ConnectionProfile, load: Hold, sentence: str) -> None:
    assert sentence in held.cannot_hold(profile, load)
    assert held.cannot_hold(PROFILE, LOAD) == ""


def test_a_profile_without_ports_left_is_said() -> None:
    last = PROFILE.model_copy(update={"tcp_port": 65_535})

    with pytest.raises(MissingResource, match="no port of the server for the open number 2"):
        held.hold_spec(last, LOAD, 1, 10, 8.0)

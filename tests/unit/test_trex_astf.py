"""What TRex' ASTF is given of a connection profile; the arithmetic of a trial, on counters that the real one gave."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from trex_recordings import Recording, ReplayedWorker

from ctbench.dut.base import DutCounts
from ctbench.measure.observation import Observation
from ctbench.traffic.generator import Latency, UdpLatency
from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.trex import astf
from ctbench.traffic.trex.astf import astf_spec, base_cps, limitations, repeated
from ctbench.traffic.trex.config import concurrent_flows
from ctbench.traffic.trex.counters import GENERATOR_FAULTS, Reading
from ctbench.traffic.trex.latency import latency_of_messages, latency_of_port


def with_counter(recording: Recording, where: tuple[str, ...], value: int) -> Recording:
    """The recording whose last two readings have another value."""
    changed = copy.deepcopy(recording)
    for reading in (changed.end, changed.drained):
        place: Any = reading["stats"]
        for key in where[:-1]:
            place = place[key]
        place[where[-1]] = value
    return changed


@pytest.fixture
def light() -> Recording:
    return Recording("light")


def test_packets_are_those_between_the_readings_and_the_timeline_follows_the_connections(light: Recording) -> None:
    trial = light.trial()
    assert trial.rx_packets["server"] == pytest.approx(trial.tx_packets["client"], rel=0.01)
    assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"] > trial.tx_packets["client"]
    assert len(trial.timeline_active) == len(trial.timeline_completed) == len(light.samples) + 1
    assert sum(trial.timeline_completed) == pytest.approx(trial.completed, rel=0.05)
    # TRex remembers a connection for half a second.
    assert trial.active_mean == pytest.approx(light.load * 0.5, rel=0.05)
    assert trial.active_max >= trial.active_mean


def test_trex_that_begins_too_few_is_the_limit_with_the_cause() -> None:
    recording = Recording("overload")
    trial = recording.trial()
    assert "TRex began only" in trial.generator_limited
    assert trial.attempted < 0.9 * trial.intended
    assert trial.intended == pytest.approx(recording.load * recording.duration_s, rel=0.02)
    # It sees no error itself: this is why it has to be judged by what it began.
    assert recording.drained["stats"]["global"]["queue_full"] == 0
    limited = Recording("no-ports").trial().generator_limited
    assert limited.startswith("TRex began only")
    assert "client ports that were still taken: the profile needs more client_ips" in limited


@pytest.mark.parametrize(
    ("name", "port"), [*((name, "0") for name in GENERATOR_FAULTS), ("ierrors", "1"), ("oerrors", "1")]
)
def test_each_generator_fault_spoils_the_trial(light: Recording, name: str, port: str) -> None:
    stats = light.drained["stats"]
    place = next((key for key in ("global", port) if name in stats[key]), "")
    trial = with_counter(light, (place, name) if place else ("traffic", "server", name), 1).trial()
    assert GENERATOR_FAULTS[name] in trial.generator_limited
    assert f"({name} 1)" in trial.generator_limited
    assert trial.completed == trial.attempted


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("1", "opackets"), -7, "reports -7 opackets of port 1"),
        (("0", "ibytes"), 3, "reports 3 ibytes of port 0 after"),  # fallen, or 32 bits that went round
        (("1", "ipackets"), 1 << 62, "ipackets of port 1 more within"),
        (("0", "obytes"), 1 << 63, "obytes of port 0 more within"),
        (("traffic", "client", "tcps_closed"), 0, "reports 0 tcps_closed of the client side after"),
        (("traffic", "server", "tcps_accepts"), -1, "reports -1 tcps_accepts of the server side"),
        (("traffic", "client", "udps_connects"), 1 << 40, "udps_connects of the client side more within"),
    ],
)
def test_a_counter_that_cannot_be_makes_the_trial_invalid_and_is_named(
    light: Recording, where: tuple[str, ...], value: int, said: str
) -> None:
    trial = with_counter(light, where, value).trial()
    seen = Observation(trial, {"loss_ratio": 0.0002})
    assert seen.state == "invalid" and trial.generator_limited.startswith("TRex: it ") and said in seen.reason
    assert set(trial.total_rx_packets.values()) == set(trial.tx_bytes.values()) == {0}
    assert trial.intended == light.load * light.duration_s


def test_replies_that_reach_the_card_and_not_the_stack_are_not_the_duts_loss(light: Recording) -> None:
    """As with --software on an i40e, the other way round: the DUT forwarded each reply."""
    changed = copy.deepcopy(light)
    for each in (changed.zero, changed.begin, *changed.samples, changed.end, changed.drained):
        client = each["stats"]["traffic"]["client"]
        each["stats"]["traffic"]["client"] = {
            name: count for name, count in client.items() if "rcv" not in name and "closed" not in name
        }
    seen = Observation(changed.trial(), {"loss_ratio": 0.0002})
    assert seen.state == "invalid" and "were not taken by its own stack" in seen.reason
    named = replace(seen, counts=DutCounts({}, {"client": changed.drained["stats"]["0"]["ipackets"], "server": 0}))
    assert named.lost_elsewhere and ": TRex: " in named.reason


def test_a_server_port_that_is_not_polled_is_named_with_what_the_dut_sent_to_it(light: Recording) -> None:
    """TRex 3.05 to 3.08 with --software on an i40e: no frame of that port is in any of its counters."""
    changed = copy.deepcopy(light)
    for each in (changed.zero, changed.begin, *changed.samples, changed.end, changed.drained):
        stats = each["stats"]
        begun = {name: stats["traffic"]["client"].get(name, 0) for name in ("tcps_connattempt", "udps_connects")}
        stats["traffic"] = {"client": begun | {"tcps_sndtotal": sum(begun.values())}, "server": {}}
        stats["0"] |= {"opackets": sum(begun.values()), "ipackets": 0}
        stats["1"] |= dict.fromkeys(("opackets", "ipackets"), 0)
    sent = changed.drained["stats"]["0"]["opackets"]
    lost = Observation(changed.trial(), {"loss_ratio": 0.0002})
    assert lost.state == "bad"  # as nothing but its own counters would have it
    forwarded = replace(lost, counts=DutCounts({"client": sent, "server": 0}, {"client": 0, "server": sent}))
    assert forwarded.state == "invalid" and forwarded.lost_elsewhere
    kept = replace(lost, counts=DutCounts({"client": sent, "server": 0}, {"client": 0, "server": 0}))
    assert kept.state == "bad"


def test_what_goes_on_until_trex_has_stopped_is_in_the_totals_alone(light: Recording) -> None:
    """The DUT's counters are read after that."""
    stopped, before = copy.deepcopy(light.drained), light.trial()
    stopped["stats"]["0"]["opackets"] += 50
    stopped["stats"]["1"]["ipackets"] += 40
    after = light.trial(stopped)
    assert after.total_tx_packets["client"] == before.total_tx_packets["client"] + 50
    assert after.total_rx_packets["server"] == before.total_rx_packets["server"] + 40
    assert (after.completed, after.failed, after.tx_packets) == (before.completed, before.failed, before.tx_packets)


@pytest.mark.parametrize("name", ["loss", "reply-loss", "udp-loss", "ack-loss", "late-loss", "hole", "reset"])
def test_what_never_reached_the_card_or_reached_it_broken_is_the_duts_loss(name: str) -> None:
    recording = Recording(name)
    assert "not taken by its own stack" not in recording.trial().generator_limited
    for each in (recording.end, recording.drained):  # a corrupted one is no packet of a connection to the stack
        lost = each["stats"]["0"]["opackets"] - each["stats"]["1"]["ipackets"]
        each["stats"]["1"]["ipackets"] += max(0, lost)
        each["stats"]["traffic"]["server"]["err_l4_cs"] = max(0, lost)
    assert "not taken by its own stack" not in recording.trial().generator_limited


def test_losses_are_failures_although_tcp_repaired_them_or_only_the_drain_shows_them() -> None:
    recording = Recording("loss")
    trial = recording.trial()
    assert recording.lost_packets > 0
    assert 0 < sum(trial.failed.values()) <= 2 * recording.lost_packets
    assert trial.completed == trial.attempted - sum(trial.failed.values())
    # TCP itself calls all of them complete.
    client = recording.drained["stats"]["traffic"]["client"]
    assert client["tcps_closed"] == client["tcps_connattempt"] == client["tcps_connects"]
    assert trial.generator_limited == ""
    recording = Recording("late-loss")
    shown = Reading(**recording.end) - Reading(**recording.begin)
    again = ("tcps_rexmttimeo", "tcps_rexmttimeo_syn", "tcps_sndrexmitpack")
    assert shown.traffic("client", *again) == shown.traffic("server", *again) == 0
    assert recording.trial().failed


def test_what_tcp_sent_again_is_a_share_of_what_it_sent() -> None:
    def seen(name: str) -> Observation:
        return Observation(Recording(name).trial(), {"loss_ratio": 0.0002})

    assert seen("light").values["retransmission_ratio"] == 0
    for name in ("loss", "late-loss"):
        tcp, lost = seen(name).trial.transport, Recording(name).lost_packets
        assert tcp is not None and 0 < tcp.sent_again <= 2 * lost
        assert seen(name).values["retransmission_ratio"] == tcp.sent_again / tcp.sent
    # One packet in a thousand was dropped. Acknowledgements are not sent again, and a reply that is lost takes that of
    # the request along.
    assert seen("loss").values["retransmission_ratio"] == pytest.approx(1e-3, rel=0.5)
    assert "retransmission_ratio" not in seen("udp-loss").values, "UDP sends nothing again"


@pytest.mark.parametrize(("name", "causes"), [("reset", {"reset"}), ("hole", {"unfinished", "timed_out"})])
def test_connections_that_are_refused_or_lost_in_a_black_hole_have_failed(name: str, causes: set[str]) -> None:
    """One client in 128 is."""
    trial = Recording(name).trial()
    assert causes & set(trial.failed)
    assert sum(trial.failed.values()) >= trial.attempted / 128 * 0.75
    assert trial.completed > 0
    if name == "reset":
        assert trial.failed == {"reset": pytest.approx(trial.attempted / 128, rel=0.25)}


PER_TCP_CONNECTION = {
    "light": (3.97, 2.98),  # one per cent of its connections are UDP, of 2 packets
    "tcp-no-data": (4, 3),
    "client-resets": (4, 2),
    "server-closes": (5, 4),
    "ipv6": (4, 3),
}


@pytest.mark.parametrize("name", [*PER_TCP_CONNECTION, "dns"])
def test_connections_of_each_kind_complete_with_their_packets_and_their_resets_are_no_failures(name: str) -> None:
    recording = Recording(name)
    trial = recording.trial()
    assert trial.completed == trial.established == trial.attempted == trial.intended
    assert trial.completed == pytest.approx(recording.load * recording.duration_s, rel=0.02)
    assert trial.failed == trial.unexpected == {} and trial.generator_limited == ""
    assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"]
    for side, count in zip(("client", "server"), PER_TCP_CONNECTION.get(name, (2, 2)), strict=True):
        assert trial.tx_packets[side] / trial.attempted == pytest.approx(count, rel=0.02)


def test_a_reset_that_is_lost_or_is_not_the_clients_own_fails_its_connection() -> None:
    recording = Recording("client-resets-loss")
    trial = recording.trial()
    assert 0 < trial.failed["unfinished"] < sum(trial.failed.values()) <= 2 * recording.lost_packets
    assert "reset" not in trial.failed
    recording = Recording("client-resets")
    recording.drained["stats"]["traffic"]["client"]["tcps_drops"] += 7
    assert recording.trial().failed == {"reset": 7}


def test_single_connections_and_latency_packets_are_told_of_beside_the_connections() -> None:
    recording = Recording("again")
    trial = recording.trial()
    tcp, values = trial.transport, Observation(trial, {"loss_ratio": 0.0002}).values
    assert tcp is not None and tcp.sampled == sum(flow["state"] >= 4 for flow in recording.flows) > 0
    assert 0 < tcp.sent_again <= 2 * recording.lost_packets
    assert values["tcp_rtt_p50"] <= values["tcp_rtt_max"] == max(flow["rtt"] for flow in recording.flows) / 1000
    assert set(trial.icmp_latency_us) == {"client", "server"}
    assert all(0 < each.p50 <= each.p90 <= each.max for each in trial.icmp_latency_us.values() if each.p90)
    assert values["icmp_latency_p50"] > 0 and "icmp_latency_p99" not in values, "it is of some sixty packets"
    assert not {"latency_p50", "latency_p99"} & set(values), "they are of messages"
    assert Recording("ipv6").trial().icmp_latency_us == {}
    assert Recording("dns").trial().transport is None
    recording.flows[:] = [flow | {"state": 2} for flow in recording.flows]
    begins = recording.trial().transport
    assert begins is not None and (begins.sampled, begins.rtt_p50_us) == (0, None)


def test_what_a_device_delays_is_in_the_round_trip_time_and_in_the_latency() -> None:
    """Through a relay, which delays no packet, or each by 1 ms."""
    at_once, late = (Recording(name).trial() for name in ("undelayed", "delayed"))
    for trial in (at_once, late):
        assert trial.completed == trial.attempted == trial.intended and trial.failed == trial.unexpected == {}
        assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"]
    assert late.transport.rtt_p50_us == at_once.transport.rtt_p50_us + 2000
    before, behind = at_once.udp_latency, late.udp_latency
    assert behind.one_way_us - before.one_way_us == pytest.approx(1000, abs=100)
    assert behind.round_trip_us - before.round_trip_us == pytest.approx(2000, abs=200)
    # What docs/trex.md says of the round-trip time that TCP tells.
    for trial in (at_once, late):
        assert 1000 <= trial.transport.rtt_p50_us - trial.udp_latency.round_trip_us <= 2000
    values = Observation(late, {"loss_ratio": 0.0002}).values
    assert values["udp_latency_mean"] == behind.one_way_us / 1e6
    assert values["udp_rtt_mean"] == behind.round_trip_us / 1e6


def test_messages_that_are_timed_are_known_over_ipv6_and_are_no_connections() -> None:
    recording = Recording("ipv6")
    trial, sent = recording.trial(), recording.drained["stats"]["timed"]["client"]["udps_sndpkt"]
    assert trial.udp_latency and 0 < trial.udp_latency.one_way_us < trial.udp_latency.round_trip_us
    assert sent > 0 and trial.completed == trial.attempted == trial.intended
    without = recording.drained["stats"]["traffic"]["client"]
    assert without["tcps_connattempt"] + without["udps_connects"] == pytest.approx(recording.load * 4, rel=0.1)
    for reading in (recording.begin, *recording.samples, recording.end, recording.drained):
        reading["stats"]["timed"] = recording.zero["stats"]["timed"]
    assert recording.trial().udp_latency is None


def test_a_clock_that_jumped_is_no_latency() -> None:
    told = {"total_time": 50_000, "total_pkts": 1000, "max_time": 90}
    jumped = {"total_time": 2_997_053_000, "total_pkts": 1001, "max_time": 2_997_003_000}
    assert latency_of_messages({"server": told, "client": jumped}) == UdpLatency(one_way_us=50.0, round_trip_us=None)
    assert latency_of_messages({"server": jumped, "client": told}) is None


def test_long_lives_make_a_long_ramp_up(light: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(astf, "DRAIN_S", 0.0)
    profile, slept = light.profile.model_copy(update={"messages": 40, "server_wait_ms": 50.0}), list[float]()
    worker = ReplayedWorker(light)
    trial = astf.run_trial(worker, light.ports, profile, light.load, light.duration_s, slept.append)
    assert slept[0] == trial.ramp_up_s == pytest.approx(astf.RAMP_UP_S + 2 * astf.LATE_TIMERS)


def test_what_trex_takes_to_answer_is_not_in_the_time_between_two_readings(
    light: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, asked_s, worker = [100.0], list[float](), ReplayedWorker(light)
    answer = worker.call

    def late(do: str, timeout: float, **arguments: Any) -> Any:
        asked_s.extend(now_s * (do == "stats"))
        now_s[0] += 0.02
        return answer(do, timeout, **arguments)

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    monkeypatch.setattr(worker, "call", late)
    monkeypatch.setattr(astf.time, "monotonic", lambda: now_s[0])
    astf.run_trial(worker, light.ports, light.profile, light.load, light.duration_s, sleep)
    _, begin_s, *later_s = asked_s
    steps = round(light.duration_s / astf.STEP_S)
    assert [at - begin_s for at in later_s[:steps]] == pytest.approx([astf.STEP_S * (n + 1) for n in range(steps)])


def profile(**keys: object) -> ConnectionProfile:
    return ConnectionProfile(name="p", **keys)  # type: ignore[arg-type]


def test_the_short_lived_profile_is_that_of_the_published_procedure() -> None:
    spec = astf_spec(load_profile("short-lived"))  # type: ignore[arg-type]
    assert spec["addresses"] == {
        "ipv6": {},
        "client": ["16.0.0.0", "16.0.255.255"],
        "server": ["48.0.0.0", "48.0.0.255"],
        "offset": "0.1.0.0",
        "distribution": "seq",
    }
    udp, tcp = spec["templates"]
    assert (udp["stream"], udp["port"], udp["cps"]) == (False, 5353, 1)
    assert (tcp["stream"], tcp["port"], tcp["cps"]) == (True, 8080, 99)
    assert tcp["client"] == [["send", 20, "x"], ["recv", 20, True]]
    assert tcp["server"] == [["recv", 20, True], ["send", 20, "y"]]


@pytest.mark.parametrize(("port", "beside"), [(8080, 8081), (65535, 65534)])
def test_short_connections_have_a_port_of_their_own(port: int, beside: int) -> None:
    both = profile(tcp_port=port, messages=5, short_percent=50, short_messages=2)
    assert {each["port"] for each in astf_spec(both)["templates"]} == {port, beside}
    assert f"port {beside}," in limitations(both)[-1]


def test_without_messages_the_client_closes_and_a_udp_exchange_fails_after_its_reply_was_due() -> None:
    (tcp,) = astf_spec(profile(messages=0))["templates"]
    assert (tcp["client"], tcp["server"]) == ([["connect"]], [["wait_for_peer_close"]])
    (udp,) = astf_spec(profile(udp_percent=100, server_wait_ms=30))["templates"]
    assert udp["client"][0] == udp["server"][0] == ["set_keepalive_msg", 530]
    assert udp["client"][1:] == [["send_msg", 20, "x"], ["recv_msg", 1, True]]


def test_who_ends_a_connection_over_tcp_and_how() -> None:
    def programs(ended_by: str, messages: int = 1) -> tuple[Any, Any]:
        (tcp,) = astf_spec(profile(ended_by=ended_by, messages=messages))["templates"]
        return tcp["client"], tcp["server"]

    ask, answer = [["send", 20, "x"], ["recv", 20, True]], [["recv", 20, True], ["send", 20, "y"]]
    waits = ["wait_for_peer_close"]
    assert programs("client") == (ask, answer)
    assert programs("server") == ([*ask, waits], answer)
    assert programs("reset") == ([*ask, ["add_stats", "A", 1], ["reset"]], [*answer, waits])
    assert programs("server", 0) == ([["connect"], waits], [["accept"]])
    udp, tcp = astf_spec(profile(ended_by="reset", udp_percent=50))["templates"]
    assert (udp["client"][-1][0], tcp["client"][-1][0]) == ("recv_msg", "reset")
    assert "two packets more" in limitations(profile(ended_by="server", port_order="sequential"))[0]


def test_requests_at_once_go_ahead_of_the_one_whose_reply_is_awaited() -> None:
    send, take = ["send_msg", 20, "x"], ["recv_msg", 1, True]
    (dns,) = astf_spec(profile(udp_percent=100, messages=2, at_once=2))["templates"]
    assert dns["client"][1:] == [send, send, take, take]
    (more,) = astf_spec(profile(udp_percent=100, messages=5, at_once=3))["templates"]
    loop = [["set_var", "left", 3], ["set_label", "again:"], send, take, ["jmp_nz", "left", "again:"]]
    assert more["client"][1:] == [send, send, *loop, ["recv_msg", 2, True]]


def test_addresses_of_ipv6_are_a_prefix_and_their_last_32_bits(
    light: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(astf, "DRAIN_S", 0.0)
    wide = load_profile("short-lived-ipv6")
    found = astf_spec(wide)["addresses"]
    assert found["ipv6"] == {"src_msb": "2001:2:0:16::", "dst_msb": "2001:2:0:48::"}
    assert (found["client"], found["server"]) == (["0.0.0.0", "0.0.255.255"], ["0.0.0.0", "0.0.0.255"])
    worker = ReplayedWorker(light)
    astf.run_trial(worker, light.ports, wide, light.load, light.duration_s, lambda _seconds: None)
    assert dict(worker.asked)["astf_start"]["latency_pps"] == 0, "TRex has no ICMP of IPv6"


def made_up_latency(cnt: int, bins: dict[int, int], max_usec: int) -> dict[str, Any]:
    """Latency counters of a port as get_stats() has them: `cnt` packets, of which those below 10 us are in no bin."""
    known = {
        "cnt": cnt,
        "high_cnt": sum(bins.values()),
        "max_usec": max_usec,
        "min_usec": 10,
        "s_avg": 1.0,
        "s_max": 1.0,
    }
    histogram = [{"key": low, "val": count} for low, count in bins.items()]
    return {"hist": {**known, "histogram": histogram}, "stats": {"m_jitter": 7}}


def test_latency_is_that_of_the_packets_between_two_readings() -> None:
    begin = made_up_latency(100, {10: 50, 9000: 10}, 9500)
    end = made_up_latency(300, {10: 150, 100: 90, 9000: 10}, 9500)
    assert latency_of_port(begin, end) == Latency(p50=20, p90=200, p99=200, max=200, jitter=7)
    slow = made_up_latency(301, {10: 150, 100: 90, 9000: 10, 20_000: 1}, 23_456)
    assert latency_of_port(begin, slow) == Latency(p50=20, p90=200, p99=200, max=23_456, jitter=7)
    assert latency_of_port({}, begin) == Latency(p50=20, p90=20, p99=9500, max=9500, jitter=7)
    assert latency_of_port(begin, begin) is latency_of_port({}, {}) is None


@pytest.mark.parametrize(("packets", "of_these"), [(99, ""), (100, "p99"), (999, "p99"), (1000, "p99 p999")])
def test_a_percentile_of_latency_is_left_out_where_a_single_packet_would_be_it(packets: int, of_these: str) -> None:
    latency = latency_of_port({}, made_up_latency(packets, {30: packets - 1, 700: 1}, 750))
    assert latency is not None and (latency.p50, latency.p90, latency.max) == (40, 40, 750)
    assert " ".join(name for name in ("p99", "p999") if getattr(latency, name) is not None) == of_these
    assert latency.slowest == (750 if packets == 99 else 40)


def test_its_own_latency_packets_are_no_strangers_and_those_of_others_are(light: Recording) -> None:
    for reading in (light.begin, light.end, light.drained):
        at = reading["stats"]["latency"] = {port: made_up_latency(20, {}, 9) for port in "01"}
        at["1"]["stats"]["m_pkt_ok"] = 20
    light.drained["stats"]["traffic"]["server"]["err_no_tcp_udp"] = 20
    assert light.trial().unexpected == {}
    light.drained["stats"]["traffic"]["server"]["err_no_tcp_udp"] = 23
    assert light.trial().unexpected == {"err_no_tcp_udp": 3}


def test_of_several_pairs_of_ports_the_slowest_tells_the_latency(light: Recording) -> None:
    for at, each in ((0, light.begin), (1, light.end)):
        ports = {str(port): made_up_latency(0, {10 * port + 10: 99 * at}, 50) for port in range(4)}
        each["stats"]["latency"] = ports
        each["stats"] |= {"2": each["stats"]["0"], "3": each["stats"]["1"]}
    found = astf._latency(Reading(**light.begin), Reading(**light.end), (0, 1, 2, 3))
    assert {side: each.p50 for side, each in found.items()} == {"client": 50, "server": 40}


def test_latency_packets_are_few_beside_the_connections() -> None:
    assert [astf.latency_pps(load) for load in (1, 20_000, 1e6)] == [1, 200, 1000]


@pytest.mark.parametrize(("load", "flows", "every_us"), [(1, 1, 1e6), (2000, 20, 1e6), (20_000, 64, 320_000)])
def test_messages_that_are_timed_have_flows_and_a_port_of_their_own(load: float, flows: int, every_us: int) -> None:
    (timed,) = astf.timed_spec(profile(udp_port=5353), load)["templates"]
    assert (timed["addon"], timed["port"], timed["limit"]) == ("latency", 5355, flows)
    assert timed["limit"] / timed["cps"] <= astf.RAMP_UP_S, "all are there when the sustain phase begins"
    assert ["delay", every_us] in timed["client"] and "recv_msg" not in {name for name, *_ in timed["client"]}
    of_server = {astf._port(profile(udp_port=65_535), False, False), 65_534}
    for port in of_server:
        (timed,) = astf.timed_spec(profile(udp_port=port), load)["templates"]
        assert 1 <= timed["port"] <= 65_535 and timed["port"] not in (port, port + 1)


def test_no_template_is_slower_than_trex_allows() -> None:
    rare = profile(udp_percent=0.1)
    udp, tcp = astf_spec(rare)["templates"]
    assert udp["cps"] == 0.5
    assert udp["cps"] + tcp["cps"] == base_cps(rare) == 500


def test_short_connections_are_a_template_of_their_own_on_the_next_port() -> None:
    mobile = load_profile("mobile")
    short, long = astf_spec(mobile.at_rate(200_000.0))["templates"]
    assert (short["stream"], short["port"], short["cps"]) == (True, 8081, 75)
    assert (long["stream"], long["port"], long["cps"]) == (True, 8080, 25)
    assert (short["client"][0], long["client"][0]) == (["set_var", "left", 3], ["set_var", "left", 19])
    assert ["delay", 714286] in short["server"] and ["delay", 714286] in long["server"]
    assert "the short ones go to port 8081" in " ".join(limitations(mobile))
    assert concurrent_flows(mobile.at_rate(200_000.0), 200_000.0) == pytest.approx(1_200_000, rel=0.001)


def test_what_trex_does_otherwise_is_said() -> None:
    assert limitations(profile(port_order="sequential")) == []
    said = " ".join(limitations(profile(port_order="random", client_port_min=2000, server_wait_ms=50, udp_percent=1)))
    for words in ("not in random order", "not 2000 to 65535", "three packets per message", "draws lots"):
        assert words in said
    both = {"port_order": "sequential", "ack_before_reply": True}
    assert limitations(profile(**both, server_wait_ms=50)) == []
    assert "two packets per message, not three" in limitations(profile(**both))[0]


def test_a_program_without_messages_has_no_command_for_them() -> None:
    assert [repeated([["send", 1]], times) for times in (0, 1)] == [[], [["send", 1]]]

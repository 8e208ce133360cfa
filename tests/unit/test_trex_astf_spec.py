"""What TRex' ASTF is given of a connection profile."""

import pytest

from ctbench.traffic.profiles import ConnectionProfile, load_profile
from ctbench.traffic.trex.astf import astf_spec, base_cps, limitations
from ctbench.traffic.trex.config import concurrent_flows


def profile(**keys: object) -> ConnectionProfile:
    return ConnectionProfile(name="p", **keys)  # type: ignore[arg-type]


def test_the_short_lived_profile_is_that_of_the_published_procedure() -> None:
    spec = astf_spec(load_profile("short-lived"))  # type: ignore[arg-type]
    assert spec["addresses"] == {
        "client": ["16.0.0.0", "16.0.255.255"],
        "server": ["48.0.0.0", "48.0.0.255"],
        "offset": "1.0.0.0",
        "distribution": "seq",
    }
    udp, tcp = spec["templates"]
    assert (udp["stream"], udp["port"], udp["cps"]) == (False, 5353, 1)
    assert (tcp["stream"], tcp["port"], tcp["cps"]) == (True, 8080, 99)
    assert tcp["client"] == [["send", 20, "x"], ["recv", 20, True]]
    assert tcp["server"] == [["recv", 20, True], ["send", 20, "y"]]


def test_many_messages_are_a_loop_on_both_sides() -> None:
    (tcp,) = astf_spec(profile(messages=500, server_wait_ms=50.5, request_bytes=7, reply_bytes=9))["templates"]
    assert tcp["client"] == [
        ["set_var", "left", 500], ["set_label", "again:"],
        ["send", 7, "x"], ["recv", 9, True],
        ["jmp_nz", "left", "again:"],
    ]  # fmt: skip
    assert tcp["server"][2:-1] == [["recv", 7, True], ["delay", 50500], ["send", 9, "y"]]


def test_a_udp_exchange_fails_half_a_second_after_the_reply_was_due() -> None:
    (udp,) = astf_spec(profile(udp_percent=100, server_wait_ms=30))["templates"]
    assert udp["client"][0] == udp["server"][0] == ["set_keepalive_msg", 530]
    assert udp["client"][1:] == [["send_msg", 20, "x"], ["recv_msg", 1, True]]


def test_without_messages_the_client_closes_and_the_server_waits_for_it() -> None:
    (tcp,) = astf_spec(profile(messages=0))["templates"]
    assert (tcp["client"], tcp["server"]) == ([["connect"]], [["wait_for_peer_close"]])


def test_no_template_is_slower_than_trex_allows() -> None:
    rare = profile(udp_percent=0.1)
    udp, tcp = astf_spec(rare)["templates"]
    assert udp["cps"] == 0.5
    assert udp["cps"] + tcp["cps"] == base_cps(rare) == 500


def test_short_connections_are_a_template_of_their_own_on_the_next_port() -> None:
    mobile = load_profile("mobile")
    assert isinstance(mobile, ConnectionProfile)
    short, long = astf_spec(mobile.at_rate(200_000.0))["templates"]
    assert (short["stream"], short["port"], short["cps"]) == (True, 8081, 75)
    assert (long["stream"], long["port"], long["cps"]) == (True, 8080, 25)
    assert (short["client"][0], long["client"][0]) == (["set_var", "left", 3], ["set_var", "left", 19])
    assert ["delay", 714286] in short["server"] and ["delay", 714286] in long["server"]
    assert "the short ones go to port 8081" in " ".join(limitations(mobile))
    assert concurrent_flows(mobile.at_rate(200_000.0), 200_000.0) == pytest.approx(1_200_000, rel=0.001)


def test_kinds_that_are_rare_have_a_rate_that_trex_allows() -> None:
    rare = profile(udp_percent=50, messages=2, short_percent=0.2)
    templates = astf_spec(rare)["templates"]
    assert [(each["stream"], each["port"]) for each in templates] == [
        (False, 5354), (False, 5353), (True, 8081), (True, 8080),
    ]  # fmt: skip
    assert min(each["cps"] for each in templates) == pytest.approx(0.5)
    assert sum(each["cps"] for each in templates) == pytest.approx(base_cps(rare)) == pytest.approx(500)


def test_what_trex_does_otherwise_is_said() -> None:
    assert limitations(profile(port_order="sequential")) == []
    said = " ".join(limitations(profile(port_order="random", client_port_min=2000, server_wait_ms=50, udp_percent=1)))
    for words in ("not in random order", "not 2000 to 65535", "three packets per message", "draws lots"):
        assert words in said


def test_acknowledgements_of_requests_are_as_trex_makes_them() -> None:
    both = {"port_order": "sequential", "ack_before_reply": True}
    assert limitations(profile(**both, server_wait_ms=50)) == []
    assert "two packets per message, not three" in limitations(profile(**both))[0]

"""Thresholds, and floors: found by topology and profile, derived for a shortened profile, missing ones named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError
from ctbench.dut.topology import Topology
from ctbench.results.metrics import METRICS
from ctbench.sla.floor import Threshold, bits_per_packet, derive, packets_per_connection, parse, promise
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile

from .made_up_sla import HEAD, KEY, LONG, OTHER, PACKETS, SHORT, SHORTENED, TOPOLOGY, floors, lookup, mistake


def test_each_kind_of_threshold_is_read() -> None:
    assert parse(">= 48.2k", METRICS["cps"]) == Threshold(METRICS["cps"], 48_200, ">= 48.2k")
    assert parse("<=0.02%", METRICS["loss_ratio"]).limit == 0.0002
    assert parse(" <= 5ms ", METRICS["connect_time_p99"]).limit == 0.005
    assert parse(">= 2G", METRICS["bps"]).limit == 2e9
    assert parse(">= 120%", METRICS["ratio"]).limit == 1.2
    assert str(parse(" <= 5ms ", METRICS["connect_time_p99"])) == "<= 5ms"


@pytest.mark.parametrize("text", [">= 48.2q", "48.2k", ">=", "== 5", "> 5", "", None, 5, [">= 5"]])
def test_what_is_no_threshold_is_refused_as_in_the_design(text: object) -> None:
    with pytest.raises(ValueError, match="is not a threshold") as error:
        parse(text, METRICS["cps"])
    assert str(error.value).endswith('Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".')


@pytest.mark.parametrize(
    ("text", "metric", "said"),
    [
        ("<= 48.2k", "cps", "points the wrong way: higher is better"),
        (">= 0.02%", "loss_ratio", "points the wrong way: lower is better"),
        (">= 5ms", "connect_time_p99", "points the wrong way: lower is better"),
        ("<= 0.02", "loss_ratio", 'Expected at most a value, for example "<= 0.02%"'),
        ("<= 2G", "bps", 'Expected at least a value, for example ">= 2G"'),
        ("<= 60%", "ratio", 'Expected at least a value, for example ">= 60%"'),
        (">= 60", "ratio", 'Expected at least a value, for example ">= 60%"'),
        ("<= 5", "latency_p99", 'Expected at most a value, for example "<= 5ms"'),
        (">= 0", "cps", "promises nothing"),
        ("<= 90%", "loss_ratio", "from 0% to 50%"),
    ],
)
def test_a_threshold_of_the_wrong_side_or_without_its_unit_is_refused(text: str, metric: str, said: str) -> None:
    with pytest.raises(ValueError, match="Expected") as error:
        parse(text, METRICS[metric])
    assert said in str(error.value)


def test_exactly_the_limit_keeps_the_promise_and_a_little_beyond_breaks_it() -> None:
    floor, limit = parse(">= 48.2k", METRICS["cps"]), parse("<= 0.02%", METRICS["loss_ratio"])
    assert floor.holds(48_200)
    assert not floor.holds(48_199.9)
    assert limit.holds(0.0002)
    assert not limit.holds(0.00021)


def test_a_threshold_that_no_file_has_is_written_as_one_would_have_it() -> None:
    made = promise(METRICS["cps"], 48_200)
    assert made == parse(">= 48.2k", METRICS["cps"])
    assert str(promise(METRICS["connect_time_p99"], 0.005)) == "<= 5ms"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{KEY}: {{short-lived: {{cps: ">= 48.2q"}}}}\n', f'mylab.yaml: {KEY}.short-lived.cps: ">= 48.2q" is not a '
         'threshold.\n  Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'),
        ("descripton: x\n" + f'{KEY}: {{}}\n', "mylab.yaml: descripton: unknown key."),
        (f'{KEY}: {{short: {{cps: ">= 1", pp: ">= 1"}}}}\n', f"mylab.yaml: {KEY}.short.pp: unknown key.\n  Expected "
         "one of: bps, connect_time_meanwhile, connect_time_p99, "),
        (f'{KEY}: {{short: {{ratio: {{to: {OTHER}, rate: ">= 60"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio.rate: '
         '">= 60" is not a threshold.\n  Expected at least a value, for example ">= 60%".'),
        (f'{KEY}: {{short: {{ratio: {{to: forward, rate: ">= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio: '
         'to: "forward" is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES'),
        (f'{KEY}: {{short: {{ratio: {{to: {KEY}, rate: ">= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{cost: {{to: {KEY}, instructions: "<= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.cost.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{instructions_per_packet: "<= 1400"}}}}\n', f"mylab.yaml: {KEY}.short."
         "instructions_per_packet: holds for one emulated machine only.\n  Expected image: at the top of the file"),
        ("ovs-dpdk/conntrack/1cpu: {}\n", 'mylab.yaml: "ovs-dpdk/conntrack/1cpu" is not a topology.\n  Expected'),
        (f"{KEY}: 5\n", f"mylab.yaml: {KEY}: 5 does not fit.\n  Expected keys and values."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_floor_is_said_with_the_keys_of_the_file(tmp_path: Path, text: str, said: str) -> None:
    assert mistake(tmp_path, text).startswith(said)


def test_a_floor_is_found_with_the_loss_ratio_and_the_source_of_its_file() -> None:
    floor = floors(short={"cps": ">= 48.2k", "pps": ">= 334.9k"}).find(TOPOLOGY, SHORT)
    assert (floor.key, floor.profile, floor.source, floor.derivation) == (KEY, SHORT, "the article", "")
    assert floor.conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.0002}
    assert list(floor.thresholds) == ["cps", "pps", "loss_ratio"]


def test_limits_and_source_of_its_own_come_first() -> None:
    entry = {"cps": ">= 1k", "loss_ratio": "<= 1%", "connect_time_p99": "<= 5ms", "source": "the lab"}
    floor = floors(short=entry).find(TOPOLOGY, SHORT)
    assert floor.conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.01, "connect_time_p99": 0.005}
    assert floor.source == "the lab"


def test_without_any_loss_ratio_the_campaigns_holds() -> None:
    bare = Floors.model_validate(HEAD | {KEY: {"short": {"cps": ">= 1k"}}})
    assert bare.find(TOPOLOGY, SHORT).conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.5}


def test_a_missing_floor_is_named_with_the_file_and_the_key_to_add() -> None:
    held = floors(short={"cps": ">= 1k"})
    with pytest.raises(ConfigError, match=rf"(?s)^SLA mine: {KEY}\.shore: is missing.*such as shore: .*mean .short"):
        held.find(TOPOLOGY, SHORT.model_copy(update={"name": "shore"}))
    with pytest.raises(ConfigError, match=r"(?s)^SLA mine: ovs-dpdk/nat/1cpu-1rxq\.short: is missing"):
        held.find(Topology(ruleset="nat"), SHORT)


def test_the_published_figures_are_1500_packets_per_long_lived_connection() -> None:
    assert packets_per_connection(LONG) == pytest.approx(0.99 * 1505 + 0.01 * 1000)
    assert packets_per_connection(SHORT) == pytest.approx(0.99 * 7 + 0.01 * 2)
    assert 1_200 * packets_per_connection(LONG) == pytest.approx(1.8e6, rel=0.001)
    assert 48_200 * packets_per_connection(SHORT) == pytest.approx(334_900, rel=0.001)


def test_a_shortened_profile_takes_its_floor_from_the_same_packet_rate_and_says_so() -> None:
    reference = {"cps": "1.2k", "source": "table 5"}
    entry = {"cps": ">= 1.2k", "pps": ">= 1.8M", "loss_ratio": "<= 0.1%", "reference": reference}
    floor = floors(long=entry).find(TOPOLOGY, SHORTENED, load_profile=lookup)
    assert floor.main.limit == 14_452  # 1200 * 1499.95 / 124.55, rounded up
    assert floor.limit("pps") == 1_800_000
    assert floor.profile == SHORTENED
    assert floor.reference is None
    assert floor.thresholds["loss_ratio"].text == "<= 0.1%"
    assert floor.derivation == (
        "from long's 1.2 k/s at the same packet rate: 1499.95 packets per connection there, 124.55 here"
    )
    assert floor.as_record().derivation == floor.derivation


def test_a_floor_of_its_own_is_not_derived() -> None:
    floor = floors(**{"long": {"cps": ">= 1.2k"}, "long-short": {"cps": ">= 20k"}}).find(
        TOPOLOGY, SHORTENED, load_profile=lookup
    )
    assert (floor.main.limit, floor.derivation) == (20_000, "")


def test_profiles_that_differ_in_more_than_their_messages_are_not_compared() -> None:
    other = SHORTENED.model_copy(update={"server_wait_ms": 10.0, "udp_percent": 5.0})
    with pytest.raises(ConfigError, match=r"derived_from: \"long\" differs in server_wait_ms, udp_percent"):
        floors(long={"cps": ">= 1.2k"}).find(TOPOLOGY, other, load_profile=lookup)


@given(st.integers(1, 500), st.integers(1, 10**6))
def test_a_derived_floor_never_promises_a_lower_packet_rate(messages: int, cps: int) -> None:
    base = floors(long={"cps": f">= {cps}"}).find(TOPOLOGY, LONG)
    fewer = SHORTENED.model_copy(update={"messages": messages})
    derived = derive(base, LONG, fewer)
    assert derived.main.limit * packets_per_connection(fewer) >= cps * packets_per_connection(LONG) * (1 - 1e-9)
    assert derived.main.limit < cps * packets_per_connection(LONG) / packets_per_connection(fewer) + 1


def test_the_gate_offers_enough_for_both_rates_and_a_headroom() -> None:
    cps_first = floors(short={"cps": ">= 100k", "pps": ">= 334.9k"}).find(TOPOLOGY, SHORT)
    assert cps_first.load(0.01) == pytest.approx(101_000)
    # 1.2k/s times 1499.95 packets is a little less than 1.8M: the load has to follow the packets.
    pps_first = floors(long={"cps": ">= 1.2k", "pps": ">= 1.8M"}).find(TOPOLOGY, LONG)
    assert pps_first.load(0.0) * packets_per_connection(LONG) == pytest.approx(1_800_000)


def test_a_packet_profile_has_a_floor_in_packets_with_throughput_and_latency() -> None:
    entry = {"pps": ">= 300k", "bps": ">= 2G", "latency_p99": "<= 5ms"}
    floor = floors(packets=entry).find(TOPOLOGY, PACKETS)
    assert (floor.metric.name, floor.main.limit) == ("pps", 300_000)
    assert list(floor.thresholds) == ["pps", "bps", "loss_ratio", "latency_p99"]
    assert floor.conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.0002, "latency_p99": 0.005}


@pytest.mark.parametrize(
    ("profile", "entry", "said"),
    [
        (PACKETS, {"cps": ">= 1k", "pps": ">= 1k"}, "packets.cps: is not for a profile of packets.\n  Expected pps"),
        (
            PACKETS,
            {"pps": ">= 1k", "connect_time_p99": "<= 5ms"},
            "packets.connect_time_p99: is not for a profile of packets",
        ),
        (PACKETS, {"loss_ratio": "<= 1%"}, "packets.pps: is missing.\n  Expected a promise, for example"),
        (SHORT, {"pps": ">= 1k"}, "short.cps: is missing.\n  Expected a promise, for example"),
        (SHORT, {"cps": ">= 1k", "bps": ">= 1G"}, "short.bps: is not for a profile of connections.\n  Expected cps"),
        (SHORT, {"cps": ">= 1k", "latency_p99": "<= 1ms"}, "short.latency_p99: is not for a profile of connections"),
    ],
)
def test_a_floor_that_does_not_suit_its_kind_of_profile_is_named(
    profile: ConnectionProfile | PacketProfile, entry: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        floors(**{profile.name: entry}).find(TOPOLOGY, profile)
    assert str(error.value).startswith(f"SLA mine: {KEY}.{said}")


def test_a_missing_floor_for_packets_shows_a_line_with_packets() -> None:
    with pytest.raises(ConfigError, match=r'such as packets: \{pps: ">= 334.9k"\} below'):
        floors().find(TOPOLOGY, PACKETS)


def test_a_relative_floor_names_the_other_topology_and_the_share_of_its_rate() -> None:
    entry = {"pps": ">= 300k", "ratio": {"to": OTHER, "rate": ">= 60%"}}
    floor = floors(packets=entry).find(TOPOLOGY, PACKETS)
    assert (floor.relative_to, floor.limit("ratio"), floor.thresholds["ratio"].text) == (OTHER, 0.6, ">= 60%")


def test_the_gate_offers_enough_for_a_throughput() -> None:
    jumbo = PACKETS.model_copy(update={"frame_bytes": 1518})
    floor = floors(packets={"pps": ">= 10k", "bps": ">= 1G"}).find(TOPOLOGY, jumbo)
    assert floor.load(0.0) == pytest.approx(1e9 / (1514 * 8))
    mix = PACKETS.model_copy(update={"frame_bytes": "imix"})
    assert bits_per_packet(mix) == pytest.approx(((7 * 64 + 4 * 594 + 1518) / 12 - 4) * 8)


def test_a_shortened_profile_keeps_what_is_promised_relative_to_another_topology() -> None:
    entry = {"cps": ">= 1.2k", "ratio": {"to": OTHER, "rate": ">= 60%"}}
    floor = floors(long=entry).find(TOPOLOGY, SHORTENED, load_profile=lookup)
    assert floor.main.limit > 1_200
    assert (floor.relative_to, floor.limit("ratio")) == (OTHER, 0.6)


def test_a_share_per_cpu_is_one_of_the_rate_per_cpu() -> None:
    eight = "ovs-dpdk/conntrack/8cpu-8rxq"
    entry = {"cps": ">= 48k", "ratio": {"to": KEY, "rate": ">= 80%", "per": "cpu"}}
    scaling = Floors.model_validate(HEAD | {eight: {"short": entry}})
    floor = scaling.find(Topology(cpus=8, rx_queues=8), SHORT)
    assert floor.limit("ratio") == pytest.approx(6.4)
    assert floor.thresholds["ratio"].text == ">= 80% per CPU"


def test_published_figures_are_kept_by_metric_with_their_source() -> None:
    entry = {"cps": ">= 1k", "reference": {"cps": "1.0M", "pps": "7.1M", "source": "table 2"}}
    reference = floors(short=entry).find(TOPOLOGY, SHORT).as_record().reference
    assert reference is not None
    assert (reference.figures, reference.source) == ({"cps": 1e6, "pps": 7.1e6}, "table 2")


def test_what_an_entry_promises_of_another_test_is_not_of_this_one() -> None:
    entry = {"pps": ">= 300k", "bps": ">= 2G", "latency_p99": "<= 5ms"}
    of_throughput = floors(packets=entry).find(TOPOLOGY, PACKETS, METRICS["bps"], ("bps",))
    assert (of_throughput.metric, of_throughput.main.limit) == (METRICS["bps"], 2e9)
    assert list(of_throughput.thresholds) == ["bps", "loss_ratio", "latency_p99"]  # conditions are of every test
    with pytest.raises(
        ConfigError, match=r'packets\.ratio: is missing.\n  Expected a promise, for example ratio: ">= 60%"'
    ):
        floors(packets=entry).find(TOPOLOGY, PACKETS, METRICS["ratio"], ())


def test_a_ratio_is_of_the_tests_of_a_rate_and_of_no_other() -> None:
    entry = {"pps": ">= 300k", "bps": ">= 2G", "ratio": {"to": OTHER, "rate": ">= 60%"}}
    assert floors(packets=entry).find(TOPOLOGY, PACKETS).relative_to == OTHER
    of_throughput = floors(packets=entry).find(TOPOLOGY, PACKETS, METRICS["bps"], ("bps",))
    assert (of_throughput.relative_to, of_throughput.limit("ratio")) == ("", None)

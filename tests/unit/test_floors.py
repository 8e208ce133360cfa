"""Floors: found by topology and profile, derived for a shortened profile, missing ones named."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import METRICS
from ctbench.sla.floor import KEEPS_UP, Floor, bits_per_packet, derive, packets_per_connection, with_packets
from ctbench.sla.floors import Floors
from ctbench.sla.machine import BoundMachine
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile

from .simulated import promises

LONG = ConnectionProfile(name="long", udp_percent=1, messages=500, server_wait_ms=50, ack_before_reply=True)
SHORTENED = LONG.model_copy(update={"name": "long-short", "messages": 40, "derived_from": "long"})
SHORT = ConnectionProfile(name="short", udp_percent=1)
TOPOLOGY = Topology(ruleset="conntrack", cpus=1, rx_queues=1)
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"
OTHER = "ovs-dpdk/forward/1cpu-1rxq"
PACKETS = PacketProfile(name="packets", kind="packets", flows=10_000)
HEAD = {"name": "mine", "description": "", "source": "the article"}


def floors(**entries: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%", KEY: entries})


def lookup(name: str) -> ConnectionProfile:
    return {"long": LONG, "short": SHORT}[name]


def mistake(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mylab.yaml"
    path.write_text("name: mylab\ndescription: d\nsource: s\n" + text)
    with pytest.raises(ConfigError) as error:
        load("sla", path, Floors)
    return str(error.value).removeprefix(f"{tmp_path}/")


def test_a_wrong_threshold_is_said_exactly_as_in_the_design(tmp_path: Path) -> None:
    assert mistake(tmp_path, f'{KEY}: {{short-lived: {{cps: ">= 48.2q"}}}}\n') == (
        f'mylab.yaml: {KEY}.short-lived.cps: ">= 48.2q" is not a threshold.\n'
        '  Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("descripton: x\n" + f'{KEY}: {{}}\n', "mylab.yaml: descripton: unknown key."),
        (f'{KEY}: {{short: {{cps: ">= 1", pp: ">= 1"}}}}\n', f"mylab.yaml: {KEY}.short.pp: unknown key.\n  Expected "
         "one of: bps, connect_time_p99, cost, cps, instructions_per_connection, instructions_per_packet, latency_p99, "
         "loss_ratio, packet_loss_ratio, pps, ratio, reference, smoke, source. Did you "),
        (f'{KEY}: {{short: {{bps: "<= 2G"}}}}\n', f'mylab.yaml: {KEY}.short.bps: "<= 2G" points the wrong way: '
         'higher is better.\n  Expected at least a value, for example ">= 2G"'),
        (f'{KEY}: {{short: {{ratio: {{to: {OTHER}, rate: ">= 60"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio.rate: '
         '">= 60" is not a threshold.\n  Expected at least a value, for example ">= 60%".'),
        (f'{KEY}: {{short: {{setup_time_p99: "<= 5ms"}}}}\n', f"mylab.yaml: {KEY}.short: setup_time_p99: is called "
         "connect_time_p99 now.\n  Expected connect_time_p99, with the same value."),
        (f'{KEY}: {{short: {{ratio: {{to: forward, rate: ">= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio: '
         'to: "forward" is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES'),
        (f'{KEY}: {{short: {{ratio: {{to: {KEY}, rate: ">= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.ratio.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{cost: {{to: {KEY}, instructions: "<= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.cost.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{cost: {{to: {OTHER}, instructions: ">= 60%"}}}}}}\n', f'mylab.yaml: {KEY}.short.cost.'
         'instructions: ">= 60%" points the wrong way: lower is better.\n  Expected at most a value, for example'),
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


def test_the_key_of_a_topology_is_datapath_ruleset_and_label() -> None:
    assert Topology(ruleset="nat", cpus=8, rx_queues=4).key == "ovs-dpdk/nat/8cpu-4rxq"


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


BUILDS = {"of_build": {"base": "distribution", "rate": ">= 97%"}}


def stock(entry: Any, **head: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%"} | head | {KEY: {"short": entry}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("machin: {cpu_model: Xeon}\n", 'machin: unknown key.'),
        ("machine: {cpu_modell: Xeon}\n", "machine.cpu_modell: unknown key."),
        ("machine: {cpus: 2}\n", "machine.cpu_model: is missing."),
        ("machine: {cpu_model: Xeon, cpus: two}\n", 'machine.cpus: "two"'),
        ('of_buid: {base: distribution, rate: ">= 97%"}\n', "of_buid: unknown key."),
        ('of_build: {bas: distribution, rate: ">= 97%"}\n', "of_build.bas: unknown key."),
        ('of_build: {base: packaged, rate: ">= 97%"}\n', 'of_build: base: "packaged" is no build.'),
        ('of_build: {base: distribution, rate: "<= 97%"}\n', 'of_build.rate: "<= 97%" points the wrong way'),
        ('connect_tim_p99: "<= 20ms"\n', "connect_tim_p99: unknown key."),
        ('connect_time_p99: "<= 20"\n', 'connect_time_p99: "<= 20" is not a threshold.'),
        (f'{KEY}: {{short: {{cps: ">= 1", smok: true}}}}\n', f"{KEY}.short.smok: unknown key."),
        (f'{KEY}: {{short: {{cps: ">= 1", smoke: 1}}}}\n', f"{KEY}.short.smoke: 1"),
        (f'{KEY}: {{short: {{ratio: {{to: {OTHER}, rate: ">= 60%", smke: true}}}}}}\n', f"{KEY}.short.ratio.smke: "),
        (f'{KEY}: {{short: {{smoke: true, ratio: {{to: {OTHER}, rate: ">= 60%"}}}}}}\n', f"{KEY}.short: smoke: is "
         "about the entry's own rates, and it has none."),
    ],
)  # fmt: skip
def test_a_mistake_in_what_binds_or_compares_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    assert f"mylab.yaml: {said}" in mistake(tmp_path, text)


def test_an_entry_may_have_a_ratio_only() -> None:
    floor = stock({"ratio": {"to": OTHER, "rate": ">= 60%"}}).find(TOPOLOGY, SHORT)
    assert (floor.main, floor.load(0.01), list(floor.thresholds)) == (None, 0.0, ["ratio", "loss_ratio"])
    shortened = floors(long={"ratio": {"to": OTHER, "rate": ">= 60%"}}).find(TOPOLOGY, SHORTENED, load_profile=lookup)
    assert (shortened.main, shortened.profile, shortened.derivation) == (None, SHORTENED, "")


def test_a_share_of_another_build_is_promised_of_every_other_build_and_not_of_the_base() -> None:
    sla = stock({"cps": ">= 48.2k"}, **BUILDS)
    candidate = sla.find(TOPOLOGY, SHORT, build="/opt/ovs-3.3")
    assert (candidate.limit("of_build"), candidate.base_build, candidate.notes) == (0.97, "distribution", ())
    base = sla.find(TOPOLOGY, SHORT, build="distribution")
    assert (base.limit("of_build"), base.base_build) == (None, "")
    assert base.notes == (
        "This is the packaged build, which the SLA compares other builds with: of_build promises nothing of it.",
    )
    kernel = Topology(datapath="linux-router", ruleset="forward")
    linux = Floors.model_validate(HEAD | BUILDS | {kernel.key: {"packets": {"pps": ">= 1k"}}})
    assert linux.find(kernel, PACKETS).limit("of_build") is None


def test_an_entry_without_a_promise_needs_a_build_to_compare() -> None:
    sla = stock({}, **BUILDS)
    assert list(sla.find(TOPOLOGY, SHORT, build="/opt/ovs").thresholds) == ["of_build", "loss_ratio"]
    with pytest.raises(MissingResource, match="Nothing is promised of this build itself"):
        sla.find(TOPOLOGY, SHORT, build="distribution")
    with pytest.raises(ConfigError, match=r"short\.cps: is missing"):
        stock({}).find(TOPOLOGY, SHORT, build="/opt/ovs")


def test_the_limit_of_the_connect_time_is_for_connections_with_tcp() -> None:
    head = {"connect_time_p99": "<= 20ms"}
    assert stock({"cps": ">= 1k"}, **head).find(TOPOLOGY, SHORT).limit("connect_time_p99") == 0.02
    udp = SHORT.model_copy(update={"udp_percent": 100.0})
    assert "connect_time_p99" not in stock({"cps": ">= 1k"}, **head).find(TOPOLOGY, udp).conditions({"loss_ratio": 0.5})
    own = stock({"cps": ">= 1k", "connect_time_p99": "<= 1ms"}, **head).find(TOPOLOGY, SHORT)
    assert own.limit("connect_time_p99") == 0.001
    packets = Floors.model_validate(HEAD | head | {KEY: {"packets": {"pps": ">= 1k"}}})
    assert "connect_time_p99" not in packets.find(TOPOLOGY, PACKETS).conditions({"loss_ratio": 0.5})


def test_a_floor_of_connections_has_one_of_packets_where_the_file_has_none() -> None:
    floor = floors(short={"cps": ">= 48.2k", "smoke": True}).find(TOPOLOGY, SHORT)
    assert floor.limit("pps") == 333_248  # 48.2k x 6.95, less 0.02 % lost and 0.5 % late, rounded down
    assert (floor.smoke, list(floor.thresholds)) == ({"cps", "pps"}, ["cps", "pps", "loss_ratio"])
    assert floor.load(0.0) == 48_200  # and asks for no more load than the connections


@given(
    cps=st.floats(1, 1e7), loss=st.floats(0, 0.5), messages=st.integers(1, 500), udp=st.integers(0, 100),
    lost=st.floats(0, 1), late=st.floats(0, KEEPS_UP),
)  # fmt: skip
def test_a_good_trial_at_the_floor_keeps_the_packets_that_follow_from_it(
    cps: float, loss: float, messages: int, udp: int, lost: float, late: float
) -> None:
    profile = ConnectionProfile(name="any", udp_percent=udp, messages=messages)
    limits = promises(cps=f">= {cps:.0f}", loss_ratio=f"<= {loss * 100:.3f}%")
    floor = with_packets(Floor(key=KEY, profile=profile, source="", metric=METRICS["cps"], thresholds=limits))
    assert floor.main is not None
    offered, share = floor.load(0.0), limits["loss_ratio"].limit * lost
    arrived = offered * packets_per_connection(profile) * (1 - share) * (1 - late)
    assert floor.thresholds["pps"].holds(max(1.0, arrived))
    # One that forwards a twentieth less than it may is noticed.
    if floor.thresholds["pps"].limit > 100:
        assert not floor.thresholds["pps"].holds(floor.thresholds["pps"].limit * 0.95)


def test_a_rate_is_bound_to_the_machine_of_the_file_and_a_ratio_to_none() -> None:
    machine = {"cpu_model": "Gold 5118", "cpus": 24, "kernel": "5.14", "hypervisor": "kvm"}
    entry = {"cps": ">= 48.2k", "ratio": {"to": OTHER, "rate": ">= 10%", "smoke": True}}
    floor = stock(entry, machine=machine).find(TOPOLOGY, SHORT)
    assert floor.bound_to("cps") == floor.bound_to("pps") == "Gold 5118, 24 CPUs, kernel 5.14, hypervisor kvm"
    assert floor.bound_to("ratio") == floor.bound_to("loss_ratio") == ""
    assert floor.smoke == {"ratio"}


XEON = {"cpu_model": "Xeon(R) Gold 5118 CPU", "usable_cpus": [0, 1], "kernel": "5.14", "virtualisation": "kvm"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"cpu_model": "AMD EPYC"}, "the DUT's machine has AMD EPYC"),
        ({"usable_cpus": [0]}, "the DUT's machine has 1 CPUs"),
        ({"kernel": "6.1"}, "the DUT's machine has kernel 6.1"),
        ({"virtualisation": "none"}, "the DUT's machine has hypervisor none"),
        ({"cpu_model": ""}, "the DUT's machine is not known"),
        ({"distribution": "Debian"}, ""),
    ],
)
def test_another_machine_is_told_by_what_the_file_names(change: dict[str, Any], said: str) -> None:
    bound = BoundMachine(cpu_model="Gold 5118", cpus=2, kernel="5.14", hypervisor="kvm")
    assert bound.differs_from(MachineFacts(**(XEON | change))) == said

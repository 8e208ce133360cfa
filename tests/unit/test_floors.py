"""Thresholds, and floors: found by topology and profile, derived for a shortened profile, bound to a machine, compared
with other topologies and builds; missing ones named."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.procedures.control_plane import SWEEP, TABLE_DUMP
from ctbench.results.environment import MachineFacts
from ctbench.results.floor import (
    KEEPS_UP,
    BoundMachine,
    Floor,
    parse,
    promise,
    with_packets,
)
from ctbench.results.metrics import METRICS
from ctbench.sla.floors import OF_THE_ROW, Floors
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile

from .simulated import promises

LONG, SHORTENED = (load("profiles", name, ConnectionProfile) for name in ("long-lived", "long-lived-short"))
SHORT = ConnectionProfile(name="short", udp_percent=1)
TOPOLOGY = Topology(ruleset="conntrack", cpus=1, rx_queues=1)
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"
OTHER = "ovs-dpdk/forward/1cpu-1rxq"
PACKETS = PacketProfile(name="packets", kind="packets", flows=10_000)
HEAD = {"name": "mine", "description": "", "source": "the article"}


def floors(**entries: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%", KEY: entries})


def mistake(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mylab.yaml"
    path.write_text("name: mylab\ndescription: d\nsource: s\n" + text)
    with pytest.raises(ConfigError) as error:
        load("sla", path, Floors)
    return str(error.value).removeprefix(f"{tmp_path}/")


def stock(entry: Any, **head: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%"} | head | {KEY: {"short": entry}})


BUILDS = {"of_build": {"base": "distribution", "rate": ">= 97%"}}
RATIO = {"ratio": {"to": OTHER, "rate": ">= 60%"}}
QUICK = {"connect_time_p99": "<= 20ms"}


@pytest.mark.parametrize(
    ("text", "metric", "limit"),
    [(">= 48.2k", "cps", 48_200), ("<=0.02%", "loss_ratio", 0.0002), (" <= 5ms ", "connect_time_p99", 0.005),
     (">= 2G", "bps", 2e9), (">= 120%", "ratio", 1.2)],
)  # fmt: skip
def test_a_threshold_is_read_and_written_as_a_file_has_it(text: str, metric: str, limit: float) -> None:
    found = parse(text, METRICS[metric])
    assert (found.metric, found.limit, found.written) == (metric, limit, text.strip())
    made = promise(METRICS[metric], limit)
    assert parse(made.written, METRICS[metric]) == made


@pytest.mark.parametrize("text", [">= 48.2q", "48.2k", ">=", "== 5", "> 5", "", None, 5, [">= 5"]])
def test_what_is_no_threshold_is_refused_as_in_the_design(text: object) -> None:
    with pytest.raises(ValueError, match="is not a threshold") as error:
        parse(text, METRICS["cps"])
    assert str(error.value).endswith('Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".')


@pytest.mark.parametrize(
    ("text", "metric", "said"),
    [
        ("<= 48.2k", "cps", "points the wrong way: higher is better"),
        (">= 5ms", "connect_time_p99", "points the wrong way: lower is better"),
        ("<= 0.02", "loss_ratio", 'Expected at most a value, for example "<= 0.02%"'),
        (">= 60", "ratio", 'Expected at least a value, for example ">= 60%"'),
        ("<= 5", "latency_p99", 'Expected at most a value, for example "<= 5ms"'),
        (">= 0", "cps", "is outside the allowed range"),
        ("<= 90%", "loss_ratio", "from 0% to 50%"),
    ],
)
def test_a_threshold_of_the_wrong_side_or_without_its_unit_is_refused(text: str, metric: str, said: str) -> None:
    with pytest.raises(ValueError, match="Expected") as error:
        parse(text, METRICS[metric])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{KEY}: {{short-lived: {{cps: ">= 48.2q"}}}}\n', f'{KEY}.short-lived.cps: ">= 48.2q" is not a '
         'threshold.\n  Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'),
        ("descripton: x\n" + f'{KEY}: {{}}\n', "descripton: unknown key."),
        (f'{KEY}: {{short: {{cps: ">= 1", pp: ">= 1"}}}}\n', f"{KEY}.short.pp: unknown key.\n  Expected "
         "one of: accepted, blocked_meanwhile, bps, connect_time_meanwhile, "),
        (f'{KEY}: {{short: {{ratio: {{to: {OTHER}, rate: ">= 60"}}}}}}\n', f'{KEY}.short.ratio.rate: '
         '">= 60" is not a threshold.\n  Expected at least a value, for example ">= 60%".'),
        (f'{KEY}: {{short: {{ratio: {{to: forward, rate: ">= 60%"}}}}}}\n', f'{KEY}.short.ratio.to: '
         '"forward" is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES'),
        (f'{KEY}: {{short: {{ratio: {{to: {KEY}, rate: ">= 60%"}}}}}}\n', f'{KEY}.short.ratio.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{cost: {{to: {KEY}, instructions: "<= 60%"}}}}}}\n', f'{KEY}.short.cost.to: '
         "is this very topology."),
        (f'{KEY}: {{short: {{cost: {{to: {OTHER}}}}}}}\n', f'{KEY}.short.cost: promises the whole or what is added.'),
        (f'{KEY}: {{short: {{instructions_per_packet: "<= 1400"}}}}\n', f"{KEY}.short."
         "instructions_per_packet: holds for one emulated machine only.\n  Expected image: at the top of the file"),
        ("ovs-dpdk/conntrack/1cpu: {}\n", '"ovs-dpdk/conntrack/1cpu" is not a topology.\n  Expected'),
        (f"{KEY}: 5\n", f"{KEY}: 5 does not fit.\n  Expected a valid dictionary."),
        ("machine: {cpus: 2}\n", "machine.cpu_model: is missing."),
        ("known_kinds: [AMD EPYC]\n", 'known_kinds[0]: "AMD EPYC" is not a kind of CPU.\n  Expected vendor, family and '
         "model as lscpu has them"),
        ('of_build: {base: packaged, rate: ">= 97%"}\n', 'of_build: base: "packaged" is not a build.'),
        ('of_build: {base: distribution, rate: "<= 97%"}\n', 'of_build.rate: "<= 97%" points the wrong way'),
        ('connect_time_p99: "<= 20"\n', 'connect_time_p99: "<= 20" is not a threshold.'),
        (f'{KEY}: {{short: {{smoke: true, ratio: {{to: {OTHER}, rate: ">= 60%"}}}}}}\n', f"{KEY}.short: smoke: is "
         "about the entry's own rates, and it has none."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_floor_is_said_with_the_keys_of_the_file(tmp_path: Path, text: str, said: str) -> None:
    assert f"mylab.yaml: {said}" in mistake(tmp_path, text)


#: An entry with what its file says of all floors, the profile that is looked for, and the limits that are found. Those
#: of packets follow from the connections where the entry has none: 48.2k x 6.95, less 0.02 % lost and 0.5 % late.
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], ConnectionProfile | PacketProfile, dict[str, float]]] = {
    "the loss of its file": (
        {"cps": ">= 48.2k", "pps": ">= 334.9k"}, {}, SHORT, {"cps": 48_200, "pps": 334_900, "loss_ratio": 0.0002}),
    "limits of its own": (
        {"cps": ">= 48.2k", "loss_ratio": "<= 0.02%", "connect_time_p99": "<= 1ms"}, {"loss_ratio": "<= 1%"} | QUICK,
        SHORT, {"cps": 48_200, "pps": 333_248, "loss_ratio": 0.0002, "connect_time_p99": 0.001}),
    "the connect time of its file": (
        {"cps": ">= 48.2k"}, QUICK, SHORT,
        {"cps": 48_200, "pps": 333_248, "loss_ratio": 0.0002, "connect_time_p99": 0.02}),
    "no connect time without TCP": (
        {"cps": ">= 1k", "pps": ">= 1k"}, QUICK, SHORT.model_copy(update={"udp_percent": 100.0}),
        {"cps": 1_000, "pps": 1_000, "loss_ratio": 0.0002}),
    "packets, throughput and latency": (
        {"pps": ">= 300k", "bps": ">= 2G", "latency_p99": "<= 5ms"}, QUICK, PACKETS,
        {"pps": 300_000, "bps": 2e9, "loss_ratio": 0.0002, "latency_p99": 0.005}),
    "only a ratio": (RATIO, {}, SHORT, {"ratio": 0.6, "loss_ratio": 0.0002}),
    "a share per CPU is one of the rate per CPU": (
        {"pps": ">= 1", "ratio": {"to": "ovs-dpdk/forward/2cpu-1rxq", "rate": ">= 80%", "per": "cpu"}}, {}, PACKETS,
        {"pps": 1, "ratio": 0.4, "loss_ratio": 0.0002}),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_floor_has_the_limits_of_its_entry_and_of_its_file_in_the_order_of_the_metrics(name: str) -> None:
    entry, head, profile, expected = LIMITS[name]
    found = Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%"} | head | {KEY: {profile.name: entry}})
    floor = found.find(TOPOLOGY, profile)
    assert [(each, threshold.limit) for each, threshold in floor.thresholds.items()] == list(expected.items())
    conditions = {name: limit for name, limit in expected.items() if METRICS[name].role == "condition"}
    assert floor.conditions({"loss_ratio": 0.5}) == conditions


@pytest.mark.parametrize(("vlan", "load"), [(None, 1e9 / 480), (100, 1e9 / 512)])
def test_a_throughput_is_offered_in_frames_as_they_are_counted(vlan: int | None, load: float) -> None:
    profile = PACKETS.model_copy(update={"frame_bytes": 64, "vlan": vlan})
    found = Floors.model_validate(HEAD | {KEY: {profile.name: {"pps": ">= 1", "bps": ">= 1G"}}})
    assert found.find(TOPOLOGY, profile).load(0.0) == pytest.approx(load)


def test_floors_say_where_they_are_from_and_a_missing_one_what_was_perhaps_meant() -> None:
    reference = {"cps": "1.0M", "pps": "7.1M", "source": "table 2"}
    floor = floors(short={"cps": ">= 1k", "reference": reference}).find(TOPOLOGY, SHORT)
    assert (floor.key, floor.profile, floor.source, floor.derivation) == (KEY, SHORT, "the article", "")
    published = floor.as_record().reference
    assert (published.figures, published.source) == ({"cps": 1e6, "pps": 7.1e6}, "table 2")
    assert floors(short={"cps": ">= 1k", "source": "the lab"}).find(TOPOLOGY, SHORT).source == "the lab"
    # Without any loss ratio the campaign's holds.
    bare = Floors.model_validate(HEAD | {KEY: {"short": {"cps": ">= 1k"}}})
    assert bare.find(TOPOLOGY, SHORT).conditions({"loss_ratio": 0.5}) == {"loss_ratio": 0.5}
    held = floors(short={"cps": ">= 1k"})
    with pytest.raises(ConfigError, match=rf"(?s)^SLA mine: {KEY}\.shore: is missing.*such as shore: .*mean .short"):
        held.find(TOPOLOGY, SHORT.model_copy(update={"name": "shore"}))
    with pytest.raises(ConfigError, match=r"(?s)^SLA mine: ovs-dpdk/nat/1cpu-1rxq\.short: is missing"):
        held.find(Topology(ruleset="nat"), SHORT)


@pytest.mark.parametrize(
    ("profile", "entry", "said"),
    [
        (PACKETS, {"cps": ">= 1k", "pps": ">= 1k"}, "packets.cps: is not for a profile of packets.\n  Expected pps"),
        (PACKETS, {"loss_ratio": "<= 1%"}, "packets.pps: is missing.\n  Expected a promise, for example"),
        (PACKETS, None, 'packets: is missing.\n  Expected a line such as packets: {pps: ">= 334.9k"} below'),
        (SHORT, {"pps": ">= 1k"}, "short.cps: is missing.\n  Expected a promise, for example"),
        (SHORT, {"cps": ">= 1k", "latency_p99": "<= 1ms"}, "short.latency_p99: is not for a profile of connections"),
        (SHORT, {}, "short.cps: is missing"),
    ],
)
def test_a_floor_that_is_missing_or_does_not_suit_its_profile_is_named_with_file_and_key(
    profile: ConnectionProfile | PacketProfile, entry: dict[str, str] | None, said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        floors(**({} if entry is None else {profile.name: entry})).find(TOPOLOGY, profile, build="/opt/ovs")
    assert str(error.value).startswith(f"SLA mine: {KEY}.{said}")


def test_what_an_entry_promises_of_another_test_is_not_of_this_one() -> None:
    held = floors(packets={"pps": ">= 300k", "dump_time": "<= 2s", "latency_p99": "<= 5ms"} | RATIO)
    of_rate, of_dump = held.find(TOPOLOGY, PACKETS), held.find(TOPOLOGY, PACKETS, TABLE_DUMP)
    assert (of_rate.relative_to, of_rate.limit("dump_time")) == (OTHER, None)
    assert (of_dump.metric, of_dump.main.limit, of_dump.relative_to) == (METRICS["dump_time"], 2.0, "")
    assert list(of_dump.thresholds) == ["dump_time", "loss_ratio", "latency_p99"]  # conditions are of every test
    with pytest.raises(ConfigError, match=r"packets\.sweep_time: is missing.\n  Expected a promise, for example sweep"):
        held.find(TOPOLOGY, PACKETS, SWEEP)


# --- packets and connections ------------------------------------------------------------------------------------------


def test_a_shortened_profile_takes_its_floor_from_the_same_packet_rate_and_no_other_profile() -> None:
    reference = {"cps": "1.2k", "source": "table 5"}
    entry = {"cps": ">= 1.2k", "pps": ">= 1.8M", "loss_ratio": "<= 0.1%", "reference": reference} | RATIO
    floor = floors(**{"long-lived": entry}).find(TOPOLOGY, SHORTENED)
    assert floor.main.limit == 14_452  # 1200 * 1499.95 / 124.55, rounded up
    assert (floor.limit("pps"), floor.profile, floor.reference) == (1_800_000, SHORTENED, None)
    assert floor.thresholds["loss_ratio"].written == "<= 0.1%"
    assert (floor.relative_to, floor.limit("ratio")) == (OTHER, 0.6)  # there the profile is the same
    assert (
        floor.as_record().derivation
        == floor.derivation
        == ("from long-lived's 1.2 k/s at the same packet rate: 1499.95 packets per connection there, 124.55 here")
    )
    of_a_ratio = floors(**{"long-lived": RATIO}).find(TOPOLOGY, SHORTENED)
    assert (of_a_ratio.main, of_a_ratio.profile, of_a_ratio.derivation) == (None, SHORTENED, "")
    own = floors(**{"long-lived": entry, "long-lived-short": {"cps": ">= 20k"}}).find(TOPOLOGY, SHORTENED)
    assert (own.main.limit, own.derivation) == (20_000, "")
    other = SHORTENED.model_copy(update={"server_wait_ms": 10.0, "udp_percent": 5.0})
    with pytest.raises(ConfigError, match=r"derived_from: \"long-lived\" differs in server_wait_ms, udp_percent"):
        floors(**{"long-lived": {"cps": ">= 1.2k"}}).find(TOPOLOGY, other)


@given(
    cps=st.floats(1, 1e7),
    loss=st.floats(0, 0.5),
    messages=st.integers(1, 500),
    udp=st.integers(0, 100),
    lost=st.floats(0, 1),
    late=st.floats(0, KEEPS_UP),
)
def test_a_good_trial_at_the_floor_keeps_the_packets_that_follow_from_it(
    cps: float, loss: float, messages: int, udp: int, lost: float, late: float
) -> None:
    profile = ConnectionProfile(name="any", udp_percent=udp, messages=messages)
    limits = promises(cps=f">= {cps:.0f}", loss_ratio=f"<= {loss * 100:.3f}%")
    floor = with_packets(Floor(key=KEY, profile=profile, source="", metric=METRICS["cps"], thresholds=limits))
    offered, share = floor.load(0.0), limits["loss_ratio"].limit * lost
    arrived = offered * profile.packets_each * (1 - share) * (1 - late)
    assert METRICS["pps"].keeps(max(1.0, arrived), floor.thresholds["pps"].limit)
    # One that forwards a twentieth less than it may is noticed.
    if floor.thresholds["pps"].limit > 100:
        assert not METRICS["pps"].keeps(floor.thresholds["pps"].limit * 0.95, floor.thresholds["pps"].limit)


# --- builds, machines, generators -------------------------------------------------------------------------------------


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
    # An entry without a promise needs a build to compare.
    sla = stock({}, **BUILDS)
    assert list(sla.find(TOPOLOGY, SHORT, build="/opt/ovs").thresholds) == ["of_build", "loss_ratio"]
    with pytest.raises(MissingResource, match="Nothing is promised of this build itself"):
        sla.find(TOPOLOGY, SHORT, build="distribution")
    # So does a ratio without a rate: too few machines have measured it.
    sla = stock({"ratio": {"to": OTHER}}, **BUILDS)
    candidate = sla.find(TOPOLOGY, SHORT, build="/opt/ovs")
    assert (list(candidate.thresholds), candidate.relative_to) == (["of_build", "loss_ratio"], "")
    with pytest.raises(NoFloorYet, match="No floor yet: too few machines have measured"):
        sla.find(TOPOLOGY, SHORT, build="distribution")
    # One that any machine is promised is not asked of a candidate: its base would say the same. One of this machine is.
    promised = {"ratio": {"to": OTHER, "rate": ">= 70%"}}
    found = [stock(promised, **also).find(TOPOLOGY, SHORT, build="/opt/ovs") for also in ({}, BUILDS)]
    assert [("ratio" in each.thresholds, each.relative_to) for each in found] == [(True, OTHER), (False, "")]
    bound = stock(promised, **BUILDS).model_copy(update={"machine": BoundMachine(cpu_model="of mine")})
    assert {"ratio", "of_build"} <= bound.find(TOPOLOGY, SHORT, build="/opt/ovs").thresholds.keys()
    rate = stock({"cps": ">= 1k", "ratio": {"to": OTHER}}).find(TOPOLOGY, SHORT)
    assert (rate.limit("cps"), rate.relative_to) == (1_000, "")


def test_what_the_generator_does_not_measure_is_not_judged_unless_the_floor_itself_promises_it() -> None:
    of_all = stock({"cps": ">= 1k"}, **QUICK).find(TOPOLOGY, SHORT)
    told = of_all.as_far_as_told({"connect_time_p99"}, "TRex")
    assert "connect_time_p99" not in told.conditions({"loss_ratio": 0.5})
    assert told.limit("cps") == of_all.limit("cps")
    assert told.notes == ("TCP connect time (p99) <= 20ms is not judged: the generator (TRex) does not measure it.",)
    assert of_all.as_far_as_told((), "software generator") == of_all
    for head in ({}, QUICK):
        own = stock({"cps": ">= 1k", "connect_time_p99": "<= 1ms"}, **head).find(TOPOLOGY, SHORT)
        with pytest.raises(MissingResource, match=r"promises TCP connect time \(p99\) <= 1ms, which the generator"):
            own.as_far_as_told({"connect_time_p99"}, "TRex")


def test_a_rate_is_bound_to_the_machine_of_the_file_and_a_ratio_to_none() -> None:
    machine = {"cpu_model": "Gold 5118", "cpus": 24, "kernel": "5.14", "hypervisor": "kvm"}
    entry = {"cps": ">= 48.2k", "ratio": {"to": OTHER, "rate": ">= 10%", "smoke": True}}
    floor = stock(entry, machine=machine).find(TOPOLOGY, SHORT)
    said = {name: (each.bound_to, each.smoke, each.to) for name, each in floor.thresholds.items()}
    of_machine = ("Gold 5118, 24 CPUs, kernel 5.14, hypervisor kvm", False, None)
    assert said == {"cps": of_machine, "pps": of_machine, "ratio": ("", True, OTHER), "loss_ratio": ("", False, None)}


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


def test_an_sla_that_extends_another_has_its_floors_besides_its_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "extends: local\nname: mine\ndescription: ours\nloss_ratio: '<= 0.5%'\n"
        "linux-router/forward/1cpu-1rxq:\n  udp-64-10k: {pps: '>= 123k'}\n  held: {held_connections: '>= 1'}\n"
    )
    local, found = load("sla", "local", Floors), load("sla", mine, Floors)
    key = "linux-router/forward/1cpu-1rxq"
    assert found.floors.keys() == local.floors.keys()
    assert found.floors[key]["udp-64-10k"].thresholds["pps"].limit == 123_000
    assert found.floors[key]["udp-1518-10k"] == local.floors[key]["udp-1518-10k"]
    assert (found.name, found.loss_ratio and found.loss_ratio.limit, found.source) == ("mine", 0.005, local.source)
    # Of an entry promise by promise: the ratio stays, the rate is no smoke test any more.
    assert found.floors[key]["udp-64-10k"].ratio == local.floors[key]["udp-64-10k"].ratio
    (tmp_path / "theirs.yaml").write_text("extends: mine.yaml\nname: theirs\ndescription: x\nsource: y\n")
    theirs = load("sla", tmp_path / "theirs.yaml", Floors)
    assert theirs.floors[key]["held"].source == found.source and theirs.loss_ratio == found.loss_ratio
    (tmp_path / "ring.yaml").write_text("extends: theirs.yaml\nname: ring\ndescription: x\n")
    for text, said in (
        ("ring.yaml", "is this file"),
        ("theirs.yaml", "is this file"),
        ("locl", "no such file"),
    ):
        (tmp_path / "theirs.yaml").write_text(f"extends: {text}\nname: theirs\ndescription: x\n")
        with pytest.raises(ConfigError, match=said):
            load("sla", tmp_path / "theirs.yaml", Floors)


def test_a_row_may_have_its_own_promise_judged_as_those_of_the_file() -> None:
    floors, profile = load("sla", "local", Floors), load_profile("udp-64-10k")
    topology = Topology(datapath="linux-router", ruleset="iptables-snat")
    share = {"rate": ">= 66%", "to": "linux-router/forward/1cpu-1rxq"}
    own = floors.promised_by_row(topology, profile, {"pps": ">= 10k", "ratio": share})
    floor = own.find(topology, profile)
    assert (floor.source, floor.known_kinds) == (OF_THE_ROW, ())  # who wrote it knows the machine
    assert floors.find(topology, profile).known_kinds
    assert {name: each.limit for name, each in floor.thresholds.items()} == {
        "pps": 10_000,
        "ratio": 0.66,
        "loss_ratio": 0.0002,
    }
    for promised in ({"pps": "10k"}, {"psp": ">= 1"}, {"ratio": share | {"to": topology.key}}):
        with pytest.raises(ConfigError):
            floors.promised_by_row(topology, profile, promised)

"""Whatever a file holds: a sentence of the agreed form, or a model with which a run can be planned and searched."""

import copy
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import MOST_PROBLEMS, contents, load, make
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.campaign import Bisection, Campaign, Mlr
from ctbench.measure.search import search
from ctbench.measure.trial import Step, Trials
from ctbench.run import feasibility
from ctbench.sla.floor import bits_per_packet, packets_per_connection
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, load_profile
from ctbench.traffic.software import plan

from .simulated import SimulatedDut

#: What stands in a file where something else was expected.
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 63, 64, 65, 4096, 65_535, 65_536, 2**31, 2**63, 10**17, -(10**17), 0.0, -0.0,
    0.5, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan,
    "", " ", "x", "0", "0k", "-0", "-1", "1", "1k", "1.5M", "1e-999", "1e999", "1e300", "9" * 4000, "0x" + "f" * 4000,
    "1:30", "010", "1_000", ".inf", "nan", "0%", "0.0001%", "1e-300%", "100%", "99.99%", "101%", "0s", "1ns", "1e300s",
    "1e-300s", "1s", "3600s", "60min", "999min", ">= 0", ">= 1", ">= 1e300", ">= 1e-300", ">= 0%", ">= 1e300%",
    "<= 100%", "<= 0%", "<= 0s", "<= 1e9s", "yes", "~nosuchuser/x", "../x", "/", "-oProxyCommand=x", "a b", "a\nb",
    "a" * 300, "é", "\u202e", "0cpu-1rxq", "x/y/0cpu-1rxq", "x/y/99999cpu-1rxq", "x/y/1cpu-" + "9" * 4000 + "rxq",
    "1.2.3.4", "127.0.0.1", "0.0.0.0", "255.255.255.255", "300.1.1.1", "::1", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
    "0000:18:00.2", "ffff:ff:ff.7", "sandbox", "local", "auto", "imix", "memif", "trex", "mlr", "gate", "packets",
    [], ["connections"], [[]], [0], [1, 1], [2, 3], [-1], [2**63], ["x"], [None], list(range(3000)), {}, {"x": 1},
    {1: [2]}, {0: []}, {None: None}, {"a/b/1cpu-1rxq": {}}, {"kind": ["memif"]}, {"type": {"x": 1}}, {"kind": None},
    {"min": "1", "max": "1G"}, {"min": "0k", "max": "1"}, {"min": 1, "max": "1.01"}, {f"k{n}": n for n in range(300)},
]  # fmt: skip

SLA = """
name: mine
description: x
source: y
loss_ratio: "<= 0.02%"
of_reference: ">= 95%"
ovs-dpdk/conntrack/1cpu-1rxq:
  short-lived: {cps: ">= 48.2k", pps: ">= 334.9k", connect_time_p99: "<= 5ms", source: z,
                reference: {cps: 1.0M, pps: 7.1M, source: z}}
  long-lived: {cps: ">= 1.2k"}
  udp-64-1m: {pps: ">= 300k", bps: ">= 1G", latency_p99: "<= 5ms", loss_ratio: "<= 1%",
               ratio: {to: ovs-dpdk/forward/1cpu-1rxq, rate: ">= 50%", per: cpu}}
"""
LAB = """
name: mine
hosts:
  dut: {address: dut.lab.example, port: 22, user: root, key: ~/.ssh/lab, password_env: PASSWORD, jump: gateway,
        known_hosts: ~/.ssh/known_hosts, check_host_key: true, sudo: true, keepalive_s: 15, connect_timeout_s: 10}
  gateway: {address: 192.0.2.1, user: me}
duts:
  - {type: linux-router, host: dut, ports: {kind: interfaces, client: ens1f0, server: ens1f1, speed_gbit: 10}}
generator: {type: software}
cpus: {generator: [0], pmd: {1: [1]}, housekeeping: auto}
oversubscribe: false
"""
NAMES = {
    "campaigns": ["quick", "gate", "characterise", "published"],
    "profiles": ["long-lived-short", "udp-64-10k-both", "udp-64-1m", "udp-imix-10k"],
    "testbeds": ["local", "local-trex", "example-trex-xeon"],
}
MODELS: dict[str, Any] = {
    "campaigns": Campaign,
    "profiles": Profile,
    "sla": Floors,
    "testbeds": TestbedConfig,
}


@cache
def files() -> dict[tuple[str, str], Any]:
    """What the files that ship hold, with two that have every key which those leave out."""
    found = {
        (kind, name): contents(ROOT / "variables" / kind / f"{name}.yaml", kind, MODELS[kind], ROOT)
        for kind, names in NAMES.items()
        for name in names
    }
    for (kind, _), data in found.items():
        if kind == "campaigns":  # the others are alike
            data["loads"] = {key: data["loads"][key] for key in ("long-lived-short", "packets") if key in data["loads"]}
    return found | {("sla", "sla"): yaml.safe_load(SLA), ("testbeds", "lab"): yaml.safe_load(LAB)}


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values are: of lists the first entry stands for all."""
    yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """`data` with `change(holder, key)` made at `path`; what is not on the way there is shared with the original."""
    whole = {"file": data}
    holder: Any = whole
    *above, last = ("file", *path)
    for key in above:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    change(holder, last)
    return whole.get("file")


def mutations(data: Any) -> Iterator[Any]:
    for path in places(data):
        for value in HOSTILE:
            yield changed(data, path, lambda holder, key, value=value: holder.__setitem__(key, value))
        if path:
            yield changed(data, path, lambda holder, key: holder.__delitem__(key))
    for path in places(data):
        for key in ("x", "", " ", 5, None, True, 1.5, "a/b", "a\nb", "k" * 3000, "ovs-dpdk/nat/0cpu-1rxq"):

            def add(holder: Any, last: Any, key: Any = key) -> None:
                if isinstance(holder[last], dict):
                    holder[last] = {**holder[last], key: {}}

            yield changed(data, path, add)


def said_well(error: ConfigError) -> None:
    """The form of a message: a few lines that can be shown, the file first, an expectation for each mistake."""
    lines = str(error).split("\n")
    assert len(lines) <= 2 * MOST_PROBLEMS + 1
    assert all(len(line) <= 700 and line.isprintable() for line in lines), lines
    assert lines[0].startswith("some.yaml: ")
    assert any(line.startswith("  Expected ") for line in lines), lines


@pytest.mark.parametrize("file", sorted(files()), ids="-".join)
def test_whatever_a_value_is_replaced_by_it_is_a_sentence_or_a_model_that_works(file: tuple[str, str]) -> None:
    kind, _ = file
    loaded = 0
    for data in mutations(files()[file]):
        try:
            model = make(data, "some.yaml", MODELS[kind])
        except ConfigError as error:
            said_well(error)
            continue
        WORKS[kind](model)
        loaded += 1
    assert loaded > 20


def finite(*numbers: float) -> None:
    assert all(math.isfinite(number) and number >= 0 for number in numbers), numbers


PROFILES = {name: load_profile(name) for name in ("short-lived", "long-lived", "udp-64-1m")}


def campaign_works(campaign: Campaign) -> None:
    for name, asked in PROFILES.items():
        try:
            profile = load_profile(campaign.profiles[name]) if name in campaign.profiles else asked
            span = campaign.load_range(profile)
        except CtbenchError as error:
            assert "Expected" in str(error)
            continue
        assert 0 < span.min < span.max
        finite(span.max, campaign.settle, campaign.loss_ratio)
        for how in (campaign.search_for(profile), campaign.search_for(profile, closed_loop=False)):
            ends_well(span.min, span.max, how, isinstance(profile, PacketProfile))


@cache
def ends_well(lo: float, hi: float, how: Bisection | Mlr, packets: bool) -> None:
    """Whatever the DUT, the search ends, and knows at each trial about how long it still takes."""
    for capacity in (lo / 2, math.sqrt(lo * hi), hi * 2):
        steps: list[Step] = []
        found = search(SimulatedDut(capacity, packets=packets), lo, hi, how, Trials(steps.append), hint=lo * 2)
        finite(found.capacity, *(step.left_s for step in steps))
        assert found.capacity <= capacity * 1.01 + 1  # a few connections more may be lost
        assert 0 < len(steps) < 1500


def profile_works(profile: ConnectionProfile | PacketProfile) -> None:
    finite(feasibility.wire_bytes(profile))
    timing = plan.timing_of(profile, Rate(1e4), 1.0)
    assert timing.ramp_up_s < 4000
    plan.parameters(profile, Rate(1e4), timing, hertz=3e9, salt=1)
    if isinstance(profile, ConnectionProfile):
        finite(timing.ramp_up_s, packets_per_connection(profile), plan.records_needed(profile, Rate(1e9)))
    else:
        finite(bits_per_packet(profile), timing.ramp_up_s)
        plan.payloads(profile)


def floors_work(floors: Floors) -> None:
    for key in floors.floors:
        topology = Topology.parse(key)
        for profile in PROFILES.values():
            try:
                floor = floors.find(topology, profile)
            except ConfigError as error:
                assert "Expected" in str(error)
                continue
            conditions = floor.conditions({"loss_ratio": 0.1})
            finite(floor.main.limit if floor.main else 0.0, floor.load(1.0), conditions["loss_ratio"])
            assert floor.load(0.0) > 0
            floor.as_record()


@cache
def shipped() -> tuple[Campaign, Floors]:
    return load("campaigns", "quick", Campaign), load("sla", "local", Floors)


def works_on_a_testbed(testbed: TestbedConfig) -> None:
    campaign, floors = shipped()
    for dut in testbed.duts:
        for profile in ("short-lived", "udp-64-1m"):
            topology = Topology(datapath=dut.type, ruleset="forward" if dut.type != "ovs-dpdk" else "conntrack")
            try:
                floor = floors.find(topology, PROFILES[profile])
                case = feasibility.FeasibilityCase(testbed, campaign, topology, PROFILES[profile], floor)
                for bound in feasibility.check(case, Placement((0,), (1,), (0,))):
                    finite(bound.rate)
            except CtbenchError as error:
                assert str(error)
    finite(*testbed.generator.most.values())


WORKS: dict[str, Callable[[Any], None]] = {
    "campaigns": campaign_works,
    "profiles": profile_works,
    "sla": floors_work,
    "testbeds": works_on_a_testbed,
}

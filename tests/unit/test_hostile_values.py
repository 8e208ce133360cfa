"""Whatever a text or a file holds: a sentence of the agreed form, or a value in its range, or a model that works."""

import copy
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.files import named_folder
from ctbench.base.network import Address, Mac, PathHere
from ctbench.base.paths import ROOT
from ctbench.base.units import parse_duration, parse_number, parse_ratio, parse_share, parse_whole
from ctbench.base.yaml_files import MOST_PROBLEMS, contents, load, make
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Bisection, Campaign, Mlr
from ctbench.measure.observation import Observation
from ctbench.measure.search import search
from ctbench.measure.trial import Trials
from ctbench.report.runs import read_runs
from ctbench.results.floor import bits_per_packet
from ctbench.run import feasibility
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, load_profile
from ctgen import plan

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

NAMES = {
    "campaigns": ["quick", "published"],
    "profiles": ["long-lived-short", "udp-imix-10k"],
    "testbeds": ["local"],
}
MODELS: dict[str, Any] = {"campaigns": Campaign, "profiles": Profile, "sla": Floors, "testbeds": TestbedConfig}


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
    whole = Path(__file__).parents[1] / "data" / "hostile"
    both = {"sla": "sla", "lab": "testbeds"}
    return found | {(kind, name): yaml.safe_load((whole / f"{name}.yaml").read_text()) for name, kind in both.items()}


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
        steps: list[Observation] = []
        found = search(SimulatedDut(capacity, packets=packets), lo, hi, how, Trials(steps.append), hint=lo * 2)
        finite(found.capacity)
        assert found.capacity <= capacity * 1.01 + 1  # a few connections more may be lost
        assert 0 < len(steps) < 1500


def profile_works(profile: ConnectionProfile | PacketProfile) -> None:
    finite(feasibility.wire_bytes(profile))
    timing = plan.timing_of(profile, Rate(1e4), 1.0)
    assert timing.ramp_up_s < 4000
    plan.parameters(profile, Rate(1e4), timing, hertz=3e9, salt=1)
    if isinstance(profile, ConnectionProfile):
        finite(timing.ramp_up_s, profile.packets_each, plan.records_needed(profile, Rate(1e9)))
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
                for bound in feasibility.check(testbed, campaign, topology, floor):
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


DIGITS = st.one_of(
    st.integers(0, 10**400).map(str),
    st.floats().map(str),
    st.just("0" * 5000),
    st.just("9" * 5000),
    st.from_regex(r"[0-9]{1,5}(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)
SUFFIX = st.sampled_from(["", "k", "M", "G", "%", " %", "s", "ms", "us", "µs", "ns", "min", "h", "K", "%%", "\n"])
TEXTS = st.one_of(st.text(max_size=30), st.builds("{}{}".format, DIGITS, SUFFIX))
VALUES = st.one_of(
    TEXTS, st.none(), st.booleans(), st.floats(), st.integers(), st.just(10**5000), st.just(-(10**5000)),
    st.lists(st.integers()), st.dictionaries(st.text(), st.integers()), st.binary(), st.dates(),
)  # fmt: skip
PARSERS: list[tuple[Callable[[object], float], float]] = [
    (parse_number, math.inf),
    (parse_ratio, 1),
    (parse_share, math.inf),
    (parse_duration, math.inf),
]


def is_one_sentence(error: Exception) -> None:
    first, expected = str(error).split("\n")
    assert len(first) < 200 and first.isprintable()
    assert expected.startswith("  Expected ") and len(expected) < 200


@pytest.mark.parametrize(("parser", "most"), PARSERS)
@given(value=VALUES)
@settings(derandomize=True, deadline=None)
def test_a_text_is_a_quantity_or_a_sentence(parser: Callable[[object], float], most: float, value: object) -> None:
    try:
        found = parser(value)
    except ValueError as error:
        is_one_sentence(error)
    else:
        assert 0 <= found <= most and math.isfinite(found) and math.copysign(1, found) == 1


@pytest.mark.parametrize("text", ["1e-999", "1e-400", "0." + "0" * 330 + "1"])
def test_what_is_too_small_for_a_number_is_not_taken_for_none(text: str) -> None:
    for parser, unit in ((parse_number, ""), (parse_ratio, "%"), (parse_share, "%"), (parse_duration, "s")):
        with pytest.raises(ValueError, match=r"is too small for a \w+\.\n  Expected"):
            parser(text + unit)


@pytest.mark.parametrize("kind", [Address, Mac, PathHere])
@given(text=st.one_of(st.text(max_size=400), st.text("0123456789abcdef:.%-_~/ ", max_size=40)))
@settings(derandomize=True, deadline=None)
def test_a_text_names_a_thing_of_the_network_or_is_a_sentence(kind: Any, text: str) -> None:
    try:
        assert TypeAdapter(kind).validate_python(text) == text
    except ValidationError as error:
        is_one_sentence(error.errors()[0]["ctx"]["error"])
    else:
        assert text.isprintable() and not (text.startswith("-") and kind is Address)


def test_a_host_has_a_name_or_an_address() -> None:
    taken = ["dut", "dut.lab.example", "192.0.2.1", "::1", "fe80::1%eth0", "dut_1.lab.", "a-b", "1and1.example"]
    assert [TypeAdapter(Address).validate_python(name) for name in taken] == taken
    refused = ["", " ", "-oProxyCommand=x", "a b", "a..b", ".", "-", "300.1.1.1", "1.2.3", "a" * 64, "a." * 127 + "aa",
               "é", "fe80::1%-x -y", "[::1]", "root@dut", "dut:22", "dut/x", "a\n", "${DUT}", "10"]  # fmt: skip
    for name in refused:
        with pytest.raises(ValidationError, match=r"\n  Expected"):
            TypeAdapter(Address).validate_python(name)


LONG = "x" * 5000


@pytest.mark.parametrize("name", [LONG, "a\0b", "/" + LONG, f"a/{LONG}/b", "\x1b[31m\0", "\ud800\0"])
def test_a_folder_that_cannot_be_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_runs([named_folder(name)])
    is_one_sentence(error.value)


@pytest.mark.parametrize("text", ["", "0", "1001", "-1", "1.5", "1e3", "9" * 5000, "0x1", "٣", "1_0", "a", 4, None])
def test_a_whole_number_out_of_its_range_is_one_sentence(text: object) -> None:
    with pytest.raises(ValueError, match="Expected a whole number from 1 to 1000") as error:
        parse_whole(text, 1, 1000)
    is_one_sentence(error.value)
    assert [parse_whole(each, 1, 1000) for each in ("1", "1000", " 4 ", "007")] == [1, 1000, 4, 7]

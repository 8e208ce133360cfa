"""A testbed of made-up parts, so that nothing is started: which DUT of a pair is paused when, what is kept for the next
test, what is let go of, or said, where one is broken; a ratio between two profiles, and profiles that are not
offered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.base import Dut, Ports, Problem
from ctbench.dut.cable import CABLE, CableDut
from ctbench.dut.topology import Topology
from ctbench.hosts.claims import Taken
from ctbench.hosts.machine import Placement
from ctbench.hosts.sandbox import Sandbox
from ctbench.measure.procedures.instruction_count import workload_of
from ctbench.run import feasibility
from ctbench.run.measurement import others
from ctbench.sla.verdict import compare
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Place, Testbed
from ctbench.testbed.two_sides import Setup
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile
from ctbench.traffic.trex.generator import unsupported

from .test_floors import KEY, LONG, OTHER, SHORT, TOPOLOGY, floors

PROFILE = PacketProfile(name="udp", kind="packets")
CONNTRACK, FORWARD = Topology(), Topology(ruleset="forward")
ROUTER = Topology(datapath="linux-router", ruleset="forward")
BUILD = "/opt/ovs-3.3"


@dataclass(eq=False)
class FakeDut(Dut):
    """Remembers what happened to it; `runs` is whether it has the CPU."""

    place: Place
    told: list[str]
    runs: bool = False
    broken: str = ""
    missing: str = ""
    memory: str = "no-huge"
    version: str = "3.1.0"
    stays: Exception | None = None

    @property
    def name(self) -> str:
        return f"{self.place.datapath}{self.place.build}{'+' if self.place.beside else ''}"

    def apply(self, topology: Topology) -> Ports:
        if self.missing:
            raise MissingResource(self.missing)
        if self.broken:
            raise TestbedError("`ovs-vsctl` failed.")
        self.runs = True
        return Ports("memif", ((self.name, self.name),), 1, 2)

    def pause(self) -> None:
        self.runs = False

    def resume(self) -> None:
        self.runs = True

    def flush_state(self) -> None:
        if self.broken:
            raise TestbedError("`ovs-appctl` failed.")
        self.told.append(f"flush {self.name}")

    def health(self) -> list[Problem]:
        return [Problem("warning", "It lost 3 packets.")]

    def trouble(self) -> str:
        return self.broken

    def snapshot(self) -> dict[str, Any]:
        if self.broken:
            raise KeyError("pid")
        return {"version": self.version, "memory": {"kind": self.memory}}

    def restore(self) -> None:
        self.runs = False
        self.told.append(f"restore {self.name}")
        if self.stays:
            raise self.stays


class FakeConnector:
    """A connector, and its generator, in which no traffic flows."""

    def __init__(self, *, pairs: bool = True) -> None:
        self.pairs, self.wired, self.forgot = pairs, list[str](), 0
        self.offers_to: Side = "tested"
        # Of a generator, and not asked for here.
        self.run_trial = self.hold = self.snapshot = self.offers = Mock()
        #: The profiles of each time that a pair was served.
        self.profiles: list[object] = []
        self.running: Callable[[], list[str]] = list
        #: Which side it let go of, and who ran then.
        self.let_go_of: list[tuple[Side, list[str]]] = []

    @property
    def generator(self) -> "FakeConnector":
        return self

    def connect(self, ports: Ports, host: object, placement: object, frame_bytes: int, side: Side = "tested") -> None:
        self.wired = [ports.links[0][0]] if side == "tested" else [*self.wired, ports.links[0][0]]

    def disconnect(self) -> None:
        self.wired = []

    def facts(self) -> dict[str, Any]:
        return {}

    def offer_to(self, side: Side) -> None:
        self.offers_to = side

    def forget(self) -> None:
        self.forgot += 1

    def close(self, side: Side | None = None) -> None:
        if side:
            self.let_go_of.append((side, self.running()))

    def run_slices(
        self,
        profiles: object,
        order: Sequence[Side],
        slice_s: float,
        turn: Callable[[Side], None],
        *,
        backlogs: bool = False,
    ) -> list[Slice]:
        self.profiles.append(profiles)
        return [Slice(side=side, seconds=slice_s, completed=1) for side in order]


class Fakes:
    """A testbed of made-up parts."""

    def __init__(self, output: Path, **connector: bool) -> None:
        self.told: list[str] = []
        self.duts: list[FakeDut] = []
        self.testbed = Testbed(load("testbeds", "local", TestbedConfig), output)
        self.connector = FakeConnector(**connector)
        self.connector.running = self.running
        self.testbed._generator = self.connector  # type: ignore[assignment]
        self.testbed._make = self.make  # type: ignore[assignment,method-assign]
        #: Done to each DUT as it is made.
        self.prepare: Callable[[FakeDut], None] = lambda _: None
        #: Where each stands.
        self.sandboxed, self.hosts = True, dict[str, Any]()

    def make(self, place: Place) -> Any:
        if place.datapath == CABLE.datapath:
            return CableDut(), Mock(spec=Sandbox)
        self.duts.append(FakeDut(place, self.told))
        self.prepare(self.duts[-1])
        host = self.hosts[self.duts[-1].name] = Mock(spec=Sandbox) if self.sandboxed else object()
        return self.duts[-1], host

    def running(self) -> list[str]:
        return [dut.name for dut in self.duts if dut.runs]

    def pair(self, tested: Topology = CONNTRACK, other: Topology = FORWARD, build: str = "") -> None:
        self.testbed.apply_pair(Setup(tested), Setup(other, build), PROFILE)


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    return Fakes(tmp_path)


def test_a_flush_and_what_is_told_of_a_pair_are_of_both_sides(fakes: Fakes) -> None:
    fakes.pair()
    pair = fakes.testbed.side_by_side
    pair.flush()
    assert fakes.told == ["flush ovs-dpdk", "flush ovs-dpdk+"]
    assert fakes.connector.forgot == 1  # the connections that were under way are in no table any more
    assert [each.text.split(": ")[0] for each in pair.health()] == [
        "ovs-dpdk/conntrack/1cpu-1rxq (tested)",
        "ovs-dpdk/forward/1cpu-1rxq (other)",
    ]
    assert pair.sides()["other"].product == "Open vSwitch 3.1.0"


@pytest.mark.parametrize(("first", "wired"), [("tested", ["", BUILD]), ("other", [BUILD, ""])])
def test_a_start_sets_both_up_again_and_either_one_first(fakes: Fakes, first: Side, wired: list[str]) -> None:
    for _ in range(2):
        fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, BUILD), PROFILE, first)
    names = [f"ovs-dpdk{each}" for each in wired]
    assert fakes.connector.wired == names and sorted(fakes.told) == sorted(f"restore {name}" for name in names)
    # Each runs alone while the generator lets go of it: one that waits for its CPU may be reading what goes.
    assert fakes.connector.let_go_of == [("tested", names[:1]), ("other", names[1:])]
    pair = fakes.testbed.side_by_side
    assert pair and pair.first == first and pair.sides()["other"].build == BUILD
    assert fakes.testbed.dut.name == "ovs-dpdk"  # type: ignore[attr-defined]


def test_builds_are_duts_of_their_own_and_no_more_than_two_stand(fakes: Fakes) -> None:
    fakes.pair(other=CONNTRACK, build=BUILD)
    assert fakes.connector.wired == ["ovs-dpdk", f"ovs-dpdk{BUILD}"]
    assert fakes.testbed.side_by_side and fakes.testbed.side_by_side.sides()["other"].build == BUILD
    fakes.pair(other=CONNTRACK, build="distribution")  # which is the testbed's own
    assert fakes.connector.wired == ["ovs-dpdk", "ovs-dpdk+"]
    assert fakes.told == [f"restore ovs-dpdk{BUILD}"]
    with pytest.raises(MissingResource, match=r"of a Linux router there is but one"):
        fakes.testbed.apply_pair(Setup(ROUTER, BUILD), Setup(ROUTER), PROFILE)


def test_a_turn_of_two_builds_is_a_start_and_what_a_record_says_is_of_the_tested_one(tmp_path: Path) -> None:
    fakes = Fakes(tmp_path, pairs=False)
    tested, base = Setup(CONNTRACK, BUILD), Setup(CONNTRACK)
    fakes.testbed.apply_pair(tested, base, PROFILE, "other")
    turns = fakes.testbed.in_turn
    fakes.duts[0].version = "3.3.0"
    turns.turn("other")
    turns.turn("tested")
    restored = [f"restore ovs-dpdk{BUILD}", "restore ovs-dpdk"]
    assert fakes.told == restored, "each is another process, although there is room for both"
    assert fakes.testbed.facts()["dut"]["version"] == "3.3.0"
    turns.turn("other")
    assert fakes.testbed.dut is fakes.duts[1] and fakes.testbed.facts()["dut"]["version"] == "3.3.0"
    fakes.testbed.discard()
    assert fakes.testbed.in_turn is None and fakes.testbed.facts()["dut"] == {}


def serves_one(fakes: Fakes) -> None:
    fakes.connector.pairs = False


def in_a_lab(fakes: Fakes) -> None:
    config = fakes.testbed.config
    duts = [dut.model_copy(update={"host": "lab"}) for dut in config.duts]  # type: ignore[attr-defined]
    fakes.testbed.config = config.model_copy(update={"duts": duts})
    fakes.testbed.placement = lambda _: Placement((0,), (1,), (0,))  # type: ignore[method-assign]


def shares_cpus(fakes: Fakes) -> None:
    fakes.testbed.config = fakes.testbed.config.model_copy(update={"oversubscribe": True})


def has_less(name: str, tested: str, beside: str) -> Callable[[Fakes], None]:
    def prepare(fakes: Fakes) -> None:
        fakes.prepare = lambda dut: setattr(dut, name, beside if dut.place.beside else tested)

    return prepare


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (serves_one, "The traffic generator of testbed local serves one DUT at a time."),
        (in_a_lab, "There is one DUT on lab: two stand side by side only in sandboxes."),
        (shares_cpus, "Threads share CPUs on this testbed"),
        (has_less("missing", "", "1024 MiB of memory are needed."), "1024 MiB of memory are needed."),
        (has_less("memory", "hugepages", "no-huge"), "one has hugepages and the other no-huge as its memory"),
    ],
)
def test_where_two_cannot_stand_the_tested_one_does(fakes: Fakes, happens: Callable[[Fakes], None], why: str) -> None:
    happens(fakes)
    fakes.pair()
    assert fakes.testbed.side_by_side is None and fakes.testbed.in_turn and why in fakes.testbed.in_turn.why
    assert fakes.testbed.dut is fakes.duts[0] and fakes.connector.wired == fakes.running() == ["ovs-dpdk"]


def test_duts_make_way_for_what_counts_and_it_makes_way_for_a_dut(fakes: Fakes) -> None:
    fakes.pair()
    counter = fakes.testbed.counter("emulated")
    assert fakes.running() == [] and fakes.testbed.side_by_side is None and fakes.connector.wired == []
    assert fakes.testbed.facts()["dut"]["version"] == "3.1.0"
    assert fakes.testbed.counter("emulated") is counter
    sandbox = fakes.hosts["emulated"]
    fakes.testbed.apply(ROUTER)
    assert sandbox.close.call_count == 1
    fakes.testbed.counter("emulated")
    fakes.testbed.close()
    assert fakes.hosts["emulated"].close.call_count == 1


def stands_outside(fakes: Fakes, stays: Exception) -> None:
    """A DUT that cannot be put back stands outside of a sandbox; one of another kind in its sandbox was used before."""
    fakes.testbed.dut_at(Place("linux-router"))
    fakes.sandboxed = False
    fakes.testbed.apply(CONNTRACK)
    fakes.duts[1].stays = stays


def test_a_host_that_could_not_be_put_back_is_said_and_tried_once_more_at_the_end(fakes: Fakes) -> None:
    stands_outside(fakes, TestbedError("lab does not answer."))
    assert fakes.testbed.discard() == ["lab does not answer."]
    with pytest.raises(TestbedError, match=r"^lab does not answer\.$"):
        fakes.testbed.close()
    fakes.testbed.close()
    assert fakes.told == ["restore linux-router", "restore ovs-dpdk", "restore ovs-dpdk"]


def test_the_facts_of_a_record_say_why_something_could_not_be_asked(fakes: Fakes) -> None:
    fakes.testbed.apply(CONNTRACK)
    fakes.duts[0].broken = "It died."
    assert fakes.testbed.facts()["dut"] == {"trouble": "it could not be asked: 'pid'"}


def test_a_host_that_another_run_has_by_now_is_left_as_it_is_and_that_is_said(fakes: Fakes) -> None:
    stands_outside(fakes, TestbedError("It is not to be put back."))
    taken = Taken("lab: ci@agent has this host for itself.")
    claim = Mock(require=lambda host: (_ for _ in ()).throw(taken) if host is fakes.hosts["ovs-dpdk"] else None)
    fakes.testbed._claims = [claim]
    with pytest.raises(TestbedError, match=r"^lab: ci@agent has this host for itself\.$"):
        fakes.testbed.close()
    assert fakes.told == ["restore linux-router"]


@pytest.mark.parametrize("to", [OTHER, KEY])
def test_a_ratio_may_be_to_another_profile_of_any_topology(to: str) -> None:
    floor = floors(short={"ratio": {"to": to, "profile": "long", "rate": ">= 60%"}}).find(TOPOLOGY, SHORT)
    assert (floor.relative_to, floor.relative_profile) == (to, "long")
    assert others(floor, TOPOLOGY, LONG) == {"ratio": Setup(Topology.parse(to), profile=LONG)}
    promise = next(each for each in compare({}, floor) if each.metric == "ratio")
    assert promise.to == f"{to} with long"


@pytest.mark.parametrize("profile", [{}, {"profile": "short"}])
def test_a_ratio_to_itself_is_refused(profile: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="is this very topology"):
        floors(short={"ratio": {"to": KEY, "rate": ">= 60%"} | profile})


MANY = ConnectionProfile(name="new-100k", known=100_000)
FEW = MANY.model_copy(update={"name": "new-10k", "known": 10_000})


def test_a_profile_of_connections_next_to_others_says_what_makes_them_known(tmp_path: Path) -> None:
    fakes = Fakes(tmp_path)
    fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, profile=FEW), MANY)
    pair = fakes.testbed.side_by_side
    assert pair is not None and pair.differs_in_scale and not pair.one_at_a_time
    assert pair.known == {"tested": 200_000, "other": 20_000}  # each way
    pair.run_slices(["tested"], 0.05, before=True)
    pair.run_slices(["tested"], 0.05)
    assert fakes.connector.profiles == [(MANY.flows_known, FEW.flows_known), (MANY, FEW)]
    assert {side: known.profile for side, known in pair.sides().items()} == {"tested": "", "other": FEW.name}
    assert MANY.flows_known.udp_port != MANY.udp_port, "the load's own UDP is not known"
    with pytest.raises(TestbedError, match=r"1cpu-1rxq knows 0 of 100000 flows that came through it\."):
        pair.count("tested")
    fakes.duts[0].connections = lambda: 99_000  # type: ignore[method-assign]
    pair.count("tested")
    assert pair.sides()["tested"].entries == 99_000
    fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, profile=MANY), MANY)
    assert fakes.testbed.side_by_side is not None and not fakes.testbed.side_by_side.differs_in_scale
    fakes = Fakes(tmp_path, pairs=False)
    with pytest.raises(MissingResource, match=r"^Two profiles are compared side by side only"):
        fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, profile=FEW), MANY)


def test_more_known_connections_than_clients_are_a_mistake() -> None:
    with pytest.raises(ValidationError, match="known: 100001 are more than client_ips and client ports give"):
        ConnectionProfile(name="new", known=100_001, client_ips=1)


@pytest.mark.parametrize(
    ("key", "profile", "said"),
    [
        ("ovs-dpdk/conntrack/1cpu-1rxq", "short-lived-ipv6", "forwards IPv4.\n  Expected one of: conntrack-ipv6, "),
        ("linux-router/iptables-stateful/1cpu-1rxq", "udp-128-10k-ipv6", "ip6tables-stateful"),
        ("linux-router/ip6tables-stateful/1cpu-1rxq", "short-lived", "is of IPv4, and ruleset ip6tables-stateful "),
        ("emulated/forward/1cpu-1rxq", "short-lived-ipv6", "Expected a profile of IPv4."),
    ],
)
def test_a_ruleset_of_the_other_version_of_ip_is_a_mistake_that_names_others(key: str, profile: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        feasibility.require_ip_version(Topology.parse(key), load_profile(profile))
    assert said in str(error.value) and "\n  Expected " in str(error.value)


@pytest.mark.parametrize("profile", ["short-lived", "short-lived-ipv6"])
def test_what_does_not_look_at_ip_forwards_both_versions(profile: str) -> None:
    feasibility.require_ip_version(Topology(ruleset="normal"), load_profile(profile))
    feasibility.require_ip_version(Topology(datapath="cable", ruleset="none"), load_profile(profile))


@pytest.mark.parametrize(
    ("profile", "what"),
    [
        ("short-lived-ipv6", ""),
        ("udp-128-10k-ipv6", "packets of IPv6"),
        ("short-lived-server-closes", ""),
        ("short-lived-reset", ""),
        ("short-lived-half-open", "half-open connections"),
        ("short-lived", ""),
        ("dns", ""),
        ("udp-64-10k", ""),
        ("udp-fragments", "fragments"),
    ],
)
def test_what_trex_is_not_asked_for_is_named(profile: str, what: str) -> None:
    assert unsupported(load_profile(profile)) == what


@pytest.mark.parametrize(
    "changes", [{"ended_by": "server"}, {"ended_by": "reset"}, {"half_open_per_s": 100.0}, {"at_once": 2}]
)
def test_an_emulated_machine_sends_tcp_that_the_client_closes(changes: dict[str, object]) -> None:
    plain, topology = load_profile("tcp-no-data"), Topology.parse("emulated/forward/1cpu-1rxq")
    assert workload_of(plain, topology) == "tcp"
    with pytest.raises(MissingResource, match="An emulated machine sends"):
        workload_of(plain.model_copy(update=changes), topology)

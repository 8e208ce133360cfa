"""A ratio between two profiles, profiles that a testbed cannot offer, and tests that a campaign leaves out."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.topology import Topology
from ctbench.measure.procedures.instruction_count import workload_of
from ctbench.run import feasibility
from ctbench.run.measurement import others
from ctbench.sla.verdict import compare
from ctbench.testbed.pair import Setup
from ctbench.traffic.profiles import load_profile
from ctbench.traffic.trex.generator import unsupported

from .made_up_sla import KEY, LONG, OTHER, SHORT, TOPOLOGY, floors
from .test_testbed import CONNTRACK, PROFILE, Fakes


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


def test_each_side_of_a_pair_is_offered_its_profile_and_the_record_names_it(tmp_path: Path) -> None:
    fakes = Fakes(tmp_path)
    asked: list[object] = []
    run_slices = fakes.connector.run_slices
    fakes.connector.run_slices = lambda *given: (asked.append(given[0]), run_slices(*given))[1]  # type: ignore[method-assign]
    fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, profile=LONG), PROFILE)
    pair = fakes.testbed.pair
    assert pair is not None
    pair.run_slices(["tested", "other"], 0.05)
    assert asked == [(PROFILE, LONG)]
    assert {side: known.profile for side, known in pair.sides().items()} == {"tested": "", "other": LONG.name}


def test_two_profiles_are_compared_side_by_side_only(tmp_path: Path) -> None:
    fakes = Fakes(tmp_path, pairs=False)
    with pytest.raises(MissingResource, match=r"^Two profiles are compared side by side only"):
        fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, profile=LONG), PROFILE)
    fakes.testbed.apply_pair(Setup(CONNTRACK), Setup(CONNTRACK, "distribution"), PROFILE)
    assert fakes.testbed.turns is not None


@pytest.mark.parametrize(
    ("key", "profile", "said"),
    [
        ("ovs-dpdk/conntrack/1cpu-1rxq", "short-lived-ipv6", "forwards IPv4.\n  Expected one of: conntrack-ipv6, "),
        ("linux-router/iptables-stateful/1cpu-1rxq", "udp-128-10k-ipv6", "ip6tables-stateful"),
        ("linux-router/ip6tables-stateful/1cpu-1rxq", "short-lived", "is of IPv4, and ruleset ip6tables-stateful "),
        ("emulated/forward/1cpu-1rxq", "short-lived-ipv6", "Expected a profile of IPv4."),
    ],
)
def test_a_ruleset_of_the_other_version_of_ip_is_a_mistake_that_names_those_that_suit(
    key: str, profile: str, said: str
) -> None:
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
        ("short-lived-ipv6", "IPv6"),
        ("udp-128-10k-ipv6", "IPv6"),
        ("short-lived-server-closes", "connections that the client does not close first"),
        ("short-lived-reset", "connections that the client does not close first"),
        ("short-lived-half-open", "half-open connections"),
        ("short-lived", ""),
        ("udp-64-10k", ""),
    ],
)
def test_what_trex_is_not_asked_for_is_named(profile: str, what: str) -> None:
    assert unsupported(load_profile(profile)) == what


@pytest.mark.parametrize("changes", [{"ended_by": "server"}, {"ended_by": "reset"}, {"half_open_per_s": 100.0}])
def test_an_emulated_machine_sends_tcp_that_the_client_closes(changes: dict[str, object]) -> None:
    plain, topology = load_profile("tcp-no-data"), Topology.parse("emulated/forward/1cpu-1rxq")
    assert workload_of(plain, topology) == "tcp"
    with pytest.raises(MissingResource, match="An emulated machine sends"):
        workload_of(plain.model_copy(update=changes), topology)

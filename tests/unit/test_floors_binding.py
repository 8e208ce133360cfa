"""What an SLA file says of other builds, of its machine, and of whole floors: limits on connect times, packets."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.topology import Topology
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import METRICS
from ctbench.sla.floor import KEEPS_UP, BoundMachine, Floor, packets_per_connection, with_packets
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile

from .made_up_sla import HEAD, KEY, OTHER, PACKETS, SHORT, SHORTENED, TOPOLOGY, floors, lookup, mistake, stock
from .simulated import promises

BUILDS = {"of_build": {"base": "distribution", "rate": ">= 97%"}}


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


def test_what_the_generator_cannot_measure_is_not_judged_where_it_is_promised_of_all_floors() -> None:
    head = {"connect_time_p99": "<= 20ms"}
    of_all = stock({"cps": ">= 1k"}, **head).find(TOPOLOGY, SHORT)

    told = of_all.as_far_as_told({"connect_time_p99"}, "TRex")

    assert "connect_time_p99" not in told.conditions({"loss_ratio": 0.5})
    assert told.limit("cps") == of_all.limit("cps")
    assert told.notes == ("TCP connect time (p99) <= 20ms is not judged: the generator (TRex) does not measure it.",)
    assert of_all.as_far_as_told((), "software generator") == of_all


def test_what_a_floor_itself_promises_needs_a_generator_that_measures_it() -> None:
    for head in ({}, {"connect_time_p99": "<= 20ms"}):
        own = stock({"cps": ">= 1k", "connect_time_p99": "<= 1ms"}, **head).find(TOPOLOGY, SHORT)
        with pytest.raises(MissingResource, match=r"promises TCP connect time \(p99\) <= 1ms, which the generator"):
            own.as_far_as_told({"connect_time_p99"}, "TRex")


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

"""What the files of a test make impossible, or bound, is said before its first trial; of a table too: by host, memory,
timeout and clients. What the record says of the testbed: named facts, and none that throws a measurement away."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import load, names
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.results.floor import Floor, parse, promise
from ctbench.results.metrics import METRICS
from ctbench.run import feasibility
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.feasibility import LoadLimit, check, check_table, wire_bytes
from ctbench.run.measurement import TestName, environment_of
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, load_profile

from .simulated import campaign as usual_campaign
from .simulated_run import FORWARD as FORWARDED
from .simulated_run import SimulatedTestbed, floors, rate_of

OVS = Topology(datapath="ovs-dpdk", ruleset="conntrack")
LINUX = Topology(datapath="linux-router", ruleset="nftables-stateful")
FORWARD = Topology(datapath="linux-router", ruleset="forward")


def a_testbed(name: str = "local", **keys: Any) -> TestbedConfig:
    return TestbedConfig.model_validate(load("testbeds", name, TestbedConfig).model_dump() | keys)


def lab(**generator: Any) -> TestbedConfig:
    """The example with keys of TRex changed."""
    example = a_testbed("example-trex-xeon")
    return a_testbed("example-trex-xeon", generator=example.generator.model_dump() | generator)


def campaign(most: str = "1M", seconds: str = "1s") -> Campaign:
    how, span = {"trial_duration": seconds, "max_iterations": 8}, {"min": "1k", "max": most}
    return usual_campaign(bisection=how, loads={"packets": span, "connections": span})


def connections(**keys: Any) -> ConnectionProfile:
    return ConnectionProfile(name="mine", **keys)


#: What the files of a test say.
Files = tuple[TestbedConfig, Campaign, Topology, Floor]


def case(profile: Profile, rate: str = ">= 10k", topology: Topology = OVS, **keys: Any) -> Files:
    kind = "cps" if profile.kind == "connections" else "pps"
    floor = Floor(
        key="k", profile=profile, source="tests", metric=METRICS[kind], thresholds={kind: parse(rate, METRICS[kind])}
    )
    return keys.pop("testbed", a_testbed()), keys.pop("campaign", campaign()), topology, floor


def limited(tmp_path: Path, entries: int | None) -> AbstractContextManager[object]:
    """This machine's connection table has so many entries; None: it is not there."""
    path = tmp_path / "nf_conntrack_max"
    if entries is not None:
        path.write_text(f"{entries}\n")
    return patch("ctbench.dut.linux.kind.NF_CONNTRACK_MAX", path)


@pytest.mark.parametrize("name", ["quick", "gate", "characterise", "published"])
@pytest.mark.parametrize("sla", ["local", "published-2022"])
def test_nothing_of_what_ships_is_impossible_on_the_local_testbed(name: str, sla: str, tmp_path: Path) -> None:
    chosen, floors = load("campaigns", name, Campaign), load("sla", sla, Floors)
    judged = 0
    for key, promises in floors.floors.items():
        for asked in promises:
            topology = Topology.parse(key)
            profile = load_profile(chosen.profile_for(asked))
            if topology.datapath in ("cable", "emulated"):
                continue  # nothing is sent into these at a rate
            promised = promises[asked]
            if not (promised.ratio and promised.ratio.rate) and not {"cps", "pps", "bps"} & promised.thresholds.keys():
                continue  # nor into those of which something else is promised
            floor = floors.find(topology, profile)
            with limited(tmp_path, 262_144):
                bounds = check(a_testbed(), chosen, topology, floor)
            # No bound is within twice the floor.
            assert feasibility.notes(bounds, floor.load(0.0)) == []
            judged += 1
    assert judged > 20


MILLION, LARGE = load_profile("udp-64-1m"), load_profile("udp-1518-10k")


@pytest.mark.parametrize(
    ("of", "error", "said"),
    [
        (case(connections(client_ips=1, messages=40, server_wait_ms=50), ">= 40k"), ConfigError,
         "64.5 k client addresses and ports of profile mine suffice for 21.5 k/s"),
        (case(LARGE, ">= 900k", testbed=lab()), ConfigError,
         "links of 10 Gbit/s carry at most 812.7 k packets/s of profile udp-1518-10k"),
        (case(connections(), ">= 80k", LINUX), MissingResource,
         "The kernel's connection table holds 65536 entries, enough for 65.5 k/s"),
        (case(connections(), ">= 80k", LINUX), MissingResource, "sysctl net.netfilter.nf_conntrack_max=88000"),
        (case(MILLION, topology=LINUX), MissingResource,
         "holds 65536 entries, and profile udp-64-1m has 1000000 flows"),
    ],
)  # fmt: skip
def test_what_the_files_make_impossible_is_one_sentence(
    of: Files, error: type[Exception], said: str, tmp_path: Path
) -> None:
    with limited(tmp_path, 65_536), pytest.raises(error) as raised:
        check(*of)
    text = str(raised.value)
    assert said in text and text.count("\n") == text.count("\n  Expected")


@pytest.mark.parametrize(
    "of",
    [
        case(connections(), ">= 80k", FORWARD),  # which tracks nothing
        case(MILLION),  # five million entries in OVS
        case(connections(udp_percent=100), campaign=campaign(seconds="1s")),
        case(LARGE, ">= 100k"),  # memif has no speed
        case(connections(), topology=LINUX, testbed=lab()),  # that is the testbed's to say
    ],
)
def test_what_is_possible_is_not_bounded(of: Files, tmp_path: Path) -> None:
    with limited(tmp_path, 100):
        assert check(*of) == []


def test_a_table_that_is_not_there_yet_is_not_judged(tmp_path: Path) -> None:
    with limited(tmp_path, None):
        assert check(*case(connections(), ">= 80k", LINUX)) == []


@pytest.mark.parametrize(
    ("of", "rate"),
    [
        (case(connections(client_ips=1, messages=40, server_wait_ms=50), ">= 10k"), 64_512 / 3),
        # Ports that come again before they are forgotten forbid nothing.
        (case(connections(client_ips=1), ">= 100k"), 64_512),
        (case(connections(udp_percent=100), campaign=campaign(seconds="60s")), 5_000_000 / 30),
        (case(LARGE, ">= 100k", testbed=lab()), 812_743.8),
    ],
)
def test_what_bounds_the_search_is_known_before_it(of: Files, rate: float) -> None:
    (bound,) = check(*of)
    assert bound.rate == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(("frame", "rate"), [(64, 14_880_952), (1518, 812_744), ("imix", 3_273_680)])
def test_line_rates_are_those_of_rfc_2544(frame: Any, rate: int) -> None:
    profile = PacketProfile(name="mine", kind="packets", frame_bytes=frame)
    assert 10e9 / 8 / wire_bytes(profile) == pytest.approx(rate, rel=1e-6)
    both = PacketProfile(name="mine", kind="packets", frame_bytes=frame, directions="both")
    assert wire_bytes(both) == wire_bytes(profile) / 2
    if frame == 1518:
        assert wire_bytes(profile.model_copy(update={"fragments": 3})) == 3 * wire_bytes(profile)


def test_a_connection_costs_the_wire_its_packets_in_the_busier_direction() -> None:
    short = load_profile("short-lived")
    # SYN, ACK or FIN with 84 bytes, the request with 98; 1 % UDP of 86.
    assert wire_bytes(short) == pytest.approx(0.99 * (3 * 84 + 98) + 0.01 * 86)


@pytest.mark.parametrize("name", names("testbeds"))
def test_every_testbed_that_ships_can_be_judged(name: str) -> None:
    check(*case(load_profile("short-lived"), testbed=a_testbed(name)))


def run_with_cards(speed_gbit: float, output: Path) -> AcceptanceRun:
    """A run on a lab's router, between links of so many Gbit/s."""
    cards = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1", "speed_gbit": speed_gbit}
    router = {"type": "linux-router", "host": "local", "ports": cards}
    local = load("testbeds", "local", TestbedConfig).model_dump() | {"duts": [router]}
    return AcceptanceRun(
        RunSettings(TestbedConfig.model_validate(local), usual_campaign(), floors()), output, lambda _: None
    )


def test_what_cannot_be_is_said_before_anything_is_set_up(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    run = run_with_cards(0.05, tmp_path)
    with pytest.raises(ConfigError, match=r"links of 0\.05 Gbit/s carry at most 74\.4 k packets/s"):
        run.measure(TestName("Suite", "Test"), FORWARDED, "udp-64-10k", rate_of("udp-64-10k"))
    assert (simulated.applied, simulated.loads) == ([], [])
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(("speed_gbit", "noted"), [(0.5, True), (1.0, False)])
def test_a_bound_that_may_have_had_a_say_is_a_note_of_the_record(
    simulated: SimulatedTestbed, tmp_path: Path, speed_gbit: float, noted: bool
) -> None:
    # The capacity is 400 k packets/s: 744 k are less than twice that, 1.49 M are not.
    record = run_with_cards(speed_gbit, tmp_path).measure(
        TestName("Suite", "Test"), FORWARDED, "udp-64-10k", rate_of("udp-64-10k")
    )
    assert any("744.0 k packets/s" in note for note in record.notes) == noted
    assert bool(record.notes) == noted


HOLDING = Topology(timeout_s=120)
ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful", timeout_s=120)
HELD = load_profile("held")


def bounds(
    tmp_path: Path, promised: float, topology: Topology = HOLDING, free_mib: int = 20_000, held: bool = True,
    profile: ConnectionProfile = HELD, testbed: str = "local",
) -> list[LoadLimit]:  # fmt: skip
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {free_mib * 1024} kB\n")
    metric = METRICS["held_connections"]
    floor = Floor(topology.key, profile, source="", metric=metric, thresholds={metric.name: promise(metric, promised)})
    quick = load("campaigns", "quick", Campaign)
    with limited(tmp_path, 262_144), patch.object(feasibility, "MEMINFO", meminfo):
        return check_table(load("testbeds", testbed, TestbedConfig), quick, topology, floor, held=held)


def test_what_fits_is_bounded_by_clients_timeout_memory_and_what_the_generator_holds(tmp_path: Path) -> None:
    found = bounds(tmp_path, 100_000)
    assert [round(bound.rate) for bound in found] == sorted(round(bound.rate) for bound in found)
    # 119.7 s at 100k/s for opening and asking, with a tenth to spare; the limit of OVS is for the measurement to find.
    assert round(found[0].rate) == 5_386_500 and "forgotten after 120 s" in found[0].text
    assert bounds(tmp_path, 100_000, testbed="local-trex")[0].rate == 100_000
    assert bounds(tmp_path, 1_000_000, testbed="local-trex", held=False)[0].rate > 1_000_000
    with pytest.raises(MissingResource, match=r"testbed local-trex holds 100\.0 k connections \(max_held\), and the"):
        bounds(tmp_path, 100_001, testbed="local-trex")
    with pytest.raises(MissingResource, match=r"has 512 MiB of free memory, enough for 838\.9 k connections"):
        bounds(tmp_path, 1_000_000, free_mib=512)
    assert bounds(tmp_path, 100_000, free_mib=512)[0].rate == pytest.approx(512 * 2**20 / (64 + 512) * 0.9)
    assert bounds(tmp_path, 250_000, ROUTER)[0].rate == 262_144
    with pytest.raises(MissingResource, match=r"a limit of the host's, and the floor is 300\.0 k\. An administrator"):
        bounds(tmp_path, 300_000, ROUTER)


def test_a_timeout_that_is_too_short_and_too_few_clients_are_mistakes_of_the_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)forgotten after 30 s.*longer timeout_s"):
        bounds(tmp_path, 2_000_000, Topology())
    with pytest.raises(ConfigError, match="more client_ips"):
        bounds(tmp_path, 100_000, profile=ConnectionProfile(name="few", client_ips=1))
    assert bounds(tmp_path, 0, Topology(timeout_s=1), held=False)[0].rate > 1_000_000  # nothing is held


OF_OVS = {"version": "3.1.0", "dpdk_version": "22.11.1", "kind": "ovs-dpdk", "machine": {"cpu_model": "Xeon"}}


def facts(**dut: Any) -> dict[str, dict[str, Any]]:
    return {"testbed": {"name": "local"}, "dut": OF_OVS | dut, "generator": {}, "machine": {"usable_cpus": (0, 1)}}


def test_the_product_is_what_people_call_it_and_odd_facts_are_kept_as_text() -> None:
    found = environment_of(Topology(), facts())
    assert (found.dut.product, found.dut.product_details) == ("Open vSwitch 3.1.0", "Open vSwitch 3.1.0, DPDK 22.11.1")
    assert (found.dut.machine.cpu_model, found.dut.model_extra["kind"]) == ("Xeon", "ovs-dpdk")
    assert (found.testbed.name, found.machine.usable_cpus) == ("local", [0, 1])
    assert environment_of(CABLE, facts() | {"dut": {}}).dut.product == ""
    found = environment_of(Topology(), facts(memory=5, machine=7))
    assert (found.dut.model_extra["version"], found.dut.memory, found.dut.machine) == ("3.1.0", None, None)
    assert found.dut.model_extra["odd_facts"] == {"machine": "7", "memory": "5"}

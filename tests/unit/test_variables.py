"""The files that ship: all can be read, and promise what was published."""

from ipaddress import IPv4Address

import pytest
from pydantic import BaseModel
from robot import running

from ConntrackSLA.rows import rows
from ctbench.base.errors import NoFloorYet
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load, names
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedures.pair import Pair
from ctbench.run.measurement import plan
from ctbench.sla.floor import packets_per_connection
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile

KINDS: dict[str, type[BaseModel]] = {
    "campaigns": Campaign,
    "sla": Floors,
    "testbeds": TestbedConfig,
}

#: OVS 3.0.0, tables 4 to 17 of the 2022 article: CPUs, queues, CPS and pps short-lived, CPS and pps long-lived.
PUBLISHED = [
    (1, 1, 48_200, 334_900, 1_200, 1_800_000),
    (2, 1, 46_800, 325_000, 1_100, 1_700_000),
    (2, 2, 65_900, 459_900, 1_400, 2_200_000),
    (4, 2, 49_100, 340_100, 2_000, 3_100_000),
    (4, 4, 100_800, 700_600, 2_600, 3_900_000),
    (8, 4, 90_100, 626_700, 3_800, 5_700_000),
    (8, 8, 100_900, 698_900, 4_800, 7_200_000),
]
#: More queues on one CPU take the figures of one queue.
ONE_CPU = [(1, queues, *PUBLISHED[0][2:]) for queues in (2, 4, 8)]


def profile(name: str) -> ConnectionProfile:
    return load("profiles", name, ConnectionProfile)


def campaign(name: str) -> Campaign:
    return load("campaigns", name, Campaign)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in (*KINDS, "profiles") for name in names(kind)])
def test_every_file_that_ships_can_be_read(kind: str, name: str) -> None:
    read = load(kind, name, KINDS[kind]) if kind in KINDS else load_profile(name)
    assert read.name == name  # type: ignore[attr-defined]


STREAMS = {f"udp-{size}-10k": (size, 10_000, "one") for size in (64, 128, 256, 512, 1024, 1280, 1518, "imix")} | {
    "udp-64-1flow": (64, 1, "one"),
    "udp-64-10k-both": (64, 10_000, "both"),
    "udp-64-1m": (64, 1_000_000, "one"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_there_are_packets_of_every_size_of_rfc_2544_of_one_flow_or_many_one_way_or_both(name: str) -> None:
    ours = load_profile(name)
    assert isinstance(ours, PacketProfile)
    assert (ours.frame_bytes, ours.flows, ours.directions, ours.vlan) == (*STREAMS[name], 0)


@pytest.mark.parametrize(("name", "messages", "wait"), [("short-lived", 1, 0), ("long-lived", 500, 50)])
def test_the_published_profiles_have_the_published_parameters(name: str, messages: int, wait: int) -> None:
    ours = profile(name)
    assert (ours.messages, ours.server_wait_ms, ours.udp_percent) == (messages, wait, 1)
    assert (ours.request_bytes, ours.reply_bytes, ours.tcp_port, ours.udp_port) == (20, 20, 8080, 5353)
    assert str(IPv4Address(ours.client_ip) + ours.client_ips - 1) == "16.0.255.255"
    assert str(IPv4Address(ours.server_ip) + ours.server_ips - 1) == "48.0.0.255"
    assert (ours.client_ip, ours.server_ip) == ("16.0.0.0", "48.0.0.0")


def test_the_long_lived_server_acknowledges_on_its_own_which_makes_1500_packets_per_connection() -> None:
    assert round(packets_per_connection(profile("long-lived"))) == 1_500
    assert profile("long-lived").lifetime_s == 25
    assert profile("long-lived-short").lifetime_s == 2


@pytest.mark.parametrize("figures", [*PUBLISHED, *ONE_CPU])
def test_the_floors_with_conntrack_are_the_published_figures(figures: tuple[int, ...]) -> None:
    cpus, queues, short_cps, short_pps, long_cps, long_pps = figures
    topology = Topology(cpus=cpus, rx_queues=queues)
    stock, lab = load("sla", "local", Floors), load("sla", "published-2022", Floors)
    for name, cps, pps in (("short-lived", short_cps, short_pps), ("long-lived", long_cps, long_pps)):
        floor = lab.find(topology, profile(name))
        assert (floor.limit("cps"), floor.limit("pps")) == (cps, pps)
        assert floor.conditions({"loss_ratio": 1}) == {"loss_ratio": 0.0002}
        assert floor.bound_to("cps") == "Gold 5118"
        if cpus > 1 and name == "long-lived":
            with pytest.raises(NoFloorYet):
                stock.find(topology, profile(name))
            continue
        shown = stock.find(topology, profile(name))
        # The stock SLA shows them all, and promises those of short-lived connections as a smoke test.
        assert shown.reference is not None
        assert shown.reference.figures == {"cps": cps, "pps": pps}
        assert (shown.limit("cps"), "cps" in shown.smoke) == ((cps, True) if name == "short-lived" else (None, False))


def test_every_floor_for_long_lived_gives_one_for_its_shortened_form() -> None:
    floors = load("sla", "local", Floors)
    shortened = profile("long-lived-short")
    for key, entries in floors.floors.items():
        if "long-lived" not in entries or ((ratio := entries["long-lived"].ratio) and not ratio.rate):
            continue  # there is no floor yet
        topology = Topology.parse(key)
        assert topology.key == key
        floor = floors.find(topology, shortened)
        assert floor.profile == shortened
        assert floor.derivation.startswith("from long-lived's ") == (floor.main is not None)


def test_the_published_campaign_is_the_procedure_of_2022() -> None:
    ours = campaign("published")
    for name, duration, lo, hi in (("short-lived", 30, 1_000, 100_000), ("long-lived", 120, 500, 2_000)):
        search, where = ours.search_for(profile(name)), ours.load_range(profile(name))
        assert (search.trial_duration, search.max_iterations, search.middle) == (duration, 8, "arithmetic")
        assert (search.relative_width, search.final_duration) == (None, None)
        assert (where.min, where.max) == (lo, hi)
    assert ours.loss_ratio == 0.0002


def test_the_gate_offers_enough_for_the_floors_that_ship() -> None:
    headroom = campaign("gate").floor_trials(profile("short-lived")).headroom
    floors = load("sla", "published-2022", Floors)
    for name in ("short-lived", "long-lived"):
        floor = floors.find(Topology(), profile(name))
        packets = floor.load(headroom) * packets_per_connection(profile(name))
        assert packets * (1 - floor.conditions({"loss_ratio": 1})["loss_ratio"]) > (floor.limit("pps") or 0.0) > 0


#: All rows of all suites but those over the cable, by name.
ROWS = {
    row.test.name: row
    for row in rows(running.TestSuite.from_file_system(ROOT / "suites"))
    if row.topology.datapath != CABLE.datapath
}


#: Those that promise a rate: instructions, and entries of the table, are counted without one.
OF_RATES = {name: row for name, row in ROWS.items() if row.promise.about == "rate"}


@pytest.mark.parametrize("name", OF_RATES)
def test_every_row_of_a_rate_has_a_floor_and_the_topology_it_is_compared_with_a_range(name: str) -> None:
    row = OF_RATES[name]
    stock = load("sla", "local", Floors)
    entry = stock.floors[row.topology.key].get(row.profile.name)
    if entry and entry.ratio and not entry.ratio.rate:
        relative_to = entry.ratio.to  # it has no floor yet
    else:
        relative_to = stock.find(row.topology, row.profile).relative_to
    if relative_to:
        # Both stand side by side on the CPUs of the tested one.
        other = Topology.parse(relative_to)
        assert other.cpus <= row.topology.cpus and other.rx_queues <= row.topology.rx_queues
    for each in names("campaigns"):
        ours = campaign(each)
        assert ours.load_range(load_profile(ours.profile_for(row.profile.name)))


def test_the_quick_campaign_is_planned_for_less_than_six_minutes_on_two_cpus() -> None:
    # Setting a topology up takes about 1 s, a pair 2 s, a trial 0.6 s besides its traffic. Floors are so far
    # away that the trial of the search confirms them. Bonds and the VLANs of Linux are skipped.
    quick, floors = campaign("quick"), load("sla", "local", Floors)
    total = 0.0
    for row in OF_RATES.values():
        offered = load_profile(quick.profile_for(row.profile.name))
        linux = row.topology.datapath != "ovs-dpdk"
        left_out = set(quick.skips) & set(row.test.tags)
        if left_out or row.topology.cpus > 1 or (linux and row.topology.ports != "plain"):
            continue
        try:
            floor = floors.find(row.topology, offered)
        except NoFloorYet:
            continue
        planned = plan(row.promise, quick, row.topology, offered)
        assert planned.first is not None
        steps = [Pair() if floor.relative_to else planned.first, planned.main]
        total += (2 if floor.relative_to else 1) + sum(each.expected(offered, quick).seconds(0.6) for each in steps)
    assert total < 6 * 60

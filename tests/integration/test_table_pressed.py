"""What is done to a connection table of the real OVS-DPDK and the real kernel, as rows do it, with few entries: a
NAT runs out of ports, a zone is full, entries are removed under a load, datagrams are cut short."""

import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from integration.small_testbed import small
from integration.test_table import CONNECTIONS, HOW, OVS, bench
from packets import internet_checksum, udp
from real_duts import hand_over
from unit.simulated import made_up_packets

from ctbench.base.paths import RULESETS
from ctbench.base.yaml_files import load
from ctbench.dut import rulesets
from ctbench.dut.abilities import Done, TableEntry
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.measure.campaign import ControlPlaneSettings
from ctbench.measure.procedure import Bench, Outcome, Scripted
from ctbench.measure.procedures import port_exhaustion, reassembly, removal
from ctbench.measure.procedures.table_limits import ZONE_FULL
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.generator import Opened, Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import PacketProfile, Profile, load_profile
from ctgen import HeldConnections, hold, plan

#: That entries come and go is looked at, and no rate: others may use the machine as well.
pytestmark = [pytest.mark.usefixtures("resting", "unhurried", "any_packets"), pytest.mark.beside_others]


@pytest.fixture(scope="module")
def testbed(able_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """The local testbed, used by one test after the other. The clock of its Open vSwitch can be put forward."""
    config = small(load("testbeds", "local", TestbedConfig))
    duts = [
        dut.model_copy(update={"ovs": dut.ovs.model_copy(update={"options": ["--enable-dummy"]})})
        if dut.type == "ovs-dpdk"
        else dut
        for dut in config.duts
    ]
    made = Testbed(config.model_copy(update={"duts": duts}), tmp_path_factory.mktemp("pressed"))
    yield made
    made.close()


def patient_until_full(patch: pytest.MonkeyPatch, made: Bench, limit: int) -> None:
    """A reply may take its time (fixture `unhurried`), and no pause of a busy machine ends the opening of connections.
    Only where none has to come it is waited for briefly: by connections that open when `limit` of them are open and the
    DUT knows as many, and by those that come at a rate."""
    open_more, run_trial = HeldConnections.open, made.generator.run_trial

    def opened(held: HeldConnections, connections: int) -> Opened:
        with patch.context() as briefly:
            if min(held.held(), made.dut.connections()) >= limit:
                briefly.setattr(plan, "REPLY_TIMEOUT_S", 1.0)
            return open_more(held, connections)

    def offered(profile: Profile, load: Load, seconds: float) -> Trial:
        with patch.context() as briefly:
            briefly.setattr(plan, "REPLY_TIMEOUT_S", 1.0)
            return run_trial(profile, load, seconds)

    patch.setattr(hold, "GIVE_UP", 10**6)
    patch.setattr(HeldConnections, "open", opened)
    patch.setattr(made.generator, "run_trial", offered)


def test_a_nat_uses_all_of_its_ports_refuses_more_and_recovers(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_exhaustion, "TRIALS", 1)
    monkeypatch.setattr(port_exhaustion, "_REFUSED_PER_S", 1000.0)
    limits = {"ports_used": 1.0, "forgotten_when_full": 0.0, "recovery_time": 30.0}
    topology = OVS.model_copy(update={"ruleset": "egress"})
    made = bench(testbed, topology, profile=load_profile("egress"), **limits)
    patient_until_full(monkeypatch, made, 10_000)
    found = port_exhaustion.PORT_EXHAUSTION.run(made)
    assert {name: each.kept for name, each in found.verdicts.items()} == dict.fromkeys(limits, True), found.reason
    assert {"opening_rate", "opening_at_half", "opening_at_90", "refusal_time"} <= found.figures.keys()


@pytest.mark.parametrize("limited", [True, False])
def test_a_full_zone_leaves_another_one_alone_and_one_without_its_limit_is_missed(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, limited: bool
) -> None:
    monkeypatch.setattr(rulesets, "_added", {})
    flows = Path(shutil.copy(RULESETS / "ovs" / "zone-limit.flows", tmp_path / "few.flows"))
    flows.with_suffix(".yaml").write_text("title: Two zones\ntracks: true\nzone_limits: {1: 1000}\n")
    topology = OVS.model_copy(update={"ruleset": rulesets.add_ruleset(flows).name})
    made = bench(testbed, topology, held_connections=1000)
    if limited:
        patient_until_full(monkeypatch, made, 1000)
    else:
        testbed.dut.control.appctl("dpctl/ct-del-limits", "zone=1")
    found = ZONE_FULL.run(made)
    assert found.verdicts["held_connections"].kept is limited, found.reason
    said = "1000 connections filled their zone, 1000 more were refused" if limited else "0 of 1000 connections beyond"
    assert said in found.reason


@dataclass
class Removed:
    """The first thing that was removed, before any load was offered, and the table before and after."""

    what: tuple[TableEntry | None, int | None] = (None, None)
    before: set[TableEntry] = field(default_factory=set)
    after: set[TableEntry] = field(default_factory=set)


def removing(testbed: Testbed, procedure: Scripted, ruleset: str, **limits: float) -> tuple[Outcome, Removed]:
    """What a procedure of removal finds, of a table of thousands in place of a million, under a small load."""
    topology = OVS.model_copy(update={"ruleset": ruleset})
    made = bench(testbed, topology, HOW, load_profile("short-lived"), loss_ratio=0.5, **limits)
    small_load = {"alone_duration": "300ms", "trial_duration": "1500ms", "connections": 1000}
    settings = ControlPlaneSettings.model_validate(small_load)
    made = replace(made, campaign=made.campaign.model_copy(update={"control_plane": settings}))
    seen, remove, (times, action, _) = Removed(), made.dut.remove_entries, procedure.script.args  # type: ignore[attr-defined]

    def listed() -> set[TableEntry]:
        return {replace(entry, timeout_s=0) for entry in made.dut.list_entries()}

    def watched(entry: TableEntry | None = None, zone: int | None = None) -> Done:
        if seen.before:
            return remove(entry, zone)
        seen.what, seen.before = (entry, zone), listed()
        done = remove(entry, zone)
        seen.after = listed()
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "_EVERY_S", 0.1)
        patch.setattr(removal, "LARGE_TABLE", CONNECTIONS)
        patch.setattr(made.dut, "remove_entries", watched)
        at_once = partial(procedure.script.func, times, action, 0.0)  # type: ignore[attr-defined]
        return replace(procedure, script=at_once).run(made), seen


def test_one_entry_is_removed_and_no_other(testbed: Testbed) -> None:
    found, seen = removing(testbed, removal.ENTRY_REMOVAL, "conntrack", entry_removal_time=60.0)
    assert found.verdicts["entry_removal_time"].kept is True, found.reason
    entry, _ = seen.what
    assert entry and len(seen.before) == CONNECTIONS
    assert seen.before - seen.after == {replace(entry, timeout_s=0)}
    assert {"loss_meanwhile", "main_thread_longest"} <= found.figures.keys()


def test_the_entries_of_one_zone_are_removed_and_those_of_no_other(testbed: Testbed) -> None:
    found, seen = removing(testbed, removal.ZONE_REMOVAL, "zones", zone_removal_time=60.0)
    assert found.verdicts["zone_removal_time"].kept is True, found.reason
    _, zone = seen.what
    gone = seen.before - seen.after
    assert len(seen.before) == CONNECTIONS and len(gone) > 1
    assert gone == {entry for entry in seen.before if entry.zone == zone}


def test_a_removal_for_which_an_operator_waits_is_missed(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, tool = tmp_path / "ovs-appctl", OvsInstallation.tool
    program.write_text('#!/bin/sh\ncase "$*" in *flush-conntrack*ct_nw*) sleep 0.1;; esac\nexec ovs-appctl "$@"\n')
    program.chmod(0o755)
    slow = {"ovs-appctl": str(program)}
    monkeypatch.setattr(OvsInstallation, "tool", lambda at, name: slow.get(name) or tool(at, name))
    found, _ = removing(testbed, removal.ENTRY_REMOVAL, "conntrack", entry_removal_time=0.08)
    assert found.verdicts and found.verdicts["entry_removal_time"].kept is False, found.reason


def first_fragment(number: int) -> bytes:
    """Of a datagram whose other fragments never come."""
    frame = bytearray(udp(("16.200.0.1", 40000 + number), ("48.0.0.1", 8080), bytes(1400)))
    frame[18:26] = struct.pack("!HHBBH", number, 0x2000, 64, 17, 0)
    frame[24:26] = struct.pack("!H", internet_checksum(bytes(frame[14:34])))
    return bytes(frame)


@pytest.mark.parametrize("given_up", [True, False])
def test_fragments_of_datagrams_that_were_cut_short_are_given_up_or_it_is_missed(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch, *, given_up: bool
) -> None:
    """Open vSwitch gives up what it keeps after 15 s, and forgets it within 10 s more: the clock that it goes by is put
    forward. What is cut short is handed to it, as no load cuts anything short for certain."""
    few = load_profile("udp-fragments").model_copy(update={"flows": 200})
    made = bench(testbed, OVS, profile=few, reassembly_time=60.0, loss_ratio=0.5)
    dut, generator = made.dut, made.generator
    offer, served, cut_short = generator.run_trial, 500.0, list[int]()

    def offered(profile: PacketProfile, load: Load, seconds: float) -> Trial:
        if isinstance(load, Saturation):
            return made_up_packets(served, seconds)
        if profile.fragments > 1 and load.per_s > served:
            for number in range(20):
                cut_short.append(number)
                hand_over(dut, 1, first_fragment(number))
            return made_up_packets(load.per_s, seconds)
        if profile.fragments == 1 and given_up:
            dut.control.appctl("time/warp", "13000")
        return offer(profile, Rate(served), seconds)

    short = {"_TRIAL_S": 0.2, "PATIENCE_S": 60.0 if given_up else 0.5}
    short |= {"wait_until": lambda *_: dut.flush_state()}  # how long entries stay is another test's
    for name, value in short.items():
        monkeypatch.setattr(reassembly, name, value)
    monkeypatch.setattr(generator, "run_trial", offered)
    found = reassembly.REASSEMBLY.run(made)
    said = "20 fragments were gone after" if given_up else "20 of 20 fragments stayed for 0.5 s"
    assert said in found.reason
    assert len(cut_short) == (20 * reassembly.TIMES if given_up else 20)
    assert found.verdicts["reassembly_time"].kept is given_up

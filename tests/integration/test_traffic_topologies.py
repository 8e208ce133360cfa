"""Complete connections pass the real OVS-DPDK over every queue of every topology, and both sides count the same."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

import pytest
from real_duts import counted, without_loss
from unit.simulated import floor_of
from wire import join, take, watching

from ctbench.base.yaml_files import load
from ctbench.dut.ovs.control import BRIDGE
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.measure import trial as one_trial
from ctbench.measure.campaign import Campaign, GateSettings
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.rates import AtFloor
from ctbench.measure.trial import Repetitions
from ctbench.results.verdict import Code
from ctbench.sla.verdict import judge
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen import Generator, engine, plan
from ctgen import layout as lay
from ctgen.ring import joined

#: So few connections, and so patient (fixture `unhurried`), that they pass where others use the machine as well.
pytestmark = pytest.mark.beside_others

#: PMD CPUs and receive queues: the seven published topologies, and one CPU with more queues.
MATRIX = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8)]
MIXED = ConnectionProfile(name="mixed", messages=2, udp_percent=10, client_ips=100, server_ips=10)
FLOWS = PacketProfile(name="flows", kind="packets", flows=64, directions="both")
#: Connections per second, and seconds: few enough for nine threads on two CPUs.
LOAD, SECONDS = 1000, 0.5


def connect(dut: OvsDpdkDut, generator: Generator, topology: Topology, threads: int = 1) -> None:
    """Set the topology up and connect the generator to it."""
    join(generator, dut.apply(topology), threads=threads)
    dut.flush_state()


def received_per_queue(dut: OvsDpdkDut) -> dict[str, list[int]]:
    """Packets that OVS has taken from each receive queue; ovs-ofctl(8), dump-ports of OpenFlow 1.4."""
    blocks = re.split(r"^  port +", dut.control.ofctl("-O", "OpenFlow14", "dump-ports", BRIDGE), flags=re.MULTILINE)
    by_port = {block[0]: [int(count) for count in re.findall(r"rx_q\d+_packets=(\d+)", block)] for block in blocks}
    return {"client": by_port["1"], "server": by_port["2"]}


def assert_all_complete(trial: Trial) -> None:
    assert trial.attempted > 0
    assert trial.completed == trial.attempted
    assert (trial.failed, trial.unexpected, trial.total_dut_missed) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("cpus", "rx_queues", "threads", "profile"),
    [
        *((cpus, rx_queues, 1, MIXED) for cpus, rx_queues in MATRIX),
        *((*case, profile) for case in ((2, 2, 2), (2, 8, 2), (4, 4, 4)) for profile in (MIXED, FLOWS)),
    ],
)
def test_each_queue_gets_what_ovs_takes_from_it(
    dut: OvsDpdkDut, generator: Generator, cpus: int, rx_queues: int, threads: int, profile: Profile
) -> None:
    connect(dut, generator, Topology(cpus=cpus, rx_queues=rx_queues), threads)
    wiring = generator._wirings["tested"]

    def put() -> dict[str, list[int]]:
        return {side: [ring.index for ring in getattr(wiring, side).tx] for side in ("client", "server")}

    runs: list[engine.Run] = []
    before, put_before = received_per_queue(dut), put()

    def make() -> Trial:
        nonlocal before, put_before
        runs.clear()
        before, put_before = received_per_queue(dut), put()
        with watching(runs.append):
            return generator.run_trial(profile, Rate(LOAD), SECONDS)

    assert_all_complete(without_loss(make))
    assert len(runs[0].parts) == threads
    after, put_after = received_per_queue(dut), put()
    for side, counts in after.items():
        received = [now - then for now, then in zip(counts, before[side], strict=True)]
        assert len(received) == rx_queues
        assert received == [now - then for now, then in zip(put_after[side], put_before[side], strict=True)]
        assert min(received) > 0
        for thread, part in enumerate(runs[0].parts):
            assert part.counts.tx_packets[lay.SIDES.index(side)] == sum(received[thread::threads])


@pytest.mark.parametrize("ruleset", ["forward", "conntrack", "conntrack-normal", "nat"])
def test_packets_are_counted_alike_by_the_generator_and_by_ovs(
    dut: OvsDpdkDut, generator: Generator, ruleset: str
) -> None:
    def make() -> Trial:
        connect(dut, generator, Topology(rx_queues=2, ruleset=ruleset))
        return generator.run_trial(MIXED, Rate(LOAD), SECONDS)

    assert_all_complete(trial := without_loss(make))
    counters = counted(dut)
    assert counters.rx_packets == trial.total_tx_packets
    assert counters.tx_packets == trial.total_rx_packets
    assert counters.drops == {}
    assert sum(trial.total_tx_packets.values()) == sum(trial.total_rx_packets.values())


@contextmanager
def taken_away(generator: Generator, side: str, number: int) -> Iterator[None]:
    """Frames that OVS puts on one of its rings to a port of the generator go to somebody else."""
    port, ended = getattr(generator._wirings["tested"], side), Event()
    rings = port.rx
    of_others = [ring for place, ring in enumerate(rings) if place != number]
    ring = rings[number]

    def poll() -> None:
        while not ended.wait(0.001):
            while take(ring):
                pass

    thief = Thread(target=poll)
    port.rx = joined([(type(ring) * len(of_others))(*of_others)])
    thief.start()
    try:
        yield
    finally:
        ended.set()
        thief.join()
        for place, other in zip((each for each in range(len(rings)) if each != number), port.rx, strict=True):
            rings[place] = other  # where the generator has come to
        port.rx = rings


Made = TypeVar("Made", Outcome, Observation)


def in_time(make: Callable[[], Made]) -> Made:
    """What comes of a trial in which all was begun: next to other tests that takes more than one at times."""
    said = []
    for _ in range(3):
        made = make()
        seen = made.trials[0] if isinstance(made, Outcome) else made
        if seen.trial.attempted == seen.trial.intended:
            return made
        said.append(f"{seen.state}, {seen.trial.attempted} of {seen.trial.intended} begun: {seen.reason}")
    pytest.fail(f"In none of three trials all was begun.\n{chr(10).join(said)}")


def test_what_ovs_sent_and_the_generator_did_not_take_is_not_its_loss_and_what_it_dropped_is(
    dut: OvsDpdkDut, generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each PMD thread transmits on a ring of its own: those of one of two do not come."""
    connect(dut, generator, Topology(cpus=2, rx_queues=2))
    floor, once = floor_of(MIXED, cps=LOAD), Repetitions(0.0)
    bench = Bench(dut, generator, floor, load("campaigns", "quick", Campaign), repetitions=once)  # type: ignore[arg-type]
    at_floor = AtFloor(GateSettings.model_validate({"trial_duration": f"{SECONDS:g}s"}))
    assert_all_complete(without_loss(lambda: bench.runner.offer(Rate(LOAD), SECONDS).trial))
    used = [place for place, ring in enumerate(generator._wirings["tested"].server.rx) if ring.index]

    monkeypatch.setattr(plan, "REPLY_TIMEOUT_S", 1.0)  # some never come
    monkeypatch.setattr(one_trial, "COUNTED_LATE_S", 0.0)
    with taken_away(generator, "server", used[0]):
        found = in_time(lambda: at_floor.run(bench))

    verdict, (away,) = judge(found, floor), found.trials
    assert (verdict.word, verdict.code) == ("not measured", Code.INVALID), verdict.reason
    assert away.trial.loss_ratio > 0.1 and away.lost_elsewhere in verdict.reason
    assert_all_complete(without_loss(lambda: bench.runner.offer(Rate(LOAD), SECONDS).trial))
    dut.control.ofctl("add-flow", BRIDGE, "priority=9,ip,nw_src=16.0.0.0/28,actions=drop")
    own = in_time(lambda: bench.runner.offer(Rate(LOAD), SECONDS))
    assert (own.state, own.lost_elsewhere) == ("bad", ""), own.reason

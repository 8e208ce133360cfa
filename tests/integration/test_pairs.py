"""Two DUTs side by side on the real OVS-DPDK and the real kernel: who has the CPU when, and what is left where one of
them dies. How much a ratio scatters is in docs/methodology.md; here it only has to come."""

import os
import re
import signal
from pathlib import Path

import pytest
from integration.small_testbed import small
from integration.test_faults import process_of
from unit.simulated import floor_of

from ctbench.base.errors import Crashed, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.base import wait_until
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.measure.campaign import Campaign
from ctbench.measure.duet import spoilt
from ctbench.measure.procedure import Bench
from ctbench.measure.procedures.pair import Pair
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup, SideBySide
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import load_profile

#: That connections come through is looked at, and not how many.
pytestmark = [pytest.mark.beside_others, pytest.mark.usefixtures("resting")]

SHORT = load_profile("short-lived")
CONNTRACK, FORWARD = Topology(), Topology(ruleset="forward")
#: Long enough for some milliseconds that count, whatever the machine does besides.
ORDER: list[Side] = ["tested", "other", "other", "tested"]
SLICE_S = 0.1


def ovs_pair(testbed: Testbed) -> SideBySide:
    testbed.apply_pair(Setup(CONNTRACK), Setup(FORWARD), SHORT)
    assert testbed.in_turn is None and testbed.side_by_side is not None
    return testbed.side_by_side


def sandboxes(testbed: Testbed) -> list[Sandbox]:
    """Of the tested one, and of the other."""
    found = {place.beside: host for place, (_, host) in testbed._duts.items() if place.datapath == "ovs-dpdk"}
    assert isinstance(found[False], Sandbox) and isinstance(found[True], Sandbox)
    return [found[False], found[True]]


def served(pair: SideBySide) -> list[Slice]:
    """Slices in which both sides served something: next to other tests a side may have had no CPU in some."""
    for _ in range(10):
        slices = pair.run_slices(ORDER, SLICE_S)
        if {part.side for part in slices if part.completed} == {*ORDER}:
            break
    else:
        pytest.fail(f"One side served nothing: {slices}")
    return slices


def stopped(sandbox: Sandbox) -> bool:
    stat = Path(f"/proc/{process_of(sandbox, 'ovs-vswitchd')}/stat")
    return wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", 1, 0.01)


def test_of_two_open_vswitches_one_is_stopped_and_both_forward_in_their_turns(testbed: Testbed) -> None:
    pair = ovs_pair(testbed)
    tested, other = sandboxes(testbed)
    assert (stopped(tested), stopped(other)) == (False, True)
    pids = [process_of(each, "ovs-vswitchd") for each in (tested, other)]
    pair.flush()
    assert [part.side for part in served(pair)] == ORDER
    assert not [each for each in pair.health() if each.severity in ("fatal", "stalled")]
    assert (stopped(tested), stopped(other)) == (False, True)
    assert testbed.dut.connections() >= 0
    # The next topology, and the next pair, have the same daemons.
    testbed.apply(CONNTRACK)
    assert stopped(other)
    assert ovs_pair(testbed).run_slices(ORDER, SLICE_S)
    assert pids == [process_of(each, "ovs-vswitchd") for each in (tested, other)]


def test_a_start_has_daemons_of_its_own_and_the_slices_of_either_side_are_its_own(testbed: Testbed) -> None:
    pids = []
    for first in ("other", "tested"):
        testbed.apply_pair(Setup(CONNTRACK), Setup(FORWARD), SHORT, first)
        pids += [process_of(each, "ovs-vswitchd") for each in sandboxes(testbed)]
        assert testbed.side_by_side is not None and testbed.side_by_side.first == first
        testbed.side_by_side.flush()
        assert served(testbed.side_by_side)[0].side == first
        assert testbed.dut.connections() > 0  # only the tested one tracks them
    assert len(set(pids)) == 4


def test_a_side_is_offered_loads_in_a_turn_of_its_own_while_the_other_one_is_stopped(testbed: Testbed) -> None:
    pair = ovs_pair(testbed)
    tested, other = sandboxes(testbed)
    turns: list[tuple[Side, tuple[bool, bool]]] = [("other", (True, False)), ("tested", (False, True))]
    for side, stands in turns:
        dut, generator = pair.turn(side)
        dut.flush_state()
        assert generator.run_trial(SHORT, Rate(1000), 0.3).completed
        assert (stopped(tested), stopped(other)) == stands
    assert testbed.dut.connections() > 0  # of the two only the tested one tracks them


def test_what_goes_one_way_through_a_bridge_is_not_flooded(testbed: Testbed) -> None:
    testbed.apply_pair(Setup(Topology(ruleset="normal")), Setup(FORWARD), load_profile("udp-64-1flow"))
    pair = testbed.side_by_side
    assert pair and isinstance(pair.tested, OvsDpdkDut)
    pair.run_slices(ORDER, SLICE_S, before=True)
    pair.run_slices(ORDER, SLICE_S)
    control = pair.tested.control
    # What came before the addresses were known had a flow that floods: revalidation replaces it.
    assert wait_until(lambda: set(re.findall(r"actions:(\S+)", control.appctl("dpctl/dump-flows"))) == {"1", "2"}, 30)


def test_a_backlog_is_worked_off_without_a_loss_and_is_no_slower_than_a_closed_loop(testbed: Testbed) -> None:
    testbed.apply_pair(Setup(Topology(ruleset="normal")), Setup(FORWARD), load_profile("udp-64-1k"))
    pair = testbed.side_by_side
    assert pair is not None
    pair.flush()
    pair.run_slices(ORDER, SLICE_S, before=True)
    # Next to other tests a side, or the generator, may have had no CPU in a slice, or less of one than in others.
    for _ in range(10):
        slices, loops = (pair.run_slices(ORDER, SLICE_S, backlogs=backlogs) for backlogs in (True, False))
        whole = all(part.completed and not part.lost and not spoilt(part) for part in slices)
        if whole and max(part.rate for part in slices) > 0.5 * max(part.rate for part in loops):
            break
    else:
        pytest.fail(f"Backlogs: {slices}\nClosed loops: {loops}")
    assert [part.side for part in slices] == ORDER
    # Of the 100 ms only those count in which the DUT worked.
    assert all(0 < part.seconds < SLICE_S for part in slices)


@pytest.mark.parametrize(("dead", "by", "crashed"), [(0, "SEGV", True), (0, "KILL", False), (1, "SEGV", False)])
def test_one_that_is_killed_is_named_and_the_next_pair_has_fresh_ones(
    testbed: Testbed, dead: int, by: str, crashed: bool
) -> None:
    pair = ovs_pair(testbed)
    before = sandboxes(testbed)
    os.kill(process_of(before[dead], "ovs-vswitchd"), signal.Signals[f"SIG{by}"])
    said = rf"^ovs-vswitchd \(process \d+\) was killed by SIG{by} \({ORDER[dead]} side\)\.$"
    with pytest.raises(TestbedError, match=said) as raised:
        for _ in range(10):
            pair.run_slices(ORDER, SLICE_S)
            pair.flush()
    # That a base crashed says nothing of a candidate, nor does what somebody else did.
    assert isinstance(raised.value, Crashed) is crashed
    assert testbed.discard() == []
    assert all(each._outermost.poll() is not None for each in before)
    served(ovs_pair(testbed))


@pytest.mark.parametrize("topology", [CONNTRACK, Topology(datapath="linux-router", ruleset="iptables-stateful")])
def test_each_side_knows_as_many_connections_as_its_profile_says(testbed: Testbed, topology: Topology) -> None:
    many, few = (SHORT.model_copy(update={"name": f"new-{known}", "known": known}) for known in (20_000, 1000))
    testbed.apply_pair(Setup(topology), Setup(topology, profile=few), many)
    pair = testbed.side_by_side
    assert pair is not None and pair.differs_in_scale and pair.one_at_a_time == (topology != CONNTRACK)
    quick = load("campaigns", "quick", Campaign)

    def known() -> dict[str, int]:
        Pair(looks=(2,)).run(Bench(testbed.dut, testbed.generator, floor_of(many), quick, sides=pair))
        return {side: each.entries or 0 for side, each in pair.sides().items()}

    # Next to other tests a flow may not get through, and is not known then: not each time.
    tries = [known()]
    while not (tries[-1]["tested"] >= 18_000 and 900 <= tries[-1]["other"] < 18_000):
        assert len(tries) < 3, tries
        tries.append(known())


def test_two_that_cannot_stand_side_by_side_are_another_process_at_each_turn_and_forward(
    able_machine: None, tmp_path: Path
) -> None:
    """As a candidate and its base in a lab."""
    alone = small(load("testbeds", "local", TestbedConfig)).model_copy(update={"oversubscribe": True})
    made = Testbed(alone, tmp_path)
    try:
        made.apply_pair(Setup(CONNTRACK), Setup(FORWARD), SHORT, "other")
        assert made.side_by_side is None and made.in_turn is not None
        processes = []
        for side in ORDER:
            dut, generator = made.in_turn.turn(side)
            bench = Bench(dut, generator, floor_of(SHORT), load("campaigns", "quick", Campaign))
            seen = bench.trials.offer(bench.runner, Rate(1000), 0.2, "search")
            assert seen.trial.completed > 0
            processes.append(dut.snapshot()["pid"])
        first, other, again, last = processes
        assert other == again and len({first, other, last}) == 3
    finally:
        made.close()

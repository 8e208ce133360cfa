"""A real emulated machine: its figures come again to the last digit, and a topology that is broken has none."""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.abilities import Workload
from ctbench.dut.emulated.counter import EmulatedCounter
from ctbench.dut.emulated.kind import EmulatedConfig
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

FORWARD = Topology(datapath="emulated", ruleset="forward")
STATEFUL = Topology(datapath="emulated", ruleset="iptables-stateful")


def new_dut(sandbox: Sandbox, rulesets: Path = RULESETS, seeds: int = 2, **more: float) -> EmulatedCounter:
    config = EmulatedConfig(type="emulated", kernel="distribution", seeds=2).model_copy(update={"seeds": seeds})
    dut = EmulatedCounter(config, sandbox, read_machine(sandbox), rulesets, **more)
    try:
        dut.snapshot()
    except MissingResource as error:
        pytest.skip(str(error))
    return dut


@pytest.fixture(scope="module")
def whole(sandbox: Sandbox) -> Iterator[EmulatedCounter]:
    """One that works. Others start from its states."""
    dut = new_dut(sandbox)
    yield dut


def from_states_of(whole: EmulatedCounter, sandbox: Sandbox, rulesets: Path, **more: float) -> EmulatedCounter:
    """Another one, whose topologies are in another folder: a machine boots the same whatever they say. What is broken
    is so with any seed."""
    dut = new_dut(sandbox, rulesets, seeds=1, **more)
    whole._states.ready([1], 1)
    dut._states = whole._states
    return dut


@pytest.fixture
def rulesets(tmp_path: Path) -> Iterator[Path]:
    """A copy of the catalogue, to break."""
    yield shutil.copytree(RULESETS, tmp_path / "rulesets")


def change(rulesets: Path, name: str, old: str, new: str) -> None:
    script = rulesets / "emulated" / f"{name}.sh"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))


def test_two_machines_count_the_same_to_the_last_digit(whole: EmulatedCounter) -> None:
    with contextlib.closing(Sandbox()) as other:
        one, two = whole, new_dut(other)
        first, second = (dut.count([FORWARD], "stream")[0] for dut in (one, two))
    assert one.identity == two.identity
    assert [each.doubt for each in first] == ["", ""]
    assert [each.rounds for each in first] == [each.rounds for each in second]
    assert max(each.each for each in first) / min(each.each for each in first) < 1.0005


@pytest.mark.parametrize(("workload", "most"), [("removal", 3000), ("dump", 10_000)])
def test_connections_that_are_removed_or_read_out_of_the_table_are_counted(
    whole: EmulatedCounter, workload: Workload, most: float
) -> None:
    (counted, _), (forward, _) = whole.count([STATEFUL, FORWARD], workload)
    assert (counted.doubt, forward.doubt) == ("", "no round was counted")  # forwarding has no table
    assert {each.received - each.sent for each in counted.rounds} == {0}
    assert 1000 < counted.each < most


@pytest.mark.parametrize(
    ("ruleset", "old", "new", "workload", "doubt"),
    [
        ("iptables-stateful", "rules iptables/stateful.rules", ":", "stream",
         "connections in the table: 0 where 1 had to be"),
        ("nftables-flowtable", "ct state established flow add @fast", "ct state established accept", "stream",
         "connections offloaded: 0 where 1 had to be"),
        ("iptables-dnat", "rules iptables/dnat.rules", "rules iptables/stateful.rules", "stream",
         "connections with dst translated: 0 where 1 had to be"),
        ("iptables-10-rules", "\nmore_rules 10", "\nmore_rules 9", "udp",
         "rules that match nothing: 9 where 10 had to be"),
        ("iptables-stateful", "prove() {", "room() { :; }; prove() {", "stream-10k",
         "no stream could be sent"),
        ("ovs-user-conntrack", "openvswitch conntrack.flows", "openvswitch forward.flows", "stream",
         "connections in the switch's own table: 0 where 1 had to be"),
        ("ovs-user-emc", "emc-insert-inv-prob=1", "emc-insert-inv-prob=0", "stream",
         "look-ups answered by the exact match cache"),
        ("ovs-user-no-emc", "emc-insert-inv-prob=0", "emc-insert-inv-prob=1", "stream",
         "look-ups answered by the exact match cache"),
        ("ovs-match-tuple", "dut ovs-ofctl add-flows bridge /tmp/tuples", ":", "stream",
         "flows of the datapath with all five fields: 0 where 1 had to be"),
    ],
)  # fmt: skip
def test_what_is_not_what_its_name_says_has_no_figure(
    sandbox: Sandbox, whole: EmulatedCounter, rulesets: Path, ruleset: str, old: str, new: str, workload: Workload,
    doubt: str,
) -> None:  # fmt: skip
    change(rulesets, ruleset, old, new)
    broken = from_states_of(whole, sandbox, rulesets)
    try:
        (counted,) = broken.count([FORWARD.model_copy(update={"ruleset": ruleset})], workload)[0]
    except MissingResource as error:
        pytest.skip(str(error))
    except TestbedError as error:  # some cannot even be sent
        assert doubt in str(error)
    else:
        assert doubt in counted.doubt


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("router\ndut ip link set server down\n", "no stream could be sent"),
        ("use not_there\nrouter\n", "the kernel has no module not_there"),
        ("while :; do :; done\n", "it took longer than 3 s"),
    ],
)
def test_what_goes_wrong_is_said(
    sandbox: Sandbox, whole: EmulatedCounter, rulesets: Path, instead: str, said: str
) -> None:
    change(rulesets, "forward", "router\n", instead)
    longest_s = 3 if "longer" in said else 60
    with pytest.raises(TestbedError, match=f"did not measure emulated/forward.*: {said}"):
        from_states_of(whole, sandbox, rulesets, longest_s=longest_s).count([FORWARD], "stream")


def machines(sandbox: Sandbox) -> list[int]:
    """QEMU's processes in the sandbox, by their IDs out here."""
    namespace = Path(f"/proc/{sandbox.init_pid}/ns/pid").readlink()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().startswith("qemu") and (folder / "ns/pid").readlink() == namespace:
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def kills_one(sandbox: Sandbox) -> Iterator[None]:
    """Kills a machine a moment after one has begun."""
    ended = threading.Event()

    def kill() -> None:
        while not ended.is_set():
            if found := machines(sandbox):
                time.sleep(0.5)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found[0], signal.SIGKILL)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        ended.set()
        killer.join()


def left(sandbox: Sandbox, whole: EmulatedCounter) -> list[str]:
    """What is left of others than `whole`: machines, files."""
    files = [each.name for each in sandbox.local_path("/run").glob("ctbench-*")]
    return [*map(str, machines(sandbox)), *(each for each in files if each != whole._states._folder.name)]


def test_a_machine_that_is_killed_is_said_and_leaves_nothing(sandbox: Sandbox, whole: EmulatedCounter) -> None:
    whole._states.ready([1, 2], 2)
    killed = r"did not measure emulated/ovs-forward.*QEMU ended with status -?(9|137)"
    with kills_one(sandbox), pytest.raises(TestbedError, match=killed):
        whole.count([FORWARD.model_copy(update={"ruleset": "ovs-forward"})], "stream")
    assert left(sandbox, whole) == []


def test_an_image_that_was_kept_is_the_same_machine(whole: EmulatedCounter, tmp_path: Path) -> None:
    one, kept = whole, tmp_path / "mine.image"
    one.keep_image(kept)
    config = EmulatedConfig(type="emulated", kernel="distribution", image=str(kept), seeds=2)
    with contextlib.closing(Sandbox()) as memory:
        other = EmulatedCounter(config, memory, read_machine(memory))
        assert one.identity == other.identity
        assert one.snapshot() == other.snapshot()
        first, second = (dut.count([FORWARD], "stream")[0] for dut in (one, other))
    assert [each.rounds for each in first] == [each.rounds for each in second]


def test_functions_add_up_to_what_the_clock_counts_and_show_what_was_added(whole: EmulatedCounter) -> None:
    rules, dut = Topology(datapath="emulated", ruleset="iptables-10-rules"), whole
    for workload in ("tcp", "udp", "stream"):
        found = dut.count_functions([STATEFUL, rules], workload)
        assert set(found) == {STATEFUL.key, rules.key}
        assert max(abs(each.error) for each in found.values()) < 1e-6
    one, other = found[STATEFUL.key], found[rules.key]
    grew = {name: cost - one.functions.get(name, 0) for name, cost in other.functions.items()}
    # Ten rules that match nothing are walked through by one function.
    assert max(grew, key=lambda name: grew[name]).startswith("nft_do_chain")
    assert sum(grew.values()) == pytest.approx(other.clock - one.clock, rel=0.02)

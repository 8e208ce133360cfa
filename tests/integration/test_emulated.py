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
from ctbench.dut.counting import Workload
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.dut import EmulatedDut
from ctbench.dut.emulated.kernel import UNPACKED
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

FORWARD = Topology(datapath="emulated", ruleset="forward")
STATEFUL = Topology(datapath="emulated", ruleset="iptables-stateful")


def new_dut(sandbox: Sandbox, rulesets: Path = RULESETS, kernel: str = "distribution", **more: float) -> EmulatedDut:
    config = EmulatedConfig(type="emulated", kernel=kernel, seeds=2)
    dut = EmulatedDut(config, sandbox, read_machine(sandbox), rulesets, **more)
    try:
        dut.apply(FORWARD)
    except MissingResource as error:
        pytest.skip(str(error))
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


def test_two_machines_count_the_same_to_the_last_digit(sandbox: Sandbox) -> None:
    one, two = (new_dut(sandbox) for _ in range(2))
    first, second = (dut.count([FORWARD], "stream")[0] for dut in (one, two))
    assert one.identity == two.identity
    assert [each.doubt for each in first] == ["", ""]
    assert [each.rounds for each in first] == [each.rounds for each in second]
    assert max(each.each for each in first) / min(each.each for each in first) < 1.0005


def test_rules_that_were_not_loaded_are_not_measured(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "iptables-stateful", "rules iptables/stateful.rules", ":")
    (counted, _) = new_dut(sandbox, rulesets).count([STATEFUL], "stream")[0]
    assert counted.doubt == "connections in the table: 0 where 1 had to be"


def test_connections_that_are_removed_are_counted(sandbox: Sandbox) -> None:
    (counted, _), (forward, _) = new_dut(sandbox).count([STATEFUL, FORWARD], "removal")
    assert (counted.doubt, forward.doubt) == ("", "no round was counted")  # forwarding has no table
    assert 1000 < counted.each < 3000


def test_connections_that_are_read_out_of_the_table_are_counted(sandbox: Sandbox) -> None:
    (counted, _), (forward, _) = new_dut(sandbox).count([STATEFUL, FORWARD], "dump")
    assert (counted.doubt, forward.doubt) == ("", "no round was counted")
    assert {(each.sent, each.received) for each in counted.rounds} == {(256, 256)}
    assert 1000 < counted.each < 10_000


@pytest.mark.parametrize(
    ("ruleset", "old", "new", "workload", "doubt"),
    [
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
        ("ovs-match-tuple", "dut ovs-ofctl add-flows bridge /tmp/tuples", ":", "stream",
         "flows of the datapath with all five fields: 0 where 1 had to be"),
    ],
)  # fmt: skip
def test_what_is_not_what_its_name_says_has_no_figure(
    sandbox: Sandbox, rulesets: Path, ruleset: str, old: str, new: str, workload: Workload, doubt: str
) -> None:
    change(rulesets, ruleset, old, new)
    try:
        (counted, _) = new_dut(sandbox, rulesets).count([FORWARD.model_copy(update={"ruleset": ruleset})], workload)[0]
    except MissingResource as error:
        pytest.skip(str(error))
    except TestbedError as error:  # some cannot even be sent
        assert doubt in str(error)
    else:
        assert doubt in counted.doubt


def test_what_does_not_come_through_is_said(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "router\ndut ip link set server down\n")
    with pytest.raises(TestbedError, match="no stream could be sent"):
        new_dut(sandbox, rulesets).count([FORWARD], "stream")


def test_a_module_that_the_kernel_does_not_have_is_said(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "use not_there\nrouter\n")
    with pytest.raises(TestbedError, match="the kernel has no module not_there"):
        new_dut(sandbox, rulesets).count([FORWARD], "stream")


def test_a_machine_that_hangs_is_stopped(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "while :; do :; done\n")
    with pytest.raises(TestbedError, match="did not end within 6 s"):
        new_dut(sandbox, rulesets, longest_s=6).count([FORWARD], "stream")


def machines(sandbox: Sandbox) -> list[int]:
    """QEMU's processes in the sandbox, by their IDs out here."""
    namespace = Path(f"/proc/{sandbox.init_pid}/ns/pid").readlink()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().startswith("qemu") and (folder / "ns/pid").readlink() == namespace:
                found.append(int(folder.name))
    return found


def test_a_machine_that_is_killed_is_said_and_leaves_nothing(sandbox: Sandbox) -> None:
    dut = new_dut(sandbox)
    ended = threading.Event()

    def kill_one() -> None:
        while not ended.is_set():
            if found := machines(sandbox):
                time.sleep(0.5)
                os.kill(found[0], signal.SIGKILL)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        with pytest.raises(TestbedError, match=r"did not measure emulated/forward.*QEMU ended with status -?(9|137)"):
            dut.count([FORWARD], "stream")
    finally:
        ended.set()
        killer.join()
    assert machines(sandbox) == []
    assert list(sandbox.local_path("/run").glob("ctbench-*")) == []


def test_a_kernel_that_is_cut_off_does_not_boot(sandbox: Sandbox, tmp_path: Path) -> None:
    try:
        new_dut(sandbox)
    finally:
        (tmp_path / "boot").mkdir()
    (whole,) = (UNPACKED / "boot").glob("vmlinuz-*")
    (tmp_path / "boot" / whole.name).write_bytes(whole.read_bytes()[:1_000_000])
    (tmp_path / "lib").symlink_to(UNPACKED / "lib")
    with pytest.raises(TestbedError, match="did not measure emulated/forward"):
        new_dut(sandbox, kernel=str(tmp_path), longest_s=6).count([FORWARD], "stream")


def test_an_image_that_was_kept_is_the_same_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    one, kept = new_dut(sandbox), tmp_path / "mine.image"
    one.keep_image(kept)
    other = EmulatedDut(
        EmulatedConfig(type="emulated", kernel="distribution", image=str(kept), seeds=2),
        sandbox,
        read_machine(sandbox),
    )
    other.apply(FORWARD)
    assert one.identity == other.identity
    assert one.snapshot() == other.snapshot()
    first, second = (dut.count([FORWARD], "stream")[0] for dut in (one, other))
    assert [each.rounds for each in first] == [each.rounds for each in second]


def test_functions_add_up_to_what_the_clock_counts_and_show_what_was_added(sandbox: Sandbox) -> None:
    rules = Topology(datapath="emulated", ruleset="iptables-10-rules")
    dut = new_dut(sandbox)
    for workload in ("tcp", "udp", "stream"):
        found = dut.count_functions([STATEFUL, rules], workload)
        assert set(found) == {STATEFUL.key, rules.key}
        assert max(abs(each.error) for each in found.values()) < 1e-6
    one, other = found[STATEFUL.key], found[rules.key]
    grew = {name: cost - one.functions.get(name, 0) for name, cost in other.functions.items()}
    # Ten rules that match nothing are walked through by one function.
    assert max(grew, key=lambda name: grew[name]).startswith("nft_do_chain")
    assert sum(grew.values()) == pytest.approx(other.clock - one.clock, rel=0.02)

"""A real emulated machine: its figures come again to the last digit, and a topology that is broken has none."""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.paths import RULESETS
from icount import Counter, IcountError, Missing, Setup, Workload, image
from icount import __main__ as command
from icount.__main__ import memory_folder

pytestmark = pytest.mark.beside_others

FORWARD, STATEFUL = Setup("forward"), Setup("iptables-stateful")


def new_counter(folder: Path, rulesets: Path = RULESETS, **more: Any) -> Counter:
    counter = Counter(folder, rulesets, **{"seeds": 2, **more})
    try:
        _ = counter.identity
    except Missing as error:
        pytest.skip(str(error))
    return counter


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    with memory_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def whole(memory: Path) -> Counter:
    """One that works. Others start from its states."""
    return new_counter(memory)


def from_states_of(whole: Counter, rulesets: Path, **more: Any) -> Counter:
    """Another one, whose topologies are in another folder: a machine boots the same whatever they say, so nothing else
    is made again. What is broken is so with any seed."""
    counter = Counter(whole._folder, rulesets, **{"seeds": 1, **more})
    scripts = image.pack({path.name: path.read_bytes() for path in (rulesets / "emulated").glob("*.sh")})
    counter._image = replace(whole._image, parts={**whole._image.parts, image._SCRIPTS: scripts})
    whole._states.ready([1], 1)
    counter._states = whole._states
    return counter


@pytest.fixture(scope="module")
def single(whole: Counter) -> Counter:
    """One that boots one machine a topology: half as long, where it does not matter that two agree."""
    return from_states_of(whole, RULESETS)


@pytest.fixture
def rulesets(tmp_path: Path) -> Iterator[Path]:
    """A copy of the catalogue, to break."""
    yield shutil.copytree(RULESETS, tmp_path / "rulesets")


def change(rulesets: Path, name: str, old: str, new: str) -> None:
    script = rulesets / "emulated" / f"{name}.sh"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))


def test_another_machine_of_an_image_that_was_kept_counts_the_same_to_the_last_digit(
    whole: Counter, tmp_path: Path
) -> None:
    kept = tmp_path / "mine.image"
    whole.keep_image(kept)
    assert new_counter(tmp_path / "built again").identity == whole.identity
    other = Counter(tmp_path, RULESETS, image=kept)
    assert (whole.identity, whole.release, whole.packages) == (other.identity, other.release, other.packages)
    first, (second,) = (counter.count([FORWARD], "stream")[0] for counter in (whole, other))
    assert [each.doubt for each in first] == ["", ""]
    assert first[0].rounds == second.rounds
    assert max(each.each for each in first) / min(each.each for each in first) < 1.0005


@pytest.mark.parametrize(("workload", "most"), [("udp", 60_000), ("tcp", 150_000), ("removal", 3000), ("dump", 10_000)])
def test_connections_are_counted_that_are_opened_removed_or_read_out_of_the_table(
    single: Counter, workload: Workload, most: float
) -> None:
    (counted,), (forward,) = single.count([STATEFUL, FORWARD], workload)
    has_no_table = "no round was counted" if workload in ("removal", "dump") else ""
    assert (counted.doubt, forward.doubt) == ("", has_no_table)
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
    whole: Counter, rulesets: Path, ruleset: str, old: str, new: str, workload: Workload, doubt: str
) -> None:
    change(rulesets, ruleset, old, new)
    broken = from_states_of(whole, rulesets)
    try:
        (counted,) = broken.count([Setup(ruleset)], workload)[0]
    except Missing as error:
        pytest.skip(str(error))
    except IcountError as error:  # some cannot even be sent
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
def test_what_goes_wrong_is_said(whole: Counter, rulesets: Path, instead: str, said: str) -> None:
    change(rulesets, "forward", "router\n", instead)
    longest_s = 3 if "longer" in said else 60
    with pytest.raises(IcountError, match=f"did not measure forward .*: {said}"):
        from_states_of(whole, rulesets, longest_s=longest_s).count([FORWARD], "stream")


def machines() -> list[int]:
    """QEMU's processes that this one started."""
    children = [each.read_text().split() for each in Path("/proc/self/task").glob("*/children")]
    pids = [pid for each in children for pid in each]
    return [int(pid) for pid in pids if (Path("/proc") / pid / "comm").read_text().startswith("qemu")]


@contextlib.contextmanager
def kills_one() -> Iterator[None]:
    """Kills a machine a moment after one has begun."""
    ended = threading.Event()

    def kill() -> None:
        while not ended.is_set():
            if found := machines():
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


def test_a_machine_that_is_killed_is_said_and_leaves_nothing(whole: Counter) -> None:
    whole._states.ready([1, 2], 2)
    with kills_one(), pytest.raises(IcountError, match=r"did not measure ovs-forward .*QEMU ended with status -9"):
        whole.count([Setup("ovs-forward")], "stream")
    assert machines() == []
    assert sorted(each.name for each in whole._folder.iterdir()) == ["1.state", "2.state", "kernel"]


def test_functions_show_what_costs_most(single: Counter) -> None:
    rules = Setup("iptables-10-rules")
    found = single.functions([rules], "stream")
    assert set(found) == {rules}  # they add up to what the clock counts
    # Ten rules that match nothing are walked through by one function.
    assert next(iter(found[rules])).startswith("nft_do_chain")


def test_the_command_prints_what_each_seed_counted(
    single: Counter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What is booted serves it as well.
    monkeypatch.setattr(command, "Counter", lambda _, rulesets, **more: from_states_of(single, rulesets, **more))
    assert command.main(["forward", "--seeds", "1"]) == 0
    (forward,), (wires,) = single.count([FORWARD, Setup("baseline")], "stream")
    assert capsys.readouterr().out == f"forward: {forward.each - wires.each:,.1f}\n"

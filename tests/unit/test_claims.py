"""A run has its CPUs and the hosts of its lab for itself: another one waits or is told by whom, and goes on however the
first one ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import TestbedError
from ctbench.base.paths import LIBRARIES
from ctbench.base.yaml_files import load
from ctbench.doctor import system
from ctbench.doctor.frames import send
from ctbench.hosts import claims
from ctbench.hosts.base import Host
from ctbench.hosts.claims import Claim, Taken, folders_of, holders
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import CPU
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import cpus_for_itself, hosts_for_itself
from ctbench.testbed.testbed import Testbed

from .doctor_facts import example, plans, site

HOLDS = """
import sys, time
from ctbench.hosts.claims import Claim
from ctbench.hosts.connections import HostPool
claim = Claim(HostPool({}), {"local": sys.argv[1:]}, 0 if len(sys.argv) == 2 else None, print)
print("claimed", flush=True)
time.sleep(60)
"""
Other = Callable[..., "subprocess.Popen[str]"]


def folders_in(machine: Path, *cpus: int) -> list[str]:
    return [str(machine / f"cpu{cpu}") for cpu in cpus]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder for each CPU of a machine that is made up."""
    for cpu in range(4):
        (tmp_path / "machine" / f"cpu{cpu}").mkdir(parents=True)
    return tmp_path / "machine"


@pytest.fixture
def pool() -> Iterator[HostPool]:
    hosts = HostPool({})
    yield hosts
    hosts.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    """A job on another agent, which has claimed these CPUs of that machine, or the host: a folder is its /run."""
    begun = []

    def begin(*cpus: int) -> "subprocess.Popen[str]":
        environment = {"PYTHONPATH": str(LIBRARIES), "BUILD_TAG": "jenkins-sla-57", "USER": "ci"}
        folders = folders_in(tmp_path / "machine", *cpus) or [str(tmp_path)]
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, *folders],
            env=environment | {"PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        assert process.stdout and process.stdout.readline() == "claimed\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_cpus_of_another_one_are_free_and_one_process_has_its_own_twice(
    machine: Path, pool: HostPool, other: Other
) -> None:
    other(0, 1)
    for _ in range(2):
        Claim(pool, {"local": folders_in(machine, 2, 3)}, None, pytest.fail)
    pool.close()
    other(2, 3)
    assert not list(machine.glob("cpu*/*"))
    assert folders_of([0, 4711]) == ["/sys/devices/system/cpu/cpu0"]


def test_a_lock_of_an_owner_that_is_not_known_is_waited_for_and_said(
    machine: Path, pool: HostPool, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = other(1)
    monkeypatch.setattr(claims, "_FREE_S", 0.0)
    monkeypatch.setattr(claims, "process_with_lock", lambda *_: None)  # as of another PID namespace
    say = Mock(side_effect=lambda _: first.kill())
    Claim(pool, {"local": folders_in(machine, 1)}, None, say)
    say.assert_called_once_with("local: another run has CPU 1. Waiting for its end.")


def test_a_testbed_claims_what_it_measures_on_here() -> None:
    local = load("testbeds", "local", TestbedConfig)
    assert cpus_for_itself(local, (4, 5, 6)) == (4, 5, 6)
    named = local.cpus.model_copy(update={"generator": [4], "pmd": {1: [6]}, "housekeeping": [4]})
    assert cpus_for_itself(local.model_copy(update={"cpus": named}), (4, 5, 6)) == [4, 6]
    # Nothing is measured, instructions are counted, or all is elsewhere.
    assert cpus_for_itself(local.model_copy(update={"oversubscribe": True}), (4, 5)) == ()
    assert cpus_for_itself(load("testbeds", "emulated", TestbedConfig), (4, 5)) == ()
    assert cpus_for_itself(load("testbeds", "example-trex-xeon", TestbedConfig), (4, 5)) == ()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_waits_says_so_and_goes_on_however_the_other_one_ends(
    number: int, pool: HostPool, other: Other, tmp_path: Path
) -> None:
    first = other()
    say = Mock(side_effect=lambda _: first.send_signal(number))
    Claim(pool, {"local": [str(tmp_path)]}, 120, say)
    ((line,), _) = say.call_args
    assert say.call_count == 1
    assert "(jenkins-sla-57)" in line and line.endswith(" has this host. Waiting for its end, 2 min at most.")
    assert f"process {os.getpid()}, since" in holders(LocalHost(), [str(tmp_path)])[str(tmp_path)]
    pool.close()
    assert holders(LocalHost(), [str(tmp_path)]) == {}
    assert list(tmp_path.iterdir()) == []


def test_what_was_killed_just_now_is_waited_for(pool: HostPool, other: Other, tmp_path: Path) -> None:
    other().kill()
    Claim(pool, {"local": [str(tmp_path)]}, 0, pytest.fail)


class Away(LocalHost):
    """A host that cannot be reached."""

    away = True

    def _run(self, *command: Any) -> Any:
        if self.away:
            raise TestbedError("gone: Name or service not known.")
        return super()._run(*command)


class OneMachine(HostPool):
    """All names are of this machine; `gone` cannot be reached at first."""

    def __init__(self) -> None:
        super().__init__({})
        self.gone = Away()

    def host(self, name: str) -> Host:
        return self.gone if name == "gone" else super().host("local")

    def close(self) -> None:
        self.gone.close()
        super().close()


@pytest.fixture
def one_machine() -> Iterator[OneMachine]:
    hosts = OneMachine()
    yield hosts
    hosts.close()


def test_two_names_of_one_host_are_one_claim_and_a_host_out_of_reach_is_claimed_once_it_answers(
    one_machine: OneMachine, machine: Path, tmp_path: Path
) -> None:
    said, folders = list[str](), {"dut": [str(tmp_path)], "gone": [str(machine)], "tgen": [str(tmp_path)]}
    claim = Claim(one_machine, folders, 0, said.append)
    claim.renew()
    assert list(claim._held) == ["dut"]
    assert said == ["gone is not claimed, so another run may use it at the same time: gone: Name or service not known."]
    one_machine.gone.away = False
    claim.renew()
    assert holders(LocalHost(), [str(machine)])


def test_hosts_are_claimed_in_one_order_whatever_a_testbed_file_calls_them(machine: Path) -> None:
    orders = []
    for names in (("dut", "tgen"), ("tgen", "dut")):
        with closing(OneMachine()) as hosts:
            folders = {name: [folder] for name, folder in zip(names, folders_in(machine, 0, 1), strict=True)}
            orders.append([folders[name] for name in Claim(hosts, folders, 0, pytest.fail)._held])
    assert orders[0] == orders[1]


def lose(claim: Claim, name: str) -> None:
    """Its lock ends, as it does with the connection."""
    held = claim._held[name]
    os.kill(held.pid, signal.SIGKILL)
    while held.is_running():
        pass


@pytest.mark.parametrize("ask", [lambda claim, _: claim.renew(), lambda claim, host: claim.require(host)])
def test_what_another_run_has_by_now_is_not_waited_for_while_a_host_is_held_that_it_may_wait_for(
    ask: Callable[[Claim, Host], None],
    one_machine: OneMachine,
    machine: Path,
    other: Other,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Claim, "_lock_of", lambda _, name: (name, ""))
    say = Mock(side_effect=lambda _: first.kill())
    claim = Claim(one_machine, {"a": [str(tmp_path)], "b": [str(machine)]}, 120, say)
    lose(claim, "a")
    first = other()

    with monkeypatch.context() as hurried, pytest.raises(Taken, match=rf"process {first.pid}, .* leaves it as it is"):
        hurried.setattr(claims, "_GRACE_S", 0.1)
        ask(claim, one_machine.host("a"))

    say.assert_not_called()
    lose(claim, "b")
    claim.renew()
    assert say.call_count == 1 and f"process {os.getpid()}, " in holders(LocalHost(), [str(tmp_path)])[str(tmp_path)]


def test_a_lock_of_another_run_is_not_ended_where_its_process_has_the_number_of_ours(
    one_machine: OneMachine, other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_GRACE_S", 0.1)
    claim = Claim(one_machine, {"a": [str(tmp_path)]}, 0, pytest.fail)
    lose(claim, "a")
    theirs = other()
    (number,) = claims._processes(LocalHost(), [str(tmp_path)]).values()
    claim._held["a"] = SimpleNamespace(pid=int(number), is_running=lambda: False)  # type: ignore[assignment]
    with pytest.raises(Taken):
        claim.renew()
    assert f"process {theirs.pid}, " in holders(LocalHost(), [str(tmp_path)])[str(tmp_path)]


def test_a_run_that_is_told_to_end_while_it_claims_a_host_keeps_no_connection_without_a_lock(
    one_machine: OneMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, ended = one_machine.host("a"), list[str]()
    monkeypatch.setattr(host, "disconnect", lambda: ended.append("a"))
    monkeypatch.setattr(Claim, "_take", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Claim(one_machine, {"a": [str(tmp_path)]}, 0, pytest.fail)
    assert ended == ["a"]


def test_what_cannot_be_locked_is_said_and_hinders_nobody(pool: HostPool, tmp_path: Path) -> None:
    said = list[str]()
    Claim(pool, {"local": [str(tmp_path / "nowhere" / "below")]}, 0, said.append)
    (line,) = said
    assert "its lock ended with status" in line and "No such file or directory" in line


def test_the_doctor_says_who_has_a_host(pool: HostPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dut = site(plans()["dut"])
    (free,) = [each for each in system.check(dut) if each.what == "other runs"]
    assert (free.state, free.found) == ("ok", "none is seen to have this host")
    Claim(pool, {"local": [str(tmp_path)]}, 0, pytest.fail)
    monkeypatch.setattr(system, "holders", lambda _: holders(LocalHost(), [str(tmp_path)]))
    (held,) = [each for each in system.check(dut) if each.what == "other runs"]
    assert held.state == "unknown" and re.search(r"UTC( \(.*\))? has this host for itself$", held.found)


def test_the_doctor_says_who_has_cpus_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    local = load("testbeds", "local", TestbedConfig)
    here = site(plans(local)["local"])
    taken = dict[str, str]()
    monkeypatch.setattr(system, "holders", lambda _host, _folders: taken)
    assert [(row.what, row.state) for row in system.check_claimed(local, here)] == [("other runs", "ok")]
    taken |= {f"{CPU}/cpu{cpu}": "ci@agent, process 7" for cpu in (4, 5, 7)} | {f"{CPU}/cpu6": "me@here, process 8"}
    assert [(row.state, row.found) for row in system.check_claimed(local, here)] == [
        ("unknown", "ci@agent, process 7 has CPU 4-5,7 for itself"),
        ("unknown", "me@here, process 8 has CPU 6 for itself"),
    ]
    assert not list(system.check_claimed(load("testbeds", "emulated", TestbedConfig), here))  # which claims none


def test_the_doctor_sends_no_frames_through_what_another_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Testbed, "claim", Mock(side_effect=Taken("dut: ci@agent has this host for itself.")))
    (row,) = send(example(), pytest.fail).findings
    assert (row.state, row.found) == ("bad", "not sent: dut: ci@agent has this host for itself")


def test_a_lab_claims_its_hosts_and_a_sandbox_none() -> None:
    assert hosts_for_itself(example()) == {"dut", "tgen"}
    assert hosts_for_itself(load("testbeds", "local", TestbedConfig)) == set()

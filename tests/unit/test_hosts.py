"""Hosts and what this machine lacks: the status of a child, and of a signal, lists of CPUs, what SSH is sent; in
one sentence what is missing and what to do about it."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

import ctgen
from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.ovs import kind
from ctbench.hosts.base import Completed
from ctbench.hosts.local import run_child
from ctbench.hosts.machine import ISOLATED, STATUS, read_machine
from ctbench.hosts.sandbox import why_forbidden
from ctbench.hosts.ssh import script
from ctbench.results.environment import MachineFacts
from ctbench.testbed import config
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.software import SoftwareGeneratorConfig

LIBRARIES = Path(__file__).parents[2] / "libraries"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_status_is_the_childs() -> None:
    assert run_child(python("raise SystemExit(3)")) == 3
    assert run_child(python("import os; os.kill(os.getpid(), 9)")) == 137  # as a shell says it


def test_isolated_cpus_are_usable_as_far_as_a_process_that_asks_for_them_gets_them() -> None:
    files, asked = f"{STATUS}\0Cpus_allowed_list:\t0\n{ISOLATED}\x001-8\n", "Cpus_allowed_list:\t1-4\n"

    def run(argv: list[str], **_: object) -> Completed:
        return Completed(0, asked if argv[0] == "taskset" else files if STATUS in argv else "", "")

    assert read_machine(Mock(run=run)).usable_cpus == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Vendor ID: AuthenticAMD\nModel name: AMD EPYC\nCPU family: 26\nModel: 2\n", "AuthenticAMD family 26 model 2"),
        ("Vendor ID: ARM\nModel name: Neoverse-N1\nModel: 1\n", ""),
    ],
)
def test_a_kind_of_cpu_is_its_vendor_family_and_model_where_lscpu_tells_all_three(said: str, kind: str) -> None:
    def run(argv: list[str], **_: object) -> Completed:
        status = f"{STATUS}\0Cpus_allowed_list:\t0\n" if STATUS in argv else ""
        return Completed(0, said if argv == ["lscpu"] else status, "")

    facts = read_machine(Mock(run=run)).as_record()
    assert MachineFacts.model_validate(facts).cpu_kind == kind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_handed_on_once_and_the_end_of_the_child_is_waited_for(
    number: signal.Signals, tmp_path: Path
) -> None:
    # The child asks its parent to be stopped, and notes each signal that it gets; then it ends as if nothing had been.
    noted = tmp_path / "noted"
    child = f"""
import os, signal, time
from pathlib import Path
heard = []
for number in (2, 15):
    signal.signal(number, lambda number, _: heard.append(number))
os.kill(os.getppid(), {int(number)})
while not heard:
    time.sleep(0.01)
time.sleep(0.2)
Path({str(noted)!r}).write_text(str(heard))
"""
    before = signal.getsignal(number)
    assert run_child(python(child)) == 128 + number
    assert noted.read_text() == str([int(number)])
    assert signal.getsignal(number) is before


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = f"""
import sys
sys.path.insert(0, {str(LIBRARIES)!r})
from ctbench.hosts.local import run_child
run_child([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
"""
    with subprocess.Popen(python(parent), stdout=subprocess.PIPE) as popen:
        child = os.pidfd_open(int(popen.stdout.readline()))
        popen.kill()
        popen.wait()
        # Both ends of the pipe were the child's too: it ends when the child does.
        assert popen.stdout.read() == b""
    os.close(child)


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ],
)
def test_a_setting_that_forbids_sandboxes_has_its_remedy(tmp_path: Path, setting: str, value: str, remedy: str) -> None:
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")

    assert why_forbidden("unshare: unshare failed: Operation not permitted", tmp_path).endswith(remedy)
    said = why_forbidden("unshare: unshare failed: Operation not permitted\n", tmp_path / "none")  # a container
    assert "unshare failed: Operation not permitted" in said
    # Those that docker knows.
    assert set(re.findall(r"--security-opt (\w+)=", said)) == {"seccomp", "systempaths", "apparmor"}


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_what_is_sent_over_ssh_is_understood_by_the_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed.")
    argv = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]

    done = subprocess.run(argv, input=script("run", ["id", "-u"], {"A": "b c"}, 5), capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = SoftwareGeneratorConfig(type="software")
    generator.require()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingResource, match=r"^[^\n]*aarch64[^\n]*\.$"):
        generator.require()


def local_with(**changes: object) -> TestbedConfig:
    """The local testbed, with only its OVS, and `changes` to that."""
    local = load("testbeds", "local", TestbedConfig).model_dump()
    local["duts"] = [{**local["duts"][0], **changes}]
    return TestbedConfig.model_validate(local)


def test_a_lab_asks_nothing_of_this_machine_but_its_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for module, check in ((ctgen, "require_x86_64"), (kind, "require_fit"), (config, "check_namespaces")):
        monkeypatch.setattr(module, check, lambda *_, check=check: asked.append(check))
    load("testbeds", "example-trex-xeon", TestbedConfig).check_machine()
    assert not asked
    with pytest.raises(ConfigError, match=r"ovs\.prefix: /opt/nowhere: there is no such folder"):
        local_with(ovs={"prefix": "/opt/nowhere"}).check_machine()
    assert asked == ["require_x86_64"]
    asked.clear()
    local_with().check_machine()
    assert asked == ["require_x86_64", "require_fit", "check_namespaces"]

"""What control groups leave to a run: read of either version and of groups around the own one, and named by whoever
notices: the plan of CPUs, the doctor, the machine's check, what tells of a death. Of trials see test_trials.py."""

import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource
from ctbench.base.yaml_files import load
from ctbench.doctor.examine import CHECKS
from ctbench.hosts import limits
from ctbench.hosts.limits import NO_LIMITS, Limits, read_limits
from ctbench.hosts.local import fate
from ctbench.hosts.machine import Hugepages
from ctbench.testbed import config
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.cpus import CpuPlan, plan_cpus

from .doctor_facts import XEON, plans, site, xeon_facts

#: Version 2 in a container with a namespace of groups, and in one of systemd's, whose slice has limits of its own.
OWN = {
    limits.GROUPS: "0::/\n",
    limits.MOUNTS: "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n",
    "/sys/fs/cgroup/cpu.max": "250000 100000\n",
    "/sys/fs/cgroup/memory.max": "max\n",
    "/sys/fs/cgroup/pids.max": "4096\n",
    limits.ONLINE: "0-7\n",
    "/sys/fs/cgroup/cpuset.cpus.effective": "2-3,6\n",
}
SLICE = {
    limits.GROUPS: "0::/ci.slice/job.service\n",
    limits.MOUNTS: OWN[limits.MOUNTS],
    "/sys/fs/cgroup/ci.slice/cpu.max": "50000 100000\n",
    "/sys/fs/cgroup/ci.slice/job.service/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/ci.slice/job.service/memory.max": f"{3 << 30}\n",
    "/sys/fs/cgroup/ci.slice/memory.max": f"{1 << 30}\n",
}
#: Version 1 in a container without such a namespace: it sees its own groups where others are mounted.
DOCKER = {
    limits.GROUPS: "7:pids:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n1:name=systemd:/docker/abc\n",
    limits.MOUNTS: "40 30 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "41 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    "42 30 0:32 / /proc rw - proc proc rw\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}
#: As `mount -t tmpfs "" /mnt` makes it.
NO_SOURCE = "50 30 0:45 / /mnt rw - tmpfs  rw\n"
UNLIMITED = {**DOCKER, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (OWN, Limits(cpus=2.5, tasks=4096, cpuset="2-3,6")),
        ({**OWN, limits.MOUNTS: f"{NO_SOURCE}{OWN[limits.MOUNTS]}"}, Limits(cpus=2.5, tasks=4096, cpuset="2-3,6")),
        (SLICE, Limits(cpus=0.5, memory_mb=1024)),
        (DOCKER, Limits(cpus=1.5)),
        (UNLIMITED, NO_LIMITS),
        ({}, NO_LIMITS),
    ],
    ids=["version 2", "a mount without a source", "a slice around it", "version 1", "no limit", "no groups"],
)
def test_the_least_of_the_own_group_and_those_around_it(files: Mapping[str, str], found: Limits) -> None:
    assert read_limits(lambda *paths: {path: files[path] for path in paths if path in files}) == found


def local_row(of: Limits, **machine: Any) -> tuple[str, str]:
    """State and finding of the doctor's row, of the local testbed."""
    local = load("testbeds", "local", TestbedConfig)
    facts = xeon_facts({"usable_cpus": (0, 1), "hugepages": (), "limits": of} | machine)
    found = [
        row for _, check in CHECKS for row in check(site(plans(local)["local"], facts)) if row.what == "control group"
    ]
    return (found[0].state, found[0].found) if found else ("", "")


@pytest.mark.parametrize(
    ("of", "state"),
    [
        (NO_LIMITS, ""),
        (Limits(cpus=1.9), "bad"),
        (Limits(cpus=2.0, tasks=4096), "unknown"),
        (Limits(memory_mb=1000), "bad"),
        (Limits(memory_mb=8000), "unknown"),
        (Limits(tasks=8), "bad"),
    ],
)
def test_the_doctor_names_a_limit_and_fails_one_that_is_too_low(of: Limits, state: str) -> None:
    found = local_row(of)
    assert found[0] == state
    assert str(of) in found[1] or not state


@pytest.mark.parametrize(
    ("large", "small", "state"), [(1, 512, "unknown"), (2, 0, "unknown"), (1, 511, "bad"), (0, 1024, "unknown")]
)
def test_each_of_two_duts_needs_hugepages_of_one_size(large: int, small: int, state: str) -> None:
    pages = (Hugepages(1 << 20, large, large), Hugepages(2048, small, small), Hugepages(64, 500, 500))
    assert local_row(Limits(memory_mb=1000), hugepages=pages)[0] == state


def test_threads_that_poll_need_their_time_and_the_refusal_names_the_limit() -> None:
    plan = CpuPlan.model_validate({"generator": "auto", "pmd": "auto", "housekeeping": "auto"})
    four = replace(XEON, usable_cpus=(0, 1, 2, 3), limits=Limits(cpus=3.5, cpuset="0-3"))
    assert plan_cpus(plan, four, 2, shared=False).pmd == (1, 2)
    for threads, limit in ((3, "cpu.max"), (4, "cpuset.cpus")):
        limited = four if threads == 3 else replace(four, limits=Limits(cpuset="0-3"))
        with pytest.raises(MissingResource, match=rf"control group has .*{limit}"):
            plan_cpus(plan, limited, threads, shared=False)


def test_too_little_memory_and_too_few_processes_are_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for of in (Limits(memory_mb=200), Limits(tasks=12)):
        monkeypatch.setattr(config, "limits_here", lambda of=of: of)
        with pytest.raises(MissingResource, match=r"control group of this process has .*max\)"):
            load("testbeds", "local", TestbedConfig).check_machine()


def test_what_was_killed_for_its_memory_is_not_said_to_be_killed_by_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "limits_here", lambda: Limits(memory_mb=700))
    monkeypatch.setattr(limits, "_KILLS_BEFORE", 2)
    for count, named in ((0, False), (2, False), (3, True)):
        files = {"x": f"oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n"}
        monkeypatch.setattr(limits, "_read_here", lambda *_, files=files: files)
        assert ("memory.max" in fate(-signal.SIGKILL)) == named
        assert "memory.max" not in fate(-signal.SIGTERM)

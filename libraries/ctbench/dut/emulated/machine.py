"""Emulated machines in QEMU without KVM. Their clock is their own instruction count (-icount), so that what they do and
say is the same whatever the host does. `states` saves one that is ready; what is measured starts from there."""

import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.emulated.kernel import REMEDY
from ctbench.dut.emulated.monitor import Monitor
from ctbench.hosts.base import Host, Process

QEMU = "qemu-system-x86_64"
MEMORY_MB = 512
#: What QEMU takes besides, mostly for what it has translated.
OWN_MB = 128
#: Seconds that a machine may take, of which it needs some two; and between two looks at those that run.
LONGEST_S = 150.0
_POLL_S = 0.05
#: In the sandbox's own memory, so that files go with it, whatever ends the run.
PRIVATE = "/run"
#: How QEMU calls a machine that guest/await.c has stopped, and one whose state has been read.
WAITS = "guest-panicked"
#: Without the instructions that make random numbers, with those that builds of DPDK ask for.
_CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+fsgsbase,-rdrand,-rdseed"
#: One CPU that executes one instruction a nanosecond and skips the time in which it has nothing to do; without a
#: network or a disk.
_MACHINE = (
    "-nodefaults", "-no-user-config", "-machine", "q35", "-accel", "tcg,thread=single",
    "-icount", "shift=0,sleep=off", "-cpu", _CPU, "-smp", "1", "-m", str(MEMORY_MB),
    "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-display", "none", "-vga", "none", "-net", "none", "-no-reboot",
    "-device", "pvpanic",
)  # fmt: skip
#: No randomness, no watchdogs, no checks that only take time. `nolapic`: else the kernel measures a timer against
#: another one, which takes half of the boot.
KERNEL = (
    "console=ttyS0 quiet nokaslr norandmaps mitigations=off random.trust_cpu=off random.trust_bootloader=off "
    "randomize_kstack_offset=off slab_nomerge tsc=reliable no_timer_check lpj=4000000 nosoftlockup nowatchdog "
    "rcupdate.rcu_cpu_stall_suppress=1 audit=0 apparmor=0 selinux=0 cgroup_disable=memory init_on_alloc=0 "
    "page_alloc.shuffle=0 ipv6.disable=1 cryptomgr.notests=1 nolapic panic=-1"
)
#: What makes a machine what it is, for its identity.
SETTINGS = " ".join((*_MACHINE, KERNEL))


class Asked(Protocol):
    """A machine that is asked for."""

    @property
    def given(self) -> bytes:
        """What guest/await.c says in it."""

    @property
    def arguments(self) -> Sequence[str]:
        """Of QEMU, besides those that make it what it is."""

    def talk(self, monitor: Monitor) -> bool:
        """Say to QEMU what is to be said next, if anything; whether that is all. Asked again and again."""


@dataclass(frozen=True)
class Start:
    """A machine that starts from a saved state, and goes on to its end."""

    #: Files as the sandbox reaches them.
    kernel: str
    state: str
    given: bytes = b""
    #: More arguments of QEMU, for what is no measurement.
    more: tuple[str, ...] = ("-serial", "null")

    @property
    def arguments(self) -> Sequence[str]:
        """See `Asked`. The kernel is not read again, but QEMU asks for one wherever one was loaded."""
        return ("-kernel", self.kernel, "-incoming", f"exec:cat {self.state}", *self.more)

    def talk(self, monitor: Monitor) -> bool:
        """See `Asked`."""
        if (monitor.ask("query-status") or {}).get("status") != WAITS:
            return False
        return monitor.ask("cont") is not None


@dataclass(frozen=True)
class Ended:
    """A machine that ended."""

    #: What it said.
    said: str
    #: Why it is not to be trusted, one sentence; empty where it ended by itself.
    trouble: str
    wall_s: float
    #: Whether all was said to its QEMU that was to be.
    told: bool


def version(host: Host) -> str:
    """Version of QEMU with its package's: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. `MissingResource` where there is
    none."""
    if shutil.which(QEMU) is None:
        raise MissingResource(
            f"An emulated machine needs {QEMU} (package qemu-system-x86), which is missing; {REMEDY}."
        )
    said = host.run([QEMU, "--version"]).stdout
    found = re.search(r"version (.+)", said)
    if found is None:
        raise TestbedError(f"{QEMU} does not say its version: {said[:100]!r}.")
    return found[1]


def fitting(host: Host, each_mb: int = MEMORY_MB + OWN_MB) -> int:
    """How many machines fit into the memory that is free, each with so much. `MissingResource` where none does."""
    said = re.search(r"MemAvailable:\s+(\d+) kB", host.read("/proc/meminfo"))
    free_mb = int(said[1]) // 1024 if said else 0
    if free_mb < each_mb:
        raise MissingResource(f"An emulated machine needs {each_mb} MB of memory, and {free_mb} MB are available.")
    return free_mb // each_mb


def run_all(host: Host, asked: Sequence[Asked], at_once: int, longest_s: float = LONGEST_S) -> list[Ended]:
    """Run machines, so many side by side, and wait until all have ended. What one of them needs is gone then."""
    waiting, running = list(enumerate(asked)), dict[int, _Running]()
    ended: dict[int, Ended] = {}
    with tempfile.TemporaryDirectory(prefix="ctbench-emulated-", dir=host.local_path(PRIVATE)) as folder:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, next_one = waiting.pop(0)
                    running[number] = _Running(host, next_one, Path(folder) / str(number), longest_s)
                for number in [number for number, one in running.items() if one.is_over()]:
                    ended[number] = running.pop(number).end()
                time.sleep(_POLL_S)
        finally:
            for one in running.values():
                one.stop()
    return [ended[number] for number in range(len(asked))]


class _Running:
    """A machine that runs."""

    def __init__(self, host: Host, asked: Asked, files: Path, longest_s: float) -> None:
        self._asked, self._files, self._told = asked, files, False
        self._serial, self._log, given, monitor = (
            files.with_suffix(each) for each in (".serial", ".log", ".given", ".monitor")
        )
        given.write_bytes(asked.given)
        self._monitor = Monitor(monitor)
        self._begun, self._longest_s = time.monotonic(), longest_s
        inside = f"{PRIVATE}/{files.parent.name}"
        argv = [QEMU, *_MACHINE, "-fw_cfg", f"name=opt/ctbench/given,file={inside}/{given.name}"]
        argv += ["-serial", f"file:{inside}/{self._serial.name}"]
        argv += ["-qmp", f"unix:{inside}/{monitor.name},server=on,wait=off", *asked.arguments]
        self._process: Process = host.start(argv, log=self._log)

    @property
    def _took_s(self) -> float:
        return time.monotonic() - self._begun

    def is_over(self) -> bool:
        """Whether it has ended, or takes too long; else what is to be said to it is said."""
        if not self._process.is_running() or self._took_s > self._longest_s:
            return True
        self._told = self._told or self._asked.talk(self._monitor)
        return False

    def stop(self) -> int:
        """End it; returns its status."""
        self._monitor.close()
        return self._process.stop()

    def end(self) -> Ended:
        """What came of it; one that takes too long is stopped."""
        trouble = ""
        if self._process.is_running():
            trouble = f"it took longer than {self._longest_s:.0f} s"
        status = self.stop()
        if status and not trouble:
            said = self._log.read_text(errors="replace").strip()[-200:] if self._log.exists() else ""
            trouble = f"QEMU ended with status {status}{f': {said}' if said else ''}"
        said = self._serial.read_text(errors="replace") if self._serial.exists() else ""
        for each in self._files.parent.glob(f"{self._files.name}.*"):
            each.unlink()
        return Ended(said, trouble, self._took_s, self._told)

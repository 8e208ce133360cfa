"""Boots an emulated machine in QEMU without KVM. Its clock is its own instruction count (-icount), so that what it
does, and what it says, is the same whatever the host does."""

import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.emulated.kernel import REMEDY
from ctbench.hosts.base import Host, Process

QEMU = "qemu-system-x86_64"
MEMORY_MB = 512
#: What QEMU takes besides, mostly for what it has translated.
_OWN_MB = 128
#: Seconds that a boot may take, of which it needs some five; and between two looks at those that run.
LONGEST_S = 150.0
_POLL_S = 0.05
#: In the sandbox's own memory, so that files go with it, whatever ends the run.
PRIVATE = "/run"
#: Without the instructions that make random numbers, with those that builds of DPDK ask for.
_CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+fsgsbase,-rdrand,-rdseed"
#: One CPU that executes one instruction a nanosecond and skips the time in which it has nothing to do; without a
#: network or a disk.
_MACHINE = (
    "-nodefaults", "-no-user-config", "-machine", "q35", "-accel", "tcg,thread=single",
    "-icount", "shift=0,sleep=off", "-cpu", _CPU, "-smp", "1", "-m", str(MEMORY_MB),
    "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-display", "none", "-vga", "none", "-net", "none", "-no-reboot",
)  # fmt: skip
#: No randomness, no watchdogs, no checks that only take time. `nolapic`: else the kernel measures a timer against
#: another one, which takes half of the boot.
_KERNEL = (
    "console=ttyS0 quiet nokaslr norandmaps mitigations=off random.trust_cpu=off random.trust_bootloader=off "
    "randomize_kstack_offset=off slab_nomerge tsc=reliable no_timer_check lpj=4000000 nosoftlockup nowatchdog "
    "rcupdate.rcu_cpu_stall_suppress=1 audit=0 apparmor=0 selinux=0 cgroup_disable=memory init_on_alloc=0 "
    "page_alloc.shuffle=0 ipv6.disable=1 cryptomgr.notests=1 nolapic panic=-1"
)
#: What makes a machine what it is, for its identity.
SETTINGS = " ".join((*_MACHINE, _KERNEL))


@dataclass(frozen=True)
class Boot:
    """A boot that is asked for."""

    #: As this process reaches it.
    kernel: Path
    archive: bytes
    #: An argument that the kernel does not know: it seeds the hash functions by all of its arguments.
    seed: int
    #: More arguments of QEMU, for what is no measurement.
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A boot that ended."""

    #: What it said.
    said: str
    #: Why it is not to be trusted, one sentence; empty where it ended by itself.
    trouble: str
    wall_s: float


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


def fitting(host: Host) -> int:
    """How many machines fit into the memory that is free. `MissingResource` where none does."""
    said = re.search(r"MemAvailable:\s+(\d+) kB", host.read("/proc/meminfo"))
    free_mb = int(said[1]) // 1024 if said else 0
    if free_mb < MEMORY_MB + _OWN_MB:
        raise MissingResource(
            f"An emulated machine needs {MEMORY_MB + _OWN_MB} MB of memory, and {free_mb} MB are available."
        )
    return free_mb // (MEMORY_MB + _OWN_MB)


def boot_all(host: Host, boots: Sequence[Boot], at_once: int, longest_s: float = LONGEST_S) -> list[Ended]:
    """Boot machines, so many side by side, and wait until all have ended. What one of them needs is gone then."""
    waiting, running = list(enumerate(boots)), dict[int, _Running]()
    ended: dict[int, Ended] = {}
    with tempfile.TemporaryDirectory(prefix="ctbench-emulated-", dir=host.local_path(PRIVATE)) as folder:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, boot = waiting.pop(0)
                    running[number] = _Running(host, boot, Path(folder) / str(number), longest_s)
                for number in [number for number, one in running.items() if one.is_over]:
                    ended[number] = running.pop(number).end()
                time.sleep(_POLL_S)
        finally:
            for one in running.values():
                one.process.stop()
    return [ended[number] for number in range(len(boots))]


class _Running:
    """A machine that runs."""

    def __init__(self, host: Host, boot: Boot, files: Path, longest_s: float) -> None:
        self._files = files
        endings = (".serial", ".log", ".cpio", ".kernel")
        self._serial, self._log, archive, kernel = (files.with_suffix(each) for each in endings)
        archive.write_bytes(boot.archive)
        shutil.copyfile(boot.kernel, kernel)  # one that was unpacked has another path in the sandbox
        self._begun, self._longest_s = time.monotonic(), longest_s
        inside = f"{PRIVATE}/{files.parent.name}"
        argv = [QEMU, *_MACHINE, "-kernel", f"{inside}/{kernel.name}", "-initrd", f"{inside}/{archive.name}"]
        argv += ["-serial", f"file:{inside}/{self._serial.name}", "-append", f"{_KERNEL} ctbench.seed={boot.seed:04d}"]
        argv += boot.more
        self.process: Process = host.start(argv, log=self._log)

    @property
    def _took_s(self) -> float:
        return time.monotonic() - self._begun

    @property
    def is_over(self) -> bool:
        return not self.process.is_running() or self._took_s > self._longest_s

    def end(self) -> Ended:
        """What came of it; one that takes too long is stopped."""
        trouble = ""
        if self.process.is_running():
            trouble = f"the emulated machine did not end within {self._longest_s:.0f} s"
        status = self.process.stop()
        if status and not trouble:
            said = self._log.read_text(errors="replace").strip()[-200:] if self._log.exists() else ""
            trouble = f"QEMU ended with status {status}{f': {said}' if said else ''}"
        said = self._serial.read_text(errors="replace") if self._serial.exists() else ""
        for each in self._files.parent.glob(f"{self._files.name}.*"):
            each.unlink()
        return Ended(said, trouble, self._took_s)

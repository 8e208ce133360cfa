"""Emulated machines in QEMU without KVM. Their clock is their own instruction count (-icount), so that their actions
and output do not depend on the host. A machine is booted once for each seed and saved when it is ready for a topology,
where guest/await.c stops it; measurements start from there."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from threading import Timer
from typing import IO, Any, Literal, NamedTuple, get_args

from icount.errors import IcountError, Missing, one_line
from icount.image import QEMU, Image
from icount.kernel import REMEDY


class Monitor:
    """The monitor of a QEMU (QMP), over its output and its input."""

    def __init__(self, says: IO[str], reads: IO[str]) -> None:
        self._says = says
        self._reads = reads
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return the answer. Raise `IcountError` where QEMU refuses, `OSError` where it has
        ended."""
        self._reads.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._reads.flush()
        for line in self._says:  # its greeting and events are between
            try:
                said = json.loads(line)
            except ValueError:  # it ended in the middle of a line
                break
            if "error" in said:
                raise IcountError(f"QEMU refuses `{command}`: {said['error'].get('desc', said['error'])}.")
            if "return" in said:
                found: dict[str, Any] = said["return"]
                return found
        raise ConnectionResetError


MEMORY_MB = 512
#: What QEMU takes besides, mostly for what it has translated.
OWN_MB = 128
#: Seconds that a machine may take, of which it needs some two; and between two questions to its monitor.
LONGEST_S = 150.0
_POLL_S = 0.05
#: No limit of a state's way to its file, bytes a second: the machine waits.
_FASTEST = 1 << 40
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


@dataclass(frozen=True)
class Asked:
    """A request for a machine. Its files are relative to the folder that it runs in."""

    #: Of QEMU, besides those that make it what it is.
    arguments: tuple[str, ...]
    #: Says to QEMU what is to be said.
    talk: Callable[[Monitor], None]
    #: What guest/await.c says in it.
    given: bytes = b"\n"
    #: More arguments of QEMU; others for what is not a measurement.
    more: tuple[str, ...] = ("-serial", "null")


def start(kernel: str, state: str) -> Asked:
    """Return a machine that starts from a saved state and runs to its end. The kernel is not read again, but QEMU
    requires one wherever one was loaded."""

    def go_on(monitor: Monitor) -> None:
        _await(monitor, WAITS)
        monitor.ask("cont")

    return Asked(("-kernel", kernel, "-incoming", f"exec:cat {state}"), go_on)


def boot(kernel: str, archive: str, seed: int, state: str) -> Asked:
    """Return a machine that boots, and is saved when it is ready. The kernel does not know the argument with the seed,
    but seeds its hash functions by all of its arguments."""

    def save(monitor: Monitor) -> None:
        _await(monitor, WAITS)
        monitor.ask("migrate-set-parameters", **{"max-bandwidth": _FASTEST})
        monitor.ask("migrate", uri=f"exec:cat >{state}")
        _await(monitor, "postmigrate")
        monitor.ask("quit")

    append = f"{KERNEL} ctbench.seed={seed:04d}"
    return Asked(("-kernel", kernel, "-initrd", archive, "-append", append, "-action", "panic=pause"), save)


def _await(monitor: Monitor, status: str) -> None:
    """Wait until the machine has a status. Raise `IcountError` where its state could not be saved."""
    while monitor.ask("query-status")["status"] != status:
        migration = monitor.ask("query-migrate")
        if migration.get("status") == "failed":
            why = migration.get("error-desc", "no reason is given")
            raise IcountError(f"The state of an emulated machine could not be saved: {why}.")
        time.sleep(_POLL_S)


def version() -> str:
    """Return the version of QEMU with its package's: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. Raise `Missing` where
    QEMU is not installed."""
    if shutil.which(QEMU) is None:
        raise Missing(f"An emulated machine needs {QEMU} (package qemu-system-x86), which is missing; {REMEDY}.")
    said = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (.+)", said)
    if found is None:
        raise IcountError(f"{QEMU} does not say its version: {said[:100]!r}.")
    return found[1]


def fitting(each_mb: int = MEMORY_MB + OWN_MB) -> int:
    """Return how many machines of `each_mb` fit into the free memory. Raise `Missing` where none does."""
    free_mb = _free_mb()
    if free_mb < each_mb:
        raise Missing(f"An emulated machine needs {each_mb} MB of memory, and {free_mb} MB are available.")
    return free_mb // each_mb


def _free_mb() -> int:
    said = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(said[1]) // 1024 if said else 0


#: What is sent through a topology: packets of one connection that is known, or of a thousand or ten thousand; new
#: connections of one protocol; or UDP connections that are removed from the table, or read out of it.
Workload = Literal["stream", "stream-1k", "stream-10k", "udp", "tcp", "removal", "dump"]
WORKLOADS: tuple[Workload, ...] = get_args(Workload)
#: Of what the kernel says when it ends in a panic, and of anything else at the end of the line.
_LONGEST = 200


class Round(NamedTuple):
    """A round of packets, or of connections: how many were sent and received (served), and the instructions that they
    cost."""

    sent: int
    received: int
    instructions: int


@dataclass
class Counted:
    """The counts of one machine for a topology with one workload."""

    rounds: list[Round] = field(default_factory=list)
    #: What was to be found, what was, and what that is in words.
    checks: list[tuple[str, str, str]] = field(default_factory=list)
    #: What its hash functions were seeded by; seconds from the start of the machine to its end.
    seed: int = 0
    wall_s: float = 0.0

    @property
    def each(self) -> float:
        """The instructions for one packet or connection: the median of the rounds."""
        return median(each.instructions / each.sent for each in self.rounds)

    @property
    def doubt(self) -> str:
        """The reason why the figures do not count, one sentence; empty where everything was proved."""
        if not self.rounds:
            return "no round was counted"
        for each in self.rounds:
            if each.received != each.sent:
                return f"{each.sent} were sent and {each.received} came through"
        if not self.checks:
            return "nothing was proved of the topology"
        for expected, found, what in self.checks:
            if expected != found:
                return f"{what}: {found or 'nothing'} where {expected} had to be"
        return ""


@dataclass(frozen=True)
class Log:
    """The output of a machine until its end."""

    #: Of each workload that was tried.
    workloads: Mapping[Workload, Counted]
    #: Why the machine did not finish, one sentence; empty where it did.
    trouble: str
    wall_s: float = 0.0
    #: Whether all was said to its QEMU that was to be.
    talked: bool = True


#: What dash(1) says of a program with instructions that the machine's processor (`_CPU`) lacks, and what that means.
_ILLEGAL = "Illegal instruction"
_NOT_GENERIC = ": it was built for another processor; build DPDK with -Dplatform=generic"


def read_log(text: str) -> Log:
    """Parse the output of a machine, without the lines of the kernel and of tools in it."""
    found: dict[Workload, Counted] = {}
    now, broken, ended, panic = Counted(), "", False, ""
    lines = text.replace("\r", "").splitlines()
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "workload" and rest in WORKLOADS:
            now = found[rest] = Counted()
        elif word == "round" and (counts := re.fullmatch(r"[a-z]+ (\d+) (\d+) (\d+)", rest)):
            now.rounds.append(Round(*map(int, counts.groups())))
        elif word == "check" and len(parts := rest.split(" ", 2)) == 3:
            now.checks.append((parts[0], parts[1], parts[2]))
        elif word == "broken":
            broken = broken or rest
        elif word == "done":
            ended = True
        elif "Kernel panic" in line or "Out of memory" in line:
            panic = panic or line
    if broken and _ILLEGAL in lines:
        broken += _NOT_GENERIC
    last = next((line for line in reversed(lines) if line.strip()), "none")
    trouble = broken or ("" if ended else panic or f"its last words are: {last}")
    return Log(found, one_line(trouble)[:_LONGEST])


def run_all(folder: Path, asked: Sequence[Asked], at_once: int, longest_s: float = LONGEST_S) -> list[Log]:
    """Run machines in a folder, `at_once` side by side, and wait until all have ended. Then their processes and files
    are gone."""
    processes: list[subprocess.Popen[str]] = []
    threads = ThreadPoolExecutor(at_once)
    try:
        return list(threads.map(lambda one: _run(folder, one, longest_s, processes), asked))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        threads.shutdown()


def _run(folder: Path, asked: Asked, longest_s: float, processes: list["subprocess.Popen[str]"]) -> Log:
    """Run a machine to its end, for `longest_s` seconds at most; add its QEMU to `processes`."""
    begun, talked = time.monotonic(), False
    with tempfile.TemporaryDirectory(prefix="machine-", dir=folder) as own, (Path(own) / "log").open("w+") as log:
        serial, given, inside = Path(own) / "serial", Path(own) / "given", Path(own).name
        given.write_bytes(asked.given)
        serial.touch()
        argv = [QEMU, *_MACHINE, "-fw_cfg", f"name=opt/ctbench/given,file={inside}/given"]
        argv += ["-serial", f"file:{inside}/serial", "-qmp", "stdio", *asked.arguments, *asked.more]
        # Linux kills it when the thread that started it ends, kill -9 included: prctl(2), PR_SET_PDEATHSIG.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
        processes.append(process)
        watch = Timer(longest_s, process.kill)
        watch.start()
        try:
            assert process.stdout and process.stdin
            asked.talk(Monitor(process.stdout, process.stdin))
            talked = True
        except OSError:  # it has ended, and its status says how
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
            watch.cancel()
        wall_s = time.monotonic() - begun
        log.seek(0)
        complaint = log.read().strip()[-200:]
        said = read_log(serial.read_text(errors="replace"))
    trouble = said.trouble
    if wall_s >= longest_s:
        trouble = f"it took longer than {longest_s:.0f} s"
    elif process.returncode:
        trouble = f"QEMU ended with status {process.returncode}{f': {complaint}' if complaint else ''}"
    return Log(said.workloads, trouble, wall_s, talked)


#: In the folder of the states.
_KERNEL_FILE = "kernel"
#: What a state takes besides what is booted, which is in the machine's memory twice: as an archive, and as files.
_REST_MB = 80


class States:
    """The saved states of one image, by seed, in a folder."""

    def __init__(self, folder: Path, image: Image, longest_s: float = LONGEST_S) -> None:
        """Write the kernel to the folder; machines are booted on demand. `longest_s`: the time limit of a boot,
        seconds."""
        self._folder = folder
        self._image = image
        self._longest_s = longest_s
        (folder / _KERNEL_FILE).write_bytes(image.kernel)
        #: The one that was saved first stands first.
        self._saved: dict[int, Path] = {}

    def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, Asked]:
        """Return machines that start from the states of these seeds, or of as many of them as memory has room for.
        Raise `Missing` where not one fits, `IcountError` where a machine does not get ready."""
        missing = [seed for seed in seeds if seed not in self._saved][:at_once]
        if missing and (room := self._room(seeds)):
            self._save(missing[:room])
        here = {seed: self._saved[seed] for seed in seeds if seed in self._saved}
        return {seed: start(_KERNEL_FILE, state.name) for seed, state in here.items()}

    def _room(self, wanted: Sequence[int]) -> int:
        """Return how many more states fit into memory, of which files may take a part. Saved states of other seeds are
        removed until one fits."""
        archive_mb = len(self._image.whole) >> 20
        state_mb = 2 * archive_mb + _REST_MB
        each_mb = MEMORY_MB + OWN_MB + state_mb
        while True:
            files = os.statvfs(self._folder)
            free_mb, files_mb = _free_mb(), (files.f_bavail * files.f_frsize >> 20) - archive_mb
            room = min(free_mb // each_mb, files_mb // state_mb)
            if room > 0 or any(seed in self._saved for seed in wanted):
                return max(0, room)
            if not self._saved:
                raise Missing(
                    f"An emulated machine needs {each_mb} MB of memory, and {free_mb} MB are available, of which files "
                    f"may take {files_mb} MB."
                )
            self._saved.pop(next(iter(self._saved))).unlink()

    def _save(self, seeds: Sequence[int]) -> None:
        archive, states = self._folder / "archive", {seed: self._folder / f"{seed}.state" for seed in seeds}
        try:
            archive.write_bytes(self._image.whole)
            asked = [boot(_KERNEL_FILE, archive.name, seed, state.name) for seed, state in states.items()]
            for seed, ended in zip(seeds, run_all(self._folder, asked, len(asked), self._longest_s), strict=True):
                if not ended.talked:
                    raise IcountError(f"The emulated machine did not get ready (seed {seed}): {ended.trouble}.")
            self._saved |= states
        finally:
            archive.unlink(missing_ok=True)
            for seed in states.keys() - self._saved.keys():
                states[seed].unlink(missing_ok=True)

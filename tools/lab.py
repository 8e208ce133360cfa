"""A lab of one's own, for testbed lab-in-a-box: a second machine in QEMU with cards, an IOMMU, hugepages and isolated
CPUs, which is reached over SSH (docs/labs.md). Without KVM its rates say nothing; all else is as in a lab.

It stands in a network namespace of its own, with what makes it: QEMU, and three taps that lead to its cards. Whatever
ends this command ends QEMU, and the kernel removes the namespace. A pool of them shares that namespace.
"""

import argparse
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from ctbench.base.errors import ExitStatus, MissingResource, TestbedError
from ctbench.base.paths import users_own
from ctbench.hosts.local import LocalHost, LocalProcess, Owner, ends_with_us, run_child
from ctbench.testbed.config import check_namespaces
from icount import machine
from icount.image import QEMU
from tools import ending

#: What is kept, where a testbed file can name it: the disk, the kernel, and the keys of SSH.
FOLDER = users_own("", ".cache") / "conntrack-sla" / "lab"
SCRIPTS = Path(__file__).with_name("lab_machine")
#: One CPU for Linux and eight for PMD threads; MiB of memory, with what QEMU takes besides.
CPUS, MEMORY_MB, OWN_MB = 9, 3072, 600
#: Queues of a test card: one for each PMD thread and one for the others.
QUEUES = 9
TUN = Path("/dev/net/tun")
#: Seconds until it answers over SSH.
LONGEST_S = 180.0
#: Seconds between two times that frames are handed on which QEMU holds back.
_FLUSH_S = 0.1
#: Kernel arguments as a lab has them: the doctor asks for each.
KERNEL = (
    "root=/dev/vda rw console=ttyS0 quiet mitigations=off intel_iommu=on iommu=pt isolcpus=1-8 nohz_full=1-8"
    " rcu_nocbs=1-8 hugepages=512 tsc=reliable nowatchdog"
    " rcupdate.rcu_cpu_stall_suppress=1 workqueue.watchdog_thresh=0"
)
#: What DPDK's build asks for.
_CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+fsgsbase,+rdtscp,-rdrand,-rdseed"
#: Cards whose checksums are made where the frame is: nothing behind a tap completes them.
_PLAIN = "csum=off,guest_csum=off,gso=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off,guest_tso4=off,"
_PLAIN += "guest_tso6=off,guest_ecn=off,guest_ufo=off"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the arguments ask for. Ends the process for help, and for wrong usage (2)."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Status 0: it did what it was asked for, else that of COMMAND; 5: the machine did not start; 6: "
        "something needed is missing.",
    )
    parser.add_argument(
        "--machines",
        type=int,
        choices=range(1, 9),
        default=1,
        metavar="N",
        help="how many machines `start` starts, 1 to 8: a pool in one network (default: %(default)s)",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name, meaning in _ACTIONS.items():
        action = actions.add_parser(name, help=meaning, description=meaning)
        if name not in ("build", "stop"):
            action.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="with its arguments")
    options = parser.parse_args(arguments)
    if options.action == "in" and not options.command:
        parser.error("in needs a command")
    return options


_ACTIONS = {
    "build": "make its disk from Debian's packages, once, in some minutes",
    "start": "start it, and stop it when COMMAND has ended, or without one with Ctrl-C",
    "in": "run COMMAND in its network",
    "ssh": "log in to it, or run COMMAND on it",
    "stop": "stop the one that runs",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Everything from the command line to the exit status."""
    options = parse(arguments)
    if options.action == "build":
        if _owner():
            raise MissingResource("The lab runs, and its disk is in use: `stop` ends it.")
        return run_child(["bash", str(SCRIPTS / "build.sh"), str(FOLDER)])
    if options.action == "start":
        command = options.command
        with _running(options.machines) as process:
            return run_child(_inside(process.pid, command)) if command else _wait(process)
    owner = _owner()
    if owner is None:
        raise MissingResource("The lab does not run: `start` starts it.")
    if options.action == "stop":
        os.kill(int(owner.pid), signal.SIGTERM)
        return ExitStatus.MET
    return run_child(_inside(int(owner.pid), _ssh(*options.command) if options.action == "ssh" else options.command))


def _inside(pid: int, argv: Sequence[str]) -> list[str]:
    """`argv` in the lab's network, as the user who asks, who is root there, with the interfaces of that network in
    /sys."""
    user = Path("ns/user")
    if Path("/proc/self", user).samefile(f"/proc/{pid}/{user}"):  # a command of `start`: it is there already
        return list(argv)
    there = ["nsenter", "--target", str(pid), "--user", "--net", "--preserve-credentials", "--"]
    return [*there, "unshare", "--mount", "sh", "-c", 'mount -t sysfs none /sys && exec "$@"', "sh", *argv]


def _ssh(*argv: str, number: int = 0) -> list[str]:
    known = f"UserKnownHostsFile={FOLDER / 'known_hosts'}"
    return ["ssh", "-F", "none", "-i", str(FOLDER / "key"), "-o", known, "-o", "ConnectTimeout=10", "-o",
            "LogLevel=ERROR", f"root@192.0.2.{4 * number + 2}", *argv]  # fmt: skip


def _of(number: int, what: str) -> Path:
    return FOLDER / f"{what}-{number}"


def _owner() -> Owner | None:
    """QEMU of the lab that runs; None where none does."""
    try:
        owner = Owner.parse((FOLDER / "process").read_text())
    except OSError:
        return None
    return owner if owner and owner.lives() else None


def _require(host: LocalHost, machines: int = 1) -> None:
    """`MissingResource` with the first thing that is missing."""
    machine.version()
    if not (FOLDER / "disk").is_file():
        raise MissingResource("The lab's machine has no disk yet: `build` makes it, in some minutes.")
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise MissingResource(f"The lab's cards need {TUN}, which this user may not open: `chmod 666 {TUN}` as root.")
    check_namespaces()
    machine.fitting(machines * (MEMORY_MB + OWN_MB))


@contextmanager
def _running(machines: int) -> Iterator[LocalProcess]:
    """The first machine, from when all of them answer until the end of the block."""
    host = LocalHost()
    _require(host, machines)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MissingResource("The lab runs already: `stop` ends it.") from None
        begun = time.monotonic()
        first = host.start(["unshare", "--user", "--map-root-user", "--net", *_qemu()], log=FOLDER / "qemu.log")
        started = [first]
        try:
            (FOLDER / "process").write_text(str(Owner.of(str(first.pid))))
            for number in range(machines):
                if number:  # the first one answers, so its namespace is there
                    started.append(host.start(_inside(first.pid, _qemu(number)), log=FOLDER / "qemu.log"))
                _await(host, started[-1], number)
            Thread(target=_flush, args=(started,), daemon=True).start()
            _say(f"the lab is ready after {time.monotonic() - begun:.0f} s.")
            yield first
        finally:
            for process in reversed(started):
                process.stop()
            (FOLDER / "process").unlink(missing_ok=True)


def _flush(machines: Sequence[LocalProcess]) -> None:
    """While one of them runs, have QEMU hand its cards the frames that it holds back, which a link does that comes up:
    those that RSS put into another ring than that of their tap's queue, which was full (QEMU 7.2)."""
    monitors = [_monitor(number) for number in range(len(machines))]
    while any(each.is_running() for each in machines):
        for number, monitor in enumerate(monitors):
            for card in "cs":
                with suppress(OSError):  # it has ended
                    monitor.ask("set_link", name=f"{card}{number}", up=True)
        time.sleep(_FLUSH_S)


def _monitor(number: int) -> machine.Monitor:
    with socket.socket(socket.AF_UNIX) as talks:
        talks.connect(str(_of(number, "monitor")))
        lines = talks.makefile("rw", encoding="utf-8")
    return machine.Monitor(lines, lines)


def _qemu(number: int = 0) -> list[str]:
    """QEMU of a lab's machine; the first one is 0."""
    up = SCRIPTS / "up.sh"
    argv = [
        QEMU, "-nodefaults", "-no-user-config", "-machine", "q35",
        "-accel", "tcg,thread=multi,tb-size=256", "-cpu", _CPU, "-smp", str(CPUS), "-m", str(MEMORY_MB),
        "-display", "none", "-serial", f"file:{_of(number, 'console')}",
        "-qmp", f"unix:{_of(number, 'monitor')},server=on,wait=off",
        "-device", "intel-iommu,intremap=on,caching-mode=on",
        "-kernel", str(FOLDER / "kernel"), "-initrd", str(FOLDER / "initrd"), "-append", KERNEL,
        "-drive", f"file={FOLDER / 'disk'},format=raw,if=none,id=disk,snapshot=on",
        "-device", "virtio-blk-pci,drive=disk,addr=0x3",
        "-netdev", f"tap,id=ssh,ifname=m{number},script={up},downscript=no",
        "-device", f"virtio-net-pci,netdev=ssh,mac=52:54:00:00:0{number}:01,addr=0x4",
    ]  # fmt: skip
    for slot, name in enumerate((f"c{number}", f"s{number}"), 5):
        argv += ["-netdev", f"tap,id={name},ifname={name},script={up},downscript=no,queues={QUEUES}"]
        card = f"virtio-net-pci,netdev={name},mac=52:54:00:00:0{number}:0{slot},addr=0x{slot},mq=on,rss=on"
        card += ",rx_queue_size=1024"
        argv += ["-device", f"{card},vectors={2 * QUEUES + 2},iommu_platform=on,disable-legacy=on,{_PLAIN}"]
    # A change of the user's namespace forgets whose end is to end this, so that is said behind it.
    return ends_with_us(["nice", "-n", "10", *argv])


def _await(host: LocalHost, process: LocalProcess, number: int) -> None:
    """Wait until the machine answers and has started all that it starts by itself."""
    until = time.monotonic() + LONGEST_S
    while process.is_running() and time.monotonic() < until:
        asked = _inside(process.pid, _ssh("systemctl", "is-system-running", "--wait", number=number))
        if host.run(asked, timeout=LONGEST_S, check=False).stdout.strip() in ("running", "degraded"):
            return
        time.sleep(1)
    said = (FOLDER / "qemu.log").read_text(errors="replace").strip().splitlines()
    why = f"did not answer within {LONGEST_S:.0f} s ({_of(number, 'console')})" if process.is_running() else "ended"
    raise TestbedError(f"The lab's machine {why}{f': {said[-1][:200]}' if said else ''}.")


def _wait(process: LocalProcess) -> int:
    while process.is_running():
        time.sleep(0.5)
    return ExitStatus.MET


def _say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    ending.run(main)

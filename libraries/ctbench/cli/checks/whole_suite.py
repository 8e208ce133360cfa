"""`./run tests`: lint, types, the dry run, and every test as an ordinary user; for root, some tests as root as well.

Root sees files and namespaces that others do not, so a test that passes for root says little about other users. Started
by root, every test runs as `nobody` in a copy of the checkout, and after that those as root that are marked `root_too`,
or that an ordinary user had to skip. Started by anybody else, every test runs once.

Each of these runs of pytest has two lanes: tests that may run beside others on all CPUs, and then, one by one, those
that need the machine for themselves. The last line on stdout sums up all of them in the form of pytest's own.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ctbench.cli.checks.ordinary_user import OrdinaryUser, folder_that_goes, ordinary_user
from ctbench.cli.checks.outcomes import Outcomes

ROOT = Path(__file__).resolve().parents[4]
CHECKS = ("lint", "types", "dryrun")
#: What each lane names of its tests, those that took 5 s and more.
SLOWEST = ("--durations=12", "--durations-min=5")
WARM_UP = ("-m", "ctbench.traffic.software", "--warm-up")
#: pytest's own: the tests ran; they ran and some failed; no test was chosen. Anything else broke it off.
RAN, NONE_CHOSEN = (0, 1), 5
#: With these a person wants to see or to type something while a test runs, which several processes cannot share.
INTERACTIVE = {"--pdb", "--trace", "-s", "--capture=no"}


class Lanes:
    """Runs of pytest with the user's own options, and what became of each test."""

    def __init__(self, options: Sequence[str], folder: Path) -> None:
        self.options, self.folder = options, folder
        self.outcomes = Outcomes()
        #: What pytest could not do, one sentence each.
        self.broken: list[str] = []

    def run(self, name: str, user: OrdinaryUser | None, *more: str) -> None:
        """One run of pytest, as `user` or as who we are."""
        heading(name)
        file = self.folder / f"{name.replace(' ', '-')}.jsonl"
        file.touch()
        file.chmod(0o666)
        status = run_as(user, ["-P", "-m", "pytest", f"--outcomes={file}", *SLOWEST, *more, *self.options])
        self.outcomes.read(file, "root" if os.geteuid() == 0 and user is None else "")
        if status not in (*RAN, NONE_CHOSEN):
            self.broken.append(f"pytest ended with status {status}: {name}")

    @property
    def stop(self) -> bool:
        """Whether nothing more is to be run."""
        first = any(option in ("-x", "--exitfirst") or option.startswith("--maxfail") for option in self.options)
        return bool(self.broken) or (first and bool(self.outcomes.failures()))


def main(options: Sequence[str]) -> int:
    """Everything; the exit status is 0 when all of it passed, otherwise 1."""
    started = time.monotonic()
    with folder_that_goes() as folder:
        user, reason = ordinary_user(ROOT, folder)
        failed = checks_and_compilation(user)
        lanes = Lanes(options, folder)
        run_tests(lanes, user)
    ran = lanes.outcomes.counts()
    if not (ran or failed or lanes.broken) and any(option in ("--co", "--collect-only") for option in options):
        return 0
    heading("all of it")
    if reason:  # root alone proves nothing about other users
        failed.append(f"as an ordinary user, nothing ran: {reason}")
    for line in [*(f"FAILED {check}" for check in failed), *lanes.broken, *lanes.outcomes.failures()]:
        print(line)
    if user:
        ordinary, root = lanes.outcomes.ran_as(""), lanes.outcomes.ran_as("root")
        print(f"Tests that ran as an ordinary user: {ordinary}; as root: {root}.")
    print(lanes.outcomes.closing_line(len(failed) + len(lanes.broken), time.monotonic() - started), flush=True)
    return 0 if set(ran) & {"passed"} and not (failed or lanes.broken or lanes.outcomes.failures()) else 1


def run_tests(lanes: Lanes, user: OrdinaryUser | None) -> None:
    """All tests once, and as root those that are root's as well."""
    run_both_lanes(lanes, "as an ordinary user, tests" if user else "tests", user)
    if user and not lanes.stop and (names := lanes.outcomes.for_root()):
        only = lanes.folder / "for-root"
        only.write_text("\n".join(names))
        files = sorted({name.partition("::")[0] for name in names})
        run_both_lanes(lanes, "as root, tests that root may do differently, and", None, f"--only={only}", *files)


def run_both_lanes(lanes: Lanes, which: str, user: OrdinaryUser | None, *chosen: str) -> None:
    """The tests that may run beside others, on all CPUs, and then the others."""
    beside = ["--lane=beside"]
    cpus = len(os.sched_getaffinity(0))
    if cpus > 1 and not INTERACTIVE & set(lanes.options):
        beside += ["-n", str(cpus), "--no-loadscope-reorder"]
    lanes.run(f"{which} that run beside others", user, *beside, *chosen)
    if not lanes.stop:
        lanes.run(f"{which} that run alone", user, "--lane=alone", *chosen)


def run_as(user: OrdinaryUser | None, arguments: Sequence[str]) -> int:
    """Exit status of our Python with these arguments, in this terminal."""
    command, environment, place = as_user(user, arguments)
    # Whatever ends us interrupts pytest, which then ends what it has started; at Ctrl-C it needs time for that.
    dies_with_us = ["setpriv", "--pdeathsig", "INT", "--"]
    with subprocess.Popen([*dies_with_us, *command], env=environment, cwd=place) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


def as_user(user: OrdinaryUser | None, arguments: Sequence[str]) -> tuple[list[str], dict[str, str], Path]:
    """Command, environment and folder with which Python runs as `user`."""
    if user:
        return [*user.drop, str(user.python), *arguments], user.environment, user.checkout
    return [sys.executable, *arguments], dict(os.environ), ROOT


def checks_and_compilation(user: OrdinaryUser | None) -> list[str]:
    """Run the checks, and compile the traffic generator for each user, side by side; names of checks that failed."""

    def check(name: str) -> Callable[[], "subprocess.CompletedProcess[str]"]:
        return lambda: captured(["bash", str(ROOT / "run"), "check", name], dict(os.environ), ROOT)

    def compiled(each: OrdinaryUser | None) -> Callable[[], "subprocess.CompletedProcess[str]"]:
        command, environment, place = as_user(each, WARM_UP)
        return lambda: captured(command, environment | {"PYTHONPATH": str(place / "libraries")}, place)

    tasks = {name: check(name) for name in CHECKS}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = {name: pool.submit(task) for name, task in tasks.items()}
        # Where this fails the tests that need it say why.
        compiling = [pool.submit(compiled(each)) for each in ([user, None] if user else [None])]
        failed = []
        for name, future in running.items():
            heading(name)
            done = future.result()
            print(done.stdout, end="", flush=True)
            if done.returncode != 0:
                failed.append(name)
        for future in compiling:
            future.result()
    passed = [name for name in CHECKS if name not in failed]
    print("Before the tests: " + "  ".join([f"{name} ok" for name in passed] + [f"{name} FAILED" for name in failed]))
    return failed


def captured(command: Sequence[str], environment: dict[str, str], place: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def heading(text: str) -> None:
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

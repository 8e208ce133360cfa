"""The command `icount`: prints the instructions of topologies with a kernel and an Open vSwitch of your own, and the
functions in which they are spent."""

import argparse
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import get_args

from icount.counter import Counter, Setup
from icount.errors import IcountError, Invalid
from icount.machine import Workload

#: As many functions are shown.
SHOWN = 10
#: What a compiler adds to the name of a part or a copy of a function, not the same way in every build.
_COPY = re.compile(r"\.(constprop|isra|part|cold)(\.\d+)*(?=\s|$|\.)")
#: The catalogue, in a checkout and in the package that is made of it.
_LIBRARIES = Path(__file__).parents[1]
_CATALOGUES = (_LIBRARIES.parent / "resources" / "rulesets", _LIBRARIES / "ctbench/share/resources/rulesets")
_OUTPUT_STATUS = 74
#: A file system in memory; and what a state and an archive take of it.
_MEMORY = Path("/dev/shm")
_STATE_BYTES = 400 << 20


def by_name(functions: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the functions with the most instructions, the dearest first; a function includes its parts and copies."""
    found: dict[str, float] = {}
    for name, instructions in functions.items():
        whole = _COPY.sub("", name)
        found[whole] = found.get(whole, 0.0) + instructions
    return sorted(found.items(), key=lambda each: -each[1])[:SHOWN]


def net(counter: Counter, setup: Setup, workload: Workload) -> list[float]:
    """Return the cost of a packet (connection) in instructions with each seed, net of the wires and the traffic alone.
    Raise `IcountError` where the state of a topology was not proved, `Invalid` where it has no such workload."""
    baseline = setup.baseline(workload)
    setups = [setup] if baseline is None else [setup, baseline]
    counted = counter.count(setups, workload)
    for name, every in zip(setups, counted, strict=True):
        if not any(each.rounds for each in every):
            raise Invalid(
                f"{name} has no workload {workload}.\n  Expected another one: {', '.join(get_args(Workload))}."
            )
        if doubt := next((each.doubt for each in every if each.doubt), ""):
            raise IcountError(f"{name}: what was counted was not proved: {doubt}.")
    if baseline is None:
        return [one.each for one in counted[0]]
    return [one.each - wires.each for one, wires in zip(*counted, strict=True)]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the arguments. End the process for help, and for wrong usage (2)."""
    parser = argparse.ArgumentParser(
        prog="icount",
        description="Counts what a packet, or a connection, costs in instructions in an emulated machine.",
        epilog="Status 0: counted; 2: wrong usage; 4: a kernel, a build or an image is not one, or a "
        "topology has no such workload; 5: a machine did not work, or a topology did not prove its state; 6: something "
        "is not installed; 74: the image cannot be written.",
    )
    add = parser.add_argument
    add("topologies", nargs="+", metavar="TOPOLOGY", help="in RULESETS/emulated, such as ovs-user-conntrack")
    add("--workload", choices=get_args(Workload), default="stream", help="what is sent (default: %(default)s)")
    add("--ports", choices=("plain", "vlan", "bond", "bond-vlan"), default="plain", help="what the ports are")
    add(
        "--kernel",
        type=Path,
        metavar="FILE",
        help="a package (.deb), or a bzImage with its modules",
    )
    add("--ovs", default="distribution", metavar="PREFIX", help="an Open vSwitch of your own")
    add("--image", type=Path, metavar="FILE", help="one that was kept, in the place of what is installed")
    add("--seeds", type=int, default=2, metavar="N", help="machines for each topology (default: %(default)s)")
    add("--functions", action="store_true", help=f"the {SHOWN} functions that cost most; several times as long")
    add("--keep-image", type=Path, metavar="FILE", help="keep what was booted in this file")
    add("--rulesets", type=Path, metavar="FOLDER", help="the catalogue (default: resources/rulesets)")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error("--seeds: expected 1 or more")
    if options.image and options.kernel:
        parser.error("--image: an image that was kept has a kernel; expected no --kernel")
    return options


def count(options: argparse.Namespace, folder: Path) -> None:
    """Print a line for each topology, with its cost for each seed; then its functions and the kept image, where asked
    for."""
    rulesets = options.rulesets or next((each for each in _CATALOGUES if each.is_dir()), _CATALOGUES[0])
    known = sorted(path.stem for path in (rulesets / "emulated").glob("*.sh"))
    for name in options.topologies:
        if name not in known:
            listed = ", ".join(known) or "no topology"
            raise Invalid(f"{name} is not a topology.\n  Expected one of {rulesets / 'emulated'}: {listed}.")
    if options.keep_image and not options.keep_image.absolute().parent.is_dir():
        raise Invalid(
            f"--keep-image: {options.keep_image}: has no folder.\n  Expected a file in a folder that is there."
        )
    counter = Counter(
        folder, rulesets, kernel=options.kernel, ovs=options.ovs, image=options.image, seeds=options.seeds
    )  # fmt: skip
    for name in options.topologies:
        setup = Setup(name, options.ports)
        print(f"{setup}: {', '.join(f'{each:,.1f}' for each in net(counter, setup, options.workload))}", flush=True)
        if options.functions:
            for found in counter.functions([setup], options.workload).values():
                for function, cost in by_name(found):
                    print(f"  {cost:12,.1f}  {function}")
    if options.keep_image:
        print(f"{options.keep_image} keeps image {counter.keep_image(options.keep_image)}.")


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a temporary folder for states: in memory, or among temporary files where memory has no room for one."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _STATE_BYTES
    with tempfile.TemporaryDirectory(prefix="icount-", dir=_MEMORY if roomy else None) as folder:
        yield Path(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and return the exit status; a mistake is printed as a sentence."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    options = parse(arguments)
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with memory_folder() as folder:
            count(options, folder)
    except IcountError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print(f"{error.filename or 'icount'}: {error.strerror or error}.", file=sys.stderr)
        return _OUTPUT_STATUS
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command `ctgen`: it makes one trial and prints its counts."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pydantic import ValidationError

from ctgen.errors import GeneratorError, Unavailable
from ctgen.generator import Generator
from ctgen.library import kernel
from ctgen.links import Cable, Interfaces, Memif
from ctgen.loads import Hold, Load, Rate, Saturation, saturating
from ctgen.profiles import ConnectionProfile, PacketProfile, Profile, largest_frame
from ctgen.trial import Trial
from ctgen.wiring import Link

#: What the command ends with where it did not do what it was asked for; 2 is argparse's.
BROKEN, USAGE, UNAVAILABLE, INTERRUPTED = 1, 2, 3, 130

#: Their rings take memory, some 100 MB each of large frames.
MOST_QUEUES = 64

DESCRIPTION = """
Send connections or packets to a device under test, and say how many per second come through it. Clients are on the one
port and servers on the other, so the device has to forward between its two ports."""
EPILOG = """
KEY=VALUE sets a key of the profile, for example messages=10 udp_percent=100 port_order=sequential of connections, or
frame_bytes=imix flows=10000 directions=both of packets; a key that does not exist gets the list of those that do.

exit status: 0 the trial was made, 1 the generator or a link broke, 2 wrong usage, 3 this machine lacks something.

  ctgen --memif /run/dut/client.sock /run/dut/server.sock --seconds 5
  ctgen --memif /run/dut/client.sock /run/dut/server.sock --packets --rate 1M flows=1000
  ctgen --cable
"""
_FACTORS = {"k": 1e3, "M": 1e6, "G": 1e9}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = argparse.ArgumentParser(
        "ctgen", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = made.add_mutually_exclusive_group(required=True)
    ends = ("CLIENT", "SERVER")
    where.add_argument("--memif", nargs=2, metavar=ends, help="sockets of the device's memif ports, which are servers")
    where.add_argument("--interfaces", nargs=2, metavar=ends, help="network interfaces; needs CAP_NET_RAW")
    where.add_argument("--cable", action="store_true", help="no device: what the generator itself can do")
    where.add_argument("--build", action="store_true", help="compile the generator's kernel, and do nothing else")
    made.add_argument("--packets", action="store_true", help="a stream of UDP packets instead of connections")
    made.add_argument("profile", nargs="*", metavar="KEY=VALUE", help="what a connection, or the stream, is like")
    load = made.add_mutually_exclusive_group()
    load.add_argument("--rate", type=_number, metavar="N", help="offer so many per second, such as 48200 or 48.2k")
    under_way = "keep so many under way, the default: what is completed is what the device serves"
    load.add_argument("--under-way", type=_whole, metavar="N", help=under_way)
    load.add_argument("--hold", type=_whole, metavar="N", help="open so many connections, and keep them open")
    made.add_argument("--seconds", type=_number, default=1.0, metavar="S", help="how long it counts (%(default)s)")
    made.add_argument("--rx-queues", type=_queues, default=1, metavar="N", help="the device's, each port (%(default)s)")
    tx_queues = "the device's, each port (one more than --rx-queues: Open vSwitch with a PMD thread for each)"
    made.add_argument("--tx-queues", type=_queues, metavar="N", help=tx_queues)
    cpus = "CPUs to send from, such as 2,3: a thread each, where the device has the queues (one thread, anywhere)"
    made.add_argument("--cpus", type=_cpus, default=(), metavar="LIST", help=cpus)
    link_cpus = "CPUs on which frames are handed to --interfaces (one, anywhere)"
    made.add_argument("--link-cpus", type=_cpus, default=(), metavar="LIST", help=link_cpus)
    made.add_argument("--json", action="store_true", help="write all counts as JSON")
    return made


def _number(text: str) -> float:
    factor = _FACTORS.get(text[-1:])
    try:
        found = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1G, such as 48200 or 48.2k")
    return found


def _whole(text: str) -> int:
    found = _number(text)
    if found != int(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(found)


def _queues(text: str) -> int:
    found = _whole(text)
    if found > MOST_QUEUES:
        raise argparse.ArgumentTypeError(f"{text} queues are more than {MOST_QUEUES}")
    return found


def _cpus(text: str) -> tuple[int, ...]:
    if not all(number.isdecimal() for number in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of CPUs, such as 2,3")
    return tuple(int(number) for number in text.split(","))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit status."""
    options = parser().parse_args(arguments)
    try:
        if options.build:
            kernel()
        else:
            _offer(options)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        return _failed(USAGE, where + first["msg"].removeprefix("Value error, "))
    except ValueError as error:
        return _failed(USAGE, str(error))
    except (GeneratorError, OSError) as error:
        return _failed(BROKEN, str(error))
    except Unavailable as error:
        return _failed(UNAVAILABLE, str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _failed(status: int, why: str) -> int:
    print(f"ctgen: {why}", file=sys.stderr)
    return status


def _offer(options: argparse.Namespace) -> None:
    """Make the trial, and print its counts."""
    profile = _profile(options)
    load = _load(options, profile)
    with closing(Generator(options.cpus)) as generator:
        generator.connect(_link(options, largest_frame(profile)))
        trial = generator.run_trial(profile, load, options.seconds)
        lines = _lines(trial, str(generator.snapshot()["wiring"]))
        print(trial.model_dump_json(indent=2) if options.json else "\n".join(lines))


def _profile(options: argparse.Namespace) -> Profile:
    keys: dict[str, Any] = {}
    for key, _, text in (each.partition("=") for each in options.profile):
        try:
            keys[key] = json.loads(text)
        except ValueError:  # a word
            keys[key] = text
    if options.packets:
        return PacketProfile.model_validate({"name": "packets", "kind": "packets"} | keys)
    return ConnectionProfile.model_validate({"name": "connections"} | keys)


def _load(options: argparse.Namespace, profile: Profile) -> Load:
    if options.rate:
        return Rate(options.rate)
    if options.hold:
        return Hold(options.hold, opened_per_s=100_000)
    return Saturation(options.under_way) if options.under_way else saturating(profile)


def _link(options: argparse.Namespace, frame_bytes: int) -> Link:
    queues = options.rx_queues
    rings = {"rx_queues": queues, "tx_queues": options.tx_queues or queues + 1, "frame_bytes": frame_bytes}
    if options.cable:
        return Cable(**rings)
    if options.memif:
        return Memif(paths=(tuple(options.memif),), threads=queues, **rings)
    return Interfaces(names=(tuple(options.interfaces),), cpus=options.link_cpus, **rings)


def _lines(trial: Trial, wiring: str) -> Iterator[str]:
    """Yield the lines that show a trial."""
    yield f"ports        {wiring}"
    offered = f"{trial.under_way} under way" if trial.under_way else f"{trial.load:,.0f} {trial.unit}/s"
    yield f"offered      {offered}, for {trial.counted_s:g} s"
    yield f"completed    {trial.rate:,.0f} {trial.unit}/s, {trial.completed:,} of {trial.intended:,}"
    yield f"lost         {trial.loss_ratio:.4%}{''.join(f', {count:,} {why}' for why, count in trial.failed.items())}"
    yield f"packets      {trial.pps:,.0f}/s through the device, {trial.bps / 1e9:.2f} Gbit/s"
    known = {"connect time": trial.connect_time_us, "first byte": trial.first_byte_us, "last byte": trial.last_byte_us}
    for name, time in known.items():
        if time:
            yield f"{name:<12} {time.p50:.1f} us (median), {time.p99:.1f} us (p99), {time.max:.1f} us (most)"
    latencies = {**trial.latency_us, **{side: each.latency_us for side, each in trial.directions.items()}}
    for side, latency in latencies.items():
        if latency is None:
            continue
        yield f"latency      {latency.p50:.1f} us (median), {latency.p99:.1f} us (p99), from the {side}"
    if limited := trial.generator_limited or trial.generator_disturbed:
        yield f"caution      the generator was the limit: {limited}"

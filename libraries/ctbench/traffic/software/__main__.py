"""Offer load by hand: `python -m ctbench.traffic.software --help`. Prints a line per second, for debugging."""

import argparse
import sys
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, largest_frame
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.drive import Counts
from ctbench.traffic.software.generator import SoftwareTrafficGenerator, warm_up

_EPILOG = """\
Without --client and --server the two ends of a cable are driven: what the generator can do with no DUT in between.
Example, a DUT whose memif sockets are known:
  python -m ctbench.traffic.software --client /run/p0.sock --server /run/p1.sock --load 100000 --duration 10
"""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ctbench.traffic.software",
        description="Offer complete TCP and UDP connections over memif and count what comes of them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--load", type=float, default=100_000, help="connections per second (default: %(default)s)")
    add("--duration", type=float, default=5, help="seconds of the sustain phase (default: %(default)s)")
    add("--messages", type=int, default=1, help="requests per connection (default: %(default)s)")
    add("--request-bytes", type=int, default=20, help="payload of a request (default: %(default)s)")
    add("--reply-bytes", type=int, default=20, help="payload of a reply (default: %(default)s)")
    add("--server-wait-ms", type=float, default=0, help="how long the server waits, ms (default: %(default)s)")
    add("--udp-percent", type=float, default=0, help="share of UDP exchanges, %% (default: %(default)s)")
    add("--client", type=Path, help="memif socket of the DUT's client side port")
    add("--server", type=Path, help="memif socket of the DUT's server side port")
    add("--rx-queues", type=int, default=1, help="receive queues of the DUT per port (default: %(default)s)")
    add("--tx-queues", type=int, default=2, help="queues the DUT transmits on: PMD CPUs + 1 (default: %(default)s)")
    add("--ring-size", type=int, default=2048, help="frames per ring towards the DUT (default: %(default)s)")
    add("--cpu", type=int, action="append", default=[], help="CPU for the generator's thread (may be repeated)")
    add("--warm-up", action="store_true", help="only compile, so that later starts are quick")
    return parser


class _LinePerSecond:
    """Prints what has happened since the last line."""

    def __init__(self) -> None:
        self._next = 1.0
        self._before: Counts | None = None
        print(f"{'seconds':>8} {'open':>9} {'completed/s':>12} {'failed/s':>9} {'sent pkt/s':>11} {'missed':>8}")

    def __call__(self, elapsed: float, state: Counts, counts: Counts) -> None:
        if elapsed < self._next:
            return
        self._next += 1
        now = counts.copy()
        before = self._before if self._before is not None else now * 0
        self._before = now
        new = now - before
        sent = new[lay.TX_PACKETS] + new[lay.TX_PACKETS + 1]
        print(
            f"{elapsed:8.1f} {state[lay.ACTIVE]:9d} {new[lay.ALL_COMPLETED]:12d} {new[lay.ALL_FAILED]:9d} {sent:11d}"
            f" {now[lay.DUT_MISSED]:8d}",
            flush=True,
        )


def _summary(trial: Trial) -> str:
    times = trial.connect_time_us
    lines = [
        f"intended {trial.intended}, attempted {trial.attempted}, established {trial.established},"
        f" completed {trial.completed}, loss {100 * trial.loss_ratio:.4f} %",
        f"{trial.rate:,.0f} connections/s, {trial.pps:,.0f} packets/s, {trial.bps / 1e6:,.1f} Mbit/s,"
        f" open {trial.active_mean:,.0f} (at most {trial.active_max:,})",
    ]
    if times:
        lines.append(
            f"connect time p50 {times.p50:.1f}, p90 {times.p90:.1f}, p99 {times.p99:.1f}, max {times.max:.1f} us"
        )
    if trial.failed or trial.unexpected or trial.dut_missed:
        lines.append(f"failed {trial.failed}, unexpected {trial.unexpected}, missed by the DUT {trial.dut_missed}")
    lines.append(
        f"the generator was late by {trial.late_max_ms:.2f} ms at most; {trial.generator_limited or 'it kept the pace'}"
    )
    return "\n".join(lines)


def main() -> int:
    """The command line; returns the exit status."""
    options = _arguments().parse_args()
    try:
        if options.warm_up:
            warm_up()
            return 0
        if (options.client is None) != (options.server is None):
            raise ConfigError("--client and --server go together: the DUT has two ports.")
        profile = ConnectionProfile(
            name="by-hand",
            messages=options.messages,
            request_bytes=options.request_bytes,
            reply_bytes=options.reply_bytes,
            server_wait_ms=options.server_wait_ms,
            udp_percent=options.udp_percent,
        )
        warm_up()  # or the first lines below would be the compiler's
        generator = SoftwareTrafficGenerator(options.cpu)
        frame_bytes = largest_frame(profile)
        if options.client:
            generator.connect(
                options.client, options.server, rx_queues=options.rx_queues, tx_queues=options.tx_queues,
                ring_size=options.ring_size, frame_bytes=frame_bytes,
            )  # fmt: skip
        else:
            generator.connect_cable(options.rx_queues, options.ring_size, frame_bytes)
        generator.watcher = _LinePerSecond()
        try:
            print(_summary(generator.run_trial(profile, Rate(options.load), options.duration)))
        finally:
            generator.close()
    except CtbenchError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except ValueError as error:  # a profile that cannot be: pydantic names the field
        print(f"These options make no connection profile: {error}", file=sys.stderr)
        return ConfigError.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

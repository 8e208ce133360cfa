"""What a restart of the DUT costs: how soon connections open again, and how many of those that were open go on.

RFC 6201 (section 4.3, a reset of a process) compares what was lost with the offered rate. Over memif the link goes with
Open vSwitch, and nothing can be offered until both are back: the load ends with the command, and goes on as soon as
there is a link. All of it is lost until the first connection opens, so the time until then is the same.
"""

from dataclasses import dataclass

from ctbench.base.units import format_duration, format_rate
from ctbench.measure.held import conclude
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.procedures.table_limits import BEYOND, RECOVERY, Beyond
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Holding
from ctbench.traffic.loads import Hold, Rate

FORGOTTEN = METRICS["forgotten_by_restart"]
#: Connections that are open when the DUT is restarted.
HELD = 10_000
#: Seconds from then on, for a generator that has to know before when to ask them.
_ASKED_AFTER_S = 60.0


@dataclass
class _Restarted(Beyond):
    """Connections are opened at a rate until the DUT is restarted, and from then on; then each is asked."""

    answered: int = 0
    # What the DUT knows nothing of any more is lost.
    may_lose = 1.0

    def work(self, held: Holding) -> None:
        self.expect("connections opened before the restart", held.open(HELD).established, HELD)

        def restart() -> None:
            self.dut.restart()
            held.reconnect()

        again = self.reopen(held, restart).established
        self.expect("connections opened after the restart", again, BEYOND)
        self.answered = max(0, held.ask().answered - again)

    def __str__(self) -> str:
        return (
            f"the first connection opened {format_duration(self.recovered_s or 0.0)} after the DUT was told to end, at "
            f"{format_rate(self.load.opened_per_s)} offered, and {self.answered} of {HELD} that were open answered"
        )


def _restart(bench: Bench, trials: Trials) -> Outcome:
    """The load has to be held before the restart, and after it."""
    settings = bench.campaign.control_plane
    load = Rate(settings.rate(bench.profile))
    alone = trials.offer(bench.runner, load, settings.alone_duration, "alone")
    if not alone.good:
        return Outcome.not_held(RECOVERY, alone)
    seen, made = _Restarted.make(bench, trials, Hold(HELD + BEYOND, load.per_s, asked_after_s=_ASKED_AFTER_S))
    after = trials.offer(bench.runner, load, settings.alone_duration, "alone")
    values = {RECOVERY.name: made.recovered_s, FORGOTTEN.name: 1 - made.answered / HELD}
    lost = f"the load that was held before is not held after the restart: {after.reason}" if not after.good else ""
    worse = seen if seen.state == "invalid" or not lost else after
    right = not (seen.reason or lost) and made.recovered_s is not None
    return conclude(bench, worse, (RECOVERY, FORGOTTEN), values, seen.reason or lost or str(made), right=right)


RESTART = Scripted(
    name="restart",
    says="opens connections at a rate, restarts the device under test, opens more as soon as it is back, asks those "
    "that were open, and offers the rate again",
    found_out=(RECOVERY.name, FORGOTTEN.name),
    script=_restart,
    loads=frozenset((Hold, Rate)),
    abilities=frozenset({"connections", "restart"}),
    promised=Promise("restart", "table", "restart", CONNECTIONS),
)

"""A restart of the DUT: how soon the rate of new connections is back, and how many of the open connections go on.

RFC 6201 (section 4.3, a reset of a process) compares the loss with the offered rate. Over memif the link goes down with
Open vSwitch, and nothing can be offered until both are back: the load stops with the command, and resumes as soon as
there is a link, at the rate that was held before. The recovery time goes from the command until a thousand connections
have opened at that rate.
"""

from ctbench.base.units import format_rate
from ctbench.measure.held import TableTrial, conclude, table_trial
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.procedures.table_limits import BEYOND, RECOVERY, recovered, reopen
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate

FORGOTTEN = METRICS["forgotten_by_restart"]
#: Connections that are open when the DUT is restarted.
HELD = 10_000
#: Seconds from then on, for a generator that has to know before when to ask them.
_ASKED_AFTER_S = 60.0


def _restart(bench: Bench, trials: Trials) -> Outcome:
    """Open connections at a rate until the DUT is restarted, and again from then on; then ask each. The load has to be
    held before and after the restart."""
    settings = bench.campaign.control_plane
    load = Rate(settings.rate(bench.profile))
    alone = trials.offer(bench.runner, load, settings.alone_duration, "alone")
    if not alone.good:
        return Outcome.not_held(RECOVERY, alone)

    def offer(made: TableTrial) -> Trial:
        with made.hold() as held:

            def restart() -> None:
                bench.dut.restart()
                held.reconnect()

            made.expect("connections opened before the restart", held.open(HELD).established, HELD)
            again = reopen(made, held, restart)
            made.expect("connections opened after the restart", again.established, BEYOND)
            if (first_s := made.values[RECOVERY.name]) is not None:
                made.values[RECOVERY.name] = first_s + (again.last_s or 0.0) - (again.first_s or 0.0)
            answered = max(0, held.ask().answered - again.established)
            made.compare()
            made.values[FORGOTTEN.name] = 1 - answered / HELD
            made.said = (
                f"{BEYOND} connections had opened {recovered(made)} after the DUT was told to end, at "
                f"{format_rate(load.per_s)} offered, and {answered} of {HELD} that were open answered"
            )
            return held.trial()

    # What the DUT knows nothing of any more is lost.
    holding = Hold(HELD + BEYOND, load.per_s, asked_after_s=_ASKED_AFTER_S)
    seen, made = table_trial(bench, trials, holding, offer, may_lose=1.0)
    after = trials.offer(bench.runner, load, settings.alone_duration, "alone")
    lost = f"the load that was held before is not held after the restart: {after.reason}" if not after.good else ""
    worse = seen if seen.state == "invalid" or not lost else after
    right = not (seen.reason or lost) and made.values[RECOVERY.name] is not None
    return conclude(bench, worse, (RECOVERY, FORGOTTEN), made.values, seen.reason or lost or made.said, right=right)


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

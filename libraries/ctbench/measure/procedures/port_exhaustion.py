"""Port exhaustion of a NAT with one address: how fast connections open as its ports are used up, how many ports it
finds, and the fate of more connections than ports.

All connections go to one address and port of a server. An entry keeps its port until it times out, so ports / timeout
bounds any load, however fast the DUT is, and a closed loop reaches that bound within a second. So connections are held,
and few at a time are timed.
"""

from statistics import median

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import format_duration, format_rate
from ctbench.dut.abilities import FullSaid
from ctbench.dut.registry import ruleset_of
from ctbench.measure.held import TableTrial, conclude, table_trial
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.procedures.table_limits import at_limit, opening_rate
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate, Saturation

#: What is found out, by name.
_FOUND = (
    "opening_at_half", "opening_at_90", "ports_used", "forgotten_when_full", "recovery_time", "refusal_time",
)  # fmt: skip
#: Shares of the ports that are in use when a time is taken, and connections that are timed until then: fewer than wait
#: at once, so that none waits for one that is refused. Compared with as many to so many servers, each of which has all
#: ports for itself.
_IN_USE, TIMED, _SERVERS = (0.5, 0.9), 500, 256
#: Trials of which the median counts: each takes times of milliseconds.
TRIALS = 3
#: Per second: more than any DUT opens, so that it sets its own pace.
_AT_MOST = 1e6
#: Connections that are begun per second without a free port, and for how many seconds.
_REFUSED_PER_S, _REFUSED_S = 5000.0, 0.5


def _opening(bench: Bench, trials: Trials, ports: int) -> tuple[Observation, list[float]]:
    """Open connections until nine tenths of the ports are in use, and time the last ones up to each share. Return the
    last trial, and the opening rates per second: with all ports free, and by share."""
    rates: list[float] = []

    def offer(made: TableTrial) -> Trial:
        free = bench.connections.model_copy(update={"server_ips": _SERVERS})
        with bench.generator.hold(free, Hold(2 * TIMED, _AT_MOST)) as held:
            held.open(TIMED)
            rates[:] = [opening_rate(held.open(TIMED)) or 0.0]
        bench.dut.flush_state()
        with made.hold() as held:
            begun = 0
            for share in _IN_USE:
                until = round(share * ports)
                held.open(until - TIMED - begun)
                rates.append(opening_rate(held.open(TIMED)) or 0.0)
                begun = until
            made.compare()
            return held.trial()

    # A NAT that looks for a port at few places only may refuse some.
    seen, _ = table_trial(bench, trials, Hold(ports, _AT_MOST), offer, may_lose=0.5)
    return seen, rates


def _refuse(bench: Bench, ports: int) -> Observation:
    """Offer connections at a rate while no port is free: each costs the CPU time of the search for a port. A NAT that
    tries every port stalls meanwhile."""

    def offer() -> Trial:
        with bench.generator.hold(bench.connections, Hold(ports, bench.campaign.table.opened_per_s)) as held:
            held.open(ports)
        bench.dut.begin_trial()  # its CPU time counts from here on
        return bench.generator.run_trial(bench.profile, Rate(_REFUSED_PER_S), _REFUSED_S)

    return bench.runner_for({"loss_ratio": 1.0}).watch(offer)


def _exhaustion(bench: Bench, trials: Trials) -> Outcome:
    """Measure port exhaustion. Raise `ConfigError` where the ruleset does not give the number of ports,
    `MissingResource` where fewer connections can be held."""
    ruleset, most = ruleset_of(bench.topology), bench.most_held
    ports = ruleset.ports if ruleset else None
    if ports is None:
        raise ConfigError(
            "The ports of a NAT are used up, and its ruleset does not say how many there are.\n  Expected ports: 10000"
            " or so in its catalogue file, as in resources/rulesets/ovs/egress.yaml."
        )
    if most is not None and most < ports:
        raise MissingResource(f"The NAT has {ports} ports, and {most:.0f} connections can be held here.")
    metrics = [METRICS[name] for name in _FOUND]
    filled: list[list[float]] = []
    for _ in range(TRIALS):
        seen, rates = _opening(bench, trials, ports)
        if not seen.good:
            return conclude(bench, seen, metrics, dict.fromkeys(_FOUND), seen.reason, right=False)
        filled.append(rates)
    free, half, nearly = map(median, zip(*filled, strict=True))
    refusing = trials.make("hold", lambda _number: _refuse(bench, ports), _REFUSED_PER_S)
    if refusing.state == "invalid":
        return conclude(bench, refusing, metrics, dict.fromkeys(_FOUND), refusing.reason, right=False)

    def say(opened: int, refused: int, answered: int, _said: FullSaid) -> str:
        return (
            f"{opened} connections found one of {ports} ports, {refused} more were refused, {answered} of those that "
            "were open answered, and new ones opened"
        )

    # Open vSwitch counts none that is refused, and logs few of them.
    seen, full = at_limit(bench, trials, ports, say, counts_full=False)
    values = {
        "opening_rate": free,
        "opening_at_half": half / free if free else 0.0,
        "opening_at_90": nearly / free if free else 0.0,
        "refusal_time": refusing.values.get("cpu_time_per_packet"),
    } | full.values
    said = (
        f"{format_rate(free)} opened with all ports free, {format_rate(half)} with half in use and "
        f"{format_rate(nearly)} with nine tenths; {full.said}; "
        f"each that was refused took {format_duration(values['refusal_time'] or 0.0)} of a CPU"
    )
    right = not seen.reason and values["recovery_time"] is not None
    return conclude(bench, seen, metrics, values, seen.reason or said, right=right)


PORT_EXHAUSTION = Scripted(
    name="port-exhaustion",
    says="times new connections while all ports of a NAT are free, half and nine tenths in use, opens more than there "
    "are ports, takes the CPU time of those that are refused, and opens new ones when the table was emptied",
    found_out=_FOUND,
    script=_exhaustion,
    loads=frozenset((Hold, Saturation)),
    abilities=frozenset({"connections"}),
    promised=Promise("port exhaustion", "table", "port-exhaustion", CONNECTIONS),
)

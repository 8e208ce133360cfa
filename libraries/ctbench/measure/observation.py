"""The judgement of one trial: good, bad or invalid, and the reason.

A DUT falls behind where its backlog grows faster than a share of the load, and not by chance. Three figures have to
agree: the robust slope over the sustain phase, the slope over its second half, and the lower end of the slope's 99 %
interval, which has to be above 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.dut.base import CpuUse, DutCounts, LookUps, Problem
from ctbench.measure.probe import Samples
from ctbench.results.evidence import TrialRecord
from ctbench.results.metrics import METRICS, RATE_OF
from ctbench.results.statistics import few, within
from ctbench.traffic.generator import ATTEMPTED_LIMIT, Latency, Trial, growth

#: A trial that has lost this many times what it may lose does not have to go on.
HOPELESS = 10
#: Metrics of what is lost, in either unit: a trial is judged by one of them, or by both.
LOSSES = ("loss_ratio", "packet_loss_ratio")


def limits_in(conditions: Mapping[str, float]) -> dict[str, float]:
    """Return those of a trial's conditions that limit losses."""
    return {name: conditions[name] for name in LOSSES if name in conditions}


def hopeless(limit: float, of: float) -> float:
    """Return the losses of `of` connections (packets) at which a trial may end: far more than a good trial may have."""
    return HOPELESS * max(1.0, limit * of, few(limit, of))


State = Literal["good", "bad", "invalid"]
#: Why a trial was made, see `TrialRecord.phase`.
Phase = Literal[
    "saturation", "warm-up", "search", "final", "gate", "in turn", "base", "below", "hold", "alone", "beside", "samples"
]
#: What a trial has to keep to be good: limits by metric, in its unit. `loss_ratio` or `packet_loss_ratio` is always
#: among them.
Conditions = Mapping[str, float]

#: Share of a trial that a link thread may wait for its CPU. ksoftirqd does work of the DUT there as well, and they were
#: seen to wait 0.6 % (median of 286 trials), 1.5 % (95 of 100), 3.7 % (99 of 100). A rival takes half.
MOST_WAITING_OF_LINKS = 0.05
#: A process that took x % of a DUT CPU can explain a loss of up to 3 x % + 1 %: the DUT loses what its rings cannot
#: hold meanwhile, and works off what they held afterwards.
EXPLAINED_TIMES, EXPLAINED_MORE = 3, 0.01
#: And that nothing at all comes back in a direction only where they had nearly all of its time.
EXPLAINS_ALL = 0.9
#: A generator that was so late, ms, had to wait for a CPU: a millisecond or two are its own.
LATE_MS = 5.0
#: Share of the load by which what is under way may grow per second, where the limit on losses allows less.
LEAST_BEHIND = 0.005


@dataclass(frozen=True)
class Observation:
    """A trial, the problems of the DUT during it, and the conditions by which it is judged.

    An `invalid` trial says nothing about the DUT's capacity: the generator or the testbed was the limit, or the DUT had
    a fault.
    """

    trial: Trial
    conditions: Conditions
    problems: tuple[Problem, ...] = ()
    #: What the trial cost the DUT's CPUs; None where it is not known.
    cpu: CpuUse | None = None
    #: Where the DUT found what to do with packets; None where it cannot tell.
    look_ups: LookUps | None = None
    #: What its own counters say; None where they say nothing.
    counts: DutCounts | None = None
    #: What the probes saw meanwhile.
    samples: tuple[Samples, ...] = ()
    #: What a procedure found wrong with the DUT besides; empty where nothing was. It makes a trial bad.
    wrong: str = ""
    #: Whether a disturbance voids it although it is good, as at a floor: if only bad trials were made again there, a
    #: DUT a little below its floor would hold it in the end.
    strict: bool = False
    #: In its test, from 1 on; and why it was made.
    number: int = 0
    phase: Phase = "search"

    def as_record(self) -> TrialRecord:
        """Return the trial as the record and the console have it."""
        return TrialRecord(
            phase=self.phase,
            state=self.state,
            reason=self.reason,
            problems=list(self.problems),
            latency_us=self.latency,
            cpu=self.cpu,
            look_ups=self.look_ups,
            counts=self.counts,
            trial=self.trial,
        )

    @property
    def load(self) -> float:
        """Offered load, in the profile's unit per second."""
        return self.trial.load

    @property
    def latency(self) -> Latency | None:
        """Latency of the worse direction; None where none was measured."""
        ways = (way.latency_us for way in self.trial.directions.values())
        return _slower([*filter(None, ways), *self.trial.latency_us.values()])

    @property
    def icmp_latency(self) -> Latency | None:
        """Latency of ICMP packets that accompany connections, of the worse direction; None where not measured."""
        return _slower(self.trial.icmp_latency_us.values())

    @cached_property
    def values(self) -> dict[str, float]:
        """Figures of the trial, by metric. Rates are those forwarded in the sustain phase."""
        trial, times = self.trial, self.trial.connect_time_us
        found = {RATE_OF[trial.unit].name: trial.forwarded_rate}
        found |= {"pps": trial.pps, "bps": trial.bps} if trial.unit == "connections" else {"bps": trial.bps}
        found |= {name: lost / of if of > 0 else 1.0 for name, (lost, of) in self.lost.items()}
        if trial.unit == "connections":
            found["active_connections"] = trial.active_mean
        if times:
            found |= _seconds("connect_time", {"p50": times.p50, "p99": times.p99, "max": times.max})
        if tcp := trial.transport:
            found["retransmission_ratio"] = tcp.sent_again / tcp.sent if tcp.sent else 0.0
            if tcp.rtt_p50_us is not None and tcp.rtt_max_us is not None:
                found |= _seconds("tcp_rtt", {"p50": tcp.rtt_p50_us, "max": tcp.rtt_max_us})
        if udp := trial.udp_latency:
            found |= _seconds("udp", {"latency_mean": udp.one_way_us, "rtt_mean": udp.round_trip_us})
        for name, latency in {"latency": self.latency, "icmp_latency": self.icmp_latency}.items():
            if latency:
                parts = {"p50": latency.p50, "p99": latency.p99, "max": latency.max, "jitter": latency.jitter}
                found |= _seconds(name, parts)
        if self.latency:  # a floor may promise it; of few the longest, which is at least as long
            found["latency_p99"] = self.latency.slowest / 1e6
        if self.cpu and self.cpu.hertz and self.cpu.cpus and trial.pps:
            found["cycles_per_packet"] = self.cpu.hertz / trial.pps / self.cpu.cpus
        if self.cpu:
            found["busy_cpus"] = self.cpu.busy_cpus
            if self.cpu.ns_per_packet is not None:
                found["cpu_time_per_packet"] = self.cpu.ns_per_packet / 1e9
        return found

    def allowing(self, loss_ratio: float) -> "Observation":
        """Return the trial with its loss limits raised to `loss_ratio`, where they are below it."""
        allowed = {name: max(limit, loss_ratio) for name, limit in limits_in(self.conditions).items()}
        return replace(self, conditions={**self.conditions, **allowed})

    @property
    def rate(self) -> float:
        """Rate that the DUT forwarded in the sustain phase, per second. It is the offered load where less than one
        connection (packet) is missing."""
        missing = self.load - self.trial.forwarded_rate
        return self.trial.forwarded_rate if missing * self.trial.counted_s >= 1 else self.load

    @property
    def served(self) -> float:
        """Connections (packets) per second that the DUT completed in the sustain phase."""
        return self.trial.service_rate or self.trial.rate

    @property
    def lost(self) -> dict[str, tuple[int, int]]:
        """Losses by metric: how many, and of how many. Those of the profile's unit are of what was intended; where none
        may be lost, of what was begun, as RFC 2544 section 26.1 compares the frames received with those sent."""
        trial = self.trial
        offered = trial.intended if self._loss_limit else trial.attempted
        found = (offered - trial.completed, offered)
        in_packets = found if trial.unit == "packets" else (trial.packets_lost, trial.packets_sent)
        return {"loss_ratio": found, "packet_loss_ratio": in_packets}

    @cached_property
    def falls_behind(self) -> float:
        """Growth of the DUT's backlog as a share of the load (ratio per second); 0 where the DUT kept up, or where the
        trial does not tell. A closed loop has no backlog that can grow."""
        trial = self.trial
        if trial.under_way or trial.load <= 0:
            return 0.0
        limit = max(LEAST_BEHIND, self._loss_limit) * trial.load
        return growth(trial.timeline_active, trial.timeline_step_s, limit) / trial.load

    @property
    def _loss_limit(self) -> float:
        """The lowest of the limits on losses, in connections or packets."""
        return min(limits_in(self.conditions).values())

    @property
    def fault(self) -> str:
        """The first fatal problem of the DUT; empty without one. It ends a search."""
        return self._first("fatal")

    def _first(self, severity: str) -> str:
        return next((problem.text for problem in self.problems if problem.severity == severity), "")

    @property
    def generator_fault(self) -> str:
        """The reason why the generator or the testbed decided this trial, and not the DUT; empty without one.

        A load that was not fully offered counts too: TRex reports no error then. It may fall short by the loss limit,
        or where that is 0, by what generators may.
        """
        trial = self.trial
        if quota := next((problem.text for problem in self.problems if problem.code == "cpu-quota"), ""):
            return quota  # it makes generator and DUT late, and a DUT stand still
        if trial.attempted > 0 and self._failed and self._first("stalled"):
            return ""  # what was lost while the DUT stood still is its own loss, however busy the others were
        if spoilt := ": ".join(filter(None, (self.lost_elsewhere, trial.generator_limited))) or self._first("invalid"):
            return spoilt
        if trial.intended <= 0 or trial.attempted <= 0:
            return "nothing was offered"
        if not within(trial.intended - trial.attempted, trial.intended, self._loss_limit or 1 - ATTEMPTED_LIMIT):
            sent = format_rate(trial.attempted / trial.counted_s)
            return f"the generator began only {sent} of {format_rate(trial.load)}"
        return self._disturbance if self._failed or self.strict else ""

    @property
    def machine_was_busy(self) -> bool:
        """True where other work on the machine may have disturbed the trial, so that a pause may help."""
        others = any(problem.severity in ("invalid", "disturbed") for problem in self.problems)
        late = self.trial.late_max_ms >= LATE_MS
        return others or late or self._waiting > MOST_WAITING_OF_LINKS or bool(self.trial.generator_disturbed)

    @property
    def _disturbance(self) -> str:
        """A disturbance that explains the losses or the backlog: CPU time taken from the DUT or its links. Else what
        disturbed the generator, whether or not it explains them. Empty without one."""
        for problem in self.problems:
            if problem.severity == "disturbed" and self._is_explained(problem):
                return problem.text
        if self._waiting > MOST_WAITING_OF_LINKS and self._is_explained_by(self._waiting):
            return f"other processes took {self._waiting * 100:.1f} % of a CPU that hands frames to the DUT"
        return self.trial.generator_disturbed

    @property
    def lost_elsewhere(self) -> str:
        """Places where frames were lost outside the DUT, by both sides' counters. Empty unless loss limits are the only
        measured conditions that the trial broke, and it keeps them without these frames."""
        away = self._lost_on_the_way
        frames = sum(away.values())
        others = [name for name in self.broken if name not in LOSSES and name in self.values]
        if not frames or others or not any(name in LOSSES for name in self.broken):
            return ""
        return ", and ".join(away) if self._keeps_without(frames) else ""

    def _keeps_without(self, frames: int) -> bool:
        """True where the limits on losses are kept without so many frames."""
        lost = {name: self.lost[name] for name in limits_in(self.conditions)}
        return all(within(max(0, count - frames), of, self.conditions[name]) for name, (count, of) in lost.items())

    @property
    def _lost_on_the_way(self) -> dict[str, int]:
        """Frames that one side sent and the other neither received nor dropped, by the counters of both. Frames that
        the DUT had not taken when the trial ended do not count. Empty with half-open connections in addition to the
        load, which the generator's frame counts leave out."""
        counts, trial = self.counts, self.trial
        found: dict[str, int] = {}
        if counts is None or trial.half_open or not trial.attempted:
            return {}
        for side, sent in counts.sent.items():
            took = trial.total_rx_packets.get(side, 0)
            text = f"the DUT sent {sent} frames to the generator's {side} port, it took {took}"
            found[text] = sent - took - trial.total_untaken
        for side, received in counts.received.items():
            sent = trial.total_tx_packets.get(side, 0)
            text = f"the generator sent {sent} frames to the DUT's {side} port, it received {received}"
            found[text] = sent - received - counts.dropped - trial.total_untaken
        return {text: frames for text, frames in found.items() if frames > 0}

    @property
    def _waiting(self) -> float:
        return self.trial.link.waiting if self.trial.link else 0.0

    @property
    def _passes_nothing(self) -> bool:
        """True where frames were sent in one direction and none came back."""
        sent, back = self.trial.total_tx_packets, self.trial.total_rx_packets
        return any(
            sent.get(there) and not back.get(here) for there, here in (("client", "server"), ("server", "client"))
        )

    def _is_explained(self, problem: Problem) -> bool:
        """True where a problem outside the DUT can explain the losses or the backlog."""
        if problem.frames is not None:
            return self._keeps_without(problem.frames)
        return self._is_explained_by(problem.cpu_taken)

    def _is_explained_by(self, cpu_taken: float | None) -> bool:
        """True where the losses or the backlog can be due to other processes that had a CPU of the DUT for this share
        of the time. None: the cause was another, of unknown size."""
        if cpu_taken is None:
            return True
        lost, sent = self.lost["packet_loss_ratio"]
        most = max(lost / sent if sent else 0.0, self.falls_behind)
        if self._passes_nothing and cpu_taken < EXPLAINS_ALL:
            return False
        return most <= EXPLAINED_TIMES * cpu_taken + EXPLAINED_MORE

    @property
    def state(self) -> State:
        """The judgement: `good`, `bad` or `invalid`."""
        if self.fault or self.generator_fault:
            return "invalid"
        return "bad" if self._failed or self.wrong else "good"

    @property
    def good(self) -> bool:
        """True where the DUT held the load within the limits."""
        return self.state == "good"

    @property
    def reason(self) -> str:
        """The reason why the trial is not good, in words; empty for a good one."""
        if self.fault or self.generator_fault:
            return self.fault or self.generator_fault
        parts = [self._breach(name) for name in self.broken] + ([self.wrong] if self.wrong else [])
        if self.falls_behind:
            parts.append(f"the DUT fell behind by {self.falls_behind * 100:.1f} %")
        stall = self._first("stalled")  # of the DUT, by itself
        because = [stall.rstrip(".")] if parts and stall else []
        return ": ".join([" and ".join(parts), *because])

    def _breach(self, name: str) -> str:
        """Describe a broken condition."""
        metric, limit, found = METRICS[name], self.conditions[name], self.values.get(name)
        value = metric.format(found) if found is not None else "not measured"
        if name in LOSSES:
            unit, cause = (self.trial.unit, self._cause) if name == "loss_ratio" else ("packets", "")
            ended = self.trial.ended_after_s
            after = f" when it was ended after {ended:.2f} s" if ended else ""
            return f"{value} of the {unit} were lost{cause}{self._where}{after} (limit {metric.format(limit)})"
        return f"{metric.title} was {value} (limit {metric.format(limit)})"

    @property
    def _cause(self) -> str:
        """The main cause of the loss: of connections the reason of their failure, of packets the direction."""
        ways = self.trial.directions
        if len(ways) > 1:
            sender = max(ways, key=lambda name: ways[name].intended - ways[name].received)
            return ", mostly from server to client" if sender == "server" else ", mostly from client to server"
        cause = max(self.trial.failed, key=lambda name: self.trial.failed[name], default="")
        return f", mostly {cause.replace('_', ' ')}" if cause and self.trial.failed[cause] else ""

    @property
    def _where(self) -> str:
        """The port pairs with the losses, where others of them have hardly any; else empty."""
        lost = [pair.lost for pair in self.trial.port_pairs]
        most = [str(pair) for pair, count in enumerate(lost, 1) if count > sum(lost) / len(lost) / 2]
        return f", on port pair {' and '.join(most)} of {len(lost)}" if 0 < len(most) < len(lost) else ""

    @cached_property
    def broken(self) -> tuple[str, ...]:
        """The metrics whose conditions were broken. A condition without a measured value is broken."""
        return tuple(name for name, limit in self.conditions.items() if not self._keeps(name, limit))

    def _keeps(self, name: str, limit: float) -> bool:
        """True where a condition was kept."""
        if name in LOSSES:
            return within(*self.lost[name], limit)
        found = self.values.get(name)
        return found is not None and METRICS[name].keeps(found, limit)

    @property
    def _failed(self) -> bool:
        """True where the DUT broke a condition or fell behind, whatever the cause."""
        return bool(self.broken or self.falls_behind)


def _slower(latencies: Iterable[Latency]) -> Latency | None:
    return max(latencies, key=lambda each: each.slowest, default=None)


def _seconds(name: str, times_us: Mapping[str, float | None]) -> dict[str, float]:
    return {f"{name}_{part}": time_us / 1e6 for part, time_us in times_us.items() if time_us is not None}

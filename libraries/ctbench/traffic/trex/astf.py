"""Trials with connections by TRex' ASTF: the profile that TRex is given, the readings of a trial, and what they yield.

The description from which client_worker.py builds a profile is as in TRex' cps_ndr.py (the published procedure of
2022): a base rate of 100 connections per second over all templates, which a multiplier turns into the offered load;
client and server addresses in turn, each side's messages of one repeated letter.

Phases: a ramp-up at the full rate for a connection's lifetime and a second more, by which time early losses have
shown up as retransmissions; the sustain phase between two readings; the drain, in which no connection begins and
open ones end by themselves; then the stop, which would cut open ones off.

TRex also reports single connections (`get_flow_info`: retransmissions and round-trip time of each), and measures the
latency of packets that it sends next to them. UDP messages that the servers answer (udp_latency.cpp) are of many flows,
but TRex reports only the sum of their times. ICMP requests of the first client that the first server answers
(`latency_pps`) have a histogram, but are of one flow, over IPv4. TRex reports no time of a handshake.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from statistics import median
from typing import Any

from ctbench.traffic.generator import Latency, Trial
from ctbench.traffic.profiles import ConnectionProfile, last_word
from ctbench.traffic.trex.client import TrexWorker
from ctbench.traffic.trex.counters import (
    OWN_RESETS,
    PAIR_OFFSET,
    SIDES,
    Reading,
    Side,
    generator_fault,
    losses_of,
    not_taken,
    of_port_pairs,
    readings_cannot_be,
    transport_of,
    unexpected,
    without_latency,
)
from ctbench.traffic.trex.latency import latency_of_messages, latency_of_port

#: Connections per second at a multiplier of 1, or more where a template's share of it would be below TRex' least.
BASE_CPS = 100
LEAST_CPS = 0.5
#: A UDP exchange without a packet for this long (besides the server's wait) has failed, milliseconds: TCP's timers in
#: TRex begin with as much.
UDP_PATIENCE_MS = 500

_LAST_PORT = 65535

Spec = dict[str, Any]
Command = list[Any]


def astf_spec(profile: ConnectionProfile) -> Spec:
    """Return the description of a profile. TRex begins at its full rate."""
    base, templates = base_cps(profile), []
    for stream, is_short, share in _kinds(profile):
        client, server = _programs(profile, stream, profile.short_messages if is_short else profile.messages)
        port = _port(profile, stream, is_short)
        templates.append({"stream": stream, "port": port, "cps": share * base, "client": client, "server": server})
    return {"addresses": addresses(profile), "templates": templates}


def addresses(profile: ConnectionProfile) -> Spec:
    """Return the address ranges of clients and servers, which TRex takes in turn. For IPv6, TRex expects the last 32
    bits as an IPv4 address."""
    sides = {"src_msb": profile.client_ip, "dst_msb": profile.server_ip}
    return {
        "ipv6": {name: _prefix(first) for name, first in sides.items()} if profile.ip_version == 6 else {},
        "client": _range(profile.client_ip, profile.client_ips),
        "server": _range(profile.server_ip, profile.server_ips),
        "offset": PAIR_OFFSET,
        "distribution": "seq",
    }


def base_cps(profile: ConnectionProfile) -> float:
    """Return the connections per second of the description at a multiplier of 1."""
    return max(BASE_CPS, LEAST_CPS / min(share for *_, share in _kinds(profile)))


def _kinds(profile: ConnectionProfile) -> list[tuple[bool, bool, float]]:
    """Return the kinds of connections: whether over TCP, whether short, and their share of all."""
    udp, short = profile.udp_percent / 100, profile.short_percent / 100
    kinds = [
        (stream, is_short, of_protocol * of_length)
        for stream, of_protocol in ((False, udp), (True, 1 - udp))
        for is_short, of_length in ((True, short), (False, 1 - short))
    ]
    return [kind for kind in kinds if kind[-1] > 0]


def limitations(profile: ConnectionProfile) -> list[str]:
    """Return what ASTF does differently from the profile, a sentence each."""
    notes = []
    if profile.port_order == "random":
        notes.append("TRex takes client addresses and ports in turn, not in random order (RFC 4814).")
    if (profile.client_port_min, profile.client_port_max) != (1024, 65535):
        wanted = f"{profile.client_port_min} to {profile.client_port_max}"
        notes.append(f"TRex takes client ports from 1024 on, not {wanted}.")
    # Its programs send each message with PSH, and its TCP acknowledges that at once (tcp_input.c, DELAY_ACK).
    if profile.server_wait_ms and profile.messages and profile.udp_percent < 100 and not profile.ack_before_reply:
        notes.append("TRex' server acknowledges a TCP request on its own before it waits: three packets per message.")
    if not profile.server_wait_ms and profile.ack_before_reply:
        notes.append("TRex' server acknowledges a TCP request with its reply: two packets per message, not three.")
    if 0 < profile.udp_percent < 100:
        notes.append("TRex draws lots for TCP or UDP, so the share of UDP varies a little from trial to trial.")
    if profile.ended_by != "client" and profile.messages:
        more = "two packets" if profile.ended_by == "server" else "a packet"
        notes.append(f"TRex acknowledges on its own in the end: {more} more per TCP connection.")
    if profile.short_percent:
        ports = " and ".join(str(_port(profile, *kind)) for *kind, _ in _kinds(profile) if kind[1])
        notes.append(
            "TRex draws lots for short connections or long ones, so their share varies a little; the short ones go to "
            f"port {ports}, because TRex' servers know by the port alone what to do."
        )
    return notes


def measures(profile: ConnectionProfile) -> list[str]:
    """Return how ASTF measures what it reports next to the connections, for the record."""
    beside = f"next to the connections ({LATENCY_PPS} each way per second, at most {_LATENCY_SHARE:.0%} of them)"
    notes = [f"UDP latency: in the mean, of messages of {TIMED_FLOWS} flows {beside}"]
    if profile.ip_version == 4:
        notes.append(
            f"ICMP latency: of packets of one client and one server {beside}, in steps of one decimal digit from 10 us"
        )
    if profile.udp_percent < 100:
        notes.append("TCP round-trip time: of a few connections per second, in whole milliseconds")
    return notes


def _port(profile: ConnectionProfile, stream: bool, is_short: bool) -> int:
    """Return the server's port. Short connections have another server program, and so a port next to it."""
    port = profile.tcp_port if stream else profile.udp_port
    return port if not is_short else port + 1 if port < _LAST_PORT else port - 1


def _programs(profile: ConnectionProfile, stream: bool, messages: int) -> tuple[list[Command], list[Command]]:
    """Return the programs of client and server. Over TCP, each closes its side when its program is over."""
    client_ends, server_ends = _ending(profile, messages) if stream else ([], [])
    if messages == 0:
        return [["connect"], *client_ends], server_ends
    over = "" if stream else "_msg"
    request, reply = (profile.request_bytes, profile.reply_bytes) if stream else (1, 1)  # of UDP, messages
    wait = [["delay", round(profile.server_wait_ms * 1000)]] if profile.server_wait_ms else []
    ask: Command = [f"send{over}", profile.request_bytes, "x"]
    ahead = profile.at_once - 1  # requests that are sent before the one whose reply is awaited
    rest = [[f"recv{over}", ahead, True]] if ahead else []
    client = [*[ask] * ahead, *repeated([ask, [f"recv{over}", reply, True]], messages - ahead), *rest, *client_ends]
    server = [[f"recv{over}", request, True], *wait, [f"send{over}", profile.reply_bytes, "y"]]
    patience = [] if stream else [["set_keepalive_msg", int(profile.server_wait_ms) + UDP_PATIENCE_MS]]
    return [*patience, *client], [*patience, *repeated(server, messages), *server_ends]


_WAITS: list[Command] = [["wait_for_peer_close"]]


def _ending(profile: ConnectionProfile, messages: int) -> tuple[list[Command], list[Command]]:
    """Return the last commands of client and server over TCP. An end closes when its program is over."""
    if profile.ended_by == "server":
        return _WAITS, [] if messages else [["accept"]]
    if profile.ended_by == "reset":
        return [["add_stats", OWN_RESETS[-1], 1], ["reset"]], _WAITS
    return [], [] if messages else _WAITS


def repeated(commands: list[Command], times: int) -> list[Command]:
    """Return the commands, in a loop of TRex' programs unless `times` is 1: a loop is passed through once at least."""
    if times < 2:
        return commands * times
    return [["set_var", "left", times], ["set_label", "again:"], *commands, ["jmp_nz", "left", "again:"]]


def _range(first: str, count: int) -> list[str]:
    begin = last_word(first)
    return [str(IPv4Address(begin)), str(IPv4Address(begin + count - 1))]


def _prefix(first: str) -> str:
    return str(IPv6Address(int(IPv6Address(first)) - last_word(first)))


#: Seconds at the full rate besides a connection's lifetime: TRex sends a packet again after 0.5 to 1 s.
RAMP_UP_S = 1.0
#: A connection of many messages lives longer than their waits add up to, as each of TRex' timers may be late: by less
#: than this factor.
LATE_TIMERS = 1.1
#: Seconds besides a connection's lifetime until those that are open still have failed. TRex remembers each for half a
#: second; one retransmission takes another second.
DRAIN_S = 1.1
#: The rate to which TRex slows down to begin no more connections, as a multiplier: one in days.
STANDSTILL = 1e-7
#: TRex is told to stop by itself this long after the sustain phase, should no process be left to stop it, seconds.
ABANDONED_S = 60.0
#: Seconds between two samples of the timeline, and at most so many of them.
STEP_S, MOST_SAMPLES = 0.5, 100
#: Latency packets of either kind per second and direction, and the share of the connections that they are at most, so
#: that figures of packets stay those of the connections.
LATENCY_PPS, _LATENCY_SHARE = 1000, 0.01
#: Flows of messages that are timed: enough that each receive queue of a DUT has some. Messages of each, more than a
#: trial has; and milliseconds without any after which TRex ends one.
TIMED_FLOWS, _TIMED_MESSAGES, _TIMED_PATIENCE_MS = 64, 10**9, 10_000
_TIMED_BYTES = 20
#: Seconds from one note on a connection of each of TRex' threads and sides to the next: as long as it remembers one.
FLOWS_EVERY_S = 0.5
#: A smaller difference between connections asked for and begun is no more than when exactly the counters were read.
FEW = 10
#: Begun slower than asked for by more than this share: the generator did not keep the pace. Wider than
#: `ctbench.traffic.generator.ATTEMPTED_LIMIT` allows, because what TRex counted is only known at the moments when it is
#: asked.
SHORTFALL = 0.001

#: Seconds that TRex gets to answer; to take a profile; to start, which prepares its tables; to stop.
ANSWER_S, LOAD_S, START_S, STOP_S = 5.0, 30.0, 30.0, 15.0


def run_trial(
    worker: TrexWorker, ports: Sequence[int], profile: ConnectionProfile, load: float, duration_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:  # fmt: skip
    """Offer `load` connections per second of the loaded profile for `duration_s` seconds and count.

    `ports`: TRex' numbers, client side first. Raise `GeneratorError` where TRex or its client breaks.
    """

    def read() -> Reading:
        return Reading(**worker.call("stats", ANSWER_S))

    started = time.perf_counter()
    ramp_up_s = RAMP_UP_S + LATE_TIMERS * profile.lifetime_s
    lasts_s = ramp_up_s + duration_s + ABANDONED_S
    worker.call("astf_timed", LOAD_S + START_S, spec=timed_spec(profile, load), duration_s=lasts_s)
    worker.call(
        "astf_start", START_S, mult=load / base_cps(profile), duration_s=lasts_s,
        latency_pps=0 if profile.ip_version == 6 else latency_pps(load), flows_every_s=FLOWS_EVERY_S,
    )  # fmt: skip
    zero = read()
    sleep(ramp_up_s)
    begun_s = time.monotonic()  # asked for, as the moments below are: what TRex takes to answer is in neither
    samples = [read()]
    noted = worker.call("astf_flows", ANSWER_S)["next"]
    step_s = max(STEP_S, duration_s / MOST_SAMPLES)
    between = [number * step_s for number in range(1, MOST_SAMPLES) if number * step_s < duration_s]
    for moment_s in (*between, duration_s):
        sleep(max(0.0, begun_s + moment_s - time.monotonic()))
        samples.append(read())
    flows = worker.call("astf_flows", ANSWER_S, after=noted)["flows"]
    worker.call("astf_update", ANSWER_S, mult=STANDSTILL)
    deadline = time.monotonic() + LATE_TIMERS * profile.lifetime_s + DRAIN_S
    drained = read()
    while time.monotonic() < deadline and (drained.open("client") or drained.open("server")):
        sleep(0.05)
        drained = read()
    worker.call("stop", STOP_S)
    stopped = read()  # what was open went on until then
    wall_s = time.perf_counter() - started
    return trial_of(zero, samples, drained, ports, load, duration_s, ramp_up_s, wall_s, stopped, flows)


def trial_of(
    zero: Reading, samples: Sequence[Reading], drained: Reading, ports: Sequence[int], load: float, duration_s: float,
    ramp_up_s: float, wall_s: float, stopped: Reading | None = None, flows: Sequence[Mapping[str, Any]] = (),
) -> Trial:  # fmt: skip
    """Return the trial that the readings yield. `samples`: from the beginning of the sustain phase to its end;
    `stopped`: after TRex has stopped sending, as the DUT's own counters are read later (None: `drained` was that);
    `flows`: TRex' notes on single connections in the sustain phase."""
    last = stopped or drained
    if why := readings_cannot_be([zero, *samples, drained, last], ports):
        return Trial.uncounted(
            f"TRex: {why}", load=load, duration_s=duration_s, ramp_up_s=ramp_up_s, wall_s=wall_s,
        )  # fmt: skip
    sustain, whole = samples[-1] - samples[0], without_latency(drained - zero, last, ports)
    attempted = sustain.begun
    intended = intended_of(samples, load)
    failed, not_established = losses_of(zero, samples[0], drained, attempted)
    total = (last - zero).by_port(ports)
    for side, count in not_taken(whole, ports).items():
        total["rx_packets"][side] = max(0, total["rx_packets"][side] - count)
    active = [sample.open("client") for sample in samples]
    closed = [sample.closed("client") for sample in samples]
    return Trial.of(
        sustain.by_port(ports), total,
        load=load,
        duration_s=duration_s,
        ramp_up_s=ramp_up_s,
        wall_s=wall_s,
        intended=intended,
        attempted=attempted,
        established=attempted - min(attempted, not_established),
        completed=attempted - sum(failed.values()),
        failed=failed,
        unexpected=unexpected(whole),
        active_mean=sum(active) / len(active),
        active_max=max(active),
        timeline_step_s=sustain.at_s / (len(samples) - 1),
        timeline_active=active[1:],
        timeline_completed=[after - before for before, after in pairwise(closed)],
        port_pairs=of_port_pairs(last - zero, ports),
        udp_latency=latency_of_messages(sustain.timed),
        icmp_latency_us=_latency(samples[0], samples[-1], ports),
        transport=transport_of(drained - samples[0], flows),
        generator_limited=limited_by(sustain, whole, intended, ports),
    )  # fmt: skip


def latency_pps(load: float) -> int:
    """Return the latency packets per second and direction under a load."""
    return max(1, round(min(LATENCY_PPS, _LATENCY_SHARE * load)))


def timed_spec(profile: ConnectionProfile, load: float) -> Spec:
    """Return the description of the timed messages under a load. They are a profile of their own in TRex, so that none
    is counted among the connections, and go to a port that these do not have."""
    per_s = latency_pps(load)
    flows = min(TIMED_FLOWS, per_s)
    patience: Command = ["set_keepalive_msg", _TIMED_PATIENCE_MS]
    # The client waits for no reply: what gets lost ends no flow.
    ask: list[Command] = [["send_msg", _TIMED_BYTES, "x"], ["delay", round(1e6 * flows / per_s)]]
    answer: list[Command] = [["recv_msg", 1, True], ["send_msg", _TIMED_BYTES, "y"]]
    template = {
        "stream": False,
        "addon": "latency",
        "port": (profile.udp_port + 1) % 65_535 + 1,
        "cps": per_s,  # so that they are evenly apart
        "limit": flows,
        "client": [patience, *repeated(ask, _TIMED_MESSAGES)],
        "server": [patience, *repeated(answer, _TIMED_MESSAGES)],
    }
    return {"addresses": addresses(profile), "templates": [template]}


def _latency(begin: Reading, end: Reading, ports: Sequence[int]) -> dict[Side, Latency]:
    """Return the latencies by the side that sends, as measured at a port of the other side; of several port pairs, the
    slowest."""
    found: dict[Side, Latency] = {}
    for number, side in enumerate(SIDES):
        known = [latency_of_port(begin.latency(port), end.latency(port)) for port in ports[1 - number :: 2]]
        if slowest := max(filter(None, known), key=lambda each: each.slowest, default=None):
            found[side] = slowest
    return found


def intended_of(samples: Sequence[Reading], load: float) -> int:
    """Return the connections that the load asked for between the first and the last reading. Where TRex began them at
    that rate, return the number begun: TRex' schedule is as even as a clock, the moments of the readings are not.

    TRex' rate is the median over successive readings, or the rate over all of them, whichever is higher. A pause of
    TRex' thread at either end of the sustain phase moves the latter (TRex sends what it owes in the next moment); late
    readings move the former.
    """
    whole = samples[-1] - samples[0]
    rate = max(median(_rate(after - before) for before, after in pairwise(samples)), _rate(whole))
    asked = load * whole.at_s
    tolerance = max(SHORTFALL * asked, FEW, load * whole.within_s)
    return round(asked) if (load - rate) * whole.at_s > tolerance else whole.begun


def _rate(grown: Reading) -> float:
    return grown.begun / grown.at_s if grown.at_s > 0 else 0.0


def limited_by(sustain: Reading, whole: Reading, intended: int, ports: Sequence[int]) -> str:
    """Return why the generator limited the trial; empty where it did not."""
    fault = generator_fault(whole, ports)
    if sustain.begun < intended:
        return f"TRex began only {sustain.begun} of {intended} connections{f': {fault}' if fault else ''}"
    return f"TRex: {fault}" if fault else ""

"""From a connection profile to connections that TRex opens and keeps: a description like that of astf_spec.py.

A program of ASTF hears nothing from outside once it runs, so it is told beforehand when to ask: so long after it was
opened. Each `open` is a profile of its own in TRex, to a server's port of its own, so that no two of them use the same
addresses and ports.
"""

from ctbench.base.errors import MissingResource
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex.astf_spec import Command, Spec, addresses, repeated

#: Seconds that TRex goes on with the SYN of a connection: after one retransmission, it was refused.
HANDSHAKE_S = 2
#: TRex asks an idle TCP connection by itself whether it is there, after 5 s by default: never, here. Seconds.
_NEVER_S = 65_000
#: And it closes one whose program has ended: none ends by itself, microseconds.
_FOR_EVER_US = 3_600_000_000
#: The least number of connections per second that a template of ASTF takes.
_LEAST_CPS = 0.5


def unsupported(profile: ConnectionProfile, load: Hold) -> str:
    """What of it TRex cannot do, in words; empty where it can."""
    if profile.udp_percent:
        return "connections without TCP to be held"
    if load.asks is None:
        return "connections that are held and asked at any time, which TRex has to know before it opens them"
    return ""


def hold_spec(profile: ConnectionProfile, load: Hold, number: int, connections: int, gap_s: float) -> Spec:
    """The description of the open number `number` (0, 1 ...), of so many connections that are asked `gap_s` seconds
    after they were opened, and as often again as `load` says."""
    assert load.asks is not None, "see unsupported"
    port = profile.tcp_port + number
    if port > 65_535:
        raise MissingResource(f"Profile {profile.name} has no port of the server for the open number {number + 1}.")
    return {
        "addresses": addresses(profile),
        "templates": [
            {
                "stream": True,
                "port": port,
                "cps": max(load.opened_per_s, _LEAST_CPS),
                "limit": connections,
                "client": _client(profile, gap_s, load.asks),
                "server": _server(profile, load.asks),
            }
        ],
        "ramp_up_s": 0,
        "tcp": {"keepinit": HANDSHAKE_S, "keepidle": _NEVER_S},
    }


def _client(profile: ConnectionProfile, gap_s: float, asks: int) -> list[Command]:
    ask: list[Command] = [
        ["delay", round(gap_s * 1e6)],
        ["send", profile.request_bytes, "x"],
        ["recv", profile.reply_bytes, True],
    ]
    return [["connect"], *repeated(ask, asks), ["delay", _FOR_EVER_US]]


def _server(profile: ConnectionProfile, asks: int) -> list[Command]:
    answer: list[Command] = [["recv", profile.request_bytes, True], ["send", profile.reply_bytes, "y"]]
    return [["accept"], *repeated(answer, asks), ["wait_for_peer_close"]]


def name_of(number: int) -> str:
    """What TRex calls the open number `number`."""
    return f"held-{number}"

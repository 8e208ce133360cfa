"""From a connection profile to what TRex' ASTF is given: a plain description that astf_worker.py builds a profile from.

Built as TRex' cps_ndr.py builds its own (the published procedure of 2022): a base rate of 100 connections per second
over all templates, which a multiplier turns into the offered load; clients and servers in turn, both sides' buffers of
one letter.
"""

from ipaddress import IPv4Address
from typing import Any

from ctbench.traffic.profiles import ConnectionProfile

#: Connections per second at a multiplier of 1, or more where a template's share of it would be below TRex' least.
BASE_CPS = 100
LEAST_CPS = 0.5
#: What a second pair of ports adds to the addresses of the first.
PAIR_OFFSET = "1.0.0.0"
#: A UDP exchange without a packet for this long (besides the server's wait) has failed, milliseconds: TCP's timers in
#: TRex begin with as much.
UDP_PATIENCE_MS = 500

Spec = dict[str, Any]
Command = list[Any]


def astf_spec(profile: ConnectionProfile, ramp_up_s: int = 0) -> Spec:
    """The description. `ramp_up_s`: TRex climbs to its rate in steps of a second, 2 or more of them; 0: at once."""
    base = base_cps(profile)
    templates = [_template(profile, stream, is_short, share * base) for stream, is_short, share in _kinds(profile)]
    return {
        "addresses": addresses(profile),
        "templates": templates,
        "ramp_up_s": ramp_up_s,
    }


def addresses(profile: ConnectionProfile) -> Spec:
    """Of clients and servers, which have their turns."""
    return {
        "client": _range(profile.client_ip, profile.client_ips),
        "server": _range(profile.server_ip, profile.server_ips),
        "offset": PAIR_OFFSET,
        "distribution": "seq",
    }


def base_cps(profile: ConnectionProfile) -> float:
    """Connections per second of the description at a multiplier of 1."""
    return max(BASE_CPS, LEAST_CPS / min(share for *_, share in _kinds(profile)))


def _kinds(profile: ConnectionProfile) -> list[tuple[bool, bool, float]]:
    """What kinds of connections there are: whether over TCP, whether short, and which share of all they have."""
    udp, short = profile.udp_percent / 100, profile.short_percent / 100
    kinds = [
        (stream, is_short, of_protocol * of_length)
        for stream, of_protocol in ((False, udp), (True, 1 - udp))
        for is_short, of_length in ((True, short), (False, 1 - short))
    ]
    return [kind for kind in kinds if kind[-1] > 0]


def limitations(profile: ConnectionProfile) -> list[str]:
    """What ASTF does otherwise than the profile says, a sentence each."""
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
    if profile.short_percent:
        ports = " and ".join(
            str(_port(profile, stream, is_short=True)) for stream, is_short, _ in _kinds(profile) if is_short
        )
        notes.append(
            "TRex draws lots for short connections or long ones, so their share varies a little; the short ones go to "
            f"port {ports}, because TRex' servers know by the port alone what to do."
        )
    return notes


def _template(profile: ConnectionProfile, stream: bool, is_short: bool, cps: float) -> Spec:
    messages = profile.short_messages if is_short else profile.messages
    programs = (_tcp if stream else _udp)(profile, messages)
    return {
        "stream": stream,
        "port": _port(profile, stream, is_short),
        "cps": cps,
        "client": programs[0],
        "server": programs[1],
    }


def _port(profile: ConnectionProfile, stream: bool, is_short: bool) -> int:
    """The server's. Two programs of a server have two ports: the short connections' is the next one."""
    return (profile.tcp_port if stream else profile.udp_port) + is_short


def _tcp(profile: ConnectionProfile, messages: int) -> tuple[list[Command], list[Command]]:
    """Programs of the client and the server. Whoever has done its part closes its side."""
    if messages == 0:
        return [["connect"]], [["wait_for_peer_close"]]
    client = [["send", profile.request_bytes, "x"], ["recv", profile.reply_bytes, True]]
    server = [["recv", profile.request_bytes, True], *_wait(profile), ["send", profile.reply_bytes, "y"]]
    return repeated(client, messages), repeated(server, messages)


def _udp(profile: ConnectionProfile, messages: int) -> tuple[list[Command], list[Command]]:
    patience = ["set_keepalive_msg", int(profile.server_wait_ms) + UDP_PATIENCE_MS]
    client = [["send_msg", profile.request_bytes, "x"], ["recv_msg", 1, True]]
    server = [["recv_msg", 1, True], *_wait(profile), ["send_msg", profile.reply_bytes, "y"]]
    return (
        [patience, *repeated(client, messages)],
        [patience, *repeated(server, messages)],
    )


def _wait(profile: ConnectionProfile) -> list[Command]:
    return [["delay", round(profile.server_wait_ms * 1000)]] if profile.server_wait_ms else []


def repeated(commands: list[Command], times: int) -> list[Command]:
    """The commands, in a loop of TRex' programs where they come more than once."""
    if times == 1:
        return commands
    return [["set_var", "left", times], ["set_label", "again:"], *commands, ["jmp_nz", "left", "again:"]]


def _range(first: str, count: int) -> list[str]:
    return [first, str(IPv4Address(first) + count - 1)]

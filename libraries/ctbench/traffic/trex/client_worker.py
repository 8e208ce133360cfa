"""The worker process of TRex' client, whose only importer it is: answers JSON requests, one a line, on a UNIX socket.

It is a process of its own because the client puts its old PyYAML, scapy and zmq first on sys.path, starts threads,
kills the process when one of them fails, and may wait for ever. The process that runs the suites must be spared this.

Started as `PYTHON -I -S client_worker.py --socket PATH --client FOLDER`; standard library only. Request: `{"do":
"astf_start", …}`; reply: `{"result": …}` or `{"error": sentence, "owners": […]}`. It ends when the socket closes.
"""

import argparse
import contextlib
import importlib
import inspect
import json
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

#: After a pause of its thread up to this long TRex sends what it owes in the next moment, seconds. What it did not send
#: in a longer one it never sends (bp_sim.cpp, flush_file_realtime). Without this, 0.1 ms is too long.
CATCH_UP_S = 0.002
#: Seconds to stop the traffic and to let go of the ports once the socket has closed.
FAREWELL_S = 5.0

Arguments = dict[str, Any]


class Refusal(Exception):
    """A refusal, as one sentence for the user. `owners`: who holds the ports, where that is the reason."""

    def __init__(self, sentence: str, owners: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.owners = owners


class Session:
    """TRex' client and its connection to a server."""

    def __init__(self, folder: str, also: str) -> None:
        self._folder = folder
        self._also = also
        self._where = ""
        self._found_catch_up_s = 0.0
        #: TRex' client while it is connected.
        self.client: Any = None
        #: TRex' modules `trex.astf.api` and `trex.stl.api`, by mode.
        self.api: dict[str, ModuleType] = {}
        #: TRex' numbers of the ports, of one pair after the other: client side, server side.
        self.ports: list[int] = []
        #: What the commands remember.
        self.memory: dict[str, Any] = {}

    def load(self, mode: str) -> ModuleType:
        if mode not in self.api:
            if self._folder not in sys.path:
                # Where legacy-cgi is, which the client's scapy needs since Python 3.13. TRex' own libraries come first.
                sys.path[:] = [self._folder, *sys.path, *filter(None, [self._also])]
            try:
                self.api[mode] = importlib.import_module(f"trex.{mode}.api")
            except Exception as error:
                why = f"there is no module {error.name}" if isinstance(error, ModuleNotFoundError) else _message(error)
                raise Refusal(f"TRex' client in {self._folder} cannot be loaded: {why}.") from error
        return self.api[mode]

    def connect(
        self, mode: str, server: str, sync_port: int, async_port: int, ports: list[int], user: str, force: bool = False
    ) -> Any:
        """Connect, acquire the ports, and end their traffic. `force`: take the ports from another user."""
        self.disconnect()
        api = self.load(mode)
        self._where = f"{server}:{sync_port}"
        command = "./t-rex-64 -i" + " --astf" * (mode == "astf")
        new = api.ASTFClient if mode == "astf" else api.STLClient
        client = new(username=user, server=server, sync_port=sync_port, async_port=async_port, verbose_level="none")
        try:
            found = dict(client.probe_server())
        except Exception as error:
            raise Refusal(
                f"No TRex server answers at {self._where} ({_message(error)}): start it there with `{command}`, or say "
                "server: start in the testbed file."
            ) from error
        if found.get("mode", "").lower() != mode:
            runs = found.get("mode") or "an unknown"
            raise Refusal(
                f"The TRex server at {self._where} runs in {runs} mode, and {mode.upper()} is needed: start it again "
                f"with `{command}`, or say server: start, which changes the mode by itself."
            )
        try:
            client.connect()
        except Exception as error:
            if "ersion" in (said := _message(error)):
                mismatch = f"TRex' client in {self._folder} does not suit the server at {self._where}: {said}."
                raise Refusal(mismatch) from error
            raise Refusal(f"The TRex server at {self._where} did not let us in: {said}.") from error
        known = client.get_all_ports()
        absent = [port for port in ports if port not in known]
        if absent:
            client.disconnect(stop_traffic=False)
            raise Refusal(f"The TRex server at {self._where} has ports {known}, not {absent}.")
        self._acquire(client, ports, mode, force)
        self.client, self.ports = client, ports
        self._found_catch_up_s = client.get_global_cfg()["sched_max_stretch"]
        client.set_global_cfg({"sched_max_stretch": CATCH_UP_S})
        return {
            "version": found.get("version", ""), "build": found, "ports": self._describe_ports(),
            "catch_up_s": CATCH_UP_S,
        }  # fmt: skip

    def disconnect(self) -> None:
        """Stop the traffic and release the ports, where there are any."""
        client, self.client = self.client, None
        times = self.memory.get(TIMED)
        self.memory.clear()
        if client is not None and client.is_connected():
            try:
                if times:  # disconnect() stops the unnamed profile only
                    client.stop(pid_input=EVERY)
                client.set_global_cfg({"sched_max_stretch": self._found_catch_up_s})
            finally:
                client.disconnect(stop_traffic=True, release_ports=True)

    def require(self) -> Any:
        if self.client is None:
            raise Refusal("TRex is not connected.")
        return self.client

    def _acquire(self, client: Any, ports: list[int], mode: str, force: bool) -> None:
        which = {} if mode == "astf" else {"ports": ports}
        try:
            client.acquire(force=force, **which)
            client.reset(**which)
        except Exception as error:
            owners = sorted({client.ports[port].get_owner() for port in client.get_all_ports()} - {"", None})
            client.disconnect(stop_traffic=False)
            ports_of = f"The ports of the TRex server at {self._where}"
            if owners:
                held = f"{ports_of} are held by {' and '.join(map(str, owners))}: end that first."
                raise Refusal(held, owners) from error
            raise Refusal(f"{ports_of} cannot be taken: {_message(error)}.") from error

    def _describe_ports(self) -> list[dict[str, Any]]:
        described = []
        system = {port["index"]: port for port in self.client.get_server_system_info()["ports"]}
        for number in self.ports:
            info, port = self.client.ports[number].get_formatted_info(sync=True), system[number]
            described.append({
                "port": number, "mac": port.get("hw_mac", ""), "numa": port.get("numa"),
                **{name: port.get(name, "") for name in ("driver", "description")},
                **{name: info.get(name) for name in ("speed", "link", "dest")},
            })  # fmt: skip
        return described


def _message(error: Exception) -> str:
    """Return TRex' message on one line, without a full stop."""
    return " ".join(str(error).replace("*** [RPC] - ", "").split()).rstrip(".") or type(error).__name__


def stop(session: Session) -> None:
    """Stop every profile. Open connections are cut off."""
    session.require().stop(pid_input=EVERY)


def stats(session: Session, profile: str = "") -> Any:
    """Return all counters of ASTF, and when those of the traffic were read: `at_s`, give or take `within_s`, on the
    monotonic clock. `profile`: whose traffic, where there are several. `timed`: counters of the messages of
    `astf_timed`."""
    client = session.require()
    of = {"pid_input": profile} if profile else {}
    found = client.get_stats(**of)
    if session.memory.get(TIMED) and not profile:
        found[TIMED] = client.get_traffic_tg_stats(TIMED, pid_input=TIMED)[TIMED]
    begun = time.monotonic()
    found["traffic"] = client.get_traffic_stats(**of)  # again, alone: the rates depend on when
    ended = time.monotonic()
    return {"at_s": (begun + ended) / 2, "within_s": (ended - begun) / 2, "stats": found}


# Connections: ASTF.

#: TRex' own names for a profile without a name, and for all.
UNNAMED, EVERY = "_", "*"
#: The profile of messages that TRex times, and the group of its templates, by which TRex tells their times.
TIMED = "timed"


def astf_load(session: Session, spec: Arguments, profile: str = UNNAMED) -> None:
    """Give TRex a profile from its description (`astf_spec` of astf.py). Its traffic must not be running."""
    session.require().load_profile(_profile(session.load("astf"), spec), pid_input=profile)


def astf_start(
    session: Session, mult: float, duration_s: float, profile: str = UNNAMED, latency_pps: int = 0,
    flows_every_s: float = 0,
) -> None:  # fmt: skip
    """Start a loaded profile at `mult` times its rate. No connection begins after `duration_s`, unless that is
    negative. `flows_every_s`: interval of the notes for `astf_flows`, which clients before v2.98 do not have."""
    client = session.require()
    more = {"dump_interval": flows_every_s} if hasattr(client, "get_flow_info") else {}
    client.start(mult=mult, duration=duration_s, nc=False, latency_pps=latency_pps, pid_input=profile, **more)


def astf_timed(session: Session, spec: Arguments, duration_s: float) -> None:
    """Start the timed messages next to the connections, unless the client knows no add-ons of programs."""
    client, api = session.require(), session.load("astf")
    session.memory[TIMED] = "addon" in inspect.signature(api.ASTFProgram).parameters
    if session.memory[TIMED]:
        client.load_profile(_profile(api, spec), pid_input=TIMED)
        client.start(mult=1, duration=duration_s, nc=False, pid_input=TIMED)


def astf_flows(session: Session, after: int = 0) -> Any:
    """Return TRex' last notes on single TCP connections, from number `after` on, and the number of the `next` note."""
    client = session.require()
    if not hasattr(client, "get_flow_info"):
        return {"flows": [], "next": 0}
    notes = client.get_flow_info(profile_id=UNNAMED, index=after)
    return {"next": notes.pop("next_index"), "flows": [each[-1] for each in notes.values()]}


def astf_remove(session: Session, profile: str) -> None:
    """Cut off the connections of a profile, and remove it."""
    session.require().stop(pid_input=profile, is_remove=True)


def astf_update(session: Session, mult: float) -> None:
    """Change the rate at once. Open connections continue."""
    session.require().update(mult=mult)


def _profile(api: Any, spec: Arguments) -> Any:
    addresses = spec["addresses"]
    ip_gen = api.ASTFIPGen(
        glob=api.ASTFIPGenGlobal(ip_offset=addresses["offset"]),
        dist_client=api.ASTFIPGenDist(ip_range=addresses["client"], distribution=addresses["distribution"]),
        dist_server=api.ASTFIPGenDist(ip_range=addresses["server"], distribution=addresses["distribution"]),
    )
    templates = []
    for template in spec["templates"]:
        port, stream = template["port"], template["stream"]
        # TRex tells what an add-on counts of a group of templates only.
        more = {"addon": template["addon"]} if "addon" in template else {}
        group = {"tg_name": TIMED} if more else {}
        client, server = (_program(api, template[side], stream=stream, **more) for side in ("client", "server"))
        # So many connections in all, or one after the other for ever.
        ending = {"limit": template["limit"]} if "limit" in template else {"cont": True}
        begins = {"program": client, "ip_gen": ip_gen, "port": port, "cps": template["cps"], **ending}
        answers = {"program": server, "assoc": api.ASTFAssociationRule(port=port)}
        templates.append(
            api.ASTFTemplate(
                client_template=api.ASTFTCPClientTemplate(**begins),
                server_template=api.ASTFTCPServerTemplate(**answers),
                **group,
            )
        )
    clients, servers = api.ASTFGlobalInfo(), api.ASTFGlobalInfo()
    if addresses["ipv6"]:
        clients.ipv6.enable = 1
        for name, prefix in addresses["ipv6"].items():
            setattr(clients.ipv6, name, prefix)
    for name, value in spec.get("tcp", {}).items():
        setattr(clients.tcp, name, value)
        setattr(servers.tcp, name, value)
    infos = {"default_c_glob_info": clients, "default_s_glob_info": servers}
    return api.ASTFProfile(default_ip_gen=ip_gen, templates=templates, **infos)


def _program(api: Any, commands: list[list[Any]], **kind: Any) -> Any:
    program = api.ASTFProgram(**kind)
    for name, *arguments in commands:
        if name in ("send", "send_msg"):
            size, letter = arguments
            getattr(program, name)(letter.encode() * size)
        else:
            getattr(program, name)(*arguments)
    return program


# Packets: STL.

#: What DPDK calls the counters of a port, whatever its driver.
PORT_COUNTERS = ("tx_good_packets", "rx_good_packets", "rx_errors", "rx_missed_errors", "rx_mbuf_allocation_errors")


def stl_load(session: Session, streams: list[Arguments]) -> None:
    """Stop and remove all streams that TRex has, and add these. Their counters begin at 0."""
    client, api = session.require(), session.load("stl")
    client.stop(ports=session.ports, rx_delay_ms=200)  # what is under way is not for the new ones
    client.remove_all_streams(ports=session.ports)
    for number, port in enumerate(session.ports):
        built = [built for stream in streams if stream["port"] == number for built in _streams(api, stream)]
        if built:
            client.add_streams(built, ports=[port])
    session.memory["groups"] = {stream["group"]: stream["port"] for stream in streams}
    session.memory["senders"] = sorted({session.ports[stream["port"]] for stream in streams})


def stl_start(session: Session) -> Any:
    """Start the streams. Return when this was asked for and when it was done, on the monotonic clock."""
    asked = time.monotonic()
    session.require().start(ports=session.memory["senders"], force=True)
    return {"from_s": asked, "to_s": time.monotonic()}


def stl_stats(session: Session) -> Any:
    """Return all counters, exact, and the two moments of the monotonic clock between which the streams' were read. A
    stream has the packets that its port sent and that the other port of the pair took; TRex has its latency and order
    over all ports only."""
    client = session.require()
    begun = time.monotonic()
    # Not through get_pgid_stats(), which keeps a maximum of its own.
    found = client.pgid_stats.get_stats(list(session.memory["groups"]), relative=False)
    ended = time.monotonic()
    groups = {}
    for group, port in session.memory["groups"].items():
        counted = found.get("flow_stats", {}).get(group)
        if counted is not None:
            sender, taker = session.ports[port], session.ports[port ^ 1]
            groups[group] = {"tx_pkts": counted["tx_pkts"][sender], "rx_pkts": counted["rx_pkts"][taker]}
            groups[group].update(_plain(found.get("latency", {}).get(group, {})))
    # The ports' usual counters are up to half a second old; the driver's are not.
    ports = [client.get_xstats(port) for port in session.ports]
    client.global_stats.update_sync(client.conn.rpc)
    return {
        "from_s": begun,
        "to_s": ended,
        "groups": groups,
        "ports": [{name: port[name] for name in PORT_COUNTERS if name in port} for port in ports],
        "dropped": client.global_stats.latest_stats.get("m_total_queue_drop", 0),
    }


def stl_stop(session: Session, linger_s: float) -> None:
    """Stop sending; count what arrives for `linger_s` seconds more."""
    session.require().stop(ports=session.memory["senders"], rx_delay_ms=int(1000 * linger_s))


def _streams(api: Any, stream: Arguments) -> list[Any]:
    """Return a stream's bursts: the warm-up, then the packets that count."""
    program = [
        getattr(api, instruction["do"])(**{name: value for name, value in instruction.items() if name != "do"})
        for instruction in stream["program"]
    ]
    frame = bytes.fromhex(stream["frame"])
    group, pps = stream["group"], stream["pps"]
    counts = (api.STLFlowLatencyStats if stream["latency"] else api.STLFlowStats)(pg_id=group)

    def burst(name: str, packets: int, **more: Any) -> Any:
        return api.STLStream(
            name=name,
            packet=api.STLPktBuilder(pkt_buffer=frame, vm=api.STLScVmRaw(list(program)), remove_fcs=False),
            mode=api.STLTXSingleBurst(pps=pps, total_pkts=packets),
            **more,
        )

    counted = f"counted {group}"
    if not stream["warm_up_packets"]:
        return [burst(counted, stream["packets"], isg=stream["delay_us"], flow_stats=counts)]
    return [
        burst(f"warm-up {group}", stream["warm_up_packets"], isg=stream["delay_us"], next=counted),
        burst(counted, stream["packets"], self_start=False, flow_stats=counts),
    ]


def _plain(value: Any) -> Any:
    """Return the part of a value that JSON can hold. TRex' own objects, which mark unknown values, are left out."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if isinstance(item, dict | int | float | str)}
    return value


COMMANDS: dict[str, Callable[..., Any]] = {
    "connect": Session.connect,
    "disconnect": Session.disconnect,
    **{each.__name__: each for each in (
        stats, stop, astf_load, astf_start, astf_timed, astf_flows, astf_remove, astf_update,
        stl_load, stl_start, stl_stats, stl_stop,
    )},
}  # fmt: skip


def answer(session: Session, request: Arguments) -> dict[str, Any]:
    name = request.pop("do")
    try:
        return {"result": COMMANDS[name](session, **request)}
    except Refusal as refusal:
        return {"error": str(refusal), "owners": refusal.owners}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"TRex: {name}: {_message(error)}", "owners": []}


def _read(connection: socket.socket, requests: "queue.Queue[bytes | None]") -> None:
    """Queue the requests that arrive. Once the socket has closed, end the process, whatever it waits for."""
    with connection.makefile("rb") as lines:
        for line in lines:
            requests.put(line)
    requests.put(None)
    time.sleep(FAREWELL_S)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--also", default="")
    options = parser.parse_args()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(options.socket)
    session = Session(options.client, options.also)
    requests: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()
    with contextlib.suppress(OSError):  # an answer that is too late has no reader any more
        while (line := requests.get()) is not None:
            connection.sendall(json.dumps(answer(session, json.loads(line))).encode() + b"\n")
    try:
        session.disconnect()
    finally:
        os._exit(0)  # TRex' threads would not end by themselves


if __name__ == "__main__":
    main()

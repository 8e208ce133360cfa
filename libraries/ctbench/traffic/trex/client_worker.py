"""The only code that imports TRex' client: answers requests, a JSON object a line, on a UNIX socket.

A process of its own, because the client puts its old PyYAML, scapy and zmq first on sys.path, starts threads, kills the
process when one of them fails, and may wait for ever: none of that may happen to the process that runs the suites.

Started as `PYTHON -I -S client_worker.py --socket PATH --client FOLDER`; standard library only. Request:
`{"id": 1, "do": "astf_start", …}`; reply: `{"id": 1, "result": …}` or `{"id": 1, "error": sentence, "kind": word}`.
It ends when the socket closes.
"""

import argparse
import importlib
import importlib.util
import json
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

#: After a pause of its thread up to this long TRex sends what it owes in the next moment, seconds. What it did not send
#: in a longer one it never sends (bp_sim.cpp, flush_file_realtime). Without this, 0.1 ms is too long.
CATCH_UP_S = 0.002
#: Seconds to stop the traffic and to let go of the ports once the socket has closed.
FAREWELL_S = 5.0

Arguments = dict[str, Any]


class Refusal(Exception):
    """What the user is told: one sentence, and its kind: connect, version, busy, mode, client or trex."""

    def __init__(self, kind: str, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.more = more


class Session:
    """A client of TRex and what it is connected to."""

    def __init__(self, folder: str, also: str) -> None:
        self._folder = folder
        self._also = also
        self._where = ""
        self._found_catch_up_s = 0.0
        #: TRex' client while it is connected; functions of stl_worker.py use it too.
        self.client: Any = None
        #: TRex' modules `trex.astf.api` and `trex.stl.api`, by mode.
        self.api: dict[str, ModuleType] = {}
        #: TRex' numbers of the two ports: client side, server side.
        self.ports: list[int] = []
        #: Whatever stl_worker.py wants to remember.
        self.memory: dict[str, Any] = {}

    def load(self, mode: str) -> ModuleType:
        """TRex' module for the mode."""
        if mode not in self.api:
            if self._folder not in sys.path:
                # Where legacy-cgi is, which the client's scapy needs since Python 3.13. TRex' own libraries come first.
                sys.path[:] = [self._folder, *sys.path, *filter(None, [self._also])]
            try:
                self.api[mode] = importlib.import_module(f"trex.{mode}.api")
            except ModuleNotFoundError as error:
                raise Refusal("client", _missing(error, self._folder)) from error
            except Exception as error:
                text = " ".join(str(error).split()) or type(error).__name__
                raise Refusal(
                    "client", f"TRex' client in {self._folder} cannot be loaded: {text.rstrip('.')}."
                ) from error
        return self.api[mode]

    def connect(
        self, mode: str, server: str, sync_port: int, async_port: int, ports: list[int], user: str, force: bool = False
    ) -> Any:
        """Connect, take the ports, end whatever they do. `force`: take them from another user."""
        self.disconnect()
        api = self.load(mode)
        self._where = f"{server}:{sync_port}"
        new = api.ASTFClient if mode == "astf" else api.STLClient
        client = new(username=user, server=server, sync_port=sync_port, async_port=async_port, verbose_level="none")
        found = self._probe(client)
        if found.get("mode", "").lower() != mode:
            raise Refusal(
                "mode",
                "The TRex server at {} runs in {} mode; {} is needed.".format(
                    self._where, found.get("mode") or "an unknown", mode.upper()
                ),
            )
        try:
            client.connect()
        except Exception as error:
            raise self._why_not_connected(error) from error
        known = client.get_all_ports()
        absent = [port for port in ports if port not in known]
        if absent:
            client.disconnect(stop_traffic=False)
            raise Refusal("trex", f"The TRex server at {self._where} has ports {known}, not {absent}.")
        self._acquire(client, ports, mode, force)
        self.client, self.ports = client, ports
        self._found_catch_up_s = client.get_global_cfg()["sched_max_stretch"]
        client.set_global_cfg({"sched_max_stretch": CATCH_UP_S})
        described = {"version": found.get("version", ""), "build": found, "ports": self._describe_ports()}
        return {**described, "catch_up_s": CATCH_UP_S}

    def disconnect(self) -> None:
        """Stop the traffic and let go of the ports, if there are any."""
        client, self.client = self.client, None
        self.memory.clear()
        if client is not None and client.is_connected():
            try:
                client.set_global_cfg({"sched_max_stretch": self._found_catch_up_s})
            finally:
                client.disconnect(stop_traffic=True, release_ports=True)

    def require(self) -> Any:
        """The connected client."""
        if self.client is None:
            raise Refusal("connect", "TRex is not connected.")
        return self.client

    def _probe(self, client: Any) -> dict[str, str]:
        try:
            return dict(client.probe_server())
        except Exception as error:
            said = str(error).replace("*** [RPC] - ", "").strip().rstrip(".")
            raise Refusal("connect", f"No TRex server answers at {self._where} ({said}).") from error

    def _why_not_connected(self, error: Exception) -> Refusal:
        said = " ".join(str(error).split())
        if "ersion" in said:
            return Refusal(
                "version",
                f"TRex' client in {self._folder} does not suit the server at {self._where}: {said}",
            )
        return Refusal("connect", f"The TRex server at {self._where} did not let us in: {said}")

    def _acquire(self, client: Any, ports: list[int], mode: str, force: bool) -> None:
        try:
            if mode == "astf":
                client.acquire(force=force)
                client.reset()
            else:
                client.acquire(ports=ports, force=force)
                client.reset(ports=ports)
        except Exception as error:
            owners = sorted({client.ports[port].get_owner() for port in client.get_all_ports()} - {"", None})
            said = " ".join(str(error).split())
            where = self._where
            client.disconnect(stop_traffic=False)
            if owners:
                who = " and ".join(str(owner) for owner in owners)
                raise Refusal(
                    "busy",
                    f"The ports of the TRex server at {where} are held by {who}: end that first.",
                    owners=owners,
                ) from error
            raise Refusal("trex", f"The ports of the TRex server at {where} cannot be taken: {said}") from error

    def _describe_ports(self) -> list[dict[str, Any]]:
        described = []
        system = {port["index"]: port for port in self.client.get_server_system_info()["ports"]}
        for number in self.ports:
            info, port = self.client.ports[number].get_formatted_info(sync=True), system[number]
            described.append(
                {
                    "port": number,
                    "mac": port.get("hw_mac", ""),
                    "driver": port.get("driver", ""),
                    "description": port.get("description", ""),
                    "numa": port.get("numa"),
                    "speed": info.get("speed"),
                    "link": info.get("link"),
                    "dest": info.get("dest"),
                }
            )
        return described


def _missing(error: ModuleNotFoundError, folder: str) -> str:
    if error.name == "cgi":
        return (
            "TRex' client needs the module cgi, which Python {}.{} no longer has: "
            "pip install legacy-cgi, or use Python 3.12 or older.".format(*sys.version_info)
        )
    return f"TRex' client in {folder} cannot be loaded: there is no module {error.name}."


def stop(session: Session) -> None:
    """Stop. Connections that are still open are cut off."""
    session.require().stop()


def stats(session: Session, profile: str = "") -> Any:
    """All counters, and when those of the traffic were read, give or take `within_s`, on the monotonic clock.
    `profile`: whose traffic, where ASTF has several profiles."""
    client = session.require()
    of = {"pid_input": profile} if profile else {}
    found = client.get_stats(**of)
    if session.client.get_mode() == "ASTF":  # again, alone: the rates depend on when
        begun = time.monotonic()
        found["traffic"] = client.get_traffic_stats(**of)
        ended = time.monotonic()
    else:
        begun = ended = time.monotonic()
    return {"at_s": (begun + ended) / 2, "within_s": (ended - begun) / 2, "stats": found}


def _connect(session: Session, **arguments: Any) -> Any:
    return session.connect(**arguments)


def _disconnect(session: Session) -> None:
    session.disconnect()


def _ping(session: Session) -> Any:
    return {"connected": session.client is not None and bool(session.client.is_connected())}


COMMANDS: dict[str, Callable[..., Any]] = {
    "connect": _connect,
    "disconnect": _disconnect,
    "ping": _ping,
    "stats": stats,
    "stop": stop,
}


def _command(name: str) -> Callable[..., Any]:
    """The function that does it: here, or in astf_worker.py or stl_worker.py next to this file, as its name begins."""
    mode = name.partition("_")[0]
    if name not in COMMANDS and mode in ("astf", "stl"):
        # By path: this process runs outside the package, whose libraries it must not see.
        spec = importlib.util.spec_from_file_location(mode + "_worker", Path(__file__).with_name(mode + "_worker.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        COMMANDS.update({key: value for key, value in vars(module).items() if key.startswith(mode + "_")})
    if name not in COMMANDS:
        raise Refusal("client", f"TRex' client worker does not know the command {name}.")
    return COMMANDS[name]


def answer(session: Session, request: Arguments) -> dict[str, Any]:
    """The reply to one request."""
    number, name = request.pop("id"), request.pop("do")
    try:
        return {"id": number, "result": _command(name)(session, **request)}
    except Refusal as refusal:
        return {"id": number, "error": str(refusal), "kind": refusal.kind, **refusal.more}
    except Exception as error:
        traceback.print_exc()
        text = " ".join(str(error).replace("*** [RPC] - ", "").split()) or type(error).__name__
        lost = session.client is not None and not session.client.is_connected()
        return {"id": number, "error": f"TRex: {name}: {text}", "kind": "connect" if lost else "trex"}


def _read(connection: socket.socket, requests: "queue.Queue[bytes | None]") -> None:
    """Hand on what arrives. When the socket has closed, the process ends, whatever it is waiting for."""
    with connection.makefile("rb") as lines:
        for line in lines:
            requests.put(line)
    requests.put(None)
    time.sleep(FAREWELL_S)
    os._exit(1)


def main() -> None:
    """Answer until the socket closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--also", default="")
    options = parser.parse_args()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = Path(options.socket)
    folder = os.open(path.parent, os.O_RDONLY)  # whose name may be too long for the address of a socket
    connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)
    session = Session(options.client, options.also)
    requests: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()
    while True:
        line = requests.get()
        if line is None:
            break
        connection.sendall(json.dumps(answer(session, json.loads(line))).encode() + b"\n")
    try:
        session.disconnect()
    finally:
        os._exit(0)  # TRex' threads would not end by themselves


if __name__ == "__main__":
    main()

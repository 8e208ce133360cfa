"""A replay of a TRex server: real ZeroMQ sockets and TRex' JSON-RPC, answers that a real server was seen to give.

tools/trex_record.py makes the recordings."""

import json
import struct
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import zmq

#: TRex' compressed messages: this number, the length, zlib.
MAGIC = 0xABE85CEA
#: Parameters that tell two calls of a method apart; all others are of the session.
TELLING = ("port_id", "profile_id", "name", "major")
#: What the publisher says when there are events to fetch.
TRIGGER = b"{}"

#: What stands in a recording for the number of the recorded client's session.
OWN_SESSION = "own"

Exchange = dict[str, Any]


def unpack(message: bytes) -> tuple[Any, bool]:
    """The JSON of a message, and whether it was compressed."""
    if len(message) >= 8 and struct.unpack(">I", message[:4])[0] == MAGIC:
        text = zlib.decompress(message[8:])
        assert len(text) == struct.unpack(">I", message[4:8])[0]
        return json.loads(text), True
    return json.loads(message), False


def pack(content: Any, compressed: bool) -> bytes:
    """A message as TRex writes it; it compresses its answer when the request was."""
    text = json.dumps(content, separators=(",", ":")).encode() + b"\n"
    return struct.pack(">II", MAGIC, len(text)) + zlib.compress(text) if compressed else text


def key(method: str, params: Mapping[str, Any]) -> str:
    """What a call is known by."""
    return " ".join([method, *(f"{name}={params[name]}" for name in TELLING if name in params)])


def is_poll(call: str) -> bool:
    """Whether it asks for something that changes by itself."""
    return call.startswith("get_") or call in ("publish_now", "ping")


class TrexReplayServer:
    """Answers each call as the real server did at this point of the recorded session.

    The point is the last call that changed something. Polls get what they got there one after the other, events come
    when what caused them has been called. What was not recorded is answered as TRex answers an unknown method, and is
    in `unknown`."""

    def __init__(self, recording: Path, instead: Mapping[str, Exchange] | None = None) -> None:
        """`instead`: calls by their `key`, and what is answered to them whatever the recording says."""
        self._exchanges: list[Exchange] = json.loads(recording.read_text())["exchanges"]
        self._instead = dict(instead or {})
        #: Place of the last call that changed something.
        self._at = -1
        self._polled: dict[str, int] = {}
        self._events: deque[Any] = deque()
        self._event_number = 0
        #: Calls that were answered, and those that are not in the recording.
        self.calls: list[str] = []
        self.unknown: list[str] = []
        self._context = zmq.Context()
        self._rpc, self._publisher = self._context.socket(zmq.REP), self._context.socket(zmq.PUB)
        self._rpc.linger = self._publisher.linger = 0
        self.sync_port = self._rpc.bind_to_random_port("tcp://127.0.0.1")
        self.async_port = self._publisher.bind_to_random_port("tcp://127.0.0.1")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="trex-replay")

    def __enter__(self) -> "TrexReplayServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._context.destroy()

    def _serve(self) -> None:
        while not self._ended.is_set():
            if self._rpc.poll(50):
                requests, compressed = unpack(self._rpc.recv())
                batch = requests if isinstance(requests, list) else [requests]
                replies = [self._reply(request) for request in batch]
                self._rpc.send(pack(replies if len(replies) > 1 else replies[0], compressed))
            if self._events:
                self._publisher.send(TRIGGER)

    def _reply(self, request: Mapping[str, Any]) -> Exchange:
        method, params = request["method"], request.get("params", {})
        called = key(method, params)
        self.calls.append(called)
        if called in self._instead:
            found = self._instead[called]
        elif method == "publish_now":
            self._publisher.send(TRIGGER)
            found = {"result": {}}
        elif method == "get_async_events":
            events = self._events.popleft() if self._events else []
            found = {"result": {"data": [self._to(params["session_id"], event) for event in events]}}
        else:
            found = self._poll(called) if is_poll(called) else self._change(called)
        answer = {name: found[name] for name in ("result", "error") if name in found}
        return {"id": request["id"], "jsonrpc": "2.0", **answer}

    def _change(self, called: str) -> Exchange:
        places = [place for place, exchange in enumerate(self._exchanges) if exchange["call"] == called]
        if not places:
            return self._not_recorded(called)
        self._at = next((place for place in places if place > self._at), places[-1])
        self._polled.clear()
        for exchange in self._exchanges[self._at + 1 :]:
            if exchange["call"] == "get_async_events":
                self._events.append(exchange["result"]["data"])
            elif not is_poll(exchange["call"]):
                break
        return self._exchanges[self._at]

    def _poll(self, called: str) -> Exchange:
        here = [exchange for exchange in self._segment() if exchange["call"] == called]
        if here:
            number = self._polled.get(called, 0)
            self._polled[called] = number + 1
            return here[min(number, len(here) - 1)]
        elsewhere = [place for place, exchange in enumerate(self._exchanges) if exchange["call"] == called]
        if not elsewhere:
            return self._not_recorded(called)
        before = [place for place in elsewhere if place < self._at]
        return self._exchanges[before[-1] if before else elsewhere[0]]

    def _segment(self) -> Iterator[Exchange]:
        """What was asked after the last change and before the next."""
        for exchange in self._exchanges[self._at + 1 :]:
            if not is_poll(exchange["call"]):
                return
            yield exchange

    def _to(self, session: int, event: Exchange) -> Exchange:
        """The event with the next number, and of the session that asks where it was of the recorded one."""
        self._event_number += 1
        data = event["data"]
        own = {"session_id": session} if data.get("session_id") == OWN_SESSION else {}
        return {**event, "data": {**data, **own}, "seq": self._event_number - 1}

    def _not_recorded(self, called: str) -> Exchange:
        self.unknown.append(called)
        return {"error": {"code": -32601, "message": "Method not registered"}}

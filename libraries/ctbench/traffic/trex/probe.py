"""Asks a TRex server for its version and mode: the least of ZeroMQ (ZMTP 3.0, https://rfc.zeromq.org/spec/23) and JSON.

Runs alone (`python -I -S probe.py ADDRESS PORT SECONDS`, standard library only), since the server may be in a network
namespace that this process is not in. Prints one JSON object; see `ask`.
"""

import json
import socket
import struct
import sys

#: What both sides send first: signature, version 3.0, mechanism NULL, no server, filler.
GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
#: Flags of a frame: more frames follow, its length has eight bytes, it is a command.
MORE, LONG, COMMAND = 1, 2, 4
#: The command that ends the handshake, and says that we are a REQ socket.
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
REQUEST = {"jsonrpc": "2.0", "id": "ctbench", "method": "get_version", "params": {}}


def ask(address: str, port: int, timeout: float) -> dict[str, str]:
    """What is at `address`:`port`, `timeout` seconds for each step: `{"found": "trex", "version", "mode"}`,
    `{"found": "nobody", "text"}` when nobody listens, or `{"found": "other", "text"}` when it does not speak so."""
    try:
        connection = socket.create_connection((address, port), timeout)
    except OSError as error:
        return {"found": "nobody", "text": error.strerror or str(error)}
    with connection:
        try:
            connection.sendall(GREETING)
            if _receive(connection, len(GREETING))[0] != GREETING[0]:
                raise ValueError("it does not speak ZeroMQ")
            _send(connection, READY, COMMAND)
            _send(connection, b"", MORE)  # a REQ socket puts an empty frame before each message
            _send(connection, json.dumps(REQUEST).encode(), 0)
            result = json.loads(_message(connection))["result"]
            return {"found": "trex", "version": str(result["version"]), "mode": str(result["mode"])}
        except TimeoutError:
            return {"found": "other", "text": f"it does not answer within {timeout:g} s"}
        except (OSError, ValueError, KeyError, TypeError) as error:
            return {"found": "other", "text": f"it does not answer as TRex does ({error})"}


def _send(connection: socket.socket, body: bytes, flags: int) -> None:
    connection.sendall(struct.pack("BB", flags, len(body)) + body)


def _message(connection: socket.socket) -> bytes:
    """The next message without the empty frame before it; commands (heartbeats) are passed over."""
    while True:
        flags = _receive(connection, 1)[0]
        size = struct.unpack(">Q", _receive(connection, 8))[0] if flags & LONG else _receive(connection, 1)[0]
        if size > 1 << 20:
            raise ValueError(f"a frame of {size} bytes")
        body = _receive(connection, size)
        if not flags & (COMMAND | MORE):
            return body


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ValueError("it hangs up")
        received += part
    return received


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))

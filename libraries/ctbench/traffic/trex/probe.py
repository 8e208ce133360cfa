"""Asks a TRex server for its version and mode.

Runs alone (`python -I probe.py ADDRESS PORT SECONDS`), since the server may be in a network namespace that this process
is not in. Prints one JSON object; see `ask`.
"""

import json
import socket
import sys

REQUEST = {"jsonrpc": "2.0", "id": "ctbench", "method": "get_version", "params": {}}


def ask(address: str, port: int, timeout: float) -> dict[str, str]:
    """What is at `address`:`port`, `timeout` seconds for each step: `{"found": "trex", "version", "mode"}`,
    `{"found": "nobody", "text"}` when nobody listens, or `{"found": "other", "text"}` when it does not speak so."""
    import zmq  # noqa: PLC0415  # most runs ask no TRex

    try:
        socket.create_connection((address, port), timeout).close()  # ZeroMQ itself does not say that nobody listens
    except OSError as error:
        return {"found": "nobody", "text": error.strerror or str(error)}
    with zmq.Context() as context, context.socket(zmq.REQ) as asking:
        asking.linger, asking.reconnect_ivl = 0, -1
        asking.sndtimeo = asking.rcvtimeo = round(1000 * timeout)
        asking.connect(f"tcp://{address}:{port}")
        try:
            asking.send(json.dumps(REQUEST).encode())
            result = json.loads(asking.recv())["result"]
            return {"found": "trex", "version": str(result["version"]), "mode": str(result["mode"])}
        except zmq.Again:
            return {"found": "other", "text": f"it does not answer within {timeout:g} s as TRex does"}
        except (zmq.ZMQError, ValueError, KeyError, TypeError) as error:
            return {"found": "other", "text": f"it does not answer as TRex does ({error})"}


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))

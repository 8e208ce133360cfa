"""The doctor's probe of a TRex server that runs already: its version and mode. It does not use TRex' client, which
refuses a server of another release before it reports that release."""

import json
import socket

REQUEST = {"jsonrpc": "2.0", "id": "ctbench", "method": "get_version", "params": {}}


def ask(address: str, port: int, timeout: float) -> dict[str, str]:
    """Return what listens at `address`:`port`, with `timeout` seconds for each step: `{"found": "trex", "version",
    "mode"}`, `{"found": "nothing", "text"}` where no program listens, else `{"found": "other", "text"}`."""
    import zmq  # noqa: PLC0415  # most runs ask no TRex

    try:
        socket.create_connection((address, port), timeout).close()  # ZeroMQ itself does not say that no program listens
    except OSError as error:
        return {"found": "nothing", "text": error.strerror or str(error)}
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

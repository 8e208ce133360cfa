"""A replay of trex_daemon_server: real HTTP, answers that a real daemon was seen to give, in the order it gave them."""

import base64
import dataclasses
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from ctbench.hosts.local import Owner

#: What stands in the recording for the user that was recorded, and for one whose run had been killed.
ME, GONE = str(Owner.myself()), str(dataclasses.replace(Owner.myself(), pid="4000000"))


class TrexReplayDaemon:
    """Answers the calls of one recorded session. A call that does not come next in it is in `unexpected`."""

    def __init__(self, recording: Path, session: str) -> None:
        text = recording.read_text().replace("{me}", ME).replace("{gone}", GONE)
        self._exchanges: list[dict[str, Any]] = json.loads(text)[session]
        self._next = 0
        #: Calls that the recording does not have here, and the last configuration that was pushed.
        self.unexpected: list[str] = []
        self.pushed = ""
        replay = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:
                """Answer it."""
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(replay.answer(request)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json-rpc")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="trex-replay-daemon")

    def __enter__(self) -> "TrexReplayDaemon":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def left(self) -> list[str]:
        """Methods of the recording that were not called."""
        return [exchange["method"] for exchange in self._exchanges[self._next :]]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the real daemon answered; to a repeated call the same again."""
        method, params = request["method"], request["params"]
        if method == "push_file":
            self.pushed = base64.b64decode(params[1]).decode()
            params = [params[0], "{config}"]
        for place in (self._next, self._next - 1):
            if 0 <= place < len(self._exchanges):
                exchange = self._exchanges[place]
                if (exchange["method"], exchange["params"]) == (method, params):
                    self._next = place + 1
                    answer = {name: exchange[name] for name in ("result", "error") if name in exchange}
                    return {"jsonrpc": "2.0", "id": request["id"], **answer}
        self.unexpected.append(f"{method} {params}")
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "not recorded"}}

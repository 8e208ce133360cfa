"""Headless Chromium over its DevTools pipe, and a web server that sends Jenkins' default Content-Security-Policy.

The pages have no scripts and the policy forbids them, so everything is asked through DevTools: layout, pictures, paper.
"""

import base64
import fcntl
import functools
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

POLICY = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';"
#: Debian's packages, the smaller one first.
NAMES = ("chromium-headless-shell", "chromium")


def find_chromium() -> str | None:
    """Path of the browser, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, served under the policy."""
    handler = functools.partial(_Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not among the file descriptors that the browser uses."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One page of a browser that nobody sees."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="browser-")
        commands, self._to = _pipe()
        self._from, answers = _pipe()
        # The browser reads its file descriptor 3 and writes its 4.
        shell = f'exec "$0" "$@" 3<&{commands} 4>&{answers} {commands}<&- {answers}>&-'
        self._process = subprocess.Popen(
            [
                "/bin/bash", "-c", shell, executable, "--headless", "--no-sandbox", "--disable-gpu",
                "--remote-debugging-pipe", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._rest, self._number, self._session = b"", 0, ""
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "DOM", "CSS", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        # Asked to, it ends its own processes first and leaves none behind.
        os.write(self._to, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def open(self, url: str, width: int, height: int, *, dark: bool = False) -> None:
        """Load a page in a window of this size. What the page complains about is in `messages`, and what it asks for in
        `requests`."""
        phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.messages.clear()
        self.requests.clear()
        self.ask("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> Any:
        """What an expression of JavaScript yields; a promise is waited for. Not on a page whose policy forbids it."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key, by its name and number in DOM events; `text` is what it types."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def lay_out_for_paper(self) -> None:
        """Lay the page out as on A4 with margins of 14 mm."""
        self.ask("Emulation.setDeviceMetricsOverride", width=688, height=1016, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media="print", features=[])

    def colour(self, selector: str) -> str:
        """Background of the first element that a selector finds."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        styles = self.ask("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]
        return next(style["value"] for style in styles if style["name"] == "background-color")

    def size(self) -> tuple[float, float, float]:
        """Width of the content, width of the window, height of the content."""
        metrics = self.ask("Page.getLayoutMetrics")
        content = metrics["cssContentSize"]
        return content["width"], metrics["cssLayoutViewport"]["clientWidth"], content["height"]

    def places(self, selector: str) -> list[tuple[float, float]]:
        """Top and height of every element that a selector finds."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        found = self.ask("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]
        boxes = [self.ask("DOM.getBoxModel", nodeId=node)["model"] for node in found]
        return [(box["border"][1], box["height"]) for box in boxes]

    def smallest_text(self) -> float:
        """The least size of a font on the page, pixels."""
        shot = self.ask("DOMSnapshot.captureSnapshot", computedStyles=["font-size"])
        sizes = [
            float(shot["strings"][style[0]].removesuffix("px"))
            for document in shot["documents"]
            for text, style in zip(document["layout"]["text"], document["layout"]["styles"], strict=True)
            if text >= 0 and shot["strings"][text].strip()
        ]
        return min(sizes)

    def cut(self) -> list[str]:
        """Elements whose content is wider than they are, so that some of it cannot be seen. Words in a chart have no
        width of their own: `beyond` looks at them."""
        shot = self.ask("DOMSnapshot.captureSnapshot", computedStyles=[], includeDOMRects=True)
        names, found = shot["strings"], []
        for document in shot["documents"]:
            layout = document["layout"]
            rects = zip(layout["nodeIndex"], layout["scrollRects"], layout["clientRects"], strict=True)
            for node, scroll, client in rects:
                if scroll and client and client[2] and scroll[2] > client[2] + 1:
                    name = names[document["nodes"]["nodeName"][node]]
                    if name == "text":
                        continue
                    attributes = [names[index] for index in document["nodes"]["attributes"][node]]
                    found.append(f"{name} {' '.join(attributes)}: {scroll[2]} in {client[2]}")
        return found

    def beyond(self) -> list[str]:
        """Texts that reach beyond the right edge of the window."""
        shot = self.ask("DOMSnapshot.captureSnapshot", computedStyles=[], includeDOMRects=True)
        width = self.size()[1]
        found = []
        for document in shot["documents"]:
            layout = document["layout"]
            for text, (left, _, wide, _) in zip(layout["text"], layout["bounds"], strict=True):
                if text >= 0 and (left < -1 or left + wide > width + 1):
                    found.append(shot["strings"][text])
        return found

    def picture(self, path: Path) -> None:
        """The page as a PNG, as far as Chromium draws one."""
        _, width, height = self.size()
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        """The next message of the browser; complaints are kept."""
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

"""Debian's Chromium, driven by playwright, and a web server that sends Jenkins' default Content-Security-Policy.

The policy forbids scripts of the page; what DevTools evaluate, it lets through."""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

POLICY = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';"
#: Debian's packages, the smaller one first.
NAMES = ("chromium-headless-shell", "chromium")
#: Finds what cannot be read.
LEGIBLE = Path(__file__).with_name("legible.js").read_text(encoding="utf-8")
#: More than any page takes, milliseconds: other tests use the CPUs too.
PATIENCE = 300_000


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


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that is installed; where it or playwright is missing, the test is skipped."""
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright: ./run tests installs it")
    executable = next((found for name in NAMES if (found := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no Chromium: apt-get install --no-install-recommends chromium-headless-shell")
    with driver.sync_playwright() as started, started.chromium.launch(executable_path=executable) as browser:
        yield browser


def open_page(browser: Browser, url: str, width: int, height: int = 900, *, dark: bool = False) -> Page:
    """A page in a window of this size, that of a phone where it is narrow."""
    window, scheme = {"width": width, "height": height}, "dark" if dark else "light"
    page = browser.new_page(viewport=window, is_mobile=width < 600, color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    return page


def complaints(page: Page) -> list[str]:
    """What the browser says against a page."""
    return [message.text for message in page.console_messages()]


def illegible(page: Page) -> list[str]:
    """What cannot be read on a page, each with the word for its fault."""
    return page.evaluate(LEGIBLE, page.viewport_size["width"])

"""The report in a real browser, under the Content-Security-Policy that Jenkins sends by default: desktop, phone, paper.

The pictures stay in pytest's temporary folders for a while, for whoever wants to look.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, find_chromium, served
from golden import GOLDEN, render

pytestmark = [pytest.mark.integration, pytest.mark.beside_others]

#: Width and height of the window, and whether the system is set to dark.
WINDOWS = {
    "desktop": (1280, 900, False),
    "dark": (1280, 900, True),
    "small": (1000, 700, False),
    "tablet": (820, 1180, False),
    "phone": (390, 844, False),
    "narrow": (320, 640, True),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium: apt-get install --no-install-recommends chromium-headless-shell")
    with Browser(executable) as made:
        yield made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden run's folder as a run leaves it: with its report."""
    folder = shutil.copytree(GOLDEN, tmp_path_factory.mktemp("run") / "golden-run")
    for name, text in render().items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    with served(run) as address:
        yield address


@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_is_cut_and_the_policy_forbids_nothing(
    window: str, browser: Browser, address: str, tmp_path: Path
) -> None:
    width, height, dark = WINDOWS[window]
    browser.open(f"{address}/report.html", width, height, dark=dark)
    browser.picture(tmp_path / f"{window}.png")
    content, visible, _ = browser.size()
    assert content <= visible == width
    assert [each for each in browser.cut() if "class subject" not in each] == []
    assert browser.beyond() == []
    assert browser.smallest_text() >= 12
    assert [message for message in browser.messages if "favicon" not in message] == []


def test_the_answer_is_on_the_first_screens_and_a_result_is_one_line(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1200, 900)
    tops = [browser.places(selector)[0][0] for selector in ("h1", "#nearest", "#unseen", "#results")]
    assert tops == sorted(tops) and tops[-1] < 1200
    lines = browser.places("summary.line")
    assert lines and max(height for _, height in lines) < 40
    assert browser.places("#not-run")[0][0] == max(top for top, _ in browser.places("section"))


def test_the_style_sheet_is_applied_under_the_policy(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1280, 900)
    light = browser.colour("body")
    browser.open(f"{address}/report.html", 1280, 900, dark=True)
    assert light != browser.colour("body")


def test_it_works_from_a_file(browser: Browser, run: Path) -> None:
    browser.open((run / "report.html").as_uri(), 1280, 900)
    assert browser.messages == []


def test_paper_has_everything_that_the_screen_has(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1280, 900)
    browser.lay_out_for_paper()
    content, visible, _ = browser.size()
    assert content <= visible
    assert [each for each in browser.cut() if "class subject" not in each] == []
    assert browser.beyond() == []


def test_a_page_that_breaks_the_policy_is_caught(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<!DOCTYPE html><p style='color:red'>x</p><script>alert(1)</script>")
    with served(tmp_path) as other:
        browser.open(f"{other}/bad.html", 400, 300)
    assert browser.messages


def test_a_page_that_is_too_wide_is_caught(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text("<!DOCTYPE html><pre>" + "wide " * 100 + "</pre>")
    with served(tmp_path) as other:
        browser.open(f"{other}/wide.html", 390, 844)
        assert browser.beyond()
